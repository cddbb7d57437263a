"""The mean rating of every scored item, from those that people rated, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from presentation.documents import Column, Number, P, Row, Section, Table
from validation.analysis.estimated_means import PLANNED_LOOKS
from validation.analysis.rating_records import EstimatedDifferenceRecord, EstimatedMeanRecord
from validation.documents.scale_limits import Limits, mean_on_scale, note_of_cuts
from validation.documents.tables import METRIC, QUESTION, SYSTEM
from validation.documents.terms import percent_text, reason_in_words
from validation.results import Results

DECIMALS = 2


def estimated_means_table(results: Results, **of: str) -> Table:
    """Systems by metric and question; `of` names the question, metric or signature to keep."""
    records = results.rows(EstimatedMeanRecord, **of)
    cut = note_of_cuts(results, _limits(records))
    notes = (_note(row, results.settings.confidence) for row in records)
    rows: list[Row] = [
        (
            row.question,
            results.label(row),
            row.system,
            _mean(results, row, row.value, (row.ci_low, row.ci_high)),
            _mean(results, row, row.people, (row.people_low, row.people_high)),
            row.n_labelled,
            row.n,
            Number(row.effective_n, 0, reason=reason_in_words(row.reason)),
        )
        for row in records
    ]
    return Table(
        name="estimated-means",
        caption=_("The mean rating over all scored items, where people rated some of them"),
        columns=[
            QUESTION,
            METRIC,
            SYSTEM,
            Column(_("Mean, with the scores")),
            Column(_("By people alone")),
            Column(_("Rated items")),
            Column(_("Scored items")),
            Column(_("Worth so many rated")),
        ],
        rows=rows,
        note=" ".join(filter(None, dict.fromkeys([*notes, cut]))),
    )


def estimated_differences_table(results: Results, **of: str) -> Table:
    """Every two systems by metric and question; `of` as of the means."""
    records = results.rows(EstimatedDifferenceRecord, **of)
    rows: list[Row] = [
        (
            row.question,
            results.label(row),
            row.a,
            row.b,
            Number(row.value, DECIMALS, row.ci_low, row.ci_high, reason_in_words(row.reason)),
            P(row.p_adjusted, reason_in_words(row.reason)),
            row.n_labelled,
            row.n,
        )
        for row in records
    ]
    return Table(
        name="estimated-differences",
        caption=_("Differences of systems over all scored items, where people rated some of them"),
        columns=[
            QUESTION,
            METRIC,
            SYSTEM,
            Column(_("against"), is_number=False),
            Column(_("Difference, with the scores")),
            Column(_("p (Holm)")),
            Column(_("Rated items")),
            Column(_("Scored items")),
        ],
        rows=rows,
        note=_("p is adjusted over the pairs of a question and metric, and for the batches.")
        if rows
        else "",
    )


def _mean(
    results: Results, row: EstimatedMeanRecord, value: float | None, limits: Limits
) -> Number:
    reason = reason_in_words(row.reason)
    return mean_on_scale(results, row.question, value, limits, DECIMALS, reason)


def _limits(records: Sequence[EstimatedMeanRecord]) -> Iterator[tuple[str, float | None, Limits]]:
    for row in records:
        yield row.question, row.value, (row.ci_low, row.ci_high)
        yield row.question, row.people, (row.people_low, row.people_high)


def _note(row: EstimatedMeanRecord, confidence: float) -> str:
    """`confidence` is that of all looks together, which each has a part of."""
    text = ngettext(
        "Each rating is weighed by the chance with which its item was drawn; items picked by hand "
        "count for themselves only. After %(n)d batch: intervals of %(level)s, so that those after "
        "up to %(most)d batches hold together %(all)s of the time.",
        "Each rating is weighed by the chance with which its item was drawn; items picked by hand "
        "count for themselves only. After %(n)d batches: intervals of %(level)s, so that those "
        "after up to %(most)d batches hold together %(all)s of the time.",
        row.look,
    )
    level = f"{100 * row.confidence:.1f} %"
    said = text % {
        "n": row.look,
        "level": level,
        "most": PLANNED_LOOKS,
        "all": percent_text(confidence),
    }
    if row.look > PLANNED_LOOKS:
        said += " " + _("That is more batches than the intervals are made for.")
    return said


def estimated_means_section(results: Results) -> Section:
    """Empty where people rated all that is scored, or nobody knows how items were sampled."""
    tables = [estimated_means_table(results), estimated_differences_table(results)]
    return Section(_("The mean over all scored items"), [one for one in tables if one.rows])
