"""Bootstrap replicates of pooled rank correlations, for many metrics of the same candidates.

What depends on human ratings only is computed once: their ranks in each resample, and the signs
of all pairs of their values. Weights have shape (n_items, n_draws) here, so that sums over
candidates add whole rows.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats, Integers
from stats.correlation import bootstrap
from stats.correlation.rows import signs

DRAWS_AT_ONCE = 16
SLOTS_UP_TO = 24


class Order(NamedTuple):
    """Candidates by ascending value: which, of which item, and where each value begins."""

    cells: Integers
    items: Integers
    starts: Integers
    code: Integers

    @classmethod
    def by(cls, values: Floats, item: Integers) -> "Order":
        code = np.unique(values, return_inverse=True)[1]
        cells = np.argsort(code, kind="stable")
        return cls(cells, item[cells], np.flatnonzero(np.diff(code[cells], prepend=-1)), code)

    def sums(self, of_cells: Floats) -> Floats:
        """Sums over the candidates of each value; `of_cells` are in this order."""
        if len(self.starts) == len(self.cells):
            return np.asarray(of_cells)
        return np.asarray(np.add.reduceat(of_cells, self.starts, axis=0))


def spearman_replicates(human: Floats, scores: Floats, item: Integers, weights: Floats) -> Floats:
    """Spearman's rho of all candidates in each resample, shape (n_metrics, n_draws).

    `scores` has shape (n_metrics, n_cells) and no gap; `weights` (n_draws, n_items).
    """
    x = Order.by(human, item)
    orders = [Order.by(row, item) for row in scores]
    values = np.full((len(scores), len(weights)), np.nan)
    for start in range(0, len(weights), DRAWS_AT_ONCE):
        block = slice(start, start + DRAWS_AT_ONCE)
        drawn = np.ascontiguousarray(weights[block].T)
        rank_x, square_x = _ranks(x.sums(drawn[x.items]))
        for number, y in enumerate(orders):
            of_cell = drawn[y.items]
            rank_y, square_y = _ranks(y.sums(of_cell))
            of_cell *= rank_x[x.code[y.cells]]
            product = np.einsum("cd,cd->d", y.sums(of_cell), rank_y)
            scale = np.sqrt(square_x) * np.sqrt(square_y)
            values[number, block] = product / np.where(scale > 0, scale, np.nan)
    return np.asarray(np.clip(values, -1.0, 1.0))


def _ranks(counts: Floats) -> tuple[Floats, Floats]:
    """Centred mid-ranks of ascending values drawn so often, and the sum of their squares."""
    ranks = np.cumsum(counts, axis=0)
    total = ranks[-1].copy()
    ranks -= counts / 2
    ranks -= total / 2
    return ranks, np.einsum("cd,cd,cd->d", counts, ranks, ranks)


class PairOrders:
    """Which of every two candidates annotators value more, by the candidates' items and slots.

    A slot is a candidate's position in its item; pairs of two slots are a table of items by items.
    """

    def __init__(self, human: Floats, item: Integers, n_items: int) -> None:
        self.n_items = n_items
        order = np.argsort(item, kind="stable")
        size = np.bincount(item, minlength=n_items)
        slot = np.empty(len(item), dtype=np.intp)
        slot[order] = np.arange(len(item)) - np.repeat(np.cumsum(size) - size, size)
        self.n_slots = int(size.max(initial=0))
        self._at = (slot, item)
        self._there = np.zeros((self.n_slots, n_items), dtype=np.int8)
        self._there[self._at] = 1
        self._signs = list(self._of(human))

    def _of(self, values: Floats) -> Iterator[NDArray[np.int8]]:
        table = np.zeros((self.n_slots, self.n_items), dtype=np.int32)
        table[self._at] = np.unique(values, return_inverse=True)[1]
        is_complete = bool(self._there.all())
        for first in range(self.n_slots):
            for second in range(first, self.n_slots):
                sign = signs(table[first][:, None], table[second][None, :])
                if not is_complete:
                    sign *= self._there[first][:, None] * self._there[second][None, :]
                yield sign

    def form(self, metric: Floats) -> NDArray[np.float32]:
        """Pairs ordered alike less pairs ordered otherwise, by the pairs' items.

        Two slots are taken in one order only, and so count twice.
        """
        form = np.zeros((self.n_items, self.n_items), dtype=np.int16)
        pairs = ((a, b) for a in range(self.n_slots) for b in range(a, self.n_slots))
        for (a, b), x, y in zip(pairs, self._signs, self._of(metric), strict=True):
            form += x * y * np.int8(1 if a == b else 2)
        # whole numbers, and their sums, far below 2 ** 24: exact in single precision
        return form.astype(np.float32)


def kendall_replicates(human: Floats, scores: Floats, item: Integers, weights: Floats) -> Floats:
    """Kendall's tau-b of all candidates in each resample; arguments as `spearman_replicates`."""
    n_items = weights.shape[1]
    if int(np.bincount(item).max()) > SLOTS_UP_TO:
        rows = [bootstrap.pooled_kendall(human, row, item, n_items)(weights) for row in scores]
        return np.array(rows)
    pairs = PairOrders(human, item, n_items)
    single = weights.astype(np.float32)
    untied_x = _untied(human, item, weights)
    values = np.empty((len(scores), len(weights)))
    for number, row in enumerate(scores):
        product = single @ pairs.form(row)
        agreement = np.einsum("di,di->d", product.astype(np.float64), weights)
        scale = np.sqrt(untied_x) * np.sqrt(_untied(row, item, weights))
        values[number] = agreement / np.where(scale > 0, scale, np.nan)
    return np.asarray(np.clip(values, -1.0, 1.0))


def _untied(values: Floats, item: Integers, weights: Floats) -> Floats:
    """Twice the pairs of drawn candidates whose values differ, in each resample."""
    order = Order.by(values, item)
    size = np.bincount(item, minlength=weights.shape[1])
    untied = np.square(weights @ size)
    for start in range(0, len(weights), DRAWS_AT_ONCE):
        block = slice(start, start + DRAWS_AT_ONCE)
        counts = order.sums(np.ascontiguousarray(weights[block].T)[order.items])
        untied[block] -= np.einsum("cd,cd->d", counts, counts)
    return untied
