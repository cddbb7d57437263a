import pytest
from django.contrib.auth.models import User

from annotation.adjudicating import decide
from annotation.exceptions import AnnotationError, DecisionRefused
from annotation.flagging import flag_submission, unflag_submission
from annotation.models import Adjudication, Candidate, Submission
from tests.annotation.studies import alternatives_study, rated_study, rating_study, ticked_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def senior() -> User:
    return User.objects.create_user("senior")


def clog_of(study) -> Candidate:
    return Candidate.objects.get(item__study=study, key="clog")


def test_a_decision_keeps_who_made_it_and_why(senior: User) -> None:
    study = ticked_study()
    made = decide(
        candidate=clog_of(study),
        question=study.question(),
        value=0,
        decided_by=senior,
        note=" a shoe ",
    )
    made.refresh_from_db()
    assert (made.value, made.note, made.decided_by, made.round) == (0, "a shoe", senior, 1)
    assert made.decided_at is not None


def test_the_last_decision_stands_and_earlier_ones_are_kept(senior: User) -> None:
    study = ticked_study()
    for value in (0, 1):
        decide(candidate=clog_of(study), question=study.question(), value=value, decided_by=senior)
    assert [row.value for row in Adjudication.objects.of(study)] == [0, 1]
    assert [row.value for row in Adjudication.objects.of(study).standing()] == [1]


def test_the_rounds_of_a_candidate_are_decided_apart(senior: User) -> None:
    study = ticked_study()
    for round, value in ((1, 0), (2, 1)):
        decide(
            candidate=clog_of(study),
            question=study.question(),
            value=value,
            decided_by=senior,
            round=round,
        )
    standing = Adjudication.objects.standing().values_list("round", "value")
    assert set(standing) == {(1, 0), (2, 1)}


def test_deciding_the_same_again_is_no_new_decision(senior: User) -> None:
    study = ticked_study()
    first, second = (
        decide(candidate=clog_of(study), question=study.question(), value=1, decided_by=senior)
        for _ in range(2)
    )
    assert first == second
    assert Adjudication.objects.count() == 1


@pytest.mark.parametrize("value", [-1, 2, 0.5, float("nan")])
def test_a_value_that_the_question_cannot_have_is_refused(senior: User, value: float) -> None:
    study = ticked_study()
    with pytest.raises(DecisionRefused, match=r"^Value"):
        decide(candidate=clog_of(study), question=study.question(), value=value, decided_by=senior)
    assert not Adjudication.objects.exists()


def test_a_candidate_of_another_study_is_refused(senior: User) -> None:
    with pytest.raises(DecisionRefused, match="different studies"):
        decide(
            candidate=clog_of(alternatives_study()),
            question=rating_study().question(),
            value=1,
            decided_by=senior,
        )


def test_a_flag_says_why_and_can_be_taken_away() -> None:
    submission = Submission.objects.of(rated_study())[0]
    flag_submission(submission=submission, reason=" too fast ")
    [flagged] = Submission.objects.flagged()
    assert (flagged, flagged.flag_reason) == (submission, "too fast")
    unflag_submission(submission=submission)
    assert not Submission.objects.flagged().exists()


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201])
def test_a_flag_needs_a_reason_that_fits(reason: str) -> None:
    submission = Submission.objects.of(rated_study())[0]
    with pytest.raises(AnnotationError, match="1 to 200 characters"):
        flag_submission(submission=submission, reason=reason)
    assert not Submission.objects.flagged().exists()
