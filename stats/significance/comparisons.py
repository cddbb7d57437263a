from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from math import isnan, nan, sqrt
from typing import Any, Literal, get_args

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    numbers,
    require,
    require_at_least,
    require_one_of,
    sum_by,
)
from stats.correlation.bootstrap import rounded_means, standard, unit_range
from stats.correlation.coefficients import Coefficient, correlate, require_coefficient
from stats.correlation.levels import require_level
from stats.correlation.result import Cells, Level, Undefined, complete_cells, renumbered
from stats.libraries import np, pd, scipy
from stats.significance.adjustments import benjamini_hochberg, holm
from stats.significance.deltas import Swap, deltas_of, statistic
from stats.significance.resampled import Comparison, Undecided

Test = Literal["perm_both", "perm_items", "perm_systems", "williams"]
SWAPS: dict[Test, Swap] = {"perm_both": "both", "perm_items": "items", "perm_systems": "systems"}
COLUMNS = [
    "metric_a",
    "metric_b",
    "test",
    "value_a",
    "value_b",
    "delta",
    "p",
    "p_holm",
    "p_bh",
    "n_cells",
    "n_permutations",
    "seed",
    "reason",
]


# Flags handled at a time, which the arrays of floats made of them multiply.
CHUNK = 1 << 18
# Differences this close are equal, and count as at least as extreme.
ROUNDING = 1e-12


def compare_metrics(
    human: Column,
    metrics: Mapping[str, Column],
    *,
    level: Level,
    coefficient: Coefficient,
    items: Column | None = None,
    systems: Column | None = None,
    test: Test = "perm_both",
    undefined: Undefined = "drop",
    n_permutations: int = 1000,
    rng: int = 0,
) -> pd.DataFrame:
    """Test every two metrics for whether they agree with human ratings equally well.

    Parameters
    ----------
    human : array-like of float, shape (n_cells,)
        One row a cell: an item under a system.
    metrics : mapping of str to array-like of float, shape (n_cells,)
        Scores of the same cells by metric. A pair is compared on the cells that annotators and
        both metrics have a value for.
    level, coefficient, items, systems, undefined
        As in `stats.correlation.correlation_at_level`.
    test : {"perm_both", "perm_items", "perm_systems", "williams"}
        The permutation test that swaps scores of cells, items or systems; or Williams' t, for
        Pearson at the pooled level over cells and at the system level over systems, which takes
        them for independent.
    n_permutations : int
        Permutations drawn for each pair.
    rng : int
        Seed of the permutations of each pair, recorded in the result.

    Returns
    -------
    DataFrame
        A row for each pair in the order of `metrics`, with columns metric_a, metric_b, test,
        value_a, value_b, delta (a less b), p (two-sided), p_holm, p_bh, n_cells,
        n_permutations, seed, and reason where p is NaN (otherwise None).

    Raises
    ------
    ValueError
        As `permutation_test`; or if `test` is unknown or not for this level and coefficient.

    References
    ----------
    D. Deutsch, R. Dror and D. Roth (2021). A statistical analysis of summarization evaluation
    metrics using resampling methods. TACL 9, 1132-1146.
    Y. Graham and T. Baldwin (2014). Testing for significance of increased correlation with human
    judgment. EMNLP 2014, 172-176.

    Examples
    --------
    >>> human = [1, 2, 3, 4, 5, 6, 7, 8]
    >>> metrics = {"good": [1, 2, 3, 4, 5, 6, 8, 7], "bad": [5, 1, 7, 3, 8, 2, 6, 4]}
    >>> found = compare_metrics(
    ...     human, metrics, level="pooled", coefficient="pearson", test="williams"
    ... )
    >>> found[["metric_a", "metric_b", "delta", "p"]].round(3).to_dict("records")
    [{'metric_a': 'good', 'metric_b': 'bad', 'delta': 0.881, 'p': 0.006}]
    """
    require_one_of(test=(test, get_args(Test)))
    require_level(level, coefficient, items, systems)
    one: Callable[..., Comparison]
    if test == "williams":
        _require_pearson(level, coefficient)
        one = partial(_williams, level=level, items=items, systems=systems)
    else:
        one = partial(
            permutation_test,
            level=level,
            coefficient=coefficient,
            items=items,
            systems=systems,
            swap=SWAPS[test],
            undefined=undefined,
            n_permutations=n_permutations,
            rng=rng,
        )
    rows: list[dict[str, Any]] = [
        {"metric_a": a, "metric_b": b, "test": test, **asdict(one(human, metrics[a], metrics[b]))}
        for a, b in combinations(metrics, 2)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS).astype(
        {"p": "float64", "reason": object, "seed": object}
    )
    return table.assign(p_holm=holm(table["p"]), p_bh=benjamini_hochberg(table["p"]))


def _require_pearson(level: Level, coefficient: Coefficient) -> None:
    require(
        level != "item" and coefficient == "pearson",
        "test 'williams' is for coefficient 'pearson' at the pooled or system level, not "
        f"{coefficient!r} at level {level!r}",
        code="williams_unfit",
    )


def _williams(
    human: Column,
    metric_a: Column,
    metric_b: Column,
    *,
    level: Level,
    items: Column | None,
    systems: Column | None,
) -> Comparison:
    cells_a, cells_b = shared_cells(human, metric_a, metric_b, items, systems)
    x, a, b = cells_a.human, cells_a.metric, cells_b.metric
    if level == "system":
        x, a, b = (_means(side, cells_a) for side in (x, a, b))
    value_a, value_b, between = (
        correlate(first, second, coefficient="pearson")
        for first, second in ((x, a), (x, b), (a, b))
    )
    reason: Undecided | None = None
    p = np.nan
    if np.isnan([value_a, value_b]).any():
        reason = Undecided.UNDEFINED
    else:
        p = williams_test(value_a, value_b, between, len(x)).p
        if np.isnan(p):
            reason = Undecided.TOO_FEW if len(x) < 4 else Undecided.SAME_METRIC
    return Comparison(
        value_a=value_a,
        value_b=value_b,
        delta=value_a - value_b,
        p=p,
        n_cells=cells_a.n_rows,
        reason=reason,
    )


def _means(column: Floats, cells: Cells) -> Floats:
    assert cells.system is not None
    system, n_systems = renumbered(cells.system)
    count = sum_by(system, np.ones(len(column)), n_systems)
    return rounded_means(sum_by(system, unit_range(column), n_systems), count)


@dataclass(frozen=True)
class Williams:
    t: float
    df: int
    p: float


def williams_test(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether a variable correlates with a second as it does with a third.

    Parameters
    ----------
    r12, r13 : float
        Pearson correlations of the human ratings with each of two metrics.
    r23 : float
        That of the metrics with each other.
    n : int
        Points all three rest on, independent of each other.

    Returns
    -------
    Williams
        `t` has the sign of ``r12 - r13``. NaN where a correlation is, with fewer than four
        points, or where the metrics are the same but for scale.

    Raises
    ------
    ValueError
        If a correlation lies outside -1 to 1.

    References
    ----------
    E. J. Williams (1959). Regression Analysis. Wiley, New York.
    J. H. Steiger (1980). Tests for comparing elements of a correlation matrix. Psychological
    Bulletin 87(2), 245-251, equation 7.
    Y. Graham and T. Baldwin (2014). Testing for significance of increased correlation with human
    judgment. EMNLP 2014, 172-176.

    Examples
    --------
    >>> test = williams_test(0.4, 0.5, 0.1, 103)
    >>> round(test.t, 2), test.df, round(test.p, 2)
    (-0.89, 100, 0.37)
    """
    for name, r in {"r12": r12, "r13": r13, "r23": r23}.items():
        require(
            not abs(r) > 1,
            f"{name} must lie between -1 and 1, not {r}",
            code=f"{name}_out_of_range",
        )
    df = n - 3
    if df < 1:
        return Williams(nan, df, nan)
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    variance = 2 * (n - 1) / df * max(determinant, 0.0) + mean**2 * (1 - r23) ** 3
    if not variance > 0:
        return Williams(nan, df, nan)
    t = (r12 - r13) * sqrt((n - 1) * (1 + r23) / variance)
    return Williams(t, df, float(2 * scipy.stats.t.sf(abs(t), df)))


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
    undecided = partial(Comparison, p=nan, n_cells=cells_a.n_rows)
    if not cells_a.n_rows:
        return undecided(value_a=nan, value_b=nan, delta=nan, reason=Undecided.TOO_FEW)
    a, b = standard(cells_a.metric), standard(cells_b.metric)
    value_a, value_b = statistic(cells_a, level, coefficient, undefined)(np.stack([a, b])).tolist()
    values = {"value_a": value_a, "value_b": value_b, "delta": value_a - value_b}
    if isnan(values["delta"]):
        return undecided(**values, reason=Undecided.UNDEFINED)
    deltas = deltas_of(cells_a, a, b, level, coefficient, undefined, swap)
    drawn = np.concatenate(
        [
            deltas(swapped[:, unit])
            for swapped in _swaps(n_units, cells_a.n_rows, n_permutations, generator)
        ]
    )
    extreme = np.count_nonzero(np.abs(drawn) >= abs(values["delta"]) - ROUNDING)
    return Comparison(
        **values,
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
