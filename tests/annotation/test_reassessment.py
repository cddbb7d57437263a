import json

import pytest

from annotation.reassessment import round_agreement
from tests.annotation.studies import alternatives_study, rate, rated_study, tick, ticked_study

pytestmark = pytest.mark.django_db


def of(row, name):
    [coefficient] = [c for c in row.coefficients if c.name == name]
    return coefficient


def test_the_same_annotator_judging_again_is_set_against_themselves():
    from sklearn.metrics import cohen_kappa_score

    study = ticked_study()
    assert round_agreement(study) == []
    tick(study, "Ann", "boot", {"clog"}, round=2)
    tick(study, "Ann", "gown", {"coat"}, round=2)
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


def test_another_annotator_is_distinguished_from_the_same():
    study = ticked_study()
    tick(study, "Ann", "boot", {"clog", "pump"}, round=2)
    tick(study, "Bob", "gown", {"coat", "skirt"}, round=2)
    again, other = round_agreement(study)
    assert (again.by, again.n_pairs) == ("same annotator", 3)
    assert (other.by, other.n_pairs) == ("another annotator", 2)
    assert of(again, "percent_agreement").value == 1
    assert of(other, "percent_agreement").value == 0


def test_several_annotators_of_a_round_are_each_set_against_those_of_the_other():
    study = ticked_study()
    for person in ("Bob", "Cyd"):
        tick(study, person, "boot", {"clog", "pump"}, round=2)
    [row] = round_agreement(study)
    assert row.n_pairs == 6
    assert of(row, "percent_agreement").value == 1


def test_every_two_rounds_and_every_question_are_reported():
    study = rated_study(questions=("style", "wit"))
    for submission in list(study.items.get(key="d0").submissions.all()):
        for round in (2, 3):
            judgments = list(submission.judgments.all())
            again = type(submission).objects.create(
                item=submission.item, annotator=submission.annotator, round=round, raw="{}"
            )
            for judgment in judgments:
                again.judgments.create(
                    candidate=judgment.candidate, question=judgment.question, value=judgment.value
                )
    rows = [row for row in round_agreement(study) if row.by == "same annotator"]
    assert [(row.question, row.earlier, row.later) for row in rows] == [
        (name, *rounds) for name in ("style", "wit") for rounds in ((1, 2), (1, 3), (2, 3))
    ]
    assert all(of(row, "krippendorff_alpha").value == 1 for row in rows)


def test_rejected_submissions_and_candidates_judged_once_do_not_count():
    study = alternatives_study()
    tick(study, "Ann", "boot", {"clog"})
    tick(study, "Ann", "gown", {"coat"}, round=2)
    tick(study, "Bob", "boot", {"clog"}, round=2, status="rejected")
    assert round_agreement(study) == []


def test_the_number_of_queries_does_not_grow_with_the_questions(django_assert_num_queries):
    for n in (1, 3):
        study = rated_study(f"asked-{n}", questions=[f"q{index}" for index in range(n)])
        rate(study, "Ann", "d0", {"alpha": 20}, round=2)
        with django_assert_num_queries(6):
            round_agreement(study)
