"""One correlation, or one for each group of a long frame, and groups with a constant side."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import nan
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    numbers,
    require_one_of,
    require_same_length,
)
from stats.correlation.result import Reason, Undefined
from stats.correlation.rows import (
    accuracy_rows,
    constant_rows,
    kendall_c_rows,
    kendall_rows,
    pearson_rows,
    spearman_rows,
)
from stats.libraries import pd

Coefficient = Literal["pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star", "spa"]
RowCoefficient = Literal["pearson", "spearman", "kendall", "kendall_c", "acc_eq"]

_CORRELATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "pearson": pearson_rows,
    "spearman": spearman_rows,
    "kendall": kendall_rows,
    "kendall_c": kendall_c_rows,
}


@dataclass(frozen=True)
class GroupValues:
    """A coefficient for each group, NaN where undefined, and why (None where defined)."""

    value: Floats
    reason: NDArray[np.object_]


def require_coefficient(coefficient: str) -> None:
    """The name of a coefficient this package computes."""
    require_one_of(coefficient=(coefficient, get_args(Coefficient)))


def correlate(x: Column, y: Column, *, coefficient: RowCoefficient) -> float:
    """The correlation of two columns.

    Parameters
    ----------
    x, y : array-like of float, shape (n,)
        Two values of each cell. Cells where either is NaN are left out.
    coefficient : {"pearson", "spearman", "kendall", "kendall_c", "acc_eq"}
        Pearson's r, Spearman's rho with mid-ranks, Kendall's tau-b or tau-c, or the share of
        pairs that both columns order, or tie, alike.

    Returns
    -------
    float
        NaN where fewer than two cells are complete or, unless for ``"acc_eq"``, either side is
        constant.

    Raises
    ------
    ValueError
        If the columns differ in length or hold something but finite numbers and NaN, or
        `coefficient` is unknown.

    References
    ----------
    M. G. Kendall (1945). The treatment of ties in ranking problems. Biometrika 33(3), 239-251.
    A. Stuart (1953). The estimation and comparison of strengths of association in contingency
    tables. Biometrika 40(1/2), 105-110.
    D. Deutsch, G. Foster and M. Freitag (2023). Ties matter: Meta-evaluating modern metrics with
    pairwise accuracy and tie calibration. EMNLP 2023, 12914-12929.

    Examples
    --------
    >>> round(correlate([1, 2, 3, 4], [1, 2, 4, 4], coefficient="kendall"), 4)
    0.9129
    >>> correlate([1, 2, 3], [5, 5, 5], coefficient="pearson")
    nan
    """
    require_one_of(coefficient=(coefficient, get_args(RowCoefficient)))
    require_same_length(x=x, y=y)
    first, second = numbers(x, "x"), numbers(y, "y")
    group = np.zeros(len(first), dtype=np.intp)
    return float(group_values(first, second, group, 1, coefficient).value[0])


def grouped_correlation(
    x: Column, y: Column, groups: Column, *, coefficient: Coefficient
) -> pd.Series[float]:
    """The correlation of two columns within each group.

    Parameters
    ----------
    x, y : array-like of float, shape (n,)
        Two values of each cell. Cells where either is NaN are left out.
    groups : array-like, shape (n,)
        The group of each cell.
    coefficient : {"pearson", "spearman", "kendall", "kendall_c", "acc_eq"}
        Pearson's r, Spearman's rho with mid-ranks, Kendall's tau-b or tau-c, or the share of
        pairs that both columns order, or tie, alike.

    Returns
    -------
    Series of float
        Indexed by group, ascending; NaN where a group has fewer than two complete cells or,
        unless for ``"acc_eq"``, either side is constant in it.

    Raises
    ------
    ValueError
        If the columns differ in length, `x` or `y` hold something but finite numbers and NaN,
        `groups` has a missing value, or `coefficient` is unknown.

    Notes
    -----
    Groups of the same size are computed together as a dense table, by column operations. A
    group is tested for a constant side before anything is centred, since rounding would hide
    it.

    References
    ----------
    M. G. Kendall (1945). The treatment of ties in ranking problems. Biometrika 33(3), 239-251.
    A. Stuart (1953). The estimation and comparison of strengths of association in contingency
    tables. Biometrika 40(1/2), 105-110.
    D. Deutsch, G. Foster and M. Freitag (2023). Ties matter: Meta-evaluating modern metrics with
    pairwise accuracy and tie calibration. EMNLP 2023, 12914-12929.

    Examples
    --------
    >>> human, metric = [1, 2, 3, 4, 4, 9], [2, 1, 3, 5, 5, 5]
    >>> grouped_correlation(human, metric, list("aaabbb"), coefficient="spearman")
    a    0.5
    b    NaN
    Name: spearman, dtype: float64
    """
    require_one_of(coefficient=(coefficient, get_args(RowCoefficient)))
    require_same_length(x=x, y=y, groups=groups)
    group, names = coded_in_order(groups, "groups")
    values = group_values(numbers(x, "x"), numbers(y, "y"), group, len(names), coefficient)
    return pd.Series(values.value, index=_index(names), name=coefficient)


def _index(names: list[Hashable]) -> pd.Index[Any]:
    return pd.Index(names, tupleize_cols=False)


def group_values(
    x: Floats,
    y: Floats,
    group: Integers,
    n_groups: int,
    coefficient: str,
    threshold: float = 0.0,
) -> GroupValues:
    """The coefficient of each of groups 0 to ``n_groups - 1``; rows with a NaN do not count."""
    complete = ~(np.isnan(x) | np.isnan(y))
    x, y, group = x[complete], y[complete], group[complete]
    order = np.argsort(group, kind="stable")
    size = np.bincount(group, minlength=n_groups)
    start = np.cumsum(size) - size
    result = GroupValues(np.full(n_groups, nan), np.full(n_groups, None, dtype=object))
    for length in np.unique(size):
        groups = np.flatnonzero(size == length)
        if length < 2:
            result.reason[groups] = Reason.TOO_FEW
            continue
        rows = order[start[groups, None] + np.arange(length)]
        values = row_values(x[rows], y[rows], coefficient, threshold)
        result.value[groups], result.reason[groups] = values
    return result


def row_values(
    x: Floats, y: Floats, coefficient: str, threshold: float = 0.0
) -> tuple[Floats, NDArray[np.object_]]:
    """The coefficient of each row of two tables of at least two columns, and why not.

    An accuracy counts values of `y` within `threshold` as tied, and is never undefined.
    """
    reason = np.full(len(x), None, dtype=object)
    if coefficient not in _CORRELATIONS:
        return accuracy_rows(x, y, threshold), reason
    constant_x, constant_y = constant_rows(x), constant_rows(y)
    reason[constant_y] = Reason.CONSTANT_METRIC
    reason[constant_x] = Reason.CONSTANT_HUMAN
    varies = ~(constant_x | constant_y)
    value = np.full(len(x), nan)
    value[varies] = _CORRELATIONS[coefficient](x[varies], y[varies])
    return value, reason


CONSTANT = (Reason.CONSTANT_HUMAN, Reason.CONSTANT_METRIC)


def constant_groups(groups: GroupValues) -> NDArray[np.bool_]:
    """Which groups have no coefficient because a side is constant."""
    human, metric = (np.equal(groups.reason, reason) for reason in CONSTANT)
    return np.asarray(human | metric, dtype=bool)


def with_policy(groups: GroupValues, undefined: Undefined) -> Floats:
    """The groups' values as they enter a mean, which leaves out those that are NaN.

    A group with fewer than two cells is missing rather than undefined, and always left out.
    """
    if undefined == "drop" or not np.isnan(groups.value).any():
        return groups.value
    constant = constant_groups(groups)
    if undefined == "zero":
        return np.where(constant, 0.0, groups.value)
    return np.full_like(groups.value, np.nan) if constant.any() else groups.value
