import pytest

from annotation.exceptions import AnnotationError, StudyUnfit
from annotation.flags import flag_submissions, unflag_submissions
from annotation.models import Submission
from tests.annotation.importing import command_output, numbers_in
from tests.annotation.studies import rate, rated_study
from tests.codes import refused

pytestmark = pytest.mark.django_db


FLAG = ("flag_submissions", "rated")


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
    for reason in ("", "  ", "x" * 201):
        with refused(AnnotationError, "reason_length"):
            flag_submissions(submissions=one, reason=reason)
    assert not flagged()


def test_all_of_an_annotator_is_flagged_in_that_study_alone() -> None:
    rated_study()
    rated_study("other")
    assert numbers_in(command_output(*FLAG, "--annotator", "Ann", "--reason", "too fast")) == [3]
    assert flagged() == {("Ann", f"d{index}", 1, "too fast") for index in range(3)}
    assert Submission.objects.flagged().filter(item__study__slug="rated").count() == 3


def test_an_item_and_a_round_bound_what_is_flagged() -> None:
    rate(rated_study(), "Ann", "d0", {"alpha": 1}, round=2)
    command_output(*FLAG, "--item", "d0", "--round", "1", "--reason", "broken")
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1), ("Bob", "d0", 1)}
    assert numbers_in(command_output(*FLAG, "--annotator", "Bob", "--unflag")) == [1]
    assert {row[:3] for row in flagged()} == {("Ann", "d0", 1)}


@pytest.mark.parametrize(
    ("bounds", "code", "named"),
    [
        ([], "no_filter", "--annotator"),
        (["--annotator", "Zoe"], "no_submission", "'Zoe'"),
        (["--annotator", "Ann", "--round", "2"], "no_submission", "'2'"),
    ],
)
def test_a_flag_without_bounds_is_refused(bounds: list[str], code: str, named: str) -> None:
    rated_study()
    with refused(StudyUnfit, code) as caught:
        command_output(*FLAG, *bounds, "--reason", "too fast")
    assert named in str(caught.value)
    assert not flagged()
