import itertools
import json
from itertools import pairwise
from math import isnan

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from annotation import disagreement, frames, units
from annotation.agreement import _across, round_agreement, rounds_of, study_agreement
from annotation.label_sets import Rule, make_label_set
from annotation.models import Adjudication, Judgment, Question, Study, Submission
from annotation.protocols.validation import document_faults
from presentation.numbers import plain_records
from stats.agreement import CiMethod, Reason
from tests.annotation import studies
from tests.codes import codes_of

pytestmark = pytest.mark.django_db

# What each person gave alpha and beta of items d0, d1 and d2.
RATINGS = {"Ann": [1, 2, 5, 4, 1, 3], "Bob": [2, 2, 4, 5, 1, 5], "Cyd": [1, 1, 5, 5, 2, 3]}


def judged_study(slug="judged", annotators=tuple(RATINGS), *, scale_max=5, **fields):
    study = studies.rating_study(slug, **fields)
    study.questions.update(scale_min=1, scale_max=scale_max)
    for person in annotators:
        judge(study, person)
    return study


def judge(study, person, **options):
    for index, item in enumerate(study.items.all()):
        alpha, beta = RATINGS[person][2 * index : 2 * index + 2]
        studies.rate(study, person, item.key, {"alpha": alpha, "beta": beta}, **options)


def only(report):
    [row] = report.questions
    return row


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_takes_each_candidate_for_a_unit_at_the_questions_level(level):
    report = study_agreement(judged_study(level=level))
    row = only(report)
    expected = krippendorff.alpha(list(RATINGS.values()), level_of_measurement=level)
    assert row.alpha.value == pytest.approx(expected)
    assert (row.question, row.level, row.condition) == ("appropriateness", level, "")
    assert (row.alpha.n_items, row.alpha.n_annotators, row.alpha.n_labels) == (6, 3, 18)
    # The candidates of an item are a cluster.
    assert row.alpha.ci_method == CiMethod.JACKKNIFE_CLUSTERS
    assert row.alpha.ci_low < row.alpha.value < row.alpha.ci_high
    assert report.pairs.empty == (level in ("interval", "ratio"))


def test_conditions_are_reported_after_all_of_them_together():
    study = judged_study(conditions=("calm", "angry", "calm"))
    together, calm, angry = study_agreement(study).questions
    assert [row.condition for row in (together, calm, angry)] == ["", "calm", "angry"]
    rows = list(RATINGS.values())
    in_calm = [[*values[:2], *values[4:]] for values in rows]
    assert calm.alpha.value == pytest.approx(
        krippendorff.alpha(in_calm, level_of_measurement="interval")
    )
    assert angry.alpha.value == pytest.approx(
        krippendorff.alpha([values[2:4] for values in rows], level_of_measurement="interval")
    )
    assert together.alpha.n_items == calm.alpha.n_items + angry.alpha.n_items
    # One condition is not reported twice.
    assert only(study_agreement(judged_study("one", conditions=("calm",)))).condition == ""


def test_rounds_are_reported_apart_and_rejected_submissions_do_not_count():
    study = judged_study()
    Submission.objects.filter(annotator__pseudonym="Cyd").update(status=Submission.Status.REJECTED)
    without = judged_study("without", ("Ann", "Bob"))
    # As texts, since some values are NaN, which equals nothing.
    assert repr(only(study_agreement(study))) == repr(only(study_agreement(without)))
    study = judged_study("rounds", ("Ann",))
    judge(study, "Ann", round=2)
    assert only(study_agreement(study)).alpha.reason == Reason.ONE_ANNOTATOR
    judge(study, "Cyd", round=2)
    judge(study, "Bob", round=3, status=Submission.Status.REJECTED)
    second = study_agreement(study, round=2)
    assert second.round == 2
    expected = krippendorff.alpha([RATINGS["Ann"], RATINGS["Cyd"]], level_of_measurement="interval")
    assert only(second).alpha.value == pytest.approx(expected)
    assert rounds_of(study) == [1, 2]


def test_kappa_is_that_of_every_pair_at_the_nominal_level_or_has_a_reason():
    pairs = study_agreement(judged_study(level="nominal")).pairs
    expected = {
        (a, b): cohen_kappa_score(RATINGS[a], RATINGS[b])
        for a, b in [*pairwise(RATINGS), ("Ann", "Cyd")]
    }
    kappas = {(row.annotator_a, row.annotator_b): row.kappa for row in pairs.itertuples()}
    assert kappas == pytest.approx(expected)
    assert set(pairs["question"]) == {"appropriateness"}
    assert set(pairs["n_overlap"]) == {6}
    study = studies.rating_study(level="nominal")
    studies.rate(study, "Ann", "d0", {"alpha": 1, "beta": 1})
    studies.rate(study, "Bob", "d0", {"alpha": 1, "beta": 1})
    studies.rate(study, "Cyd", "d1", {"alpha": 1})
    studies.rate(study, "Bob", "d1", {"alpha": 1})
    records = plain_records(study_agreement(study).pairs)
    pairs = [(row["annotator_a"], row["annotator_b"]) for row in records]
    assert pairs == [("Ann", "Bob"), ("Bob", "Cyd")]
    assert [row["reason"] for row in records] == [Reason.SINGLE_CATEGORY, Reason.SINGLE_ITEM]
    assert [row["kappa"] for row in records] == [None, None]


def test_kappa_of_an_ordinal_scale_counts_its_steps_and_ranks_what_is_between():
    study = judged_study(annotators=(), level="ordinal")
    ann, bob = [1, 2, 5, 4, 1, 2], [1, 1, 5, 2, 2, 4]
    for person, values in (("Ann", ann), ("Bob", bob)):
        for index in range(3):
            alpha, beta = values[2 * index : 2 * index + 2]
            studies.rate(study, person, f"d{index}", {"alpha": alpha, "beta": beta})
    by_step = cohen_kappa_score(ann, bob, labels=range(1, 6), weights="linear")
    by_rank = cohen_kappa_score(ann, bob, weights="linear")
    assert by_step != pytest.approx(by_rank)
    [row] = study_agreement(study).pairs.itertuples()
    assert row.kappa == pytest.approx(by_step)
    # A scale of very many steps is taken by the ranks of the values that occur.
    study.questions.update(scale_max=100_000)
    [row] = study_agreement(study).pairs.itertuples()
    assert row.kappa == pytest.approx(by_rank)
    study = judged_study("between", ("Ann", "Bob"), level="ordinal")
    studies.rate(study, "Cyd", "d0", {"alpha": 1.5, "beta": 2})
    pairs = study_agreement(study).pairs
    assert list(pairs["n_overlap"]) == [6, 2, 2]
    assert not pairs["kappa"].isna().all()


def test_questions_and_pools_share_one_table_of_pairs():
    study = studies.rated_study(questions=("style", "liked"), level="nominal")
    study.questions.filter(name="style").update(level="interval")
    report = study_agreement(study)
    assert set(report.pairs["question"]) == {"liked"}
    rows = [(row.question, row.level) for row in report.questions]
    assert rows == [("style", "interval"), ("liked", "nominal")]
    # A candidate's key may recur in another item.
    study = studies.alternatives_study(
        pools={"boot": ("clog", "pump", "flat"), "gown": ("clog", "pump")}
    )
    for person, boot, gown in (("Ann", {"clog", "pump"}, set()), ("Bob", {"clog"}, {"pump"})):
        studies.tick(study, person, "boot", boot)
        studies.tick(study, person, "gown", gown)
    report = study_agreement(study)
    ann, bob = [1, 1, 0, 0, 0], [1, 0, 0, 0, 1]
    assert only(report).alpha.value == pytest.approx(
        krippendorff.alpha([ann, bob], level_of_measurement="nominal")
    )
    [row] = report.pairs.itertuples()
    assert row.kappa == pytest.approx(cohen_kappa_score(ann, bob))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_what_is_undefined_has_a_reason(level):
    report = study_agreement(studies.rating_study("nobody", level=level, questions=("a", "b")))
    assert [row.alpha.reason for row in report.questions] == [Reason.NO_LABELS] * 2
    assert report.pairs.empty
    report = study_agreement(judged_study("lone", ("Ann",), level=level))
    assert only(report).alpha.reason == Reason.ONE_ANNOTATOR
    assert isnan(only(report).alpha.value)
    assert report.pairs.empty
    study = studies.rating_study("constant", level=level)
    for person in ("Ann", "Bob"):
        for item in ("d0", "d1"):
            studies.rate(study, person, item, {"alpha": 50, "beta": 50})
    assert only(study_agreement(study)).alpha.reason == Reason.SINGLE_CATEGORY
    study = studies.rating_study("single", n_items=1, systems=("alpha",), level=level)
    for person, value in (("Ann", 20), ("Bob", 40)):
        studies.rate(study, person, "d0", {"alpha": value})
    assert only(study_agreement(study)).alpha.reason == Reason.SINGLE_ITEM


def test_every_coefficient_is_recorded_with_its_value_or_reason():
    study = judged_study(annotators=("Ann",))
    [record] = json.loads(json.dumps(study_agreement(study).records(), allow_nan=False))
    assert record == record | {
        **{"question": "appropriateness", "by": "", "level": "interval", "n_labels": 6},
        **{"name": "krippendorff_alpha", "value": None, "ci_low": None, "reason": "one_annotator"},
    }
    records = study_agreement(judged_study("nominal", level="nominal")).coefficient_records()
    values = {record["name"]: record["value"] for record in records}
    assert values["krippendorff_alpha"] == pytest.approx(
        krippendorff.alpha(list(RATINGS.values()), level_of_measurement="nominal")
    )
    assert values["icc1"] is None
    assert "krippendorff_alpha_masi" not in values
    assert all((record["value"] is None) == bool(record["reason"]) for record in records)
    assert {record["with_flagged"] for record in records} == {True}
    study = studies.alternatives_study(pools={"boot": ("clog", "pump"), "gown": ("coat",)})
    study.questions.update(categories=["no", "yes", "unsure"])
    for person, clogs in (("Ann", {"clog", "pump"}), ("Bob", {"clog"})):
        studies.tick(study, person, "boot", clogs)
        studies.tick(study, person, "gown", set())
    records = study_agreement(study).coefficient_records()
    [value] = [row["value"] for row in records if row["name"] == "brennan_prediger"]
    assert value == pytest.approx((2 / 3 - 1 / 3) / (1 - 1 / 3))


def test_flags_are_counted_and_shown_both_ways_unless_of_another_round_or_rejected():
    study = judged_study()
    studies.doubt(*study.annotators.get(pseudonym="Cyd").submissions.all())
    report, without = study_agreement(study), judged_study("without", ("Ann", "Bob"))
    assert report.n_flagged == 3
    assert only(report).alpha.n_annotators == 3
    [unflagged] = report.unflagged
    assert unflagged.record() == only(study_agreement(without)).record()
    assert {row["with_flagged"] for row in report.coefficient_records()} == {True, False}
    study = judged_study("again", ("Ann", "Bob"))
    studies.doubt(studies.rate(study, "Ann", "d0", {"alpha": 1}, round=2))
    studies.doubt(studies.rate(study, "Cyd", "d0", {"alpha": 1}, status=Submission.Status.REJECTED))
    report = study_agreement(study)
    assert (report.n_flagged, report.unflagged) == (0, ())


def test_what_is_ticked_of_an_item_is_also_compared_as_a_set():
    study = studies.alternatives_study()
    ticks = {"Ann": ({"clog", "pump"}, set()), "Bob": ({"clog"}, set())}
    ticks["Cyd"] = ({"flat"}, {"skirt"})
    for person, pools in ticks.items():
        for item, ticked in zip(("boot", "gown"), pools, strict=True):
            studies.tick(study, person, item, ticked)
    sets = {c.name: c for c in only(study_agreement(study)).coefficients}["krippendorff_alpha_masi"]
    assert (sets.n_items, sets.n_labels, sets.level) == (2, 6, "set")
    # Two of a set share one of two (MASI 1 - 1/2 * 2/3); any other two that differ share none.
    between = [2 / 3, 1, 1, 0, 1, 1]
    everyone = [*ticks.values()]
    labels = [frozenset(pools[index]) for index in (0, 1) for pools in everyone]
    expected = [
        0.0 if a == b else 2 / 3 if a & b else 1.0 for a, b in itertools.combinations(labels, 2)
    ]
    observed, chance = sum(between) / 6, sum(expected) / len(expected)
    assert sets.value == pytest.approx(1 - observed / chance)


def of(row, name):
    [coefficient] = [c for c in row.coefficients if c.name == name]
    return coefficient


def test_the_same_annotator_judging_again_is_set_against_themselves():
    study = studies.ticked_study()
    assert round_agreement(study) == []
    studies.tick(study, "Ann", "boot", {"clog"}, round=2)
    studies.tick(study, "Ann", "gown", {"coat"}, round=2)
    [row] = round_agreement(study)
    assert (row.question, row.earlier, row.later) == ("acceptable", 1, 2)
    assert row.by == "same annotator"
    assert (row.n_pairs, row.level) == (5, "nominal")
    kappa = cohen_kappa_score([1, 1, 0, 0, 0], [1, 0, 0, 0, 1])
    assert of(row, "cohen_kappa").value == pytest.approx(kappa)
    assert of(row, "percent_agreement").value == pytest.approx(3 / 5)
    records = json.loads(json.dumps(row.coefficient_records(), allow_nan=False))
    assert {record["by"] for record in records} == {"same annotator"}
    assert all(record["reason"] for record in records if record["value"] is None)


def test_several_or_other_annotators_are_distinguished_from_the_same():
    study = studies.ticked_study()
    studies.tick(study, "Ann", "boot", {"clog", "pump"}, round=2)
    studies.tick(study, "Bob", "gown", {"coat", "skirt"}, round=2)
    again, other = round_agreement(study)
    assert (again.by, again.n_pairs) == ("same annotator", 3)
    assert (other.by, other.n_pairs) == ("another annotator", 2)
    assert of(again, "percent_agreement").value == 1
    assert of(other, "percent_agreement").value == 0
    study = studies.ticked_study("several")
    for person in ("Bob", "Cyd"):
        studies.tick(study, person, "boot", {"clog", "pump"}, round=2)
    [row] = round_agreement(study)
    assert row.n_pairs == 6
    assert of(row, "percent_agreement").value == 1


@pytest.mark.parametrize("is_picked", [True, False])
def test_a_second_round_of_what_was_picked_by_its_rating_is_warned_of(is_picked):
    question = Question(name="style", scale_min=1, scale_max=5)
    values = [1 + n % 5 for n in range(200)]
    again = [n for n in range(200) if (values[n] == 1 if is_picked else n // 5 % 5 == 2)]
    rows = [("q", 1, f"d{n}", "c", "Ann", values[n]) for n in range(200)]
    rows += [("q", 2, f"d{n}", "c", "Ann", min(values[n] + n % 2, 5)) for n in again]
    names = ["question", "round", "item", "candidate", "annotator", "value"]
    [row] = _across(question, pd.DataFrame(rows, columns=names), 1, 2)
    assert ("overlap_not_random" in codes_of(of(row, "percent_agreement").warnings)) == is_picked


def test_every_two_rounds_and_every_question_are_reported_unless_judged_once():
    study = studies.rated_study(questions=("style", "wit"))
    for submission in list(study.items.get(key="d0").submissions.all()):
        for round in (2, 3):
            for name in ("style", "wit"):
                judged = submission.judgments.filter(question__name=name)
                values = dict(judged.values_list("candidate__key", "value"))
                studies.rate(
                    study, submission.annotator.pseudonym, "d0", values, question=name, round=round
                )
    rows = [row for row in round_agreement(study) if row.by == "same annotator"]
    assert [(row.question, row.earlier, row.later) for row in rows] == [
        (name, *rounds) for name in ("style", "wit") for rounds in ((1, 2), (1, 3), (2, 3))
    ]
    assert all(of(row, "krippendorff_alpha").value == 1 for row in rows)
    study = studies.alternatives_study()
    studies.tick(study, "Ann", "boot", {"clog"})
    studies.tick(study, "Ann", "gown", {"coat"}, round=2)
    studies.tick(study, "Bob", "boot", {"clog"}, round=2, status="rejected")
    assert round_agreement(study) == []


def test_the_number_of_queries_does_not_grow_with_the_questions(django_assert_num_queries):
    for n in (1, 3):
        study = studies.rated_study(f"asked-{n}", questions=[f"q{index}" for index in range(n)])
        studies.rate(study, "Ann", "d0", {"alpha": 20}, round=2)
        with django_assert_num_queries(6):
            round_agreement(study)


GRADES = ["Not relevant", "Slightly relevant", "Relevant", "Highly relevant", "I can't judge"]
CANNOT = 4.0
ANN = [0, 1, 2, 3, 3, 2, 1, 0, 0, CANNOT, 2, 1]
BEA = [0, 2, 2, 3, 1, 2, 1, 1, 0, 2, CANNOT, 1]


@pytest.fixture
def graded() -> Study:
    study = studies.rating_study("graded", n_items=6)
    Question.objects.filter(pk=study.questions.get().pk).update(
        kind="category", level="ordinal", scale_min=0, scale_max=4, categories=GRADES
    )
    for name, values in (("Ann", ANN), ("Bea", BEA)):
        rest = iter(values)
        for item in study.items.all():
            studies.rate(study, name, item.key, {"alpha": next(rest), "beta": next(rest)})
    return Study.objects.get(pk=study.pk)


def test_agreement_knows_the_order_and_leaves_out_who_could_not_judge(graded):
    both = [(a, b) for a, b in zip(ANN, BEA, strict=True) if CANNOT not in (a, b)]
    first, second = (list(map(int, side)) for side in zip(*both, strict=True))
    found = {one.name: one.value for one in only(study_agreement(graded)).coefficients}
    labels = [0, 1, 2, 3]
    for weights in ("linear", "quadratic"):
        expected = cohen_kappa_score(first, second, weights=weights, labels=labels)
        assert found[f"cohen_kappa_{weights}"] == pytest.approx(expected)
    matrix = np.array([first, second], dtype=float)
    expected = krippendorff.alpha(matrix, level_of_measurement="ordinal")
    assert found["krippendorff_alpha"] == pytest.approx(expected)


def test_an_answer_that_nothing_can_be_said_is_no_judgment_or_label(graded, admin_user):
    assert Judgment.objects.of(graded).count() == 24
    frame = frames.judgment_frame(graded)
    assert len(frame) == 22
    assert frame["value"].max() == 3
    assert units.judged_units(graded.questions.get(), frame).categories == [0, 1, 2, 3]
    # Disputes are measured on the grades alone.
    table = disagreement.unit_table(graded.questions.get())
    assert len(table) == 10
    assert table["spread"].max() == pytest.approx(2 / 3)
    question = graded.questions.get()
    before = make_label_set(question=question, rule=Rule("majority")).label_set
    candidate = before.labels.earliest("pk").candidate
    Adjudication.objects.create(
        question=question, candidate=candidate, round=1, value=CANNOT, decided_by=admin_user
    )
    after = make_label_set(question=question, rule=Rule("majority")).label_set
    assert before.labels.filter(candidate=candidate).exists()
    assert not after.labels.filter(candidate=candidate).exists()
    assert after.n_labels == before.n_labels - 1


def protocol(**question: object) -> dict[str, object]:
    asked = {"name": "relevance", "kind": "category", "wording": "How relevant?", **question}
    about = {"assay_protocol": 1, "title": "Relevance", "instructions": "Judge."}
    return {**about, "questions": [asked]}


@pytest.mark.parametrize(
    ("categories", "level", "code"),
    [
        (["No", "Yes"], "interval", "not_ordinal"),
        (["I can't judge", "No", "Yes"], "ordinal", "too_few_in_order"),
        (["No", "Yes", "I don't know", "Certainly"], "ordinal", "after_cannot_judge"),
    ],
)
def test_an_order_that_is_none_is_refused(categories, level, code):
    faults = document_faults(protocol(categories=categories, level=level))
    assert code in [fault.code for fault in faults]
    assert not document_faults(protocol(categories=["No", "Yes"], level="ordinal"))
