"""Categories in an order, of which some say that nothing can be said."""

import numpy as np
import pytest

from accounts.models import User
from annotation.agreement import study_agreement
from annotation.disagreement import unit_table
from annotation.frames import judgment_frame
from annotation.label_sets import Rule, make_label_set
from annotation.models import Adjudication, Judgment, Question, Study
from annotation.protocols.validation import document_faults
from annotation.units import judged_units
from tests.annotation.studies import rate, rating_study

GRADES = ["Not relevant", "Slightly relevant", "Relevant", "Highly relevant", "I can't judge"]
CANNOT = 4.0
ANN = [0, 1, 2, 3, 3, 2, 1, 0, 0, CANNOT, 2, 1]
BEA = [0, 2, 2, 3, 1, 2, 1, 1, 0, 2, CANNOT, 1]


@pytest.fixture
def graded() -> Study:
    study = rating_study("graded", n_items=6)
    question = study.questions.get()
    Question.objects.filter(pk=question.pk).update(
        kind="category", level="ordinal", scale_min=0, scale_max=4, categories=GRADES
    )
    for name, values in (("Ann", ANN), ("Bea", BEA)):
        rest = iter(values)
        for item in study.items.all():
            rate(study, name, item.key, {"alpha": next(rest), "beta": next(rest)})
    return Study.objects.get(pk=study.pk)


def coefficients(study: Study) -> dict[str, float]:
    (report,) = study_agreement(study).questions
    return {one.name: one.value for one in report.coefficients}


@pytest.mark.django_db
def test_agreement_knows_the_order_and_leaves_out_who_could_not_judge(graded: Study) -> None:
    from krippendorff import alpha
    from sklearn.metrics import cohen_kappa_score

    both = [(a, b) for a, b in zip(ANN, BEA, strict=True) if CANNOT not in (a, b)]
    first, second = (list(map(int, side)) for side in zip(*both, strict=True))
    found = coefficients(graded)
    labels = [0, 1, 2, 3]
    for weights in ("linear", "quadratic"):
        expected = cohen_kappa_score(first, second, weights=weights, labels=labels)
        assert found[f"cohen_kappa_{weights}"] == pytest.approx(expected)
    matrix = np.array([first, second], dtype=float)
    expected = alpha(reliability_data=matrix, level_of_measurement="ordinal")
    assert found["krippendorff_alpha"] == pytest.approx(expected)


@pytest.mark.django_db
def test_an_answer_that_nothing_can_be_said_is_kept_and_is_no_judgment(graded: Study) -> None:
    assert Judgment.objects.of(graded).count() == 24
    frame = judgment_frame(graded)
    assert len(frame) == 22
    assert frame["value"].max() == 3
    assert judged_units(graded.questions.get(), frame).categories == [0, 1, 2, 3]
    # Disputes are measured on the grades alone.
    table = unit_table(graded.questions.get())
    assert len(table) == 10
    assert table["spread"].max() == pytest.approx(2 / 3)


@pytest.mark.django_db
def test_an_undecided_candidate_has_no_label(graded: Study, admin_user: User) -> None:
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
def test_an_order_that_is_none_is_refused(categories: list[str], level: str, code: str) -> None:
    faults = document_faults(protocol(categories=categories, level=level))
    assert code in [fault.code for fault in faults]
    assert not document_faults(protocol(categories=["No", "Yes"], level="ordinal"))
