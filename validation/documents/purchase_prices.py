"""What more items, or more annotators, would cost: the price beside what to buy next."""

from __future__ import annotations

from math import ceil

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.assignment_prices import AssignmentPrice
from validation.analysis.rated_systems import ORDER
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord


def price_sentence(
    pair: RatedPairRecord, system: RatedSystemRecord, price: AssignmentPrice | None
) -> str:
    """What the purchases that would tell two systems apart cost; empty where that is unknown.

    An item takes as many assignments as a system has ratings of it: a page shows all its systems.
    """
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
    text = ngettext(
        "%(n)s more annotator about $%(usd)s", "%(n)s more annotators about $%(usd)s", more
    )
    return [text % {"n": f"{more:,}", "usd": f"{usd:,.2f}"}]
