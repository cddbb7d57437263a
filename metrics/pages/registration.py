"""Whether a study has scores, and who may control the jobs that make them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy

from accounts.roles import Permission
from annotation.dataset import DatasetTable, register_dataset_table
from annotation.pages.stages import (
    ANSWER,
    Facts,
    State,
    StudyStage,
    register_counts,
    register_stage,
)
from annotation.study_facts import PLAN_SCORE, SCORE, SCORES
from console.registrations import ACTIVE, JobAccess, register_job_access
from metrics.models import ScoringRun
from metrics.scoring_requests import asks_an_endpoint
from metrics.study_files import score_rows
from metrics.study_judges import is_judge
from work.models import Job

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


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


def _scores(study: CountedStudy, facts: Facts) -> State | None:
    return (ACTIVE, "") if facts["has_scores"] else None


register_stage(
    StudyStage(SCORES, gettext_lazy("Scores"), ANSWER, 95, _scores, Permission.VIEW_SYSTEMS)
)
for kind, page in ((SCORE, "validation"), (PLAN_SCORE, "scoring")):
    register_job_access(kind, JobAccess(page, Permission.ANALYSE, _to_resume, _to_read))
