"""Correlations and pairwise accuracies of each row of two tables, all rows at once."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats
from stats.libraries import scipy

Signs = NDArray[np.int8]
# Columns, up to which comparing every two of them is quicker than sorting each row.
PASSES_UP_TO = 64


def constant_rows(table: Floats) -> NDArray[np.bool_]:
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
    classes = np.minimum(distinct(x), distinct(y))
    return np.clip(stuart(agreement, x.shape[1], classes), -1.0, 1.0)


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
    """How many different values there are in each row."""
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
