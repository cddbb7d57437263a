"""The few numbers a study's first page shows, each with its interval or denominator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from annotation.models import Study
from console.agreement_parts import AGREEMENT
from console.results import VALIDATION, current_version, loaded_fingerprint, stored
from console.templatetags.numbers import coefficient, interval, words
from console.validation_view import top_group_figures
from hits.progress import StudyProgress
from validation.rows import StoredResults

if TYPE_CHECKING:
    from console.sizes import CountedStudy

MOST_QUESTIONS = 4


@dataclass(frozen=True)
class Figure:
    """A label, a value, what it rests on, and the page it is made of."""

    label: str
    value: str
    rests_on: str
    url: str


def figures_of(study: CountedStudy, progress: StudyProgress) -> list[Figure]:
    """Sizes, progress, and the results that are stored; nothing is computed here."""
    return [
        Figure(label, value, rests_on, reverse(f"console:{page}", args=[study.slug]))
        for label, value, rests_on, page in (*_sizes(study, progress), *_results(study))
    ]


def _sizes(study: CountedStudy, progress: StudyProgress) -> Iterator[tuple[str, str, str, str]]:
    yield "Items", f"{study.n_items:,}", study.get_kind_display(), "items"
    if progress.n_hits:
        yield "HITs published", f"{progress.n_published:,}", f"of {progress.n_hits:,}", "publish"
        told = f"of {progress.n_wanted:,} on offer"
        yield "Assignments collected", f"{progress.n_collected:,}", told, "answers"
    told = f"in {study.n_submissions:,} submissions"
    yield "Judgments", f"{study.n_judgments:,}", told, "items"


def _results(study: Study) -> Iterator[tuple[str, str, str, str]]:
    agreement = stored(study, AGREEMENT, loaded_fingerprint(study, AGREEMENT)) or {
        "coefficients": []
    }
    # Of each question alpha alone, in every condition.
    alphas = [row for row in agreement["coefficients"] if not row["by"]]
    for row in alphas[:MOST_QUESTIONS]:
        yield f"Alpha, {row['question']}", *_figure_text(row, "n_items", "candidates"), "agreement"
    version = current_version(study, stored(study, VALIDATION, loaded_fingerprint(study)))
    if version is not None:
        for label, value, rests_on in top_group_figures(StoredResults(version)):
            yield label, value, rests_on, "validation"


def _figure_text(row: dict[str, Any], count: str, unit: str) -> tuple[str, str]:
    n = f"n = {row[count]:,} {unit}"
    if row["value"] is None:
        return "–", f"undefined: {words(row['reason'])}; {n}"
    return coefficient(row["value"]), f"{interval(row)}, {n}"
