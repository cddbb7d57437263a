"""What of a study waits for its researcher, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Max
from django.urls import reverse

from annotation.models import Study
from annotation.study_jobs import COLLECT, LABEL, RESULT, SCORE, jobs_of
from console.agreement_parts import AGREEMENT
from console.results import VALIDATION
from hits.progress import StudyProgress, first_auto_approval
from metrics.models import ScoringRun
from work.models import Job
from work.registry import job_kind

if TYPE_CHECKING:
    from console.sizes import CountedStudy


@dataclass(frozen=True)
class Decision:
    """One thing to decide or do, and where."""

    tone: str
    told: str
    action: str
    url: str


def decisions_of(
    study: CountedStudy, progress: StudyProgress, jobs: Sequence[Job]
) -> list[Decision]:
    """Everything that waits for someone in a study that comes from `counted()`."""
    return [
        Decision(tone, told, action, reverse(f"console:{page}", args=[study.slug]))
        for tone, told, action, page in (
            *_failures(study, jobs),
            *_collection(study, progress),
            *_publication(study, progress),
            *_scores(study),
        )
    ]


def _collection(study: Study, progress: StudyProgress) -> Iterator[tuple[str, str, str, str]]:
    if n := progress.n_unreadable:
        message = "1 assignment is" if n == 1 else f"{n:,} assignments are"
        yield "warning", f"{message} kept but could not be read.", "See why", "answers"
    if n := progress.n_undecided:
        waiting = "1 submission waits" if n == 1 else f"{n:,} submissions wait"
        message = f"{waiting} for approval."
        if due := first_auto_approval(study):
            first = "It is" if n == 1 else "The first is"
            message += f" {first} approved automatically on {due:%Y-%m-%d at %H:%M} UTC."
        yield "info", message, "See them", "answers"


def _publication(
    study: CountedStudy, progress: StudyProgress
) -> Iterator[tuple[str, str, str, str]]:
    waiting = progress.n_hits - progress.n_published
    if not study.n_items:
        yield "info", "The study has no items yet.", "Import some", "items"
    elif not progress.n_hits:
        if not study.n_judgments:
            yield "info", _without_hits(study.n_items), "Publish them", "publish"
    else:
        if waiting:
            message = "1 HIT is" if waiting == 1 else f"{waiting:,} HITs are"
            yield "info", f"{message} not published yet.", "Publish them", "publish"
        if n := progress.n_items_without_hit:
            yield "info", _without_hits(n), "Publish them", "publish"


def _without_hits(n_items: int) -> str:
    return "1 item has no HIT yet." if n_items == 1 else f"{n_items:,} items have no HITs yet."


def _scores(study: CountedStudy) -> Iterator[tuple[str, str, str, str]]:
    is_rated = study.kind == Study.Kind.RATING and study.n_judgments
    if is_rated and not ScoringRun.objects.of(study).exists():
        message = "There are judgments, and no metric's scores to set beside them."
        yield "info", message, "Score the candidates", "validation"


def _failures(study: Study, jobs: Sequence[Job]) -> Iterator[tuple[str, str, str, str]]:
    pages = {COLLECT: "answers", SCORE: "validation", LABEL: "labels"}
    for job in jobs:
        if job.kind in pages and job.state == Job.State.FAILED:
            message = f"{job_kind(job.kind).label} failed: {job.message}"
            yield "error", message, "Look at it", pages[job.kind]
    # The title says which result; the newest of each in one statement.
    results = jobs_of(study).of_kind(RESULT)
    newest = results.order_by().values("title").annotate(last=Max("pk")).values("last")
    for job in results.filter(pk__in=newest):
        [name] = job.arguments["names"]
        if name in (AGREEMENT, VALIDATION) and job.state == Job.State.FAILED:
            yield "error", f"Computing {name} failed: {job.message}", "Look at it", name
