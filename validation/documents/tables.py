"""The tables of a full report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    Measure,
    SensitivityRecord,
)
from validation.documents.cells import correlation, p_cell, signed
from validation.documents.documents import Column, Number, P, Row, Table
from validation.documents.terms import (
    CHOICES,
    COEFFICIENTS,
    LEVELS,
    POLICIES,
    TESTS,
    family,
    listed,
    name_of,
    reason_in_words,
    statistic,
)
from validation.results import ALL, MEAN, Results, measure_of

MEAN_OF_CONDITIONS = "mean of conditions"
EVERY = "all"
# Of a group that no test distinguishes.
MOST_NAMED = 3
QUESTION, CONDITION = (
    Column(gettext_noop("Question"), is_number=False),
    Column(gettext_noop("Condition"), is_number=False),
)
METRIC, SYSTEM = (
    Column(gettext_noop("Metric"), is_number=False),
    Column(gettext_noop("System"), is_number=False),
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
    rows = [
        _ceiling_row(results, record, leaders.get(measure_of(record), []))
        for record in results.rows(CeilingRecord)
    ]
    return Table(
        name="ceilings",
        caption=_("What a perfect metric could reach, given how well annotators agree"),
        columns=columns,
        rows=rows,
        note=_(
            "One more person: the mean correlation of one annotator with the mean of the others. "
            "Best metrics: the greatest value first, with those that do not differ significantly; "
            "the share is the first one's, and above 100 by chance only. Intervals are for new "
            "items by these annotators; rank correlations of systems have none."
        ),
    )


def top_groups(results: Results, **of: object) -> dict[Measure, list[CorrelationRecord]]:
    """By measure, the metrics that do not differ significantly from the greatest, which comes
    first. A pair that could not be tested does not differ.

    The first cluster would not do: it ends at the first metric that differs from one of its
    members, and leaves out those below that do not differ from the greatest.
    """
    of_measure: dict[Measure, list[CorrelationRecord]] = {}
    for row in results.rows(CorrelationRecord, is_primary=True, **of):
        if row.value is not None:
            of_measure.setdefault(measure_of(row), []).append(row)
    different = {
        (measure_of(pair), source)
        for pair in results.rows(ComparisonRecord, **of)
        if pair.p_holm is not None and pair.p_holm < results.settings.alpha
        for source in permutations(_sources(pair))
    }
    groups = {}
    for measure, metrics in of_measure.items():
        first, *others = sorted(metrics, key=lambda row: -(row.value or 0.0))
        beside = [
            row for row in others if (measure, (_source(first), _source(row))) not in different
        ]
        groups[measure] = [first, *beside]
    return groups


def _source(row: CorrelationRecord) -> tuple[str, str]:
    return row.metric, row.signature


def _sources(pair: ComparisonRecord) -> tuple[tuple[str, str], tuple[str, str]]:
    return (pair.metric_a, pair.signature_a), (pair.metric_b, pair.signature_b)


def names_of(results: Results, group: Sequence[CorrelationRecord]) -> str:
    """The names of a top group, as many as a line has room for."""
    names = [results.label(row) for row in group]
    rest = len(names) - MOST_NAMED
    if rest < 2:
        return ", ".join(names)
    more = {"names": ", ".join(names[:MOST_NAMED]), "rest": rest}
    return _("%(names)s and %(rest)s more") % more


def _ceiling_row(results: Results, record: CeilingRecord, leaders: list[CorrelationRecord]) -> Row:
    best = leaders[0] if leaders else None
    share = None if best is None else best.share_of_ceiling
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
            low=None if best is None else _percent(best.share_low),
            high=None if best is None else _percent(best.share_high),
            reason=reason,
            signature="" if best is None else signed(results, "correlation.share", best),
        ),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


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
    tests = {name_of(TESTS, record.test) for record in records}
    both = results.settings.resample == "items"
    group = _("These systems") if both else ""
    new = _("New systems of this kind")
    rows: list[Row] = [
        (
            *results.pair_labels(record),
            Number(
                record.delta,
                3,
                record.ci_low,
                record.ci_high,
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
        note=_("By %(tests)s; two-sided. %(family)s %(both)s")
        % {
            "tests": listed(sorted(tests)),
            "family": family(results.all_inputs),
            "both": _(NEW) if both else "",
        }
        if tests
        else "",
    )


def _new_systems_cell(record: ComparisonRecord) -> Number:
    """The interval of a difference for new systems of this kind."""
    known = record.new_systems_low is not None
    return Number(
        record.delta if known else None,
        3,
        record.new_systems_low,
        record.new_systems_high,
        reason_in_words(record.new_systems_reason),
    )


def _new_systems_p(record: ComparisonRecord) -> P:
    return P(record.new_systems_p_holm, reason_in_words(record.new_systems_reason))


def sensitivity_table(results: Results) -> Table:
    """What each policy would have changed, over all conditions and as the mean of them."""
    of = {"level": results.level, "scope": (ALL, MEAN)}
    records = results.rows(SensitivityRecord, **of)
    base = {_key(row): row for row in results.rows(CorrelationRecord, **of)}
    titles = (_("Policy"), _("Instead of"), _("Choice"), _("Coefficient"))
    columns = [
        QUESTION,
        CONDITION,
        *(Column(title, is_number=False) for title in titles),
        METRIC,
        Column(_("Value")),
        Column(_("Would be")),
        Column(_("Rank"), is_number=False),
    ]
    return Table(
        name="sensitivity",
        caption=_("What other policies would give, %(level)s")
        % {"level": name_of(LEVELS, results.level)},
        columns=columns,
        rows=[_sensitivity_row(results, record, base[_key(record)]) for record in records],
    )


def _key(record: CorrelationRecord | SensitivityRecord) -> tuple[str, ...]:
    key = (record.question, record.scope, record.by, record.coefficient)
    return (*key, record.metric, record.signature)


def _sensitivity_row(results: Results, record: SensitivityRecord, base: CorrelationRecord) -> Row:
    return (
        record.question,
        condition_text(record),
        name_of(POLICIES, record.setting),
        name_of(CHOICES, record.base_choice),
        name_of(CHOICES, record.choice),
        name_of(COEFFICIENTS, record.coefficient),
        results.label(record),
        Number(
            record.base_value,
            3,
            reason=reason_in_words(base.reason),
            signature=signed(results, "correlation", base),
        ),
        Number(
            record.value,
            3,
            reason=reason_in_words(record.reason),
            signature=signed(results, "sensitivity", record),
        ),
        _move(record.base_rank, record.rank),
    )


def _move(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before:g}" if before == after else f"{before:g} → {after:g}"
