"""A study counts what makes its stored results out of date, and nothing else."""

from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.exceptions import ImportRefused
from annotation.flags import flag_submissions, unflag_submissions
from annotation.models import Study, Submission
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
from tests.annotation.studies import rated_study
from tests.codes import refused
from tests.metrics.counting import Counting

pytestmark = pytest.mark.django_db

ROWS = "item,candidate,annotator,value\nd0,alpha,Ann,3\nd0,beta,Ann,4\nd1,alpha,Bob,5\n"


def versions(study: Study) -> tuple[int, int]:
    study.refresh_from_db()
    return study.judgments_version, study.scores_version


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    path = tmp_path / "judgments.csv"
    path.write_text(ROWS)
    return path


def test_an_import_counts_once_and_the_same_again_not_at_all(judgments: Path) -> None:
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
