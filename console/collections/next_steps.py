"""What to do next with a collection, by what it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.collections.stages import StagesOfCollection
from retrieval.models import CollectionFile, ResultType

KIND, RESULT = CollectionFile.Kind, ResultType


@dataclass(frozen=True)
class NextStep:
    """A sentence, and the page on which it is done."""

    text: str
    button: str
    url: str


def next_step(stages: StagesOfCollection, *, n_studies: int) -> NextStep:
    """The first thing that is missing on the way to a report."""
    text, button, name = next(_steps(stages, n_studies))
    return NextStep(text, button, reverse(f"console:{name}", args=[stages.slug]))


def _steps(stages: StagesOfCollection, n_studies: int) -> Iterator[tuple[str, str, str]]:
    counts = stages.counts
    n_runs, n_qrels, n_assessors = (counts[kind] for kind in (KIND.RUN, KIND.QRELS, KIND.ASSESSORS))
    if n := counts["faulty"]:
        text = ngettext(
            "{n} file cannot be used: see what is wrong with it.",
            "{n} files cannot be used: see what is wrong with them.",
            n,
        )
        of_sources = counts["faulty_sources"] == n
        name = "collection-pools" if of_sources else "collection-files"
        yield text.format(n=f"{n:,}"), _("See the faults"), name
    if not (n_runs or n_qrels or n_assessors or counts[KIND.EMBEDDINGS]):
        yield (
            _("Add the runs of your systems, and qrels if there are any."),
            _("Add files"),
            "collection-files",
        )
    if n_assessors and not n_qrels:
        text = _(
            "Make qrels of the assessors' grades by a rule: runs are evaluated under one grade of "
            "each document."
        )
        yield text, _("Make qrels"), "collection-files"
    if not n_qrels:
        yield from _steps_to_qrels(stages, n_studies)
    if not n_runs:
        text = _("Add the runs of the systems that are to be evaluated.")
        yield text, _("Add runs"), "collection-files"
    yield from _steps_to_a_report(stages, n_runs, n_qrels)


def _steps_to_qrels(stages: StagesOfCollection, n_studies: int) -> Iterator[tuple[str, str, str]]:
    if not n_studies and not stages.counts[RESULT.POOL]:
        text = _(
            "Make a pool: which documents of each target are judged. Where there are qrels "
            "already, add them instead."
        )
        yield text, _("Make a pool"), "collection-pools"
    if not n_studies:
        text = _("Make a study of the pool, in which people judge its candidates.")
        yield text, _("See the pool"), "collection-pools"
    text = _("Have the study judged, and make qrels of its answers.")
    yield text, _("Judgments"), "collection-judgments"


def _steps_to_a_report(
    stages: StagesOfCollection, n_runs: int, n_qrels: int
) -> Iterator[tuple[str, str, str]]:
    counts = stages.counts
    if not counts[RESULT.EVALUATION]:
        yield _("Evaluate the runs."), _("Evaluate"), "collection-evaluation"
    if not counts[RESULT.COMPARISON] and n_runs > 1 and (n_qrels > 1 or counts[KIND.ASSESSORS]):
        text = _("See whether other judgments would order the runs otherwise.")
        yield text, _("How far to trust it"), "collection-trust"
    if not counts[RESULT.REUSE] and n_runs > 1 and counts[KIND.QRELS]:
        text = _("Estimate what a system that was not pooled must expect.")
        yield text, _("Reuse for other systems"), "collection-reuse"
    if not counts[RESULT.REPORT]:
        text = _("Write the report, which says what may be concluded.")
        yield text, _("Write the report"), "collection-report"
    yield _("All is computed: read the report."), _("Report"), "collection-report"
