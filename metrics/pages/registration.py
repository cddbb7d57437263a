"""Whether a study has scores, and who may control the jobs that make them."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef

from accounts.roles import Permission
from annotation.dataset import DatasetTable, register_dataset_table
from annotation.pages.stages import register_counts
from annotation.study_facts import PLAN_SCORE, SCORE
from console.registrations import JobAccess, register_job_access
from metrics.models import ScoringRun
from metrics.scoring_requests import asks_an_endpoint
from metrics.study_files import score_rows
from metrics.study_judges import is_judge
from work.models import Job


def _to_resume(job: Job) -> Collection[Permission]:
    """Whoever may request scoring may stop a judge that somebody else pays for, not resume it."""
    return {Permission.SPEND} if asks_an_endpoint(job) else set()


def _to_read(job: Job) -> Collection[Permission]:
    """A judge that ends early says the cap that stopped it, and what was spent."""
    asks_judge = any(map(is_judge, job.arguments.get("names", [])))
    return {Permission.VIEW_MONEY} if asks_judge and job.state != Job.State.DONE else set()


register_dataset_table(
    DatasetTable(
        50,
        "scores",
        "each automatic metric's score, with its signature; an undefined one is null",
        score_rows,
        lambda study: ScoringRun.objects.of(study).exists(),
    )
)
register_counts(lambda: {"has_scores": Exists(ScoringRun.objects.filter(study=OuterRef("pk")))})
for kind, page in ((SCORE, "validation"), (PLAN_SCORE, "scoring")):
    register_job_access(kind, JobAccess(page, Permission.ANALYSE, _to_resume, _to_read))
