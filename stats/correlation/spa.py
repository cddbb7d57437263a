"""Soft pairwise accuracy: how sure metric and human ratings are of pairs of systems."""

import numpy as np

from stats.arguments import Column, Floats, Integers
from stats.correlation.cells import complete_cells, renumbered
from stats.libraries import scipy

N_PERMUTATIONS = 1000
ROUNDING = 1e-12
"""As a share of the sums compared: sums this close are equal."""


def soft_pairwise_accuracy(
    human: Column,
    metric: Column,
    *,
    items: Column,
    systems: Column,
    n_permutations: int = N_PERMUTATIONS,
    rng: int | np.random.Generator = 0,
) -> float:
    """One less the mean difference between the human and the metric's p-values of system pairs.

    Parameters
    ----------
    human, metric : array-like of float, shape (n_cells,)
        One row a cell: an item under a system. Cells with a NaN on either side are left out.
    items, systems : array-like, shape (n_cells,)
        The item and the system of each cell.
    n_permutations : int
        Sign flips drawn; the same ones for human ratings and the metric.
    rng : int or Generator
        Seed of the sign flips, or a generator to draw from.

    Returns
    -------
    float
        Between 0 and 1; NaN where no two systems share an item.

    Raises
    ------
    ValueError
        If the columns differ in length, are not numbers, or name a cell twice.

    Notes
    -----
    For two systems, p is the share of sign flips of their per-item differences whose sum is not
    below the one observed: a one-sided paired permutation test. A pair is compared on the items
    both systems have.

    References
    ----------
    B. Thompson, N. Mathur, D. Deutsch and H. Khayrallah (2024). Improving statistical
    significance in human evaluation of automatic metrics via soft pairwise accuracy. WMT 2024,
    1222-1234.

    Examples
    --------
    >>> items, systems = [1, 1, 2, 2, 3, 3], list("ababab")
    >>> human, metric = [1, 2, 1, 3, 2, 3], [0.1, 0.3, 0.2, 0.4, 0.5, 0.6]
    >>> soft_pairwise_accuracy(human, metric, items=items, systems=systems)
    1.0
    """
    cells = complete_cells(human, metric, items, systems)
    assert cells.item is not None
    assert cells.system is not None
    (system, n_systems), (item, n_items) = renumbered(cells.system), renumbered(cells.item)
    shape = (n_systems, n_items)
    x, y = (table(column, item, system, shape) for column in (cells.human, cells.metric))
    flips = sign_flips(n_permutations, shape[1], np.random.default_rng(rng))
    shared = pair_shares(x)
    p_human, p_metric = (p_by_flips(pair_differences(side), flips) for side in (x, y))
    return float(one_less_error(p_human[None], p_metric[None], shared[None])[0])


def table(column: Floats, item: Integers, system: Integers, shape: tuple[int, int]) -> Floats:
    """A value for each system and item, NaN where there is none."""
    values = np.full(shape, np.nan)
    values[system, item] = column
    return values


def pair_differences(values: Floats) -> Floats:
    """The difference of every two systems on each item, 0 where one has none.

    Shapes: (..., n_systems, n_items) in, (..., n_pairs, n_items) out.
    """
    first, second = np.triu_indices(values.shape[-2], 1)
    return np.asarray(np.nan_to_num(values[..., first, :] - values[..., second, :]))


def pair_shares(values: Floats) -> Floats:
    """1 for every two systems that share an item, otherwise 0."""
    first, second = np.triu_indices(len(values), 1)
    shared = ~np.isnan(values[first] - values[second])
    return np.asarray(shared.any(axis=1), dtype=np.float64)


def sign_flips(n_permutations: int, n_items: int, rng: np.random.Generator) -> Floats:
    """Rows of 1 and -1, as likely each."""
    heads = rng.integers(0, 2, size=(n_permutations, n_items))
    return np.where(heads, 1.0, -1.0)


def p_by_flips(differences: Floats, flips: Floats) -> Floats:
    """How often a sign flip sums to no less than the differences do, for each pair of systems."""
    observed = differences.sum(axis=1)
    slack = ROUNDING * np.abs(differences).sum(axis=1)
    return np.asarray((flips @ differences.T >= observed - slack).mean(axis=0))


def p_by_normal(total: Floats, squares: Floats) -> Floats:
    """The same with the flips' distribution taken as normal, which has mean 0 and this variance."""
    spread = np.sqrt(squares)
    z = total / np.where(spread > 0, spread, 1.0)
    return np.where(spread > 0, scipy.special.ndtr(-z), 1.0)


def one_less_error(p_human: Floats, p_metric: Floats, pair_weights: Floats) -> Floats:
    """One less the weighted mean difference of p-values in each row; NaN without weights."""
    weight = pair_weights.sum(axis=1)
    error = (np.abs(p_human - p_metric) * pair_weights).sum(axis=1)
    return np.asarray(1.0 - error / np.where(weight > 0, weight, np.nan))
