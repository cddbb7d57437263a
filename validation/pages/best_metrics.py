"""Which metrics agree with people best, beside the ceiling: what the Metrics page says first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from console.spans import Axis, Span, correlation_axis
from console.templatetags.numbers import coefficient as coefficient_text
from validation.analysis.records import CorrelationRecord
from validation.documents.metrics_answers import MetricsAnswer
from validation.documents.terms import COEFFICIENTS


@dataclass(frozen=True)
class MetricRow:
    """A metric's agreement with people, and where it lies on the axis."""

    label: str
    record: CorrelationRecord
    span: Span | None
    level: str

    @property
    def coverage(self) -> str:
        """What it rests on: items used of all, or candidates."""
        row = self.record
        if self.level != "item":
            return f"{row.n_rows:,}"
        counts = {"n": f"{row.n_used:,}", "total": f"{row.n_groups:,}"}
        return _("%(n)s of %(total)s") % counts


class BestMetrics(MetricsAnswer):
    """The same as rows, and where each lies on the axis: the top group, and the others."""

    @cached_property
    def axis(self) -> Axis:
        lows = [row.ci_low if row.ci_low is not None else row.value for row in self.defined]
        return correlation_axis([low for low in lows if low is not None])

    @cached_property
    def top(self) -> list[MetricRow]:
        """The greatest, and those that no test tells from it."""
        return [self._row(row) for row in self.best_records]

    @cached_property
    def behind(self) -> list[MetricRow]:
        """Those that a test tells from the greatest; last those that are undefined."""
        known = {id(row) for row in self.best_records}
        others = [row for row in self.defined if id(row) not in known]
        undefined = [row for row in self.records if row.is_primary and row.value is None]
        return [self._row(row) for row in [*others, *undefined]]

    def _row(self, row: CorrelationRecord) -> MetricRow:
        span = self.axis.span(row.value, row.ci_low, row.ci_high)
        return MetricRow(self.results.label(row), row, span, row.level)

    @cached_property
    def ceiling_span(self) -> Span | None:
        if self.ceiling is None:
            return None
        one = self.ceiling
        return self.axis.span(one.attainable, one.attainable_low, one.attainable_high)

    @property
    def coefficient(self) -> str:
        first = next(iter(self.records), None)
        return "" if first is None else COEFFICIENTS.get(first.coefficient, first.coefficient)

    @property
    def behind_text(self) -> str:
        """The range of those behind, for the closed line that hides them."""
        defined = [row for row in self.behind if row.span is not None]
        if not defined:
            return ""
        ends = [defined[0], defined[-1]][: len(defined)]
        texts = [f"{row.label} {coefficient_text(row.record.value)}" for row in ends]
        if len(texts) == 1:
            return texts[0]
        return _("%(first)s to %(last)s") % {"first": texts[0], "last": texts[1]}
