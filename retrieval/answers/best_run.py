from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _, ngettext

from console.templatetags.numbers import p_text, percent
from error_codes import CodedText
from presentation.numbers import format_interval, format_number, shorten_names
from retrieval.evaluated_runs import RunOrder
from retrieval.models import EvaluatedMeasure, RunPair, RunResult

# Fewer topics give no answer, as fewer items give none on Results.
LEAST_TOPICS = 10
# Runs of which a reader should know that much less was judged.
UNEVEN, INCOMPLETE = 0.1, 0.9
# Which would be written as 100 %.
ALL = 0.995


@dataclass(frozen=True)
class EvaluationAnswer:
    """`results` are sorted, the best run first."""

    measure: EvaluatedMeasure
    results: Sequence[RunResult]
    pairs: Sequence[RunPair]
    n_topics: int

    @cached_property
    def first(self) -> RunResult:
        return self.results[0]

    @cached_property
    def rivals(self) -> list[RunResult]:
        """The runs that are not significantly worse than the first."""
        order = RunOrder.of(
            {row.run.name: row.mean for row in self.results},
            [(pair.a.name, pair.b.name, pair.delta, pair.p_adjusted) for pair in self.pairs],
        )
        first = self.first.run.name
        return [row for row in self.results[1:] if not order.is_better(first, row.run.name)]

    @property
    def first_sentence(self) -> str:
        names = {"run": self.first.run.name, "measure": self.measure.name}
        if self.first.mean is None:
            return CodedText(
                _("{measure} is undefined for every run.").format(**names), code="undefined"
            )
        if len(self.results) == 1:
            return CodedText(
                _("{run} is the only run: its {measure} is {mean}.").format(
                    mean=format_number(self.first.mean), **names
                ),
                code="only_run",
            )
        if self.n_topics < LEAST_TOPICS:
            return CodedText(_("Too few topics for an answer."), code="too_few_topics")
        if self.rivals:
            return CodedText(
                _("It is not decided which run is best by {measure}.").format(**names),
                code="undecided",
            )
        return CodedText(_("{run} is best by {measure}.").format(**names), code="best")

    @property
    def details(self) -> list[str]:
        return list(self._details())

    def _details(self) -> Iterator[str]:
        if len(self.results) > 1 and self.first.mean is not None:
            yield from self._lead()
        yield from self._judged()

    def _lead(self) -> Iterator[str]:
        pair = next(
            each
            for each in self.pairs
            if {each.a_id, each.b_id} == {self.first.run_id, self.results[1].run_id}
        )
        yield self._lead_text(pair)
        if self.n_topics < LEAST_TOPICS:
            yield CodedText(
                _("Below {n} topics chance decides too much to name a best run.").format(
                    n=LEAST_TOPICS
                ),
                code="below_least_topics",
            )
        elif not self.measure.is_primary:
            yield CodedText(
                _("This measure is not primary: its tests are not corrected, and decide nothing."),
                code="not_primary",
            )
        elif self.rivals:
            names = [row.run.name for row in self.rivals]
            yield CodedText(
                _("{runs} may be as good as {first}, or better.").format(
                    runs=shorten_names(names), first=self.first.run.name
                ),
                code="rivals",
            )
        else:
            n = len(self.pairs)
            yield CodedText(
                ngettext(
                    "If the two were equally good, a lead this large would be rare: p %(p)s, "
                    "adjusted for %(n)d comparison and all primary measures.",
                    "If the two were equally good, a lead this large would be rare: p %(p)s, "
                    "adjusted for %(n)d comparisons and all primary measures.",
                    n,
                )
                % {"p": p_text(pair.p_adjusted), "n": n},
                code="lead_is_rare",
            )

    def _lead_text(self, pair: RunPair) -> str:
        is_turned = pair.a_id != self.first.run_id
        delta, low, high = pair.delta, pair.ci_low, pair.ci_high
        if is_turned:
            delta, low, high = _minus(delta), _minus(high), _minus(low)
        names = {"first": self.first.run.name, "second": self.results[1].run.name}
        if delta is None:
            return CodedText(
                _("{first} and {second} have no topic in common.").format(**names),
                code="no_common_topic",
            )
        if delta < 0:
            names = {"first": names["second"], "second": names["first"]}
            delta, low, high = _minus(delta), _minus(high), _minus(low)
        return CodedText(
            _("{first} leads {second} by {delta} {interval}, on {n} topics.").format(
                **names,
                delta=format_number(delta),
                interval=format_interval(low, high),
                n=f"{pair.n_topics:,}",
            ),
            code="lead",
        )

    def _judged(self) -> Iterator[str]:
        judged = sorted(
            (row.judged, row.run.name) for row in self.results if row.judged is not None
        )
        if not judged:
            return
        (least, run_of_least), (most, run_of_most) = judged[0], judged[-1]
        if most - least >= UNEVEN:
            yield CodedText(
                _(
                    "Where {measure} looks, {most} of {best}'s documents were judged and {least} "
                    "of {worst}'s. What nobody judged counts as not relevant, which favours {best}."
                ).format(
                    measure=self.measure.name,
                    most=percent(most),
                    best=run_of_most,
                    least=percent(least),
                    worst=run_of_least,
                ),
                code="uneven_judged",
            )
        elif least < INCOMPLETE:
            yield CodedText(
                _(
                    "Where {measure} looks, {least} or more of each run's documents were judged; "
                    "what nobody judged counts as not relevant."
                ).format(measure=self.measure.name, least=percent(least)),
                code="incomplete_judged",
            )
        elif least >= ALL:
            yield CodedText(
                _("Where {measure} looks, everything that the runs show was judged.").format(
                    measure=self.measure.name
                ),
                code="all_judged",
            )
        else:
            yield CodedText(
                _("Where {measure} looks, {least} or more of each run was judged.").format(
                    measure=self.measure.name, least=percent(least)
                ),
                code="most_judged",
            )


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
