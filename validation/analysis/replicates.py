"""Every metric's coefficient in the same resamples of items, so that differences are paired.

Each replicate is exactly the coefficient of the resampled candidates, as in
`stats.correlation`; what depends on human ratings only is shared by the metrics: their ranks in
each resample, and the signs of all pairs of their values. Weights of pooled rank correlations have
shape (n_items, n_draws), so that sums over candidates add whole rows.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats, Integers
from stats.correlation import Level, bootstrap
from stats.correlation.coefficients import correlate_groups, row_values, signs, with_policy
from stats.correlation.estimates import pooled_replicate
from validation.analysis.settings import Panel, Settings

JOINT = ("pearson", "spearman", "kendall", "kendall_c", "acc_eq")
OF_PAIRS = ("kendall", "kendall_c", "acc_eq")
DENSE_UP_TO = 1 << 22
WEIGHTS_AT_ONCE = 1 << 23
# Maps the draws of each item to each metric's values by coefficient.
OfDraws = Callable[[Floats], list[dict[str, Floats]]]


def item_replicates(panel: Panel, level: Level, settings: Settings) -> dict[str, Floats]:
    """By coefficient, each metric's value in each resample; shape (n_metrics, n_resamples).

    NaN where it is undefined; a coefficient that has no such replicates is left out.
    """
    if level == "system":
        panel = panel.of_systems()
    coefficients = [c for c in settings.coefficients if c in JOINT]
    if panel.n_units < 2 or not settings.n_resamples or not panel.metrics:
        return {}
    coefficients = [c for c in coefficients if not is_of_too_many(level, c, len(panel.human))]
    if level == "item":
        of_draws = _of_items(panel, coefficients, settings)
    else:
        of_draws = partial(_of_systems if level == "system" else _of_cells, panel, coefficients)
    chunks = [of_draws(weights) for weights in _draws(panel, settings)]
    return {
        name: np.array(
            [
                np.concatenate([chunk[number][name] for chunk in chunks])
                for number in range(len(panel.metrics))
            ]
        )
        for name in coefficients
    }


def is_of_too_many(level: Level, coefficient: str, n_candidates: int) -> bool:
    of_pairs = level == "pooled" and coefficient in OF_PAIRS
    return of_pairs and n_candidates > bootstrap.PAIRS_UP_TO_CELLS


def _draws(panel: Panel, settings: Settings) -> Iterator[Floats]:
    rng = np.random.default_rng(panel.draws_seed(settings.seed))
    cluster = panel.cluster_of_item
    step = max(1, WEIGHTS_AT_ONCE // max(panel.n_items, panel.n_units))
    for start in range(0, settings.n_resamples, step):
        count = min(step, settings.n_resamples - start)
        weights = bootstrap.drawn_weights(panel.n_units, count, rng)
        yield weights if cluster is None else weights[:, cluster]


def _of_items(panel: Panel, coefficients: Sequence[str], settings: Settings) -> OfDraws:
    means = [
        {
            name: bootstrap.mean_of_defined(
                with_policy(
                    correlate_groups(panel.human, row, panel.item, panel.n_items, name),
                    settings.undefined,
                )
            )
            for name in coefficients
        }
        for row in panel.scores
    ]
    return lambda weights: [{name: mean(weights) for name, mean in one.items()} for one in means]


def _of_systems(
    panel: Panel, coefficients: Sequence[str], weights: Floats
) -> list[dict[str, Floats]]:
    values = []
    for row in panel.scores:
        known = ~np.isnan(row)
        value = {name: np.full(len(weights), np.nan) for name in coefficients}
        if np.unique(panel.system[known]).size > 1:
            means_x, means_y = _system_means(panel, row, known, weights)
            is_defined = ~np.isnan(means_x).any(axis=1)
            for name in coefficients:
                value[name][is_defined] = row_values(
                    means_x[is_defined], means_y[is_defined], name
                )[0]
        values.append(value)
    return values


def _system_means(panel: Panel, row: Floats, known: Any, weights: Floats) -> tuple[Floats, Floats]:
    x, y = bootstrap.unit_range(panel.human[known]), bootstrap.unit_range(row[known])
    _, system = np.unique(panel.system[known], return_inverse=True)
    item = panel.item[known]
    shape = (panel.n_items, int(system.max()) + 1)
    if shape[0] * shape[1] > DENSE_UP_TO:
        return bootstrap.system_means(x, y, item, system, shape)(weights)
    tables = np.zeros((3, *shape))
    for table, column in zip(tables, (x, y, np.ones(len(x))), strict=True):
        np.add.at(table, (item, system), column)
    sums_x, sums_y, counts = (weights @ table for table in tables)
    counts[counts == 0] = np.nan
    first, second = (bootstrap.rounded_means(sums, counts) for sums in (sums_x, sums_y))
    return first, second


def _of_cells(
    panel: Panel, coefficients: Sequence[str], weights: Floats
) -> list[dict[str, Floats]]:
    values_by_metric: list[dict[str, Floats]] = [{} for _ in panel.metrics]
    gaps = np.isnan(panel.scores)
    for pattern in np.unique(gaps, axis=0):
        alike = np.flatnonzero((gaps == pattern).all(axis=1))
        for name in coefficients:
            rows = _pooled(panel, alike, ~pattern, name, weights)
            for number, values in zip(alike, rows, strict=True):
                values_by_metric[number][name] = values
    return values_by_metric


def _pooled(panel: Panel, alike: Any, known: Any, name: str, weights: Floats) -> Floats:
    human, item = panel.human[known], panel.item[known]
    values = np.full((len(alike), len(weights)), np.nan)
    if len(human) < 2 or (human == human[0]).all():
        return values
    scores = panel.scores[np.ix_(alike, np.flatnonzero(known))]
    varies = np.flatnonzero((scores != scores[:, :1]).any(axis=1))
    scores = scores[varies]
    if not len(varies):
        return values
    if name == "spearman":
        values[varies] = spearman_replicates(human, scores, item, weights)
    elif name == "kendall":
        values[varies] = kendall_replicates(human, scores, item, weights)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            n_items = weights.shape[1]
            replicates = (pooled_replicate(human, row, item, n_items, name) for row in scores)
            values[varies] = [replicate(weights) for replicate in replicates]
    return values


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
        """Concordant minus discordant pairs, by items. Each two slots are taken in one order and
        count twice."""
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
    """Twice the number of drawn pairs whose values differ."""
    order = Order.by(values, item)
    untied = np.square(weights @ np.bincount(item, minlength=weights.shape[1]))
    for start in range(0, len(weights), DRAWS_AT_ONCE):
        block = slice(start, start + DRAWS_AT_ONCE)
        counts = order.sums(np.ascontiguousarray(weights[block].T)[order.items])
        untied[block] -= np.einsum("cd,cd->d", counts, counts)
    return untied
