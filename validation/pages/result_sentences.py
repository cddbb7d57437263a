from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from django.utils.translation import gettext as _, ngettext

from annotation.study_facts import Raters
from console.templatetags.numbers import p_text, percent
from error_codes import CodedText
from presentation.numbers import shorten_names
from validation.analysis.human_results import PREFERRED, SHARE
from validation.analysis.rated_systems import ORDER
from validation.analysis.records import RatedPairRecord, RatedSystemRecord
from validation.documents.rated_systems import (
    has_too_few_items,
    is_told_apart,
    notes_of_share,
    rivals_of,
)
from validation.documents.terms import on_scale

MOST_UNDECIDED = 4
MOST_LINES = 3
WIDE_SCALE = 20.0


@dataclass(frozen=True)
class Scale:
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
        return self._between(*on_scale(one.mean, (one.ci_low, one.ci_high), self.ends))

    def is_cut(self, one: RatedSystemRecord) -> bool:
        limits = (one.ci_low, one.ci_high)
        return on_scale(one.mean, limits, self.ends) != limits

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.is_share else (self.low, self.high)

    def _between(self, low: float | None, high: float | None) -> str:
        return "" if low is None or high is None else f"[{self.value(low)}, {self.value(high)}]"

    @property
    def _decimals(self) -> int:
        return 1 if self.high - self.low >= WIDE_SCALE else 2

    def difference(self, pair: RatedPairRecord, sign: float = 1.0) -> str:
        """Seen from `b` if `sign` is -1."""
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
    return pair.test.startswith(ORDER)


def _points(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Standing:
    scale: Scale
    systems: Sequence[RatedSystemRecord]
    pairs: Sequence[RatedPairRecord]
    raters: Raters = Raters.PEOPLE

    def pair(self, a: str, b: str) -> RatedPairRecord | None:
        return next((pair for pair in self.pairs if {pair.a, pair.b} == {a, b}), None)

    @property
    def rivals(self) -> list[str]:
        return rivals_of(self.systems, self.pairs)

    @property
    def answer(self) -> CodedText:
        first = self.systems[0]
        if first.mean is None:
            return CodedText(
                _("No order of the systems follows from these comparisons yet."), "no_order"
            )
        if len(self.systems) == 1:
            return CodedText(self._of_one(first), "one_system")
        values = {"best": first.system, "yes": self.scale.yes} | self._raters
        if has_too_few_items(first):
            return CodedText(
                _("Too few items for an answer; so far %(named)s put %(best)s first.") % values,
                "too_few_items",
            )
        if not self.rivals:
            return CodedText(_BEST[self.scale.measure]() % values, "best")
        if not any(self._decides(pair) for pair in self.pairs):
            if len(self.systems) == 2:
                return CodedText(
                    _("Whether %(best)s or %(other)s is better is not decided.")
                    % (values | {"other": self.systems[1].system}),
                    "undecided",
                )
            return CodedText(
                _("None of the %(n)d systems is shown to be better than another.")
                % {"n": len(self.systems)},
                "none_better",
            )
        return CodedText(
            _(
                "%(raters)s put %(best)s first so far. Whether it is better than %(rivals)s is "
                "undetermined."
            )
            % (values | {"rivals": shorten_names(self.rivals)}),
            "rivals",
        )

    @property
    def lead_size(self) -> str:
        """By how much the first is ahead of the second; empty if that is undetermined."""
        first, *others = self.systems
        pair = self.pair(first.system, others[0].system) if others else None
        if pair is None or pair.delta is None or self.rivals or has_too_few_items(first):
            return ""
        return self.scale.difference(pair, 1.0 if pair.a == first.system else -1.0)

    def lead(self, question: str) -> CodedText:
        first, *others = self.systems
        if not others or has_too_few_items(first):
            return self.answer
        rivals = shorten_names(self.rivals or [others[0].system])
        values = {"best": first.system, "second": rivals, "question": question}
        if size := self.lead_size:
            text = _("%(best)s leads on %(question)s, by %(size)s.")
            return CodedText(text % (values | {"size": size}), "best")
        text = _("On %(question)s, the difference of %(best)s to %(second)s is undetermined.")
        return CodedText(text % values, "undecided")

    @property
    def _raters(self) -> dict[str, str]:
        return {"raters": self.raters.subject, "named": self.raters.named}

    def _decides(self, pair: RatedPairRecord) -> bool:
        return is_told_apart(pair, pair.a) or is_told_apart(pair, pair.b)

    def _of_one(self, one: RatedSystemRecord) -> str:
        values = {
            "system": one.system,
            "value": self.scale.value(one.mean),
            "limits": self.scale.interval(one),
            "yes": self.scale.yes,
            "high": f"{self.scale.high:g}",
            **self._raters,
        }
        if self.scale.is_share:
            named = _("%(raters)s say “%(yes)s” to %(value)s of the candidates of %(system)s.")
            unnamed = _("%(raters)s say “%(yes)s” to %(value)s of the candidates.")
        else:
            named = _("%(raters)s give %(system)s %(value)s on average, on a scale up to %(high)s.")
            unnamed = _("%(raters)s give %(value)s on average, on a scale up to %(high)s.")
        return (named if one.system else unnamed) % values

    @property
    def certainty(self) -> str:
        if len(self.systems) < 2 or self.systems[0].mean is None:
            return ""
        if has_too_few_items(self.systems[0]):
            return CodedText(
                _("With other items that may well come out otherwise."), "too_few_items"
            )
        if not self.rivals:
            return CodedText(
                _("With other items and other annotators it would very probably be first again."),
                "best",
            )
        return CodedText(_("More ratings would be needed to know."), "rivals")

    @property
    def details(self) -> list[CodedText]:
        if len(self.systems) < 2:
            return [*self._alone(), *notes_of_share(self.systems[0])]
        lines = [*self._better(), *self._undecided(), *self._meaning(), *self._net()]
        return [*lines, *notes_of_share(self.systems[0])]

    def _alone(self) -> Iterator[CodedText]:
        limits = self.scale.interval(self.systems[0])
        if limits:
            yield CodedText(
                _(
                    "Its 95 %% interval is %(limits)s, which allows for the chance of other items "
                    "and other annotators."
                )
                % {"limits": limits},
                "interval",
            )

    def _better(self) -> Iterator[CodedText]:
        lines = []
        for at, one in enumerate(self.systems):
            behind = [
                (other.system, pair)
                for other in self.systems[at + 1 :]
                if (pair := self.pair(one.system, other.system)) is not None
                and is_told_apart(pair, one.system)
            ]
            if behind:
                lines.append(self._better_than(one.system, behind))
        yield from (CodedText(line, "better") for line in lines[:MOST_LINES])

    def _better_than(self, one: str, behind: Sequence[tuple[str, RatedPairRecord]]) -> str:
        by = [
            _("%(system)s by %(size)s")
            % {"system": name, "size": self.scale.difference(pair, 1.0 if pair.a == one else -1.0)}
            for name, pair in behind
        ]
        largest = max(pair.p_adjusted or 0.0 for _name, pair in behind)
        text = ngettext(
            "%(one)s is better than %(others)s (p %(p)s).",
            "%(one)s is better than %(others)s (p %(p)s, adjusted for %(k)d comparisons).",
            len(self.pairs),
        )
        if len(behind) > 1:
            text = _(
                "%(one)s is better than %(others)s (largest p %(p)s, adjusted for %(k)d "
                "comparisons)."
            )
        others = shorten_names(by)
        return text % {"one": one, "others": others, "p": p_text(largest), "k": len(self.pairs)}

    def _undecided(self) -> Iterator[CodedText]:
        """One line for all undecided pairs; notes intervals that exclude 0."""
        pairs = [
            (a, b, pair)
            for a, b in combinations([system.system for system in self.systems], 2)
            if (pair := self.pair(a, b)) is not None and not self._decides(pair)
        ]
        if not pairs:
            return
        texts = [self._open_pair(*one) for one in pairs]
        rest = len(texts) - MOST_UNDECIDED
        if rest > 1:
            more = ngettext("%(n)d more pair", "%(n)d more pairs", rest) % {"n": rest}
            texts = [*texts[:MOST_UNDECIDED], more]
        yield CodedText(_("Not decided: %(pairs)s.") % {"pairs": "; ".join(texts)}, "undecided")
        alone = [f"{a} – {b}" for a, b, pair in pairs if _leaves_out_zero(pair)]
        if alone:
            yield CodedText(
                ngettext(
                    "The interval of %(named)s leaves out 0, which can come up by chance among "
                    "%(k)d comparisons, or on so few items.",
                    "The intervals of %(named)s leave out 0, which can come up by chance among "
                    "%(k)d comparisons, or on so few items.",
                    len(alone),
                )
                % {"named": shorten_names(alone), "k": len(self.pairs)},
                "without_zero",
            )

    def _open_pair(self, a: str, b: str, pair: RatedPairRecord) -> str:
        values = {"a": a, "b": b}
        if pair.delta is None:
            return _("%(a)s or %(b)s (too few items have both)") % values
        if pair.delta == 0:
            return _("%(a)s or %(b)s (equal so far)") % values
        size = self.scale.difference(pair, 1.0 if pair.a == a else -1.0)
        return _("%(a)s or %(b)s (%(a)s ahead by %(size)s)") % (values | {"size": size})

    def _meaning(self) -> Iterator[CodedText]:
        if any(pair.ci_low is not None for pair in self.pairs):
            yield CodedText(
                _(
                    "In brackets: 95 % intervals, for other items and other annotators; in 95 of "
                    "100 studies such an interval holds what there is. Where a pair is not "
                    "decided, either may be better."
                ),
                "brackets",
            )

    def _net(self) -> Iterator[CodedText]:
        if self.scale.measure != SHARE and any(is_ordinal(pair) for pair in self.pairs):
            yield CodedText(
                _(
                    "Net: of 100 answers about both systems on the same item, how many more put "
                    "the one above the other than below it."
                ),
                "net",
            )

    @property
    def comparisons_text(self) -> str:
        n = sum(map(self._decides, self.pairs))
        return _("%(n)d told apart, %(rest)d not") % {"n": n, "rest": len(self.pairs) - n}


def _leaves_out_zero(pair: RatedPairRecord) -> bool:
    low, high = pair.ci_low, pair.ci_high
    return low is not None and high is not None and not low <= 0 <= high


_BEST = {
    "mean": lambda: _("%(raters)s rate %(best)s best."),
    "share": lambda: _("%(raters)s say “%(yes)s” to %(best)s most often."),
    "preferred": lambda: _("%(raters)s prefer %(best)s."),
}
