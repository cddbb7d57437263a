from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from django.utils.translation import gettext as _, ngettext

from error_codes import CodedText
from presentation.documents import Number
from presentation.numbers import group_values, join_names
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    Measure,
)
from validation.documents.terms import CEILING_WARNINGS, COEFFICIENTS, LEVELS, reason_in_words
from validation.results import ALL, Results, measure_of

# Of a group that no test distinguishes.
MOST_NAMED = 3


def top_groups(results: Results, **of: object) -> dict[Measure, list[CorrelationRecord]]:
    """By measure, the metrics that do not differ significantly from the greatest, which comes
    first. A pair that could not be tested does not differ.

    The first cluster would not do: it ends at the first metric that differs from one of its
    members, and leaves out those below that do not differ from the greatest.
    """
    primary = results.rows(CorrelationRecord, is_primary=True, **of)
    of_measure = group_values((measure_of(row), row) for row in primary if row.value is not None)
    tests = group_values((measure_of(row), row) for row in results.rows(ComparisonRecord, **of))
    return {
        measure: top_group(metrics, tests[measure], results.settings.alpha)
        for measure, metrics in of_measure.items()
    }


def top_group(
    metrics: Sequence[CorrelationRecord], tests: Sequence[ComparisonRecord], alpha: float
) -> list[CorrelationRecord]:
    different = {
        source
        for pair in tests
        if pair.p_holm is not None and pair.p_holm < alpha
        for source in permutations(
            [(pair.metric_a, pair.signature_a), (pair.metric_b, pair.signature_b)]
        )
    }
    first, *others = sorted(metrics, key=lambda row: -(row.value or 0.0))
    return [first, *(row for row in others if (_source(first), _source(row)) not in different)]


def _source(row: CorrelationRecord) -> tuple[str, str]:
    return row.metric, row.signature


def names_of(results: Results, group: Sequence[CorrelationRecord]) -> str:
    names = [results.label(row) for row in group]
    rest = len(names) - MOST_NAMED
    if rest < 2:
        return ", ".join(names)
    return _("%(names)s and %(rest)s more") % {"names": ", ".join(names[:MOST_NAMED]), "rest": rest}


@dataclass(frozen=True)
class MetricsAnswer:
    """One question by one measure: the top group and the ceiling. `records` are primary metrics in
    any order."""

    results: Results
    records: Sequence[CorrelationRecord]
    comparisons: Sequence[ComparisonRecord]
    ceiling: CeilingRecord | None

    @cached_property
    def defined(self) -> list[CorrelationRecord]:
        defined = (row for row in self.records if row.is_primary and row.value is not None)
        return sorted(defined, key=lambda row: -(row.value or 0.0))

    @cached_property
    def best_records(self) -> list[CorrelationRecord]:
        if not self.defined:
            return []
        return top_group(self.defined, self.comparisons, self.results.settings.alpha)

    @property
    def answer(self) -> CodedText:
        n, n_top = len(self.defined), len(self.best_records)
        values = {"raters": self.results.raters.named}
        if not n:
            return CodedText(
                _("No metric can be set against %(raters)s here.") % values, code="undefined"
            )
        values["metric"] = self.results.label(self.best_records[0])
        if self._is_none_beyond_chance:
            return CodedText(
                _("No metric agrees with %(raters)s beyond chance.") % values, code="chance"
            )
        if n == 1:
            return CodedText(
                _("%(metric)s is the only metric to set against %(raters)s.") % values, code="only"
            )
        if n_top == 1:
            return CodedText(_("%(metric)s agrees with %(raters)s best.") % values, code="best")
        return CodedText(_("No single metric is best."), code="undecided")

    @property
    def explanation(self) -> str:
        n, n_top = len(self.defined), len(self.best_records)
        if not n:
            reasons = dict.fromkeys(reason_in_words(row.reason) for row in self.records)
            return _("Every correlation is undefined: %(reasons)s.") % {
                "reasons": "; ".join(filter(None, reasons))
            }
        values = {"n": n, "top": n_top, "others": n - 1}
        if self._is_none_beyond_chance:
            text = _("Every interval holds 0 or lies below it.")
        elif n == 1:
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
        return " ".join(part for part in (text % values, self.below_ceiling) if part)

    @property
    def _is_none_beyond_chance(self) -> bool:
        return all(
            row.coefficient != "acc_eq" and row.ci_low is not None and row.ci_low <= 0
            for row in self.defined
        )

    @property
    def below_ceiling(self) -> CodedText | None:
        if self.ceiling is None or self.ceiling.attainable is None:
            return None
        low = self.ceiling.attainable_low
        floor = self.ceiling.attainable if low is None else low
        tops = [row.value if row.ci_high is None else row.ci_high for row in self.best_records]
        if any(top is None or top >= floor for top in tops):
            return None
        if self.ceiling.coefficient != "pearson" and self.ceiling.level != "system":
            # Means of systems are not tied; of the others the record does not say how many are.
            text = ngettext(
                "It stays below what a perfect metric could reach here; where people's ratings "
                "are often equal, one whose scores never are may reach less.",
                "All of them stay below what a perfect metric could reach here; where people's "
                "ratings are often equal, one whose scores never are may reach less.",
                len(self.best_records),
            )
            return CodedText(text, code="below_ceiling_of_ties")
        return CodedText(
            ngettext(
                "It stays below what a perfect metric could reach here.",
                "All of them stay below what a perfect metric could reach here.",
                len(self.best_records),
            ),
            code="below_ceiling",
        )

    @property
    def estimate(self) -> str:
        if not self.best_records:
            return ""
        first = self.best_records[0]
        values = {
            "metric": self.results.label(first),
            "measure": measure_name(first),
            "value": _value_text(first.value, first.ci_low, first.ci_high),
            "n": size_text(first),
        }
        text = _("The greatest value is %(metric)s's: %(measure)s, %(value)s, %(n)s.")
        return " ".join([text % values, *self._equals(first), *self._caveats(first)])

    def _equals(self, first: CorrelationRecord) -> list[str]:
        same = [self.results.label(row) for row in self.defined[1:] if row.value == first.value]
        if not same:
            return []
        return [
            ngettext("%(metrics)s has it too.", "%(metrics)s have it too.", len(same))
            % {"metrics": join_names(same)}
        ]

    def _caveats(self, first: CorrelationRecord) -> list[str]:
        n_items = min(first.n_used, first.n_units or first.n_used)
        if first.level != "item" or n_items >= LEAST_ITEMS:
            return []
        return [
            ngettext(
                "With %(n)d item only this is a rough guide; rate %(least)d or more.",
                "With %(n)d items only this is a rough guide; rate %(least)d or more.",
                n_items,
            )
            % {"n": n_items, "least": LEAST_ITEMS}
        ]

    @property
    def ceiling_text(self) -> str:
        return " ".join(self.ceiling_sentences)

    @property
    def ceiling_sentences(self) -> Iterator[CodedText]:
        one = self.ceiling
        if one is None or one.attainable is None:
            reason = None if one is None else reason_in_words(one.reason)
            why = reason or _("too few annotators judged the same candidates")
            text = _("What a perfect metric could reach is not known: %(why)s.") % {"why": why}
            yield CodedText(text, code="ceiling_unknown")
            return
        value = _value_text(one.attainable, one.attainable_low, one.attainable_high)
        text = _(
            "A perfect metric could reach %(value)s against these ratings: that is the ceiling, an "
            "estimate."
        )
        if one.coefficient != "pearson":
            text = _(
                "A perfect metric could reach about %(value)s against these ratings: that is the "
                "ceiling, an estimate as if values were normal."
            )
        yield CodedText(text % {"value": value}, code="ceiling")
        if one.warning is not None:
            text = _("It is unreliable here, and so is its interval: %(why)s.") % {
                "why": CEILING_WARNINGS[one.warning]
            }
            yield CodedText(text, code="ceiling_unreliable")
        if one.level == "item":
            text = _(
                "It assumes that outputs differ by degrees. If they fall into a few classes of "
                "equal quality, it may be wrong."
            )
            yield CodedText(text, code="ceiling_assumes_degrees")
        if one.attainable_low is not None:
            text = _("Its interval is for new items rated by these very annotators.")
            yield CodedText(text, code="ceiling_interval")
        if any((row.value or 0.0) > one.attainable for row in self.defined):
            text = _(
                "A metric lies above the ceiling because both are estimates: it is about as good "
                "as these ratings can show."
            )
            yield CodedText(text, code="above_ceiling")
        if one.leave_one_out is not None:
            text = _("One more annotator agrees with the others at %(value)s.") % {
                "value": _value_text(one.leave_one_out)
            }
            yield CodedText(text, code="one_more_annotator")

    @property
    def sentences(self) -> list[str]:
        texts = (self.answer, self.explanation, self.estimate, self.ceiling_text)
        return [text for text in texts if text]


def metrics_answers(results: Results) -> Iterator[tuple[str, MetricsAnswer]]:
    """Per question over all conditions, by the measure of short tables."""
    of = {"scope": ALL, "level": results.level, "coefficient": results.coefficient}
    rows, tests = results.rows(CorrelationRecord, **of), results.rows(ComparisonRecord, **of)
    ceilings = {row.question: row for row in results.rows(CeilingRecord, **of)}
    for question in results.questions:
        if records := [row for row in rows if row.question == question]:
            pairs = [pair for pair in tests if pair.question == question]
            yield question, MetricsAnswer(results, records, pairs, ceilings.get(question))


def measure_name(row: CorrelationRecord) -> str:
    named = COEFFICIENTS.get(row.coefficient, row.coefficient)
    return f"{named} {LEVELS.get(row.level, row.level)}"


def size_text(row: CorrelationRecord) -> str:
    if row.level == "item":
        text, n = ngettext("n = %(n)s item", "n = %(n)s items", row.n_used), row.n_used
    elif row.level == "system" and row.n_systems is not None:
        text = ngettext("n = %(n)s system", "n = %(n)s systems", row.n_systems)
        n = row.n_systems
    else:
        text, n = ngettext("n = %(n)s candidate", "n = %(n)s candidates", row.n_rows), row.n_rows
    return text % {"n": f"{n:,}"}


def _value_text(value: float | None, low: float | None = None, high: float | None = None) -> str:
    return Number(value, low=low, high=high).text.replace("-", "\N{MINUS SIGN}")
