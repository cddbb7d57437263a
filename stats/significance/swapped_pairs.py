"""Pooled pairwise coefficients of two metrics whose scores are swapped, for many swaps at once.

What a pair of cells adds to such a coefficient depends only on which of its two cells are swapped:
there are four tables of pairs, P_aa, P_ab, P_ba and P_bb. With m the vector that is 1 where a cell
is swapped, the sum over all pairs for the metric that began as a is

    1'P_aa 1 + 2 m'(P_ba - P_aa) 1 + m'(P_aa - P_ab - P_ba + P_bb) m

and the one for the other metric has a and b exchanged, with the same last term. So a thousand
swaps are a product of matrices. Its entries are small whole numbers and all sums are exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats
from stats.correlation.result import Undefined
from stats.correlation.rows import Signs, distinct, signs, stuart

Deltas = Callable[[NDArray[np.bool_]], Floats]
Tables = Callable[[Signs, Signs], tuple[Signs, ...]]
CELLS_UP_TO = 5_000  # the table of pairs takes a byte each; beyond, sorting every draw is as quick
BLOCK = 1 << 20


@dataclass(frozen=True)
class PairSums:
    """Sums over ordered pairs of cells, one for each metric, as functions of who is swapped.

    Shapes: (2, 1) for neither swapped, (n_cells, 2) for one of the two cells, and
    (n_cells, n_cells) for both, where the table's other half is added to its upper one.
    """

    neither: Floats
    one: Floats
    both: Signs

    def __call__(self, swapped: NDArray[np.float32]) -> Floats:
        """The sums of each draw; shapes (n_draws, n_cells) in, (2, n_draws) out."""
        n_draws, n_cells = swapped.shape
        total = np.zeros(n_draws)
        step = max(1, BLOCK // n_cells)
        for at in range(0, n_cells, step):
            rows = slice(at, at + step)
            # below 2 ** 24 a float32 is exact, and a sum is at most eight times n_cells
            reached = swapped[:, at:] @ self.both[rows, at:].astype(np.float32).T
            reached *= swapped[:, rows]
            total += reached.sum(axis=1, dtype=np.float64)
        return np.asarray(self.neither + (swapped @ self.one).T + total)


def pair_sums(human: Floats, a: Floats, b: Floats, tables: Tables) -> list[PairSums]:
    """A `PairSums` of each table that `tables` makes of the signs of human and metric pairs."""
    blocks = []
    step = max(1, BLOCK // len(human))
    for rows in (slice(at, at + step) for at in range(0, len(human), step)):
        of_human = signs(human[rows, None], human)
        four = [
            tables(of_human, signs(here[rows, None], there)) for here in (a, b) for there in (a, b)
        ]
        blocks.append([_block(parts) for parts in zip(*four, strict=True)])
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _block(four: Sequence[Signs]) -> tuple[Floats, Signs]:
    """Some rows' sums in the four tables, and what is added where both cells are swapped."""
    aa, ab, ba, bb = four
    rows = np.stack([table.sum(axis=1, dtype=np.float64) for table in four])
    return rows, np.asarray(aa - ab - ba + bb)


def _joined(blocks: Sequence[tuple[Floats, Signs]]) -> PairSums:
    aa, ab, ba, bb = np.concatenate([rows for rows, _ in blocks], axis=1)
    both = np.concatenate([table for _, table in blocks])
    return PairSums(
        neither=np.array([[aa.sum()], [bb.sum()]]),
        one=2 * np.stack([ba - aa, ab - bb], axis=1),
        both=np.triu(both) + np.triu(both, 1),
    )


def kendall_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """The difference of two pooled tau-b, from which cells are swapped."""
    agreement, untied = pair_sums(human, a, b, lambda x, y: (x * y, abs(y)))
    of_human = np.sqrt(_untied(human))

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        weights = swapped.astype(np.float32)
        scale = of_human * np.sqrt(untied(weights))
        value = agreement(weights) / np.where(scale > 0, scale, np.nan)
        return difference(np.clip(value, -1.0, 1.0), undefined)

    return deltas


def kendall_c_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """The difference of two pooled tau-c, from which cells are swapped."""
    (agreement,) = pair_sums(human, a, b, lambda x, y: (x * y,))
    of_human = distinct(human[None])

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        sides = (np.where(swapped, b, a), np.where(swapped, a, b))
        classes = np.minimum(of_human, np.stack([distinct(side) for side in sides]))
        varied = np.where(classes > 1, classes, np.nan)
        value = stuart(agreement(swapped.astype(np.float32)) / 2, len(human), varied)
        return difference(np.clip(value, -1.0, 1.0), undefined)

    return deltas


def accuracy_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """The difference of two pooled pairwise accuracies, from which cells are swapped."""
    (alike,) = pair_sums(human, a, b, lambda x, y: ((x == y).view(np.int8),))
    n_pairs = len(human) * (len(human) - 1)

    def deltas(swapped: NDArray[np.bool_]) -> Floats:
        # a cell ties with itself on both sides, and is no pair
        value = (alike(swapped.astype(np.float32)) - len(human)) / n_pairs
        return difference(value, undefined)

    return deltas


PAIRWISE: dict[str, Callable[[Floats, Floats, Floats, Undefined], Deltas]] = {
    "kendall": kendall_deltas,
    "kendall_c": kendall_c_deltas,
    "acc_eq": accuracy_deltas,
}


def _untied(column: Floats) -> float:
    """Ordered pairs of cells with different values."""
    counts = np.unique(column, return_counts=True)[1].astype(np.float64)
    return float(len(column) ** 2 - np.square(counts).sum())


def difference(values: Floats, undefined: Undefined) -> Floats:
    """The first row less the second, where what is undefined may count as 0."""
    filled = np.nan_to_num(values) if undefined == "zero" else values
    return np.asarray(filled[0] - filled[1])
