"""Flags, and what makes stored results of a study out of date."""

from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.exceptions import AnnotationError, ImportRefused, StudyUnfit
from annotation.flags import flag_submissions, unflag_submissions
from annotation.models import Study, Submission
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
from tests.annotation.importing import command_output, numbers_in
from tests.annotation.studies import rate, rated_study
from tests.codes import refused
from tests.metrics.counting import Counting

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


ROWS = "item,candidate,annotator,value\nd0,alpha,Ann,3\nd0,beta,Ann,4\nd1,alpha,Bob,5\n"


def versions(study: Study) -> tuple[int, int]:
    study.refresh_from_db()
    return study.judgments_version, study.scores_version


def test_an_import_counts_once_and_the_same_again_not_at_all(tmp_path: Path) -> None:
    judgments = tmp_path / "judgments.csv"
    judgments.write_text(ROWS)
    call_command("import_judgments", judgments, study="wits", scale=(1, 5))
    study = Study.objects.named("wits")
    assert versions(study) == (1, 0)
    # Nor does one that is refused count.
    judgments.write_text(ROWS + "d1,alpha,Cyd,9\n")
    with refused(ImportRefused, "off_scale", line=5):
        call_command("import_judgments", judgments, study="wits")
    judgments.write_text(ROWS)
    call_command("import_judgments", judgments, study="wits")
    assert versions(study) == (1, 0)
    judgments.write_text(ROWS + "d1,alpha,Cyd,4\n")
    call_command("import_judgments", judgments, study="wits")
    assert versions(study) == (2, 0)


def test_a_flag_and_its_removal_count() -> None:
    study, other = rated_study(), rated_study("other")
    before, others = versions(study), versions(other)
    flag_submissions(submissions=Submission.objects.of(study), reason="too fast")
    assert versions(study) == (before[0] + 1, 0)
    unflag_submissions(submissions=Submission.objects.of(study))
    assert versions(study) == (before[0] + 2, 0)
    # Nothing is flagged any more.
    unflag_submissions(submissions=Submission.objects.of(study))
    assert versions(study) == (before[0] + 2, 0)
    assert versions(other) == others


def test_scores_count_apart_from_judgments() -> None:
    study = rated_study()
    n_judgments = versions(study)[0]
    write_scores(study=study, metric="nll", signature="nll|v:1", values={("d0", "alpha"): 1.0})
    assert versions(study) == (n_judgments, 1)
    score_study(study=study, scorer=Counting())
    after = versions(study)
    assert after > (n_judgments, 1)
    # All is scored: nothing changes.
    score_study(study=study, scorer=Counting())
    assert versions(study) == after
