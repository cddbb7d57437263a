from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import nan
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    Signs,
    coded_in_order,
    numbers,
    require_one_of,
    require_same_length,
)
from stats.correlation.result import Reason, Undefined
from stats.libraries import np, pd, scipy

# Columns, up to which comparing every two of them is quicker than sorting each row.
PASSES_UP_TO = 64


def constant_rows(table: Floats) -> Flags:
    """Whether all entries of a row are equal; tested before centring, which rounds."""
    return np.asarray((table == table[:, :1]).all(axis=1))


def pearson_rows(x: Floats, y: Floats) -> Floats:
    """Pearson's r of each row; the rows vary.

    Examples
    --------
    >>> pearson_rows(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(2).tolist()
    [0.5]
    """
    return np.asarray(np.clip((_unit(x) * _unit(y)).sum(axis=1), -1.0, 1.0))


def _unit(table: Floats) -> Floats:
    """Each row centred and of length 1; scaled first, so that its squares stay finite."""
    centred = table - table.mean(axis=1, keepdims=True)
    centred /= np.abs(centred).max(axis=1, keepdims=True)
    return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True))


def spearman_rows(x: Floats, y: Floats) -> Floats:
    """Spearman's rho of each row, with mid-ranks for ties; the rows vary.

    Examples
    --------
    >>> spearman_rows(np.array([[1.0, 2.0, 9.0]]), np.array([[1.0, 3.0, 2.0]])).round(2).tolist()
    [0.5]
    """
    return pearson_rows(_ranks(x), _ranks(y))


def _ranks(table: Floats) -> Floats:
    """Mid-ranks within each row, by comparing columns where they are few."""
    if table.shape[1] > PASSES_UP_TO:
        return np.asarray(scipy.stats.rankdata(table, axis=1), dtype=np.float64)
    columns = np.ascontiguousarray(table.T)
    twice = np.ones(columns.shape, dtype=np.int16)
    for other in columns:
        twice += (other < columns).view(np.int8)
        twice += (other <= columns).view(np.int8)
    return np.ascontiguousarray(twice.T) / 2.0


def kendall_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b of each row; the rows vary.

    Examples
    --------
    >>> kendall_rows(np.array([[1.0, 2.0, 9.0]]), np.array([[1.0, 3.0, 2.0]])).round(3).tolist()
    [0.333]
    """
    if x.shape[1] > PASSES_UP_TO:
        return _by_scipy(x, y, "b")
    agreement, untied_x, untied_y = np.zeros((3, len(x)), dtype=np.int16)
    for sign_x, sign_y in _lagged_signs(x, y):
        agreement += _sum(sign_x * sign_y)
        untied_x += _sum(sign_x * sign_x)
        untied_y += _sum(sign_y * sign_y)
    scale = np.sqrt(untied_x, dtype=np.float64) * np.sqrt(untied_y, dtype=np.float64)
    return np.asarray(np.clip(agreement / scale, -1.0, 1.0))


def kendall_c_rows(x: Floats, y: Floats) -> Floats:
    """Kendall's (Stuart's) tau-c of each row; the rows vary.

    Examples
    --------
    >>> x, y = np.array([[1.0, 2.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 2.0, 2.0]])
    >>> kendall_c_rows(x, y).round(3).tolist()
    [0.75]
    """
    if x.shape[1] > PASSES_UP_TO:
        return _by_scipy(x, y, "c")
    agreement = np.zeros(len(x), dtype=np.int64)
    for sign_x, sign_y in _lagged_signs(x, y):
        agreement += _sum(sign_x * sign_y)
    return np.clip(stuart(agreement, x.shape[1], np.minimum(distinct(x), distinct(y))), -1.0, 1.0)


def stuart(agreement: NDArray[Any], n: Any, classes: NDArray[Any]) -> Floats:
    """Tau-c from concordant less discordant pairs, cells, and the lesser number of values."""
    return np.asarray(2 * agreement * classes / (np.square(n) * (classes - 1.0)))


def accuracy_rows(x: Floats, y: Floats, threshold: float = 0.0) -> Floats:
    """The share of pairs in a row that both sides order, or tie, alike; at least two columns.

    Two values of `y` tie where they differ by no more than `threshold`.

    Examples
    --------
    >>> x, y = np.array([[1.0, 2.0, 2.0]]), np.array([[1.0, 3.0, 4.0]])
    >>> accuracy_rows(x, y).round(3).tolist(), accuracy_rows(x, y, 1.0).tolist()
    ([0.667], [1.0])
    """
    n = x.shape[1]
    if n > PASSES_UP_TO and not threshold:
        return np.array([_accuracy(*row) for row in zip(x, y, strict=True)])
    right = np.zeros(len(x), dtype=np.int64)
    for lag in range(1, n):
        sign_x = signs(x[:, lag:], x[:, :-lag])
        sign_y = signs_beyond(y[:, lag:] - y[:, :-lag], threshold)
        right += np.count_nonzero(sign_x == sign_y, axis=1)
    return np.asarray(right / (n * (n - 1) / 2))


def _accuracy(x: Floats, y: Floats) -> float:
    """Of many cells: concordant pairs and pairs tied on both sides, from tau-b's parts."""
    n = len(x)
    codes = [np.unique(side, return_inverse=True)[1] for side in (x, y)]
    tied_x, tied_y = (_tied_pairs(code) for code in codes)
    tied_both = _tied_pairs(codes[0] * (int(codes[1].max()) + 1) + codes[1])
    total = n * (n - 1) // 2
    untied = total - tied_x - tied_y + tied_both
    difference = 0.0
    if tied_x < total and tied_y < total:
        tau = scipy.stats.kendalltau(x, y, method="asymptotic").statistic
        difference = tau * np.sqrt(total - tied_x) * np.sqrt(total - tied_y)
    return float((untied + round(difference)) / 2 + tied_both) / total


def _tied_pairs(code: NDArray[Any]) -> int:
    counts = np.unique(code, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def distinct(table: Floats) -> NDArray[np.int64]:
    return np.asarray(np.count_nonzero(np.diff(np.sort(table, axis=1), axis=1), axis=1) + 1)


def _lagged_signs(x: Floats, y: Floats) -> Iterator[tuple[Signs, Signs]]:
    """The signs of all pairs of columns, by how far apart they are, with the rows last.

    That way round, a sum over pairs adds whole arrays of rows.
    """
    x, y = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)
    for lag in range(1, len(x)):
        yield signs(x[lag:], x[:-lag]), signs(y[lag:], y[:-lag])


def _sum(pairs: Signs) -> Signs:
    """The sum over pairs of one lag, which are fewer than `PASSES_UP_TO`, and so fit."""
    return np.asarray(np.add.reduce(pairs, axis=0, dtype=np.int8))


def _by_scipy(x: Floats, y: Floats, variant: Literal["b", "c"]) -> Floats:
    pairs = zip(x, y, strict=True)
    taus = [scipy.stats.kendalltau(a, b, variant=variant, method="asymptotic") for a, b in pairs]
    return np.array([float(tau.statistic) for tau in taus])


def signs(left: Floats, right: Floats) -> Signs:
    """1 where left is greater, -1 where right is, 0 where they tie; nothing can overflow."""
    return np.greater(left, right).view(np.int8) - np.less(left, right).view(np.int8)


def signs_beyond(difference: Floats, threshold: float) -> Signs:
    """1 where a difference is above the threshold, -1 where it is as far below 0, otherwise 0."""
    above = np.greater(difference, threshold).view(np.int8)
    return above - np.less(difference, -threshold).view(np.int8)


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
    return float(correlate_groups(first, second, group, 1, coefficient).value[0])


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
    values = correlate_groups(numbers(x, "x"), numbers(y, "y"), group, len(names), coefficient)
    return pd.Series(values.value, index=pd.Index(names, tupleize_cols=False), name=coefficient)


def correlate_groups(
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


def constant_groups(groups: GroupValues) -> Flags:
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
