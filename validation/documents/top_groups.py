"""The metrics of a family that no test distinguishes from the best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from django.utils.translation import gettext as _

from validation.analysis.records import (
    ComparisonRecord,
    CorrelationRecord,
    Measure,
)
from validation.results import Results, measure_of

# Of a group that no test distinguishes.
MOST_NAMED = 3


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
    tests: dict[Measure, list[ComparisonRecord]] = {}
    for pair in results.rows(ComparisonRecord, **of):
        tests.setdefault(measure_of(pair), []).append(pair)
    return {
        measure: top_group(metrics, tests.get(measure, []), results.settings.alpha)
        for measure, metrics in of_measure.items()
    }


def top_group(
    metrics: Sequence[CorrelationRecord], tests: Sequence[ComparisonRecord], alpha: float
) -> list[CorrelationRecord]:
    """The greatest of one measure, and those that its tests do not tell from it."""
    different = {
        source
        for pair in tests
        if pair.p_holm is not None and pair.p_holm < alpha
        for source in permutations(_sources(pair))
    }
    first, *others = sorted(metrics, key=lambda row: -(row.value or 0.0))
    return [first, *(row for row in others if (_source(first), _source(row)) not in different)]


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
