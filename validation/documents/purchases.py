from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from django.utils.translation import gettext as _, gettext_noop, ngettext

from annotation.assignment_facts import AssignmentPrice
from error_codes import CodedText
from presentation.numbers import join_names
from validation.analysis.rated_systems import LEAST_ITEMS, ORDER
from validation.analysis.records import RatedPairRecord, RatedSystemRecord


def price_sentence(
    pair: RatedPairRecord, system: RatedSystemRecord, price: AssignmentPrice | None
) -> str:
    """Empty if the cost is unknown. A page shows all systems of an item, so an item needs as many
    assignments as a system has ratings of it."""
    if price is None or not price.reward_usd or not system.n_items:
        return ""
    each = system.n_ratings / system.n_items
    ways = [
        *_items(pair, each, price),
        *_annotators(pair, each, price),
    ]
    if not ways:
        return ""
    listed = ways[0] if len(ways) == 1 else _("%(one)s, or %(other)s") % {
        "one": ways[0], "other": ways[1],
    }  # fmt: skip
    return _("At $%(reward)s an assignment, with fees, buying costs: %(ways)s.") % {
        "reward": f"{price.reward_usd:.2f}",
        "ways": listed,
    }


def _items(pair: RatedPairRecord, each: float, price: AssignmentPrice) -> list[str]:
    more = (pair.items_needed or 0) - pair.n_items
    if more <= 0:
        return []
    usd = ceil(more * each) * price.cost_usd(max(1, round(each)))
    if pair.test.startswith(ORDER):
        text = ngettext(
            "%(n)s more item, with %(each)s answers as now, about $%(usd)s",
            "%(n)s more items, with %(each)s answers each as now, about $%(usd)s",
            more,
        )
    else:
        text = ngettext(
            "%(n)s more item, with %(each)s ratings as now, about $%(usd)s",
            "%(n)s more items, with %(each)s ratings each as now, about $%(usd)s",
            more,
        )
    return [text % {"n": f"{more:,}", "each": f"{round(each, 1):g}", "usd": f"{usd:,.2f}"}]


def _annotators(pair: RatedPairRecord, each: float, price: AssignmentPrice) -> list[str]:
    more = (pair.annotators_needed or 0) - pair.n_annotators
    if more <= 0 or not pair.n_annotators:
        return []
    # each of them rates as much as one does now
    more_each = each * more / pair.n_annotators
    usd = ceil(pair.n_items * more_each - 1e-9) * price.cost_usd(max(1, ceil(more_each - 1e-9)))
    return [
        ngettext(
            "%(n)s more annotator about $%(usd)s", "%(n)s more annotators about $%(usd)s", more
        )
        % {"n": f"{more:,}", "usd": f"{usd:,.2f}"}
    ]


DECIMALS = 2
# What is more than so many times what there is, and than so many, is no advice to buy.
MOST_TIMES = 20
MOST_ITEMS, MOST_ANNOTATORS = 1000, 100


@dataclass(frozen=True)
class Purchase:
    """`pair` is the comparison to settle, with feasible purchases only; `n_more_items` is its
    number of items."""

    text: CodedText
    pair: RatedPairRecord | None
    n_more_items: int


def purchase_of(
    best: RatedSystemRecord,
    open_rivals: Sequence[str],
    open_by_p: Sequence[str],
    against: Mapping[str, RatedPairRecord],
    widest: float = inf,
) -> Purchase:
    """`open_by_p` are the rivals that the test leaves open; other open rivals only need more items.
    No two means differ by more than `widest`."""
    rival = _rival_to_settle(open_by_p, against) or _rival_to_settle(open_rivals, against)
    has_too_few = best.n_items < LEAST_ITEMS
    if has_too_few or (rival and rival[0].n_items < LEAST_ITEMS):
        rival = _with_enough_items(rival, open_by_p)
    pair = _reachable(rival[0]) if rival else None
    needed = LEAST_ITEMS if has_too_few else 0
    if pair is None:
        n_more_items = max(0, LEAST_ITEMS - best.n_items)
    else:
        n_more_items = max(0, max(pair.items_needed or 0, needed) - pair.n_items)
    text = _purchase(best, open_by_p if has_too_few else open_rivals, rival, widest)
    skipped = [] if rival is None else _nearer_ones(rival[1], open_by_p, against)
    if skipped:
        smaller = _("The difference from %(rivals)s is too small for a purchase within reach.")
        text = CodedText(
            " ".join([text, smaller % {"rivals": join_names(skipped)}]), code=text.code
        )
    return Purchase(text, pair, n_more_items)


def _nearer_ones(
    rival: str, open_rivals: Sequence[str], against: Mapping[str, RatedPairRecord]
) -> list[str]:
    before = open_rivals[: open_rivals.index(rival)] if rival in open_rivals else []
    return [name for name in before if name in against and _is_out_of_reach(against[name])]


def _rival_to_settle(
    open_rivals: Sequence[str], against: Mapping[str, RatedPairRecord]
) -> tuple[RatedPairRecord, str] | None:
    """The first comparison that a feasible purchase settles, otherwise the first; and the rival."""
    known = [
        (pair, rival)
        for rival in open_rivals
        if (pair := against.get(rival)) is not None and pair.se is not None and pair.delta
    ]
    reachable = (one for one in known if not _is_out_of_reach(one[0]))
    return next(reachable, next(iter(known), None))


def _is_out_of_reach(pair: RatedPairRecord) -> bool:
    reached = _reachable(pair)
    return bool(pair.items_needed or pair.annotators_needed) and not (
        reached.items_needed or reached.annotators_needed
    )


def _reachable(pair: RatedPairRecord) -> RatedPairRecord:
    items, annotators = pair.items_needed, pair.annotators_needed
    if items is not None and items > max(MOST_TIMES * pair.n_items, MOST_ITEMS):
        items = None
    if annotators is not None and annotators > max(MOST_TIMES * pair.n_annotators, MOST_ANNOTATORS):
        annotators = None
    return replace(pair, items_needed=items, annotators_needed=annotators)


def _with_enough_items(
    nearest: tuple[RatedPairRecord, str] | None, open_rivals: Sequence[str]
) -> tuple[RatedPairRecord, str] | None:
    """Annotators alone never give an answer."""
    if nearest is None:
        return None
    pair, rival = nearest
    needed: int | None = LEAST_ITEMS
    if rival in open_rivals:
        needed = pair.items_needed and max(pair.items_needed, LEAST_ITEMS)
    return replace(pair, items_needed=needed, annotators_needed=None), rival


def _purchase(
    best: RatedSystemRecord,
    open_rivals: Sequence[str],
    nearest: tuple[RatedPairRecord, str] | None,
    widest: float,
) -> CodedText:
    is_of_no_use = nearest is None or not open_rivals or _is_out_of_reach(nearest[0])
    if best.n_items < LEAST_ITEMS and is_of_no_use:
        return CodedText(
            _("Buy next: %(items)s items in all instead of %(now)s; with fewer, no answer.")
            % {
                "items": LEAST_ITEMS,
                "now": best.n_items,
            },
            code="too_few_items",
        )
    if not open_rivals:
        return CodedText(
            _("Buy next: nothing; no more ratings are needed to know that."), code="nothing"
        )
    if nearest is None:
        return CodedText(
            _("There is too little to say how many more ratings would settle it."), code="unknown"
        )
    pair, rival = nearest
    reachable = _reachable(pair)
    items = _more_than(reachable.items_needed, pair.n_items)
    annotators = _more_than(reachable.annotators_needed, pair.n_annotators)
    values = {
        "rival": rival,
        "difference": _difference(pair, abs(pair.delta or 0.0)),
        "items": f"{items or 0:,}",
        "more": f"{(items or 0) - pair.n_items:,}",
        "annotators": f"{annotators or 0:,}",
        "now": f"{pair.n_items:,}",
        "people": f"{pair.n_annotators:,}",
    }
    is_reckoned = pair.items_needed is not None or pair.annotators_needed is not None
    if _is_out_of_reach(pair):
        text = " ".join([_out_of_reach(pair, values), *_reach(pair, widest)])
        return CodedText(text, code="out_of_reach")
    if is_reckoned and items is None and annotators is None:
        return CodedText(_(STRICTER) % values, code="stricter_test")
    code, text = _WAYS[items is not None, annotators is not None]
    return CodedText(" ".join([_(text) % values, *_reach(pair, widest)]), code=code)


def _out_of_reach(pair: RatedPairRecord, values: Mapping[str, object]) -> str:
    needed = pair.items_needed or pair.annotators_needed or 0
    if pair.items_needed is not None:
        text = _(
            "Buy next: nothing. To show a difference as small as that from %(rival)s "
            "(%(difference)s) would take about %(n)s items."
        )
    else:
        text = _(
            "Buy next: nothing. To show a difference as small as that from %(rival)s "
            "(%(difference)s) would take about %(n)s annotators."
        )
    return text % {**values, "n": f"{float(f'{needed:.2g}'):,.0f}"}


def _reach(pair: RatedPairRecord, widest: float) -> Iterator[str]:
    """The differences that the study shows now, and with twice the items; none for records of an
    older form."""
    if pair.least_shown is None:
        return
    if pair.least_shown > (1.0 if pair.test.startswith(ORDER) else widest):
        yield _("As it stands, the study can show no difference that the scale has room for.")
        return
    values = {
        "least": _size(pair, pair.least_shown),
        "now": f"{pair.n_items:,}",
        "n": f"{2 * pair.n_items:,}",
    }
    twice = pair.least_shown_of_twice
    if twice is None or not twice < pair.least_shown:
        yield _(SMALLER) % values
    else:
        yield _(SMALLER_OF_TWICE) % {**values, "twice": _size(pair, twice)}


def _more_than(needed: int | None, present: int) -> int | None:
    """None if there are as many already: the number is approximate, and the test can be
    stricter."""
    return needed if needed is not None and needed > present else None


def _difference(pair: RatedPairRecord, value: float) -> str:
    if not pair.test.startswith(ORDER):
        return _("%(n)s between the means") % {"n": number_text(value)}
    return _("a net %(n)s in 100 answers") % {"n": f"{100 * value:.0f}"}


def _size(pair: RatedPairRecord, value: float) -> str:
    if not pair.test.startswith(ORDER):
        return f"{float(f'{value:.2g}'):g}"
    return _("a net %(n)s in 100 answers") % {"n": f"{100 * value:.0f}"}


SMALLER = gettext_noop("As it stands, the study shows differences from about %(least)s up.")
SMALLER_OF_TWICE = gettext_noop(
    "As it stands, the study shows differences from about %(least)s up; with %(n)s items instead "
    "of %(now)s, from about %(twice)s up."
)
STRICTER = gettext_noop(
    "Buy next: more items. How many cannot be said: the %(now)s there are would commonly show a "
    "difference as large as that from %(rival)s (%(difference)s), but its test is stricter, since "
    "p is adjusted for many pairs or few ratings carry a mean."
)
_WAYS = {
    (True, True): (
        "items_or_annotators",
        gettext_noop(
            "Buy next: about %(more)s more items (%(items)s in all), or have the %(now)s there are "
            "rated by %(annotators)s annotators instead of %(people)s, with as many times the "
            "ratings an item. If the difference from "
            "%(rival)s is as large as it looks (%(difference)s), either would show it in four of "
            "five studies."
        ),
    ),
    (True, False): (
        "items",
        gettext_noop(
            "Buy next: about %(more)s more items (%(items)s in all). If the difference from "
            "%(rival)s is as large as it looks (%(difference)s), they would show it in four of "
            "five studies."
        ),
    ),
    (False, True): (
        "annotators",
        gettext_noop(
            "Buy next: have the %(now)s items rated by %(annotators)s annotators instead of "
            "%(people)s, with as many times the ratings an item; more items alone would not settle "
            "it. If the difference from %(rival)s is as "
            "large as it looks (%(difference)s), they would show it in four of five studies."
        ),
    ),
    (False, False): (
        "items_and_annotators",
        gettext_noop(
            "Buy next: both more items and more annotators; neither alone would show a difference "
            "as small as that from %(rival)s (%(difference)s)."
        ),
    ),
}


def number_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.{DECIMALS}f}"
