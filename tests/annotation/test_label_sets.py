import csv
import json
from typing import Any

import pytest

from accounts.models import User
from annotation import disputes, exceptions, exports
from annotation.label_sets import METHODS_AT_LEVEL, Rule, make_label_set
from annotation.models import Adjudication, Candidate, LabelSet, Question, Study, Submission
from retrieval.exports.qrels import label_source, qrels_of, study_qrels
from tests.annotation import studies
from tests.codes import refused

pytestmark = pytest.mark.django_db

MAJORITY = Rule(method="majority")


@pytest.fixture
def judged_by_three() -> Study:
    """Clog ticked by three of three, pump by two, flat by one, sole by none."""
    study = studies.alternatives_study(
        pools={"boot": ("clog", "pump", "flat", "sole"), "gown": ("coat",)}
    )
    studies.tick(study, "Ann", "boot", {"clog", "pump", "flat"})
    studies.tick(study, "Bob", "boot", {"clog", "pump"})
    studies.tick(study, "Cyd", "boot", {"clog"})
    return study


@pytest.fixture
def senior() -> User:
    return User.objects.create_user("senior")


def make(study: Study, rule: Rule = MAJORITY, **options: object) -> LabelSet:
    return make_label_set(question=study.question(), rule=rule, **options).label_set


def values_of(label_set: LabelSet) -> dict[str, float]:
    return dict(label_set.labels.values_list("candidate__key", "value"))


def overrule(study: Study, key: str, value: float, by: User, **options: Any) -> Adjudication:
    options = {"question": study.question(), **options}
    candidate = Candidate.objects.get(item__study=study, key=key)
    return disputes.decide(candidate=candidate, value=value, decided_by=by, **options)


def test_each_judged_candidate_gets_one_label(judged_by_three):
    made = make_label_set(question=judged_by_three.question(), rule=MAJORITY)
    again = make_label_set(question=judged_by_three.question(), rule=MAJORITY)
    assert (made.is_new, again.is_new) == (True, False)
    label_set = made.label_set
    assert again.label_set == LabelSet.objects.get() == label_set
    assert (label_set.converged, label_set.iterations) == (None, None)
    assert values_of(label_set) == {"clog": 1, "pump": 1, "flat": 0, "sole": 0}
    pump = label_set.labels.get(candidate__key="pump")
    assert pump.probability == pytest.approx(2 / 3)
    assert (pump.n_judgments, pump.is_tied, pump.is_adjudicated, pump.se) == (3, False, False, None)
    by_model = make(judged_by_three, Rule(method="dawid_skene"))
    assert by_model.converged is True
    assert by_model.iterations > 0
    # Ratings are labelled with a number and its error.
    ratings = make(studies.rated_study(), Rule(method="mean"))
    first = ratings.labels.first()
    assert (first.value, first.se, first.probability) == (22.5, 2.5, None)
    with pytest.raises(exceptions.StudyUnfit):
        qrels_of(label_source(ratings))


def test_a_new_judgment_makes_a_new_version_and_leaves_the_old(judged_by_three):
    old = make(judged_by_three)
    studies.tick(judged_by_three, "Dee", "gown", {"coat"})
    new = make(judged_by_three)
    assert (old.version, new.version) == (1, 2)
    assert old.fingerprint != new.fingerprint
    assert "coat" in values_of(new)
    assert "coat" not in values_of(old)
    assert make(studies.ticked_study("another")).version == 1


def test_another_rule_makes_another_version(judged_by_three):
    options = ({"with_adjudications": False}, {"with_flagged": False})
    rules = [MAJORITY, Rule("dawid_skene"), Rule("majority", parameters={"repeats": "count"})]
    rules += [Rule(method="majority", **option) for option in options]
    for _ in range(2):
        assert [make(judged_by_three, rule).version for rule in rules] == [1, 2, 3, 4, 5]
    # Questions of a study share the count of versions.
    questions = studies.rated_study(questions=("style", "wit")).questions.all()
    made = [make_label_set(question=each, rule=Rule(method="mean")) for each in questions]
    names = [(each.label_set.question.name, each.label_set.version) for each in made]
    assert names == [("style", 1), ("wit", 2)]


def test_a_decision_overrides_the_rule(judged_by_three, senior):
    studies.tick(judged_by_three, "Ann", "boot", set(), round=2)
    overrule(judged_by_three, "flat", 1, senior, round=2)
    without = make(judged_by_three)
    overrule(judged_by_three, "flat", 1, senior)
    overrule(judged_by_three, "coat", 1, senior)
    decided = make(judged_by_three, created_by=senior)
    assert (decided.n_labels, decided.n_adjudicated, decided.created_by) == (5, 2, senior)
    coat = decided.labels.get(candidate__key="coat")
    assert (coat.value, coat.n_judgments) == (1, 0)
    assert values_of(decided)["flat"] == 1
    assert values_of(without)["flat"] == 0
    label = decided.labels.get(candidate__key="flat")
    assert (label.is_adjudicated, label.n_judgments, label.probability) == (True, 3, None)
    assert decided.labels.filter(is_adjudicated=True).count() == 2
    left_out = make(judged_by_three, Rule(method="majority", with_adjudications=False))
    assert values_of(left_out)["flat"] == 0
    by_labels, by_vote = qrels_of(label_source(decided)), study_qrels(judged_by_three)
    assert list(by_labels.lines())[2] == "boot 0 flat 1\n"
    assert list(by_vote.lines())[2] == "boot 0 flat 0\n"
    assert (by_labels.n_lines, by_labels.n_relevant) == (5, 4)


def test_rejected_submissions_do_not_count_and_flagged_ones_where_chosen():
    study = studies.alternatives_study(pools={"boot": ("clog",)})
    studies.tick(study, "Ann", "boot", {"clog"})
    studies.doubt(studies.tick(study, "Bob", "boot", set()))
    studies.tick(study, "Cyd", "boot", set(), status="rejected")
    assert make(study).labels.get().n_judgments == 2
    unflagged = make(study, Rule(method="majority", with_flagged=False)).labels.get()
    assert (unflagged.n_judgments, unflagged.value) == (1, 1)


@pytest.mark.parametrize("level", Question.Level.values)
def test_every_rule_of_a_level_labels_every_candidate(level):
    study = studies.rating_study(level=level, n_items=4)
    study.questions.update(scale_min=1, scale_max=5)
    for person, more in (("Ann", 0), ("Bob", 1), ("Cyd", 0)):
        for index in range(4):
            studies.rate(
                study, person, f"d{index}", {"alpha": 1 + (index + more) % 4, "beta": 5 - more}
            )
    for method in METHODS_AT_LEVEL[level]:
        assert make(study, Rule(method=method)).labels.count() == 8


def test_a_rule_that_does_not_fit_is_refused():
    study = studies.ticked_study()
    with refused(exceptions.StudyUnfit, "unfit_method"):
        make(study, Rule(method="mean"))
    with refused(exceptions.StudyUnfit, "not_judged"):
        make(study, Rule(method="majority", round=2))
    make(study)
    with refused(exceptions.QuestionUnknown, name="wit", known=["acceptable"]):
        study.question("wit")
    with refused(exceptions.LabelSetUnknown, version=7, known=[1]):
        LabelSet.objects.of(study).numbered(7)


def test_csv_and_json_hold_the_same_labels(judged_by_three, tmp_path):
    label_set = make(judged_by_three)
    exports.write_labels(label_set, tmp_path / "labels.json")
    exports.write_labels(label_set, tmp_path / "labels.csv")
    written = json.loads((tmp_path / "labels.json").read_text())
    assert written == json.loads("".join(exports.labels_json(label_set)))
    table = "".join(exports.labels_csv(label_set))
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["candidate"] for row in rows] == ["clog", "pump", "flat", "sole"]
    assert [row["category"] for row in rows] == ["yes", "yes", "no", "no"]
    assert (tmp_path / "labels.csv").read_text() == table
    assert (tmp_path / "labels.json").read_text() == json.dumps(written, indent=1)
    assert table.splitlines()[1].startswith("boot,,clog,,1.0,yes,1.0,,3,False")
    assert written["labels"][1] == {
        **{"item": "boot", "condition": "", "candidate": "pump", "system": ""},
        **{"value": 1, "category": "yes", "probability": pytest.approx(2 / 3), "se": None},
        **{"n_judgments": 3, "is_tied": False, "is_adjudicated": False},
    }
    assert (written["version"], written["signature"]) == (1, label_set.signature)


def test_a_decision_keeps_who_made_it_and_why_in_each_round(senior):
    study = studies.ticked_study()
    decision = overrule(study, "clog", 0, senior, note=" a shoe ")
    decision.refresh_from_db()
    assert (decision.value, decision.note, decision.round) == (0, "a shoe", 1)
    assert decision.decided_by == senior
    assert decision.decided_at is not None
    # The last decision stands, and the same again is no new one.
    last, again = (overrule(study, "clog", 1, senior) for _ in range(2))
    assert last == again
    assert [row.value for row in Adjudication.objects.of(study)] == [0, 1]
    assert [row.value for row in Adjudication.objects.of(study).standing()] == [1]
    # The rounds of a candidate are decided apart.
    study = studies.ticked_study("rounds")
    studies.tick(study, "Ann", "boot", {"clog"}, round=2)
    for round, value in ((1, 0), (2, 1)):
        overrule(study, "clog", value, senior, round=round)
    standing = Adjudication.objects.of(study).standing().values_list("round", "value")
    assert set(standing) == {(1, 0), (2, 1)}


def test_a_decision_that_cannot_be_made_is_refused(senior):
    study = studies.ticked_study()
    for value, code in ((-1, "off_scale"), (2, "off_scale"), (0.5, "between_categories")):
        with refused(exceptions.DecisionRefused, code):
            overrule(study, "clog", value, senior)
    with refused(exceptions.DecisionRefused, "off_scale"):
        overrule(study, "clog", float("nan"), senior)
    with refused(exceptions.DecisionRefused, "other_study"):
        overrule(study, "clog", 1, senior, question=studies.rating_study().question())
    for round in (-1, 0, 2):
        with refused(exceptions.DecisionRefused, "not_judged"):
            overrule(study, "clog", 1, senior, round=round)
    Submission.objects.of(study).update(status=Submission.Status.REJECTED)
    with refused(exceptions.DecisionRefused, "not_judged"):
        overrule(study, "clog", 1, senior)
    assert not Adjudication.objects.exists()
