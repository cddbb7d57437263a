"""A correlation at a level as a function of many rows of scores of the same cells."""

from collections.abc import Callable, Sequence

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.correlation import spa
from stats.correlation.bootstrap import rounded_means
from stats.correlation.cells import Cells, renumbered
from stats.correlation.coefficients import row_values
from stats.correlation.result import Level, Undefined
from stats.correlation.ties import calibrated, pairs_within
from stats.libraries import scipy

Statistic = Callable[[Floats], Floats]


def statistic(cells: Cells, level: Level, coefficient: str, undefined: Undefined) -> Statistic:
    """From rows of scores, shape (n_draws, n_cells), to the coefficient of each, (n_draws,)."""
    if coefficient == "spa":
        return _soft(cells)
    if level == "item":
        assert cells.item is not None
        group = cells.item
        return _of_groups(cells.human, group, coefficient, undefined)
    if level == "system":
        return _of_means(cells, coefficient, undefined)
    group = np.zeros(cells.n_rows, dtype=np.intp)
    return _of_groups(cells.human, group, coefficient, undefined)


def _of_groups(human: Floats, group: Integers, coefficient: str, undefined: Undefined) -> Statistic:
    if coefficient == "acc_star":
        n_groups = int(group.max(initial=-1)) + 1
        pairs = pairs_within(group, n_groups, np.random.default_rng(0))
        return lambda metrics: calibrated(human, metrics, pairs)[1]
    tables = groups_by_size(group)
    sides = [human[rows] for rows in tables]

    def of_rows(metrics: Floats) -> Floats:
        parts = [
            values_of_groups(side, metrics[:, rows], coefficient, undefined)
            for side, rows in zip(sides, tables, strict=True)
        ]
        return mean_of_groups(parts or [np.full((len(metrics), 1), np.nan)], undefined)

    return of_rows


def mean_of_groups(parts: Sequence[Floats], undefined: Undefined) -> Floats:
    """The mean of each row over all parts' columns by the policy; NaN where none is defined."""
    values = np.concatenate(parts, axis=1)
    is_defined = ~np.isnan(values)
    if undefined == "nan":
        is_defined &= is_defined.all(axis=1, keepdims=True)
    count = is_defined.sum(axis=1)
    total = np.where(is_defined, values, 0.0).sum(axis=1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def groups_by_size(group: Integers) -> list[Integers]:
    """For each size of group from two up, the cells of the groups, a row each."""
    size = np.bincount(group)
    order = np.argsort(group, kind="stable")
    start = np.cumsum(size) - size
    return [
        order[start[size == length, None] + np.arange(length)]
        for length in np.unique(size[size > 1])
    ]


def values_of_groups(
    human: Floats, metrics: Floats, coefficient: str, undefined: Undefined
) -> Floats:
    """The coefficient of each draw and group; shapes (n_groups, k) and (n_draws, n_groups, k)."""
    n_draws, n_groups, k = metrics.shape
    x = np.broadcast_to(human, metrics.shape).reshape(-1, k)
    values, _ = row_values(x, metrics.reshape(-1, k), coefficient)
    if undefined == "zero":
        values = np.nan_to_num(values)
    return values.reshape(n_draws, n_groups)


def _of_means(cells: Cells, coefficient: str, undefined: Undefined) -> Statistic:
    assert cells.system is not None
    system, n_systems = renumbered(cells.system)
    count = sum_by(system, np.ones(cells.n_rows), n_systems)
    spread = float(np.ptp(cells.human)) or 1.0
    sums = sum_by(system, (cells.human - cells.human.min()) / spread, n_systems)
    human = rounded_means(sums, count)
    shape = (cells.n_rows, n_systems)
    of_system = scipy.sparse.coo_array(
        (np.ones(cells.n_rows), (np.arange(cells.n_rows), system)), shape
    )
    indicator = of_system.tocsc()
    one_group = _of_groups(human, np.zeros(n_systems, dtype=np.intp), coefficient, undefined)
    return lambda metrics: one_group(rounded_means(np.asarray(metrics @ indicator), count))


def _soft(cells: Cells) -> Statistic:
    """Soft pairwise accuracy, with the sign flips' distribution taken as normal."""
    assert cells.item is not None
    assert cells.system is not None
    (system, n_systems), (item, n_items) = renumbered(cells.system), renumbered(cells.item)
    human = spa.table(cells.human, item, system, (n_systems, n_items))
    shared = spa.pair_shares(human)[None]

    def p_values(tables: Floats) -> Floats:
        differences = spa.pair_differences(tables)
        return spa.p_by_normal(differences.sum(axis=-1), np.square(differences).sum(axis=-1))

    p_human = p_values(human[None])

    def of_rows(metrics: Floats) -> Floats:
        tables = np.full((len(metrics), n_systems, n_items), np.nan)
        tables[:, system, item] = metrics
        pairs = np.broadcast_to(shared, (len(metrics), shared.shape[1]))
        return spa.one_less_error(p_human, p_values(tables), pairs)

    return of_rows
