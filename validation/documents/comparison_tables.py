"""Tables of metrics tested against each other."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from presentation.documents import Column, Number, P, Row, Table
from presentation.numbers import join_names
from validation.analysis.records import (
    ComparisonRecord,
)
from validation.documents.cells import p_cell, signed
from validation.documents.scale_limits import Limits, difference_within, note_of_cut_differences
from validation.documents.terms import TESTS, family, name_of, reason_in_words, statistic
from validation.results import ALL, Results

NEW = gettext_noop(
    "On the left: other items, but these very systems. On the right: other systems of this kind "
    "too, with p from six systems on."
)


def comparisons_table(results: Results, question: str) -> Table:
    """Every two metrics of a question tested against each other, over all conditions."""
    records = results.rows(
        ComparisonRecord,
        question=question,
        scope=ALL,
        level=results.level,
        coefficient=results.coefficient,
    )
    both = results.settings.resample == "items"
    group = _("These systems") if both else ""
    new = _("New systems of this kind")
    rows: list[Row] = [
        (
            *results.pair_labels(record),
            Number(
                record.delta,
                3,
                *difference_within(record.delta, _limits(record), record.coefficient),
                reason_in_words(record.reason),
                signed(results, "comparison.delta", record),
            ),
            *(p_cell(results, record, name) for name in ("p", "p_holm", "p_bh")),
            *((_new_systems_cell(record), _new_systems_p(record)) if both else ()),
        )
        for record in records
    ]
    names = (_("Metric"), _("against")), (_("Difference"), "p", _("p (Holm)"), _("p (B.–H.)"))
    return Table(
        name=f"comparisons-q{results.questions.index(question) + 1}",
        caption=_("%(question)s: metrics tested pair by pair, %(statistic)s")
        % {"question": question, "statistic": statistic(results.coefficient, results.level)},
        columns=[
            *(Column(name, is_number=False) for name in names[0]),
            *(Column(name, group=group) for name in names[1]),
            *((Column(_("Interval"), group=new), Column(_("p (Holm)"), group=new)) if both else ()),
        ],
        rows=rows,
        note=_note(results, records) if records else "",
    )


def _note(results: Results, records: Sequence[ComparisonRecord]) -> str:
    """By what tests and of which family, what the two intervals are for, and which were cut."""
    both = results.settings.resample == "items"
    text = _("By %(tests)s; two-sided. %(family)s %(both)s") % {
        "tests": join_names(sorted({name_of(TESTS, record.test) for record in records})),
        "family": family(results.all_inputs),
        "both": _(NEW) if both else "",
    }
    shown = [(record.delta, _limits(record)) for record in records]
    if both:
        shown += [(record.delta, _new_systems_limits(record)) for record in records]
    return f"{text} {note_of_cut_differences(results.coefficient, shown)}".strip()


def _limits(record: ComparisonRecord) -> Limits:
    return record.ci_low, record.ci_high


def _new_systems_limits(record: ComparisonRecord) -> Limits:
    return record.new_systems_low, record.new_systems_high


def _new_systems_cell(record: ComparisonRecord) -> Number:
    """The interval of a difference for new systems of this kind."""
    known = record.new_systems_low is not None
    return Number(
        record.delta if known else None,
        3,
        *difference_within(record.delta, _new_systems_limits(record), record.coefficient),
        reason_in_words(record.new_systems_reason),
    )


def _new_systems_p(record: ComparisonRecord) -> P:
    return P(record.new_systems_p_holm, reason_in_words(record.new_systems_reason))
