"""Which metrics agree with people best, beside the ceiling: what the Metrics page says first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.spans import Axis, Span, correlation_axis
from console.templatetags.numbers import coefficient as coefficient_text
from console.templatetags.numbers import interval
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.records import CeilingRecord, ComparisonRecord, CorrelationRecord
from validation.documents.terms import COEFFICIENTS, SYMBOLS, reason_in_words
from validation.documents.top_groups import top_group
from validation.results import Results


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


def _size(row: CorrelationRecord) -> str:
    """What a correlation is over, counted."""
    if row.level == "item":
        text, n = ngettext("n = %(n)s item", "n = %(n)s items", row.n_used), row.n_used
    elif row.level == "system" and row.n_systems is not None:
        text = ngettext("n = %(n)s system", "n = %(n)s systems", row.n_systems)
        n = row.n_systems
    else:
        text, n = ngettext("n = %(n)s candidate", "n = %(n)s candidates", row.n_rows), row.n_rows
    return text % {"n": f"{n:,}"}


@dataclass(frozen=True)
class BestMetrics:
    """The metrics of one question by one measure: those not told apart from the best, and the
    others; `records` are of the family and in no order."""

    results: Results
    records: Sequence[CorrelationRecord]
    comparisons: Sequence[ComparisonRecord]
    ceiling: CeilingRecord | None

    @cached_property
    def _defined(self) -> list[CorrelationRecord]:
        defined = (row for row in self.records if row.is_primary and row.value is not None)
        return sorted(defined, key=lambda row: -(row.value or 0.0))

    @cached_property
    def _best(self) -> list[CorrelationRecord]:
        if not self._defined:
            return []
        return top_group(self._defined, self.comparisons, self.results.settings.alpha)

    @cached_property
    def axis(self) -> Axis:
        lows = [row.ci_low if row.ci_low is not None else row.value for row in self._defined]
        return correlation_axis([low for low in lows if low is not None])

    @cached_property
    def top(self) -> list[MetricRow]:
        """The greatest, and those that no test tells from it."""
        return [self._row(row) for row in self._best]

    @cached_property
    def behind(self) -> list[MetricRow]:
        """Those that a test tells from the greatest; last those that are undefined."""
        known = {id(row) for row in self._best}
        others = [row for row in self._defined if id(row) not in known]
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
    def answer(self) -> str:
        """In a few words, whether one metric is best."""
        n, n_top = len(self._defined), len(self._best)
        if not n:
            return _("No metric can be set against people here.")
        values = {"metric": self.results.label(self._best[0]), "n": n, "top": n_top}
        if n == 1:
            return _("%(metric)s is the only metric to set against people.") % values
        if n_top == 1:
            return _("%(metric)s agrees with people best.") % values
        return _("No single metric is best.")

    @property
    def explanation(self) -> str:
        """What that rests on, in a sentence."""
        n, n_top = len(self._defined), len(self._best)
        if not n:
            reasons = dict.fromkeys(reason_in_words(row.reason) for row in self.records)
            return _("Every correlation is undefined: %(reasons)s.") % {
                "reasons": "; ".join(filter(None, reasons))
            }
        values = {"n": n, "top": n_top, "others": n - 1}
        if n == 1:
            text = ""
        elif n_top == 1:
            text = ngettext(
                "A test tells it from the %(others)d other.",
                "Tests tell it from each of the %(others)d others.",
                n - 1,
            )
        elif n_top == n:
            text = _("None of the %(n)d can be told from the one with the greatest value.")
        else:
            text = _("%(top)d of %(n)d cannot be told apart at the top.")
        below = self._below_the_ceiling
        return " ".join(part for part in (text % values, below) if part)

    @property
    def _below_the_ceiling(self) -> str:
        """Only where no interval of the top group reaches the ceiling's."""
        if self.ceiling is None or self.ceiling.attainable is None:
            return ""
        low = self.ceiling.attainable_low
        floor = self.ceiling.attainable if low is None else low
        tops = [row.value if row.ci_high is None else row.ci_high for row in self._best]
        if any(top is None or top >= floor for top in tops):
            return ""
        return ngettext(
            "It stays below what a perfect metric could reach here.",
            "All of them stay below what a perfect metric could reach here.",
            len(self._best),
        )

    @property
    def estimate(self) -> str:
        """The greatest value, with its interval and what it rests on."""
        if not self._best:
            return ""
        first = self._best[0]
        values = {
            "metric": self.results.label(first),
            "symbol": SYMBOLS.get(first.coefficient, first.coefficient),
            "value": coefficient_text(first.value),
            "limits": interval(first),
            "n": _size(first),
        }
        text = _("The greatest value is %(metric)s's, %(symbol)s %(value)s %(limits)s, %(n)s.")
        return " ".join([" ".join((text % values).split()), *self._caveats(first)])

    def _caveats(self, first: CorrelationRecord) -> list[str]:
        n_items = min(first.n_used, first.n_units or first.n_used)
        if first.level != "item" or n_items >= LEAST_ITEMS:
            return []
        text = ngettext(
            "With %(n)d item only this is a rough guide; rate %(least)d or more.",
            "With %(n)d items only this is a rough guide; rate %(least)d or more.",
            n_items,
        )
        return [text % {"n": n_items, "least": LEAST_ITEMS}]

    @property
    def ceiling_text(self) -> str:
        """What a metric could reach, and what one more annotator does."""
        one = self.ceiling
        if one is None or one.attainable is None:
            reason = None if one is None else reason_in_words(one.reason)
            why = reason or _("too few annotators judged the same candidates")
            return _("What a perfect metric could reach is not known: %(why)s.") % {"why": why}
        limits = {"ci_low": one.attainable_low, "ci_high": one.attainable_high}
        values = {"value": coefficient_text(one.attainable), "limits": interval(limits)}
        sentences = [
            _("A perfect metric could reach %(value)s %(limits)s against these ratings: that is "
              "the ceiling.") % values
        ]  # fmt: skip
        if one.leave_one_out is not None:
            text = _("One more annotator agrees with the others at %(value)s.")
            sentences.append(text % {"value": coefficient_text(one.leave_one_out)})
        return " ".join(" ".join(sentences).split())

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
