"""What of a study waits for its researcher, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from annotation.models import Study
from console.agreement_parts import AGREEMENT
from console.models import Work
from console.results import VALIDATION
from hits.progress import study_progress
from metrics.models import ScoringRun

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
    pages = {
        Work.Kind.COLLECT: "answers",
        Work.Kind.SCORE: "validation",
        Work.Kind.LABEL: "labels",
    }
    for work in Work.objects.of(study).latest_of_each_kind():
        if work.state == Work.State.FAILED:
            told = f"{work.get_kind_display()} failed: {work.told}"
            yield "error", told, "Look at it", pages[Work.Kind(work.kind)]
    for name in (AGREEMENT, VALIDATION):
        results = Work.objects.of(study).of_kind(Work.Kind.RESULT).filter(names=[name])
        if (last := results.first()) and last.state == Work.State.FAILED:
            yield "error", f"Computing {name} failed: {last.told}", "Look at it", name
