import pytest

from accounts.models import User
from annotation.adjudications import decide
from annotation.exceptions import DecisionRefused
from annotation.models import Adjudication, Candidate, Submission
from tests.annotation.studies import alternatives_study, rating_study, tick, ticked_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def senior() -> User:
    return User.objects.create_user("senior")


def clog_of(study) -> Candidate:
    return Candidate.objects.get(item__study=study, key="clog")


def test_a_decision_keeps_who_made_it_and_why(senior: User) -> None:
    study = ticked_study()
    decision = decide(
        candidate=clog_of(study),
        question=study.question(),
        value=0,
        decided_by=senior,
        note=" a shoe ",
    )
    decision.refresh_from_db()
    assert (decision.value, decision.note, decision.decided_by, decision.round) == (
        0,
        "a shoe",
        senior,
        1,
    )
    assert decision.decided_at is not None


def test_the_last_decision_stands_and_earlier_ones_are_kept(senior: User) -> None:
    study = ticked_study()
    for value in (0, 1):
        decide(candidate=clog_of(study), question=study.question(), value=value, decided_by=senior)
    assert [row.value for row in Adjudication.objects.of(study)] == [0, 1]
    assert [row.value for row in Adjudication.objects.of(study).standing()] == [1]


def test_the_rounds_of_a_candidate_are_decided_apart(senior: User) -> None:
    study = ticked_study()
    tick(study, "Ann", "boot", {"clog"}, round=2)
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


@pytest.mark.parametrize("round", [-1, 0, 2])
def test_a_round_in_which_the_study_was_not_judged_is_refused(senior: User, round: int) -> None:
    study = ticked_study()
    with pytest.raises(DecisionRefused, match=f"Study 'ticked' was not judged in round {round}"):
        decide(
            candidate=clog_of(study),
            question=study.question(),
            value=1,
            decided_by=senior,
            round=round,
        )
    assert not Adjudication.objects.exists()


def test_judgments_that_were_rejected_leave_nothing_to_decide(senior: User) -> None:
    study = ticked_study()
    Submission.objects.of(study).update(status=Submission.Status.REJECTED)
    with pytest.raises(DecisionRefused, match="was not judged in round 1"):
        decide(candidate=clog_of(study), question=study.question(), value=1, decided_by=senior)
