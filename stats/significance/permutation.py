from typing import get_args

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Flags,
    Integers,
    numbers,
    require,
    require_at_least,
    require_one_of,
)
from stats.correlation.bootstrap import standard
from stats.correlation.cells import Cells, complete_cells, renumbered
from stats.correlation.coefficients import Coefficient, require_coefficient
from stats.correlation.levels import require_level
from stats.correlation.result import Level, Undefined
from stats.significance.deltas import Swap, deltas_of, statistic
from stats.significance.resampled import Comparison, Undecided

# Flags handled at a time, which the arrays of floats made of them multiply.
CHUNK = 1 << 18
# Differences this close are equal, and count as at least as extreme.
ROUNDING = 1e-12


def permutation_test(
    human: Column,
    metric_a: Column,
    metric_b: Column,
    *,
    level: Level,
    coefficient: Coefficient,
    items: Column | None = None,
    systems: Column | None = None,
    swap: Swap = "both",
    undefined: Undefined = "drop",
    n_permutations: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Comparison:
    """Test whether two metrics agree with human ratings equally well, by swapping their scores.

    Parameters
    ----------
    human, metric_a, metric_b : array-like of float, shape (n_cells,)
        One row a cell: an item under a system. Cells where any is NaN are left out.
    level, coefficient, items, systems, undefined
        As in `stats.correlation.correlation_at_level`.
    swap : {"both", "items", "systems"}
        What is swapped at random: the two scores of single cells (PERM-BOTH), of whole items,
        or of whole systems. Swapping items is the paired permutation test of the metrics'
        coefficients by item.
    n_permutations : int
        Permutations drawn.
    rng : int or Generator
        Seed of the permutations, recorded in the result, or a generator to draw from.

    Returns
    -------
    Comparison
        `p` is two-sided: the share of permutations, and of the one observed, in which the
        coefficients differ at least as much as observed.

    Raises
    ------
    ValueError
        As `correlation_at_level`; or if `swap` is unknown, its column is missing, or
        `n_permutations` is less than 1.

    Notes
    -----
    Scores are standardised before they are swapped, over the cells that take part. Tie
    calibration is done anew for each permutation; in soft pairwise accuracy, the distribution
    of sign flips is taken as normal.

    Pooled tau-b, tau-c and pairwise accuracy are sums over pairs of cells, and those of all
    permutations one product of matrices, exact; with more than 5,000 cells each permutation is
    computed by itself.

    References
    ----------
    D. Deutsch, R. Dror and D. Roth (2021). A statistical analysis of summarization evaluation
    metrics using resampling methods. TACL 9, 1132-1146.
    B. Phipson and G. K. Smyth (2010). Permutation p-values should never be zero. Statistical
    Applications in Genetics and Molecular Biology 9(1), article 39.

    Examples
    --------
    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> good, bad = [1, 2, 3, 4, 5, 6, 8, 7], [5, 1, 7, 3, 8, 2, 6, 4]
    >>> test = permutation_test(human, good, bad, level="pooled", coefficient="kendall")
    >>> round(test.delta, 3), test.p < 0.05
    (0.857, True)
    """
    require_coefficient(coefficient)
    require_one_of(undefined=(undefined, get_args(Undefined)), swap=(swap, get_args(Swap)))
    require_level(level, coefficient, items, systems)
    require_at_least(1, n_permutations=n_permutations)
    cells_a, cells_b = shared_cells(human, metric_a, metric_b, items, systems)
    unit, n_units = _units(cells_a, swap)
    generator = np.random.default_rng(rng)
    seed = None if isinstance(rng, np.random.Generator) else int(rng)
    if not cells_a.n_rows:
        return _undecided(np.nan, np.nan, 0, Undecided.TOO_FEW)
    a, b = standard(cells_a.metric), standard(cells_b.metric)
    of_rows = statistic(cells_a, level, coefficient, undefined)
    value_a, value_b = of_rows(np.stack([a, b]))
    delta = value_a - value_b
    if np.isnan(delta):
        return _undecided(value_a, value_b, cells_a.n_rows, Undecided.UNDEFINED)
    deltas = deltas_of(cells_a, a, b, level, coefficient, undefined, swap)
    drawn = np.concatenate(
        [
            deltas(swapped[:, unit])
            for swapped in _swaps(n_units, cells_a.n_rows, n_permutations, generator)
        ]
    )
    extreme = np.count_nonzero(np.abs(drawn) >= abs(delta) - ROUNDING)
    return Comparison(
        value_a=float(value_a),
        value_b=float(value_b),
        delta=float(delta),
        p=float((extreme + 1) / (n_permutations + 1)),
        n_cells=cells_a.n_rows,
        n_permutations=n_permutations,
        seed=seed,
    )


def shared_cells(
    human: Column,
    metric_a: Column,
    metric_b: Column,
    items: Column | None,
    systems: Column | None,
) -> tuple[Cells, Cells]:
    a, b = numbers(metric_a, "metric_a"), numbers(metric_b, "metric_b")
    require(
        len(a) == len(b),
        f"metric_a and metric_b must have the same length: {len(a)}, {len(b)}",
        code="unequal_lengths",
    )
    missing = np.isnan(a) | np.isnan(b)
    sides = (np.where(missing, np.nan, side) for side in (a, b))
    cells_a, cells_b = (complete_cells(human, side, items, systems) for side in sides)
    return cells_a, cells_b


def _undecided(value_a: float, value_b: float, n_cells: int, reason: Undecided) -> Comparison:
    return Comparison(
        value_a=float(value_a),
        value_b=float(value_b),
        delta=float(value_a - value_b),
        p=np.nan,
        n_cells=n_cells,
        reason=reason,
    )


def _units(cells: Cells, swap: Swap) -> tuple[Integers, int]:
    if swap == "both":
        return np.arange(cells.n_rows), cells.n_rows
    codes = cells.item if swap == "items" else cells.system
    if codes is None:
        raise InvalidValue(f"{swap} must be given to swap {swap}", code=f"{swap}_missing")
    return renumbered(codes)


def _swaps(
    n_units: int, n_cells: int, n_permutations: int, rng: np.random.Generator
) -> list[Flags]:
    step = max(1, CHUNK // n_cells)
    sizes = [min(step, n_permutations - at) for at in range(0, n_permutations, step)]
    return [rng.integers(0, 2, size=(size, n_units), dtype=np.uint8).astype(bool) for size in sizes]
