import json

import krippendorff
import numpy as np
import pytest

from accounts.models import User
from annotation import exceptions, flags, frames, models, units
from annotation.agreement import study_agreement
from annotation.disagreement import annotator_table, default_threshold, unit_table
from annotation.disputes import adjudication_queue, decide
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import freeze, save_draft
from annotation.result_kinds.agreement import AgreementKind, agreement_records
from presentation.numbers import plain_records
from stats.agreement import krippendorff_alpha
from tests.annotation.importing import command_output
from tests.annotation.preferences import prefer, preferences, turns
from tests.annotation.studies import alternatives_study, doubt, rate, rating_study, tick
from tests.codes import refused

pytestmark = pytest.mark.django_db
compute_agreement = AgreementKind().compute_now


TICKS = {
    "Ann": ({"clog", "pump"}, {"skirt"}),
    "Bob": ({"clog", "pump"}, {"skirt"}),
    "Cyd": ({"clog"}, {"skirt"}),
    "Odd": ({"flat"}, {"skirt", "coat"}),
}
RATINGS = {"Ann": [10, 50, 90, 30], "Bob": [12, 55, 80, 35], "Odd": [90, 20, 10, 70]}


@pytest.fixture
def ticked() -> models.Study:
    """Four people tick two pools; Odd ticks what nobody else does."""
    study = alternatives_study()
    for person, (boot, gown) in TICKS.items():
        tick(study, person, "boot", boot)
        tick(study, person, "gown", gown)
    return study


@pytest.fixture
def rated() -> models.Study:
    study = rating_study(n_items=4, systems=("alpha",))
    for person, values in RATINGS.items():
        for index, value in enumerate(values):
            rate(study, person, f"d{index}", {"alpha": value})
    return study


class TestUnits:
    def test_the_candidates_with_least_agreement_come_first_of_a_round(self, ticked):
        records = plain_records(unit_table(ticked.question()))
        # Of the six pairs of four people, those with two ticks agree in two, with one in three.
        expected = [("pump", 0.3333), ("clog", 0.5), ("flat", 0.5), ("coat", 0.5), ("skirt", 1)]
        assert [(row["candidate"], round(row["agreement"], 4)) for row in records] == expected
        assert records[0]["mean"] == 0.5
        assert (records[0]["n_judgments"], records[0]["low"], records[0]["high"]) == (4, 0, 1)
        pump = models.Candidate.objects.get(key="pump")
        assert (records[0]["candidate_id"], records[0]["item_id"]) == (pump.pk, pump.item_id)
        json.dumps(records[0], allow_nan=False)
        tick(ticked, "Dee", "boot", {"clog"}, status="rejected")
        tick(ticked, "Eve", "boot", {"clog"}, round=2)
        assert set(unit_table(ticked.question())["n_judgments"]) == {4}
        assert plain_records(unit_table(ticked.question(), round=2)) == []


class TestAnnotators:
    def test_who_pulls_agreement_down_comes_first(self, ticked):
        first, *rest = plain_records(annotator_table(ticked.question()))
        assert first["annotator"] == "Odd"
        assert first["alpha_change"] > 0
        assert all(row["alpha_change"] < first["alpha_change"] for row in rest)
        assert first["loo_agreement"] < min(row["loo_agreement"] for row in rest)

    def test_a_person_is_compared_with_the_others(self, rated):
        table = annotator_table(rated.question()).set_index("annotator")
        others = [RATINGS["Ann"], RATINGS["Bob"]]
        expected = krippendorff.alpha(others, level_of_measurement="interval")
        everyone = krippendorff.alpha([*RATINGS.values()], level_of_measurement="interval")
        assert table.loc["Odd", "alpha_without"] == pytest.approx(expected)
        assert table.loc["Odd", "alpha_change"] == pytest.approx(expected - everyone)
        mean = np.mean(others, axis=0)
        correlation = np.corrcoef(RATINGS["Odd"], mean)[0, 1]
        assert table.loc["Odd", "loo_correlation"] == pytest.approx(correlation)
        assert table.loc["Odd", "bias"] == pytest.approx(np.mean(RATINGS["Odd"] - mean))

    def test_volume_speed_and_flags_are_reported(self, ticked):
        doubt(tick(ticked, "Odd", "boot", {"pump"}, round=2))
        doubt(ticked.annotators.get(pseudonym="Odd").submissions.get(item__key="gown"))
        records = {
            row["annotator"]: row for row in plain_records(annotator_table(ticked.question()))
        }
        assert (records["Odd"]["n_flagged"], records["Ann"]["n_flagged"]) == (1, 0)
        assert (records["Odd"]["n_judgments"], records["Odd"]["median_seconds"]) == (5, 1.5)
        json.dumps(records, allow_nan=False)

    def test_one_annotator_leaves_nulls_and_a_reason(self):
        study = alternatives_study()
        assert plain_records(annotator_table(study.question())) == []
        tick(study, "Ann", "boot", {"clog"})
        [record] = plain_records(annotator_table(study.question()))
        assert (record["alpha_without"], record["reason"]) == (None, "no_overlap")


class TestQueue:
    @pytest.fixture
    def senior(self) -> User:
        return User.objects.create_user("senior")

    def keys(self, study: models.Study, **options: object) -> list[str]:
        compute_agreement(study)
        return [row.candidate for row in adjudication_queue(study.question(), **options).disputes]

    def test_what_is_agreed_upon_is_not_in_the_queue(self, ticked):
        assert self.keys(ticked) == ["pump", "clog", "flat", "coat"]
        assert self.keys(ticked, most=2) == ["pump", "clog"]
        assert self.keys(ticked, skip=1, most=2) == ["clog", "flat"]
        assert adjudication_queue(ticked.question(), most=2).n_disputed == 4
        queue = adjudication_queue(alternatives_study("unjudged").question())
        assert (queue.disputes, queue.n_disputed, queue.n_decided) == ((), 0, 0)

    def test_each_dispute_shows_who_gave_what_and_why(self, ticked):
        submission = ticked.annotators.get(pseudonym="Odd").submissions.get(item__key="boot")
        submission.justification = "flat is flat"
        submission.save()
        doubt(submission)
        compute_agreement(ticked)
        first = adjudication_queue(ticked.question()).disputes[0]
        expected = [("Ann", 1, "yes"), ("Bob", 1, "yes"), ("Cyd", 0, "no"), ("Odd", 0, "no")]
        assert [(o.annotator, o.value, o.category) for o in first.opinions] == expected
        last = first.opinions[-1]
        assert (last.justification, last.flag_reason) == ("flat is flat", "too fast")

    def test_what_was_decided_of_this_round_leaves_the_queue(self, ticked, senior):
        tick(ticked, "Ann", "boot", set(), round=2)
        pump = models.Candidate.objects.get(key="pump")
        decision = {"candidate": pump, "question": ticked.question(), "value": 1}
        decide(**decision, decided_by=senior, round=2)
        assert self.keys(ticked)[0] == "pump"
        decide(**decision, decided_by=senior, note="why")
        assert self.keys(ticked) == ["clog", "flat", "coat"]
        queue = adjudication_queue(ticked.question(), with_decided=True)
        assert (queue.n_disputed, queue.n_decided) == (4, 1)
        record = queue.disputes[0].record()
        assert record["decision"]["value"] == 1
        assert (record["decision"]["decided_by"], record["decision"]["note"]) == ("senior", "why")
        json.dumps(record, allow_nan=False)

    def test_ratings_nearby_are_no_dispute_unless_the_threshold_says_so(self, rated):
        # The four candidates' ratings span 80, 35, 80 and 40 of the scale's 100.
        assert self.keys(rated, threshold=0.5) == ["alpha", "alpha"]
        assert adjudication_queue(rated.question()).n_disputed == 4
        assert adjudication_queue(rated.question(), threshold=0.375).n_disputed == 3
        assert adjudication_queue(rated.question(), threshold=0.8).n_disputed == 0
        for level in ("ordinal", "interval", "ratio"):
            assert default_threshold(models.Question(level=level)) == 0.25

    def test_only_two_steps_or_more_than_a_quarter_of_the_scale_are_a_dispute(self):
        for n_steps in (2, 3, 4, 5):
            study = rating_study(f"of-{n_steps}", n_items=2, systems=("alpha",), level="ordinal")
            study.questions.update(scale_min=1, scale_max=n_steps)
            for person, first, second in (("Ann", 1, 1), ("Bob", 2, min(3, n_steps))):
                rate(study, person, "d0", {"alpha": first})
                rate(study, person, "d1", {"alpha": second})
            compute_agreement(study)
            disputes = [row.item for row in adjudication_queue(study.question()).disputes]
            assert disputes == (["d0", "d1"] if n_steps == 2 else ["d1"])
        for number, (low, high, first, second) in enumerate(
            ((0, 1, 0.3, 0.55), (0, 10, 1.9, 4.4), (1, 9, 2.4, 4.4), (0, 0.2, 0.15, 0.2))
        ):
            study = rating_study(f"quarter-{number}", n_items=1, systems=("alpha",))
            study.questions.update(scale_min=low, scale_max=high)
            rate(study, "Ann", "d0", {"alpha": first})
            rate(study, "Bob", "d0", {"alpha": second})
            compute_agreement(study)
            assert adjudication_queue(study.question()).n_disputed == 0

    def test_the_spread_of_categories_is_the_minoritys_share(self, ticked):
        compute_agreement(ticked)
        spreads = models.UnitAgreement.objects.values_list("candidate__key", "spread")
        assert dict(spreads) == {"pump": 0.5, "clog": 0.25, "flat": 0.25, "coat": 0.25, "skirt": 0}
        assert adjudication_queue(ticked.question(), threshold=0.25).n_disputed == 1
        assert default_threshold(ticked.question()) == 0

    def test_a_new_computation_takes_the_place_of_the_one_before(self, ticked):
        first = compute_agreement(ticked)
        tick(ticked, "Ann", "boot", {"clog"}, round=2)
        tick(ticked, "Bob", "boot", {"pump"}, round=2)
        second = compute_agreement(ticked)
        assert second.number == 2
        assert (first.facts["n_disputed"], second.facts["n_disputed"]) == (4, 6)
        assert list(AgreementKind().list_results(ticked)) == [second]
        assert models.UnitAgreement.objects.count() == 5 + 3

    def test_queries_of_the_queue_do_not_grow(self, django_assert_max_num_queries):
        for n_items in (5, 20):
            study = rating_study(f"of-{n_items}", n_items=n_items)
            for index in range(n_items):
                rate(study, "Ann", f"d{index}", {"alpha": 0, "beta": 100})
                rate(study, "Bob", f"d{index}", {"alpha": 90, "beta": 10})
            compute_agreement(study)
            question = study.question()
            with django_assert_max_num_queries(7):
                assert adjudication_queue(question, most=5).n_disputed == 2 * n_items


def test_a_worker_who_always_picks_the_first_is_flagged_though_nobody_else_answers():
    study = preferences()
    prefer(study, "Ann", [(first, first) for first in turns(10)])
    [flag] = flags.store_evidence(study).annotator_flags.all()
    assert (flag.name, flag.n, flag.n_hits) == ("position", 10, 10)
    assert (flag.expected, flag.value) == (5, 1)
    assert not models.Submission.objects.filter(evidence__is_flagged=False).exists()
    fixed = preferences(policy="fixed", slug="fixed")
    prefer(fixed, "Ann", [(first, first) for first in turns(10)])
    assert not flags.store_evidence(fixed).annotator_flags.exists()


def test_a_study_reports_what_being_shown_first_adds_with_its_interval():
    study = preferences()
    # Of ten pages each, Ann chooses the first shown on seven and Bob on six.
    for person, n_first in (("Ann", 7), ("Bob", 6)):
        chosen = [
            (first, first if number < n_first else {"alpha": "beta", "beta": "alpha"}[first])
            for number, first in enumerate(turns(10))
        ]
        prefer(study, person, chosen)
    rows = agreement_records(compute_agreement(study))["positions"]
    every, ann, bob = rows
    assert [row["annotator"] for row in rows] == ["", "Ann", "Bob"]
    assert (every["n_pages"], every["n_annotators"], every["question"]) == (20, 2, "better")
    assert every["first"] == pytest.approx(13 / 20)
    assert every["last"] == pytest.approx(7 / 20)
    assert every["value"] == pytest.approx(6 / 20)
    assert every["ci_low"] < 0 < every["ci_high"]
    assert (ann["value"], bob["value"]) == (pytest.approx(0.4), pytest.approx(0.2))


def test_there_is_no_position_effect_of_answers_in_a_fixed_order():
    study = preferences(policy="fixed")
    prefer(study, "Ann", [(first, first) for first in turns(10)])
    assert agreement_records(compute_agreement(study))["positions"] == []


def compared_study(kind: str, systems: tuple[str, ...], n_items: int = 3) -> models.Study:
    study = rating_study(n_items=n_items, systems=systems, questions=())
    question = ProtocolQuestion(name="q", kind=kind, wording="Which?", ties=kind != "best_worst")
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(question,)))
    freeze(study=study)
    return study


def compare(study: models.Study, person: str, item: str, values: dict[str, float]) -> None:
    submission = models.Submission.objects.filter(pk=rate(study, person, item, values).pk)
    submission.update(protocol=study.protocols.get())


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("preference", {"a": 1, "b": 0, "c": 0}, {"ab": 1, "ac": 1}),
        ("preference", {"a": 0.5, "b": 0.5}, {"ab": 0.5, "ba": 0.5}),
        (
            *("best_worst", {"a": 1, "b": 0.5, "c": 0.5, "d": 0}),
            dict.fromkeys(("ab", "ac", "ad", "bd", "cd"), 1),
        ),
        ("ranking", {"a": 1, "b": 0.25, "c": 0.25}, {"ab": 1, "ac": 1, "bc": 0.5, "cb": 0.5}),
    ],
)
def test_comparisons_become_wins(kind, values, expected):
    study = compared_study(kind, tuple(values))
    compare(study, "ann", "d0", values)
    table = units.wins(study.questions.get(), frames.judgment_frame(study))
    found = zip(table["winner"] + table["loser"], table["weight"], strict=True)
    assert sorted(found) == sorted(expected.items())


def test_strengths_are_those_of_an_independent_library():
    import choix

    study = compared_study("preference", ("a", "b"), n_items=5)
    for person, item, winner in [
        *(("ann", f"d{n}", "a") for n in range(3)),
        *(("ann", f"d{n}", "b") for n in (3, 4)),
        ("bob", "d0", "a"),
        ("bob", "d1", "b"),
    ]:
        compare(study, person, item, {name: float(name == winner) for name in ("a", "b")})
    labels = units.system_strengths(study, question=study.questions.get()).labels.set_index("item")
    theirs = choix.ilsr_pairwise(2, [(0, 1)] * 4 + [(1, 0)] * 3)
    assert np.allclose(labels.loc[["a", "b"], "label"], theirs - theirs.mean(), atol=1e-6)
    record = json.loads(command_output("rank_systems", study.slug, json=True))
    assert {one["item"] for one in record["systems"]} == {"a", "b"}
    ratings = rating_study("ratings-alone")
    with refused(exceptions.StudyUnfit, "no_comparison"):
        units.system_strengths(ratings, question=ratings.questions.get())


def test_agreement_on_a_preference_is_nominal_and_of_the_choice():
    study = compared_study("preference", ("a", "b"), n_items=4)
    choices = {"ann": "aabt", "bob": "abbt", "cat": "aab-"}
    labels = [
        (number, person, choice)
        for person, said in choices.items()
        for number, choice in enumerate(said)
        if choice != "-"
    ]
    for number, person, choice in labels:
        given = {name: 0.5 if choice == "t" else float(name == choice) for name in ("a", "b")}
        compare(study, person, f"d{number}", given)
    question = study_agreement(study).questions[0]
    expected = krippendorff_alpha(*zip(*labels, strict=True), level="nominal")
    assert question.level == "nominal"
    assert question.alpha.value == pytest.approx(expected.value)
    assert question.alpha.n_items == expected.n_items == 4


def test_what_is_asked_of_the_item_has_no_candidate_in_the_frame():
    study = rating_study(n_items=2, questions=())
    clear = ProtocolQuestion(name="clear", kind="yes_no", wording="Clear?", about="item")
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(clear,)))
    freeze(study=study)
    question = study.questions.get()
    for number, item in enumerate(study.items.all()):
        for person in ("ann", "bob"):
            annotator = models.Annotator.objects.get_or_create(study=study, pseudonym=person)[0]
            submission = models.Submission.objects.create(item=item, annotator=annotator, raw="")
            models.Judgment.objects.create(submission=submission, question=question, value=number)
    frame = frames.judgment_frame(study)
    columns = [frame[name] for name in ("item", "candidate", "system", "value")]
    assert list(zip(*columns, strict=True)) == [("d0", "", "", 0)] * 2 + [("d1", "", "", 1)] * 2
    assert study_agreement(study).questions[0].alpha.value == pytest.approx(1)


def test_agreement_is_split_by_the_version_it_was_judged_under():
    study = compared_study("preference", ("a", "b"), n_items=2)
    first = study.protocols.get()
    for person, name in (("ann", "a"), ("bob", "a"), ("cat", "b")):
        compare(study, person, "d0", {each: float(each == name) for each in ("a", "b")})
    question = ProtocolQuestion(name="q", kind="preference", wording="Better?", ties=True)
    save_draft(study=study, document=ProtocolDocument(title="T", questions=(question,)))
    models.Submission.objects.filter(annotator__pseudonym="cat").update(
        protocol=freeze(study=study)
    )
    assert len(frames.judgment_frame(study)) == 6
    assert len(frames.judgment_frame(study, protocol=first)) == 4
    assert study_agreement(study, protocol=first).questions[0].alpha.n_items == 1
    assert models.Protocol.objects.of(study).count() == 2
    rows = agreement_records(compute_agreement(study))["by_protocol"]
    alphas = [row for row in rows if row["name"] == "krippendorff_alpha"]
    assert [(row["protocol"], row["n_labels"]) for row in alphas] == [(1, 2), (2, 1)]
    options = {"protocol": 1, "json": True}
    content = json.loads(command_output("study_agreement", study.slug, **options))
    assert {row["n_items"] for row in content["coefficients"] if row["n_items"]} == {1}
