import io

import pytest
from django.core.management import call_command

from annotation.exceptions import AnnotationError, StudyUnfit
from annotation.flags import flag_submissions, unflag_submissions
from annotation.models import Submission
from tests.annotation.studies import rate, rated_study

pytestmark = pytest.mark.django_db


def output_of(*arguments: str) -> str:
    answer = io.StringIO()
    call_command("flag_submissions", *arguments, stdout=answer)
    return answer.getvalue()


def flagged() -> set[tuple[str, str, int, str]]:
    fields = ("annotator__pseudonym", "item__key", "round", "flag_reason")
    return set(Submission.objects.flagged().values_list(*fields))


def test_a_flag_says_why_and_can_be_taken_away() -> None:
    doubted = Submission.objects.of(rated_study())[:1]
    one = Submission.objects.filter(pk__in=doubted)
    assert flag_submissions(submissions=one, reason=" too fast ") == 1
    assert [reason for *_, reason in flagged()] == ["too fast"]
    assert unflag_submissions(submissions=Submission.objects.all()) == 1
    assert not flagged()


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201])
def test_a_flag_needs_a_reason_that_fits(reason: str) -> None:
    rated_study()
    with pytest.raises(AnnotationError, match="1 to 200 characters"):
        flag_submissions(submissions=Submission.objects.all(), reason=reason)
    assert not flagged()


def test_all_of_an_annotator_is_flagged_in_that_study_alone() -> None:
    rated_study()
    rated_study("other")
    assert output_of("rated", "--annotator", "Ann", "--reason", "too fast") == (
        "Submissions flagged: 3.\n"
    )
    assert flagged() == {("Ann", f"d{index}", 1, "too fast") for index in range(3)}
    assert Submission.objects.flagged().filter(item__study__slug="rated").count() == 3


def test_an_item_and_a_round_bound_what_is_flagged() -> None:
    study = rated_study()
    rate(study, "Ann", "d0", {"alpha": 1}, round=2)
    output_of("rated", "--item", "d0", "--round", "1", "--reason", "broken picture")
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1), ("Bob", "d0", 1)}
    assert output_of("rated", "--annotator", "Bob", "--unflag") == "Flags taken away: 1.\n"
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1)}


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ([], "Say which submissions"),
        (["--annotator", "Zoe"], "no submission of annotator 'Zoe'"),
        (["--annotator", "Ann", "--round", "2"], "no submission of annotator 'Ann', round '2'"),
    ],
)
def test_a_flag_on_nothing_or_on_everything_is_refused(bounds: list[str], problem: str) -> None:
    rated_study()
    with pytest.raises(StudyUnfit, match=problem):
        output_of("rated", *bounds, "--reason", "too fast")
    assert not flagged()
