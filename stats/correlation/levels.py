from collections.abc import Callable
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from stats.arguments import (
    Column,
    Floats,
    Integers,
    require,
    require_at_least,
    require_confidence,
    require_one_of,
)
from stats.correlation.coefficients import Coefficient, constant_groups, require_coefficient
from stats.correlation.estimates import Estimate, Plan, by_item, of_cells, of_systems
from stats.correlation.result import (
    Cells,
    Correlation,
    Level,
    Reason,
    Resample,
    Undefined,
    complete_cells,
)

_ESTIMATES: dict[Level, Callable[[Cells, Plan], Estimate]] = {
    "item": by_item,
    "system": of_systems,
    "pooled": of_cells,
}


def correlation_at_level(
    human: Column,
    metric: Column,
    *,
    level: Level,
    coefficient: Coefficient,
    items: Column | None = None,
    systems: Column | None = None,
    clusters: Column | None = None,
    undefined: Undefined = "drop",
    resample: Resample = "items",
    confidence: float = 0.95,
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Correlation:
    """The correlation of a metric with human values at one level, with an interval.

    Parameters
    ----------
    human, metric : array-like of float, shape (n_cells,)
        One row a cell: an item under a system. A cell with a NaN on either side is dropped and
        counted.
    level : {"pooled", "system", "item"}
        ``"item"`` (or sample level): the mean over items of the correlation over systems, items
        without a defined one left out and counted. ``"system"``: the correlation of the
        systems' means over their complete cells. ``"pooled"``: that of all cells.
    coefficient : {"pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star", "spa"}
        Pearson's r, Spearman's rho with mid-ranks, Kendall's tau-b or tau-c; the share of pairs
        of cells (or systems) that both sides order, or tie, alike, as it is (``"acc_eq"``) or
        with the threshold for ties in the metric that makes it greatest (``"acc_star"``); soft
        pairwise accuracy (``"spa"``), at the system level only.
    items, systems : array-like, shape (n_cells,), optional
        The item and the system of each cell. The item level needs `items` and the system level
        `systems`; where both are given, no cell may occur twice.
    clusters : array-like, shape (n_cells,), optional
        Clusters of whole items that are not independent: they are resampled instead of items.
    undefined : {"drop", "zero", "nan"}
        A group with a constant side has no correlation: leave it out, count it as 0, or make
        the result NaN. A group with fewer than two complete cells is always left out. Pairwise
        accuracies are defined for constant groups.
    resample : {"items", "systems", "both"}
        What the bootstrap draws anew.
    confidence : float
        Confidence level of the interval, between 0 and 1.
    n_resamples : int
        Bootstrap resamples; 0 for no bootstrap.
    rng : int or Generator
        Seed of the bootstrap, recorded in the result, or a generator to draw from.

    Returns
    -------
    Correlation
        `value` is NaN, and `reason` set, where there are fewer than two cells or systems, one
        side is constant, or no item has a defined coefficient.

    Raises
    ------
    ValueError
        If the columns differ in length, `human` or `metric` hold something but finite numbers
        and NaN, `items` or `systems` is missing where the level or coefficient needs it, has a
        missing value or repeats a cell, or if `level`, `coefficient`, `undefined`, `resample`,
        `confidence` or `n_resamples` is not usable.

    Notes
    -----
    Means of systems that agree to 13 digits of the range of the values count as tied: what is
    beyond comes from the order of summation.

    The interval is a percentile bootstrap: of resampled items, as if other items had been drawn
    but the same systems, of resampled systems, or of both. It needs two or more of them, and
    the columns that name them. Each replicate is exactly the coefficient of the resampled
    cells, with the tie threshold of all cells; in accuracies, a cell or system makes no pair
    with its own copy; in soft pairwise accuracy, resampled items take the distribution of sign
    flips as normal. Where over one in twenty resamples is undefined, or none differs, there is
    no interval, and `ci_reason` says so.

    Percentiles of few items are too narrow. Below 60 items (or clusters) the mean of items'
    coefficients, and pooled r, rho and tau-b, have Student's t on Fisher's scale instead; the
    limits of coefficients of 1 and -1 only, or all the same, are Jeffreys' of the share ordered
    alike; other percentiles are widened as t is. Pearson's r of systems, which few items draw
    towards 0, is jackknifed over items. Pooled tau-b with more than 5,000 cells has the variance
    of what the cells of each item (or system, or both) move it by.

    Where there is no column to resample by, the interval is Fisher's z with the variances of
    Bonett and Wright, over systems or cells, for Pearson, Spearman and tau-b, and absent for
    others; `ci_method` says so. It is absent, too, for other pooled pairwise coefficients of
    more than 5,000 cells (accuracies: 2,000 where both are resampled).

    Tie calibration considers all pairs of cells of one group up to 5 million, and beyond them
    a random 5 million.

    References
    ----------
    D. Deutsch, R. Dror and D. Roth (2021). A statistical analysis of summarization evaluation
    metrics using resampling methods. TACL 9, 1132-1146.
    D. Deutsch, G. Foster and M. Freitag (2023). Ties matter: Meta-evaluating modern metrics with
    pairwise accuracy and tie calibration. EMNLP 2023, 12914-12929.
    B. Thompson, N. Mathur, D. Deutsch and H. Khayrallah (2024). Improving statistical
    significance in human evaluation of automatic metrics via soft pairwise accuracy. WMT 2024,
    1222-1234.
    D. G. Bonett and T. A. Wright (2000). Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations. Psychometrika 65(1), 23-28.

    Examples
    --------
    >>> items = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    >>> human, metric = [1, 2, 3, 3, 2, 1, 4, 4, 4], [2, 3, 4, 1, 3, 2, 1, 2, 3]
    >>> result = correlation_at_level(
    ...     human, metric, level="item", coefficient="kendall", items=items
    ... )
    >>> round(result.value, 4), result.n_used, result.n_constant_human
    (0.3333, 2, 1)
    """
    require_coefficient(coefficient)
    require_confidence(confidence)
    require_at_least(0, n_resamples=n_resamples)
    require_one_of(undefined=(undefined, get_args(Undefined)))
    require_one_of(resample=(resample, get_args(Resample)))
    require_level(level, coefficient, items, systems)
    cells = complete_cells(human, metric, items, systems, clusters)
    seed = None if isinstance(rng, np.random.Generator) else int(rng)
    plan = Plan(
        coefficient,
        undefined,
        resample,
        confidence,
        n_resamples,
        np.random.default_rng(rng),
        seed,
    )
    return correlation_and_replicates(cells, level, plan)[0]


def correlation_and_replicates(
    cells: Cells, level: Level, plan: Plan
) -> tuple[Correlation, Floats | None]:
    estimate = _ESTIMATES[level](cells, plan)
    return _result(estimate, cells, level, plan), estimate.interval.drawn


def replicates_of_cells(cells: Cells, level: Level, plan: Plan) -> tuple[float, Floats | None]:
    estimate = _ESTIMATES[level](cells, plan)
    return estimate.value, estimate.interval.drawn


def require_level(
    level: str, coefficient: str, items: Column | None, systems: Column | None
) -> None:
    require_one_of(level=(level, get_args(Level)))
    require(
        coefficient != "spa" or level == "system",
        f"coefficient 'spa' is of systems: level must be 'system', not {level!r}",
        code="spa_of_systems",
    )
    require(
        items is not None or (level != "item" and coefficient != "spa"),
        "items must be given at the item level, and for soft pairwise accuracy",
        code="items_missing",
    )
    require(
        level != "system" or systems is not None,
        "systems must be given at the system level",
        code="systems_missing",
    )


def _result(estimate: Estimate, cells: Cells, level: Level, plan: Plan) -> Correlation:
    groups, interval = estimate.groups, estimate.interval
    constant = int(constant_groups(groups).sum())
    return Correlation(
        value=estimate.value,
        coefficient=plan.coefficient,
        level=level,
        n_groups=len(groups.value),
        n_used=int(np.count_nonzero(~np.isnan(groups.value))),
        n_too_few=_count(groups.reason, Reason.TOO_FEW),
        n_constant_human=_count(groups.reason, Reason.CONSTANT_HUMAN),
        n_constant_metric=_count(groups.reason, Reason.CONSTANT_METRIC),
        n_items=_distinct(cells.item),
        n_systems=_distinct(cells.system),
        n_rows=cells.n_rows,
        n_missing=cells.n_missing,
        n_empty_items=cells.n_groups - (_distinct(cells.item) or 0),
        reason=_why_undefined(estimate, level),
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        confidence=plan.confidence,
        undefined=plan.undefined,
        n_zeroed=constant if plan.undefined == "zero" else 0,
        threshold=estimate.threshold,
        n_resamples=interval.n_resamples,
        n_resamples_undefined=interval.n_undefined,
        seed=plan.seed if interval.n_resamples or plan.coefficient == "spa" else None,
        n_units=interval.n_units,
        ci_reason=interval.reason,
    )


def _distinct(codes: Integers | None) -> int | None:
    return None if codes is None else int(np.count_nonzero(np.bincount(codes)))


def _count(reasons: NDArray[np.object_], reason: Reason) -> int:
    return int(np.equal(reasons, reason).sum())


def _why_undefined(estimate: Estimate, level: Level) -> Reason | None:
    if not np.isnan(estimate.value):
        return None
    if level != "item":
        reason: Reason | None = estimate.groups.reason[0]
        return reason
    some = not np.isnan(estimate.groups.value).all()
    return Reason.CONSTANT_ITEMS if some else Reason.NO_DEFINED_ITEM
