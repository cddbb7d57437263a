"""Cells of a table of means that no data can have given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log2

import numpy as np

Cells = Mapping[str, Mapping[str, float]]
"""For each row of a table its means by measure: nDCG, RR and Success, whatever their cutoffs."""
ROUNDED = 0.0006
"""Means are printed to three places; a bound is passed by more than both may be rounded."""


def impossible_cells(
    rows: Cells,
    *,
    single_relevant: Sequence[str] = (),
    cutoff: int = 10,
    rr_cutoff: int | None = None,
    n_items: int = 100,
) -> list[str]:
    """What is wrong with a table's means, row by row; nothing where all of it can be.

    `single_relevant` names the rows whose qrels hold one relevant item a topic: there the rank of
    that item decides both nDCG@cutoff and RR (uncut where `rr_cutoff` is None, lists having
    `n_items`), so that the means lie in the convex hull of what single ranks give.
    """
    faults = list(_bounds(rows))
    corners = _corners(cutoff, rr_cutoff, n_items)
    for name in single_relevant:
        cells = rows[name]
        if {"nDCG", "RR"} <= cells.keys() and _is_outside(corners, (cells["RR"], cells["nDCG"])):
            faults.append(
                f"{name}: with one relevant item a topic no ranks give an nDCG@{cutoff} of "
                f"{cells['nDCG']:.3f} with an RR of {cells['RR']:.3f}"
            )
    faults += _twice(rows)
    return faults


def _bounds(rows: Cells) -> Iterator[str]:
    for name, cells in rows.items():
        for measure, value in cells.items():
            if value < 0 or value > 1:
                yield f"{name}: {measure} is {value:.3f}, and measures lie between 0 and 1"
        if {"Success", "RR"} <= cells.keys() and cells["Success"] > cells["RR"] + ROUNDED:
            yield (
                f"{name}: Success@1 is {cells['Success']:.3f} and RR {cells['RR']:.3f}, though a "
                "success at rank 1 has the reciprocal rank 1"
            )


def _corners(cutoff: int, rr_cutoff: int | None, n_items: int) -> list[tuple[float, float]]:
    """RR and nDCG of one relevant item at each rank, and of none."""
    last = n_items if rr_cutoff is None else rr_cutoff
    return [(0.0, 0.0)] + [
        (1 / rank if rank <= last else 0.0, 1 / log2(rank + 1) if rank <= cutoff else 0.0)
        for rank in range(1, n_items + 1)
    ]


def _is_outside(corners: Sequence[tuple[float, float]], point: tuple[float, float]) -> bool:
    from scipy.spatial import ConvexHull, QhullError

    try:
        planes = ConvexHull(np.array(corners)).equations
    except QhullError:
        return False
    return bool((planes[:, :2] @ np.array(point) + planes[:, 2] > ROUNDED).any())


def _twice(rows: Cells) -> Iterator[str]:
    """Rows with the very same values in two measures or more: one may be a slip of the other."""
    counts = Counter(tuple(sorted(cells.items())) for cells in rows.values() if len(cells) > 1)
    for values, n in counts.items():
        if n > 1 and any(value for _, value in values):
            names = [name for name, cells in rows.items() if tuple(sorted(cells.items())) == values]
            yield f"{' and '.join(names)} have the very same values; is one a copy of the other?"
