"""What people's judgments come to, in sentences: first one that needs no statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.templatetags.numbers import percent
from validation.analysis.human_results import PREFERRED, SHARE
from validation.analysis.rated_systems import ORDER
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.documents.rated_systems import (
    LEAST_P,
    has_too_few_items,
    is_told_apart,
    rivals_of,
)
from validation.documents.scale_limits import on_scale
from validation.documents.terms import listed

MOST_NAMED = 3
MOST_UNDECIDED = 4
WIDE_SCALE = 20.0


@dataclass(frozen=True)
class Scale:
    """How values of a question are written: percentages, or points of a scale."""

    measure: str
    low: float
    high: float
    yes: str = ""

    @property
    def is_share(self) -> bool:
        return self.measure in (SHARE, PREFERRED)

    def value(self, value: float | None) -> str:
        if self.is_share or value is None:
            return percent(value)
        return f"{value:.{self._decimals}f}".replace("-", "\N{MINUS SIGN}")

    def interval(self, one: RatedSystemRecord) -> str:
        """That of a system's mean, as far as the scale goes."""
        return self._between(*on_scale(one.mean, (one.ci_low, one.ci_high), self.ends))

    def is_cut(self, one: RatedSystemRecord) -> bool:
        """Whether the interval would reach beyond the scale."""
        limits = (one.ci_low, one.ci_high)
        return on_scale(one.mean, limits, self.ends) != limits

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.is_share else (self.low, self.high)

    def _between(self, low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return ""
        return f"[{self.value(low)}, {self.value(high)}]"

    @property
    def _decimals(self) -> int:
        return 1 if self.high - self.low >= WIDE_SCALE else 2

    def difference(self, pair: RatedPairRecord, sign: float = 1.0) -> str:
        """That of a pair with its interval, as seen from one of its sides."""
        low, high = pair.ci_low, pair.ci_high
        if sign < 0:
            low, high = (None if one is None else -one for one in (pair.ci_high, pair.ci_low))
        delta = None if pair.delta is None else sign * pair.delta
        widest = 1.0 if is_ordinal(pair) or self.is_share else self.high - self.low
        low, high = on_scale(delta, (low, high), (-widest, widest))
        if is_ordinal(pair) or self.is_share:
            limits = "" if low is None or high is None else f"[{_points(low)}, {_points(high)}]"
            points = _("%(n)s percentage points")
            text = points if self.measure == SHARE else _("a net %(n)s in 100 answers")
            return f"{text % {'n': _points(delta)}} {limits}".strip()
        return f"{self.value(delta)} {self._between(low, high)}".strip()


def is_ordinal(pair: RatedPairRecord) -> bool:
    """Whether the two are compared by how often one is rated above the other."""
    return pair.test.startswith(ORDER)


def _points(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Standing:
    """The systems of a question, best first, and which pairs are told apart."""

    scale: Scale
    systems: Sequence[RatedSystemRecord]
    pairs: Sequence[RatedPairRecord]

    def pair(self, a: str, b: str) -> RatedPairRecord | None:
        return next((pair for pair in self.pairs if {pair.a, pair.b} == {a, b}), None)

    @property
    def rivals(self) -> list[str]:
        """Those that the first is not told apart from."""
        return rivals_of(self.systems, self.pairs)

    @property
    def answer(self) -> str:
        """For a reader who knows no statistics: who is best, and whether that is sure."""
        first = self.systems[0]
        if first.mean is None:
            return _("No order of the systems follows from these comparisons yet.")
        if len(self.systems) == 1:
            return self._of_one(first)
        values = {"best": first.system, "yes": self.scale.yes}
        if has_too_few_items(first):
            text = _("Too few items for an answer; so far people put %(best)s first.")
            return text % values
        if not self.rivals:
            return _BEST[self.scale.measure]() % values
        names = listed(_named(self.rivals))
        text = _("People put %(best)s first so far, but %(rivals)s may be as good or better.")
        return text % (values | {"rivals": names})

    def _of_one(self, one: RatedSystemRecord) -> str:
        limits = self.scale.interval(one)
        values = {
            "system": one.system,
            "value": self.scale.value(one.mean),
            "limits": limits,
            "yes": self.scale.yes,
            "high": f"{self.scale.high:g}",
        }
        if self.scale.is_share:
            named = _("People say “%(yes)s” to %(value)s of the candidates of %(system)s.")
            unnamed = _("People say “%(yes)s” to %(value)s of the candidates.")
        else:
            named = _("People give %(system)s %(value)s on average, on a scale up to %(high)s.")
            unnamed = _("People give %(value)s on average, on a scale up to %(high)s.")
        return (named if one.system else unnamed) % values

    @property
    def certainty(self) -> str:
        """Whether a repetition would come out the same."""
        if len(self.systems) < 2 or self.systems[0].mean is None:
            return ""
        if has_too_few_items(self.systems[0]):
            return _("With other items that may well come out otherwise.")
        if not self.rivals:
            return _("With other items and other annotators it would very probably be first again.")
        return _("More ratings would be needed to know.")

    @property
    def sureness(self) -> str:
        """The same in a few words."""
        if has_too_few_items(self.systems[0]):
            n = self.systems[0].n_items
            return ngettext(
                "%(n)d item, too few to be sure", "%(n)d items, too few to be sure", n
            ) % {"n": n}
        if not self.rivals:
            return _("ahead of every other")
        return _("%(rivals)s may be as good") % {"rivals": listed(_named(self.rivals))}

    @property
    def details(self) -> list[str]:
        """The lead, what is not decided, and who is last, with their numbers."""
        if len(self.systems) < 2:
            return list(self._alone())
        return [*self._lead(), *self._undecided(), *self._last(), *self._net()]

    def _alone(self) -> Iterator[str]:
        one = self.systems[0]
        limits = self.scale.interval(one)
        if limits:
            text = _("With other items and annotators between %(limits)s, in 95 of 100 studies.")
            yield text % {"limits": limits}

    def _lead(self) -> Iterator[str]:
        first, second = self.systems[0].system, self.systems[1].system
        pair = self.pair(first, second)
        if pair is None or pair.delta is None or not is_told_apart(pair, first):
            return
        size = self.scale.difference(pair, 1.0 if pair.a == first else -1.0)
        n = ngettext("%(n)s item", "%(n)s items", pair.n_items) % {"n": f"{pair.n_items:,}"}
        text = ngettext(
            "It leads %(second)s by %(size)s, on %(items)s; if both were equally good, a lead this "
            "large would be rare (p %(p)s).",
            "It leads %(second)s by %(size)s, on %(items)s; if both were equally good, a lead this "
            "large would be rare (p %(p)s, adjusted for %(k)d comparisons).",
            len(self.pairs),
        )
        p = p_text(pair.p_adjusted)
        yield text % {"second": second, "size": size, "items": n, "p": p, "k": len(self.pairs)}

    def _undecided(self) -> Iterator[str]:
        names = [system.system for system in self.systems]
        open_pairs = [
            (a, b, pair)
            for a, b in pairwise(names)
            if (pair := self.pair(a, b)) is not None
            and not (is_told_apart(pair, a) or is_told_apart(pair, b))
        ]
        for a, b, pair in open_pairs[:MOST_UNDECIDED]:
            if pair.delta is None:
                text = _("%(a)s or %(b)s: not decided; too few items have both.")
                yield text % {"a": a, "b": b}
                continue
            size = self.scale.difference(pair, 1.0 if pair.a == a else -1.0)
            if (
                pair.ci_low is not None
                and pair.ci_high is not None
                and not (pair.ci_low <= 0 <= pair.ci_high)
            ):
                yield _(
                    "%(a)s or %(b)s: not decided. Alone the difference is %(size)s, but among "
                    "%(k)d comparisons, or on so few items, such a one comes up by chance."
                ) % {"a": a, "b": b, "size": size, "k": len(self.pairs)}
                continue
            text = _(
                "%(a)s or %(b)s: not decided. The difference is %(size)s; either may be better."
            )
            yield text % {"a": a, "b": b, "size": size}

    def _last(self) -> Iterator[str]:
        if len(self.systems) < 3:
            return
        before, last = self.systems[-2].system, self.systems[-1].system
        pair = self.pair(before, last)
        if pair is not None and is_told_apart(pair, before):
            size = self.scale.difference(pair, 1.0 if pair.a == before else -1.0)
            text = _("%(last)s is last, %(size)s behind %(before)s.")
            yield text % {"last": last, "before": before, "size": size}

    def _net(self) -> Iterator[str]:
        if self.scale.measure != SHARE and any(is_ordinal(pair) for pair in self.pairs):
            yield _(
                "Net: of 100 answers about both systems on the same item, how many more put the "
                "one above the other than below it."
            )

    @property
    def comparisons_text(self) -> str:
        """How many pairs differ, for the closed line that hides them."""
        n = sum(is_told_apart(one, one.a) or is_told_apart(one, one.b) for one in self.pairs)
        counts = {"n": n, "rest": len(self.pairs) - n}
        return _("%(n)d told apart, %(rest)d not") % counts


def p_text(p: float | None) -> str:
    """`= 0.012`, or `< 0.001`."""
    if p is None:
        return "–"
    return f"= {p:.3f}" if p >= LEAST_P else f"< {LEAST_P}"


def _named(systems: Sequence[str]) -> list[str]:
    if len(systems) <= MOST_NAMED:
        return list(systems)
    rest = len(systems) - MOST_NAMED + 1
    more = ngettext("%(n)d other", "%(n)d others", rest) % {"n": rest}
    return [*systems[: MOST_NAMED - 1], more]


_BEST = {
    "mean": lambda: _("People rate %(best)s best."),
    "share": lambda: _("People say “%(yes)s” to %(best)s most often."),
    "preferred": lambda: _("People prefer %(best)s."),
}
