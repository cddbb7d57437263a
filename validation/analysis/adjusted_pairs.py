"""Comparisons of two with p adjusted over all of them, and what would tell two apart."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np

from presentation.records import plain_values
from stats.inference.crossed_means import MeanOfCells
from stats.inference.families_of_means import FamilyOfMeans, family_of_means
from stats.inference.larger_studies import (
    least_distinguishable,
    least_with_items,
    purchase_to_distinguish,
)
from stats.significance import holm

ALPHA = 0.05
MOST_TO_BUY = 1_000_000


def adjusted_in_family(
    compared: Sequence[tuple[dict[str, Any], MeanOfCells | None]], n_untested: int
) -> tuple[dict[str, Any], ...]:
    """Comparisons with p adjusted over all, each with the degrees of freedom that all allow, and
    with what would show as much."""
    family = family_of_means([lead for _row, lead in compared if lead is not None])
    rows = [row | _in_family(row, lead, family) for row, lead in compared]
    levels = _levels([row["p_of_family"] for row in rows], n_untested)
    sized = [
        row | (_sizes(lead, level, row["freedom_of_family"], family) if lead is not None else {})
        for row, (_row, lead), level in zip(rows, compared, levels, strict=True)
    ]
    return adjusted_by_holm(sized, n_untested=n_untested)


def _in_family(
    row: Mapping[str, Any], lead: MeanOfCells | None, family: FamilyOfMeans | None
) -> dict[str, float]:
    """What the test has where it is one of many: never more freedom than all together give."""
    if lead is None or family is None:
        return {"freedom_of_family": row.get("freedom", nan), "p_of_family": row["p"]}
    freedom = family.freedom_of(lead)
    return {"freedom_of_family": freedom, "p_of_family": lead.p_with(freedom)}


def _levels(p: Sequence[float], n_untested: int) -> list[float]:
    """The level at which Holm tests each p: the more others are at least as large, the stricter."""
    known = np.asarray(p, dtype=float)
    n_others = [int((known >= each).sum()) + n_untested for each in known]
    return [ALPHA / max(1, n) for n in n_others]


def _sizes(
    one: MeanOfCells, level: float, freedom: float, family: FamilyOfMeans | None
) -> dict[str, float | int | None]:
    """Items, or annotators, in all with which a difference as large would be told four in five, and
    from which size on differences are so now, and with twice the items."""
    if not one.se > 0:
        return {}
    least: dict[str, float | int | None] = {
        "least_shown": least_distinguishable(one.se, freedom, alpha=level),
        "least_shown_of_twice": least_with_items(one, 2 * one.n_items, alpha=level, family=family),
    }
    if one.value == 0:
        return least
    purchase = purchase_to_distinguish(one, one.value, alpha=level, family=family)
    items, annotators = (
        int(count) if count <= MOST_TO_BUY else None
        for count in (purchase.items, purchase.annotators)
    )
    return {**least, "items_needed": items, "annotators_needed": annotators}


def adjusted_by_holm(
    rows: Sequence[dict[str, Any]], *, n_untested: int = 0
) -> tuple[dict[str, Any], ...]:
    """Comparisons with their p adjusted over all of them, as plain values; the p that the family
    has given them where it has."""
    adjusted = holm([row.get("p_of_family", row["p"]) for row in rows], n_untested=n_untested)
    return tuple(
        plain_values(row | {"p_adjusted": float(p)}) for row, p in zip(rows, adjusted, strict=True)
    )
