"""The tables of a full report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from error_codes import CodedText
from presentation.documents import Column, Number, Row, Table
from presentation.numbers import join_names
from validation.analysis.records import (
    CeilingRecord,
    CorrelationRecord,
)
from validation.documents.cells import correlation, signed
from validation.documents.terms import (
    CEILING_WARNINGS,
    COEFFICIENTS,
    LEVELS,
    name_of,
    reason_in_words,
    statistic,
)
from validation.documents.top_groups import names_of, top_groups
from validation.results import MEAN, Results, measure_of

MEAN_OF_CONDITIONS = "mean of conditions"
EVERY = "all"
QUESTION, CONDITION = (
    Column(gettext_noop("Question"), is_number=False),
    Column(gettext_noop("Condition"), is_number=False),
)
METRIC, SYSTEM = (
    Column(gettext_noop("Metric"), is_number=False),
    Column(gettext_noop("System"), is_number=False),
)


NO_SHARE_INTERVAL = gettext_noop(
    "the interval of the ceiling reaches 0, of which there is no share"
)


class Scoped(Protocol):
    """Anything that is of all candidates, of a condition, or of their mean."""

    @property
    def scope(self) -> str: ...
    @property
    def by(self) -> str: ...


def condition_text(record: Scoped) -> str:
    """What a record is of: all candidates, a condition, or the mean of the conditions."""
    return record.by or (MEAN_OF_CONDITIONS if record.scope == MEAN else EVERY)


def correlations_table(results: Results, level: str) -> Table:
    """Every metric against every question and condition at one level, with coverage."""
    coefficients = [
        name
        for name in results.coefficients
        if any((one.level, one.coefficient) == (level, name) for one in results.measures)
    ]
    columns = [
        QUESTION,
        CONDITION,
        METRIC,
        *(Column(name_of(COEFFICIENTS, name)) for name in coefficients),
        Column(_("Groups used")),
        Column(_("Candidates scored")),
        Column(_("Rank")),
    ]
    rows: list[Row] = [
        (
            first.question,
            condition_text(first),
            results.label(first),
            *(correlation(results, of_one.get(name)) for name in coefficients),
            _("%(n_used)s of %(n_groups)s")
            % {"n_used": f"{first.n_used:,}", "n_groups": f"{first.n_groups:,}"},
            _("%(n_scored)s of %(n_candidates)s")
            % {"n_scored": f"{first.n_scored:,}", "n_candidates": f"{first.n_candidates:,}"},
            "" if first.cluster is None else str(first.cluster),
        )
        for of_one in _by_metric(results.rows(CorrelationRecord, level=level))
        for first in [of_one.get(results.coefficient) or next(iter(of_one.values()))]
    ]
    counted = name_of(COEFFICIENTS, results.coefficient)
    return Table(
        name=f"correlations-{level}",
        caption=_("Correlation of metrics with human ratings, %(level)s, with intervals")
        % {"level": name_of(LEVELS, level)},
        columns=columns,
        rows=rows,
        note=_(
            "Groups used and rank are those of %(counted)s; metrics that share a rank do "
            "not differ significantly."
        )
        % {"counted": counted},
    )


def _by_metric(records: list[CorrelationRecord]) -> Iterator[dict[str, CorrelationRecord]]:
    """By coefficient, the records of each question, condition and metric."""
    groups: dict[tuple[str, ...], dict[str, CorrelationRecord]] = {}
    for record in records:
        key = (record.question, record.scope, record.by, record.metric, record.signature)
        groups.setdefault(key, {})[record.coefficient] = record
    yield from groups.values()


def coverage_table(results: Results) -> Table:
    """What each correlation rests on, and what was left out and why."""
    records = results.rows(CorrelationRecord, level=results.level, coefficient=results.coefficient)
    counts = {
        "n_candidates": _("Candidates"),
        "n_scored": _("Scored"),
        "n_unscored": _("Without a score"),
        "n_undefined_scores": _("Undefined score"),
        "n_unparsed": _("Unread score"),
        "n_groups": _("Groups"),
        "n_used": _("Used"),
        "n_constant_human": _("Constant human values"),
        "n_constant_metric": _("Constant metric"),
        "n_too_few": _("Too few"),
    }
    rows: list[Row] = [
        (r.question, condition_text(r), results.label(r), *(getattr(r, name) for name in counts))
        for r in records
    ]
    return Table(
        name="coverage",
        caption=_("Coverage of %(statistic)s")
        % {"statistic": statistic(results.coefficient, results.level)},
        columns=[QUESTION, CONDITION, METRIC, *map(Column, counts.values())],
        rows=rows,
    )


def ceilings_table(results: Results) -> Table:
    """What the agreement of annotators allows, and what share of it each metric reaches."""
    columns = [
        QUESTION,
        CONDITION,
        Column(_("Level"), is_number=False),
        Column(_("Coefficient"), is_number=False),
        Column(_("Ceiling")),
        Column(_("One more person")),
        Column(_("Best metrics"), is_number=False),
        Column(_("Share of ceiling, %")),
    ]
    leaders = top_groups(results)
    records = results.rows(CeilingRecord)
    rows = [
        _ceiling_row(results, record, leaders.get(measure_of(record), [])) for record in records
    ]
    return Table(
        name="ceilings",
        caption=_("What a perfect metric could reach, given how well annotators agree"),
        columns=columns,
        rows=rows,
        note=_(
            "One more person: the mean correlation of one annotator with the mean of the others. "
            "Best metrics: the greatest value first, with those that do not differ significantly; "
            "the share is the first one's. Both it and the ceiling are estimates: a share may lie "
            "above 100, by chance, or where few candidates or a rank coefficient, whose ceiling is "
            "an approximation, set the ceiling too low. Intervals are for new items rated by these "
            "very annotators, not by others, and do not count that in; rank correlations of "
            "systems have none. Ceilings by item assume that outputs differ by degrees: they may "
            "be wrong if outputs fall into a few classes of equal quality."
        )
        + "".join(f" {warning}" for warning in ceiling_warnings(records)),
    )


def ceiling_warnings(records: Iterable[CeilingRecord]) -> Iterator[CodedText]:
    """A sentence per reason why ceilings are unreliable, with their questions and measures."""
    measures: dict[str, dict[str, None]] = {}
    for record in records:
        if record.warning is not None:
            named = statistic(record.coefficient, record.level)
            measures.setdefault(record.warning, {})[f"{record.question} ({named})"] = None
    for warning, names in measures.items():
        text = _("Ceilings of %(measures)s are unreliable: %(why)s.")
        text %= {"measures": join_names(list(names)), "why": CEILING_WARNINGS[warning]}
        yield CodedText(text, code="ceiling_unreliable")


def _ceiling_row(results: Results, record: CeilingRecord, leaders: list[CorrelationRecord]) -> Row:
    best = leaders[0] if leaders else None
    share = None if best is None else best.share_of_ceiling
    # Of a ceiling that may be 0 the ratio has no finite limits, whatever the delta method says.
    may_be_none = record.attainable_low is not None and record.attainable_low <= 0
    low, high = (None, None) if best is None or may_be_none else (best.share_low, best.share_high)
    reason = reason_in_words(record.reason) or "undefined"
    of_ceiling = signed(results, "ceiling", record)
    return (
        record.question,
        condition_text(record),
        name_of(LEVELS, record.level),
        name_of(COEFFICIENTS, record.coefficient),
        Number(
            record.attainable,
            low=record.attainable_low,
            high=record.attainable_high,
            reason=reason,
            signature=of_ceiling,
        ),
        Number(
            record.leave_one_out,
            reason=reason,
            signature=signed(results, "ceiling.leave_one_out", record),
        ),
        names_of(results, leaders),
        Number(
            None if share is None else share * 100,
            0,
            low=_percent(low),
            high=_percent(high),
            reason=reason,
            no_interval=_(NO_SHARE_INTERVAL) if may_be_none else "",
            signature="" if best is None else signed(results, "correlation.share", best),
        ),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100
