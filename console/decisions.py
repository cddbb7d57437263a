"""What of a study waits for its researcher, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from annotation.models import Study
from annotation.study_jobs import COLLECT, LABEL, RESULT, SCORE, jobs_of
from console.agreement_parts import AGREEMENT
from console.results import VALIDATION
from hits.progress import study_progress
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


def decisions_of(study: CountedStudy) -> list[Decision]:
    """Everything that waits for someone in a study that comes from `counted()`."""
    return [
        Decision(tone, told, action, reverse(f"console:{page}", args=[study.slug]))
        for tone, told, action, page in _decisions(study)
    ]


def _decisions(study: CountedStudy) -> Iterator[tuple[str, str, str, str]]:
    yield from _failures(study)
    progress = study_progress(study)
    if n := progress.n_unreadable:
        told = "1 assignment is" if n == 1 else f"{n:,} assignments are"
        yield "warning", f"{told} kept but could not be read.", "See why", "answers"
    if not study.n_items:
        yield "info", "The study has no items yet.", "Import some", "items"
    elif not progress.n_hits and not study.n_judgments:
        yield "info", f"{study.n_items:,} items have no HITs yet.", "Publish them", "publish"
    elif progress.n_published < progress.n_hits:
        waiting = progress.n_hits - progress.n_published
        yield "info", f"{waiting:,} HITs are not published yet.", "Publish them", "publish"
    is_rated = study.kind == Study.Kind.RATING and study.n_judgments
    if is_rated and not ScoringRun.objects.of(study).exists():
        told = "There are judgments, and no metric's scores to set beside them."
        yield "info", told, "Score the candidates", "validation"


def _failures(study: Study) -> Iterator[tuple[str, str, str, str]]:
    pages = {COLLECT: "answers", SCORE: "validation", LABEL: "labels"}
    for job in jobs_of(study).of_kind(*pages).latest_of_each_kind():
        if job.state == Job.State.FAILED:
            message = f"{job_kind(job.kind).label} failed: {job.message}"
            yield "error", message, "Look at it", pages[job.kind]
    for name in (AGREEMENT, VALIDATION):
        results = jobs_of(study).of_kind(RESULT).filter(arguments__names=[name])
        if (last := results.first()) and last.state == Job.State.FAILED:
            yield "error", f"Computing {name} failed: {last.message}", "Look at it", name
