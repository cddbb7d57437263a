from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from math import nan, sqrt
from typing import Any, Literal, get_args

import numpy as np

from stats.arguments import Column, Floats, require, require_one_of, sum_by
from stats.correlation.bootstrap import rounded_means, unit_range
from stats.correlation.cells import Cells, renumbered
from stats.correlation.coefficients import Coefficient, correlate
from stats.correlation.levels import require_level
from stats.correlation.result import Level, Undefined
from stats.libraries import pd, scipy
from stats.significance.adjustments import benjamini_hochberg, holm
from stats.significance.deltas import Swap
from stats.significance.permutation import permutation_test, shared_cells
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
