from typing import Any

import pytest

from accounts.models import User
from annotation.adjudications import decide
from annotation.exceptions import DecisionRefused
from annotation.models import Adjudication, Candidate, Study, Submission
from tests.annotation.studies import rating_study, tick, ticked_study
from tests.codes import refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def senior() -> User:
    return User.objects.create_user("senior")


def decide_clog(study: Study, senior: User, *, value: float, **options: Any) -> Adjudication:
    """Decide on the clog, under the study's question or another."""
    clog = Candidate.objects.get(item__study=study, key="clog")
    question = options.pop("question", None) or study.question()
    return decide(candidate=clog, question=question, value=value, decided_by=senior, **options)


def test_a_decision_keeps_who_made_it_and_why(senior: User) -> None:
    study = ticked_study()
    decision = decide_clog(study, senior, value=0, note=" a shoe ")
    decision.refresh_from_db()
    assert (decision.value, decision.note, decision.round) == (0, "a shoe", 1)
    assert decision.decided_by == senior
    assert decision.decided_at is not None
    # The last decision stands, and the same again is no new one.
    last, again = (decide_clog(study, senior, value=1) for _ in range(2))
    assert last == again
    assert [row.value for row in Adjudication.objects.of(study)] == [0, 1]
    assert [row.value for row in Adjudication.objects.of(study).standing()] == [1]


def test_the_rounds_of_a_candidate_are_decided_apart(senior: User) -> None:
    study = ticked_study()
    tick(study, "Ann", "boot", {"clog"}, round=2)
    for round, value in ((1, 0), (2, 1)):
        decide_clog(study, senior, value=value, round=round)
    standing = Adjudication.objects.standing().values_list("round", "value")
    assert set(standing) == {(1, 0), (2, 1)}


def test_a_decision_that_cannot_be_made_is_refused(senior: User) -> None:
    study = ticked_study()
    for value, code in ((-1, "off_scale"), (2, "off_scale"), (0.5, "between_categories")):
        with refused(DecisionRefused, code):
            decide_clog(study, senior, value=value)
    with refused(DecisionRefused, "off_scale"):
        decide_clog(study, senior, value=float("nan"))
    with refused(DecisionRefused, "other_study"):
        decide_clog(study, senior, value=1, question=rating_study().question())
    for round in (-1, 0, 2):
        with refused(DecisionRefused, "not_judged"):
            decide_clog(study, senior, value=1, round=round)
    Submission.objects.of(study).update(status=Submission.Status.REJECTED)
    with refused(DecisionRefused, "not_judged"):
        decide_clog(study, senior, value=1)
    assert not Adjudication.objects.exists()
