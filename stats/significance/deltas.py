"""The difference of two metrics' coefficients as a function of which cells are swapped."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats
from stats.correlation.bootstrap import NEXT_TO_NOTHING, centred_ranks, standard
from stats.correlation.cells import Cells, renumbered
from stats.correlation.coefficients import group_values
from stats.correlation.result import Level, Undefined
from stats.correlation.undefined import with_policy
from stats.libraries import scipy
from stats.significance.statistics import (
    groups_by_size,
    mean_of_groups,
    statistic,
    values_of_groups,
)
from stats.significance.swapped_pairs import CELLS_UP_TO, PAIRWISE, Deltas, difference

Swap = Literal["both", "items", "systems"]
MASKS_UP_TO_SYSTEMS = 8
"""Of one item; all 2^8 swaps of them are tried at once."""


def deltas_of(
    cells: Cells,
    a: Floats,
    b: Floats,
    level: Level,
    coefficient: str,
    undefined: Undefined,
    swap: Swap,
) -> Deltas:
    """From which cells are swapped, shape (n_draws, n_cells), to the coefficients' difference."""
    if level == "pooled" and coefficient == "pearson":
        return _pooled_pearson(cells.human, a, b, undefined)
    if level == "pooled" and coefficient == "spearman":
        return _pooled_spearman(cells.human, a, b, undefined)
    if level == "item" and swap == "items" and coefficient != "acc_star":
        return _by_item(cells, a, b, coefficient, undefined)
    if level == "pooled" and coefficient in PAIRWISE and cells.n_rows <= CELLS_UP_TO:
        return PAIRWISE[coefficient](cells.human, a, b, undefined)
    if level == "item" and coefficient != "acc_star" and _are_small(cells):
        return _by_masks(cells, a, b, coefficient, undefined)
    of_rows = statistic(cells, level, coefficient, undefined)

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        return of_rows(first) - of_rows(second)

    return deltas


def _pooled_pearson(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """Sums and products of swapped scores are linear in who is swapped: one matrix product."""
    n = len(human)
    unit = standard(human) / np.sqrt(n)
    change = np.stack([b - a, b * b - a * a, unit * (b - a)], axis=1)
    start, end = (np.array([side.sum(), side @ side, unit @ side]) for side in (a, b))

    def correlation(sums: Floats) -> Floats:
        total, square, product = sums.T
        spread = square - np.square(total) / n
        # scores have variance 1, so what is left below this is rounding
        varies = unit.any() & (spread > NEXT_TO_NOTHING * n)
        return np.asarray(product / np.sqrt(np.where(varies, spread, np.nan)))

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        moved = swapped.astype(np.float64) @ change
        return difference(
            np.stack([correlation(start + moved), correlation(end - moved)]), undefined
        )

    return deltas


def _pooled_spearman(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """All scores are sorted once; a draw's ranks are counts of those of them that it holds."""
    rank = scipy.stats.rankdata(human) - (len(human) + 1) / 2
    scale = np.sqrt(rank @ rank)
    both = np.concatenate([rank, rank])
    code = np.unique(np.concatenate([a, b]), return_inverse=True)[1]

    def correlation(swapped: NDArray[np.bool_]) -> Floats:
        held = np.concatenate([~swapped, swapped], axis=1).astype(np.float64)
        ranks = centred_ranks(held, code) * held
        spread = scale * np.sqrt(np.square(ranks).sum(axis=1))
        value = ranks @ both / np.where(spread > 0, spread, np.nan)
        return np.asarray(np.clip(value, -1.0, 1.0))

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        return difference(np.stack([correlation(swapped), correlation(~swapped)]), undefined)

    return deltas


def _by_item(cells: Cells, a: Floats, b: Floats, coefficient: str, undefined: Undefined) -> Deltas:
    """Swapped items swap their coefficients."""
    assert cells.item is not None
    item, n_items = renumbered(cells.item)
    one_cell = np.unique(item, return_index=True)[1]
    of_item = [
        with_policy(group_values(cells.human, side, item, n_items, coefficient), undefined)
        for side in (a, b)
    ]
    is_defined = [(~np.isnan(side)).astype(np.float64) for side in of_item]
    sums = [np.nan_to_num(side) for side in of_item]

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        weights = swapped[:, one_cell].astype(np.float64)
        rest = 1.0 - weights

        def mean(from_a: Floats, from_b: Floats) -> Floats:
            count = from_a @ is_defined[0] + from_b @ is_defined[1]
            return (from_a @ sums[0] + from_b @ sums[1]) / np.where(count > 0, count, np.nan)

        return mean(rest, weights) - mean(weights, rest)

    return deltas


def _are_small(cells: Cells) -> bool:
    """Whether no item has more systems than it is worth trying all swaps of."""
    assert cells.item is not None
    return int(np.bincount(cells.item).max()) <= MASKS_UP_TO_SYSTEMS


def _by_masks(cells: Cells, a: Floats, b: Floats, coefficient: str, undefined: Undefined) -> Deltas:
    """Each item's coefficient under all swaps of its few cells is looked up, not computed anew."""
    assert cells.item is not None
    tables = groups_by_size(cells.item)
    values = [
        _under_masks(cells.human[rows], a[rows], b[rows], coefficient, undefined) for rows in tables
    ]

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        first, second = [], []
        for rows, by_mask in zip(tables, values, strict=True):
            mask = swapped[:, rows] @ (1 << np.arange(rows.shape[1]))
            item = np.arange(len(rows))
            first.append(by_mask[mask, item])
            second.append(by_mask[len(by_mask) - 1 - mask, item])
        return mean_of_groups(first, undefined) - mean_of_groups(second, undefined)

    return deltas


def _under_masks(
    human: Floats, a: Floats, b: Floats, coefficient: str, undefined: Undefined
) -> Floats:
    """Shapes (n_items, k) in, (2 ** k, n_items) out: bit j of a row's number swaps cell j."""
    k = human.shape[1]
    swapped = (np.arange(1 << k)[:, None, None] >> np.arange(k)) & 1 == 1
    return values_of_groups(human, np.where(swapped, b, a), coefficient, undefined)
