"""Krippendorff's alpha as a function of sums over clusters, for every distance."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from error_codes import InvalidValue
from stats.agreement.distances import Distances, unit_disagreement
from stats.agreement.labels import Units
from stats.agreement.sums import Sums, by_cluster, drawn, row_forms, table_of
from stats.arguments import Floats
from stats.groups import sum_by

TINY = 1e-12
"""As a share of the terms subtracted: a smaller disagreement is their rounding."""
Distance = Callable[[Any, Any], float]


def masi(first: frozenset[Hashable], second: frozenset[Hashable]) -> float:
    """Passonneau's distance of sets: Jaccard's index times how one contains the other.

    Two empty sets are alike, and an empty set is as far from any other as can be.

    References
    ----------
    R. Passonneau (2006). Measuring agreement on set-valued items (MASI) for semantic and
    pragmatic annotation. LREC.

    Examples
    --------
    >>> round(masi(frozenset("ab"), frozenset("abc")), 3), masi(frozenset(), frozenset())
    (0.556, 0.0)
    """
    if first == second:
        return 0.0
    shared = len(first & second)
    contained = 2 / 3 if shared == min(len(first), len(second)) else 1 / 3
    return 1 - contained * shared / len(first | second)


def jaccard(first: frozenset[Hashable], second: frozenset[Hashable]) -> float:
    """One minus the share of the union that two sets have in common; 0 for two empty sets.

    Examples
    --------
    >>> jaccard(frozenset("ab"), frozenset("bc")).__round__(3), jaccard(frozenset(), frozenset())
    (0.667, 0.0)
    """
    return 0.0 if first == second else 1 - len(first & second) / len(first | second)


def distance_table(categories: list[Hashable], distance: Distance) -> Floats:
    """The distance of every two categories; an invalid one is refused."""
    size = len(categories)
    table = np.zeros((size, size))
    for row, first in enumerate(categories):
        for column in range(row):
            table[row, column] = distance(first, categories[column])
    table += table.T
    if not np.isfinite(table).all() or (table < 0).any():
        raise InvalidValue(
            "distance must give finite numbers that are not negative", code="distance_out_of_range"
        )
    return table


def ratio_table(categories: list[Hashable]) -> Floats:
    """Squared difference over squared sum; values of a ratio scale are not negative."""
    values = np.array(categories, dtype=np.float64)
    if (values < 0).any():
        raise InvalidValue(
            "values must not be negative at the ratio level", code="values_out_of_range"
        )
    total = values[:, None] + values
    difference = np.abs(values[:, None] - values)
    share = np.divide(difference, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(np.square(share))


def nominal_sums(units: Units) -> Sums:
    """Alpha from counts."""
    table = unit_table(units)
    together = row_forms(table, None)
    disagreement = (np.square(units.size) - together) / (units.size - 1)

    def evaluate(count: Floats, n: Floats, within: Floats, squares: Floats) -> Floats:
        return _alpha(count, n, within, np.square(n) - squares, 0.5)

    return Sums(_linear(units, disagreement), evaluate, cluster_table(units))


def interval_sums(units: Units) -> Sums:
    """Alpha from moments."""
    numbers = np.asarray(units.categories, dtype=np.float64)[units.value]
    numbers = numbers - numbers.mean()
    total = sum_by(units.unit, numbers, units.n_units)
    squares = sum_by(units.unit, np.square(numbers), units.n_units)

    def evaluate(count: Floats, n: Floats, within: Floats, x: Floats, x2: Floats) -> Floats:
        return _alpha(count, n, within, 2 * (n * x2 - np.square(x)), TINY * n * x2)

    return Sums(_linear(units, unit_disagreement(units, numbers), total, squares), evaluate)


def table_sums(units: Units, distances: Floats) -> Sums:
    """Alpha from a table of distances between categories."""
    disagreement = row_forms(unit_table(units), distances) / (units.size - 1)

    def evaluate(count: Floats, n: Floats, within: Floats, between: Floats) -> Floats:
        return _alpha(count, n, within, between, TINY * np.square(n) * distances.max())

    return Sums(_linear(units, disagreement), evaluate, cluster_table(units), distances)


@dataclass(frozen=True)
class OrdinalSums:
    """Ordinal alpha, whose ranks every sample sets anew."""

    units: Units
    left: Floats

    def without_each(self) -> Floats:
        return self.left

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Floats:
        each = np.ones(self.units.n_clusters, np.intp)
        blocks = drawn(each, n_resamples, rng, len(each))
        return np.array([self._weighed(weights) for block in blocks for weights in block])

    def _weighed(self, weights: Floats) -> float:
        """Alpha where each cluster counts as often as its weight says."""
        units = self.units
        weight = weights[units.cluster]
        counts = np.bincount(units.value, weight[units.unit], len(units.categories))
        ranks = np.cumsum(counts) - counts / 2
        n = counts.sum()
        ranks -= ranks @ counts / n
        between = 2 * n * (np.square(ranks) @ counts)
        if (counts > 0).sum() < 2 or (weight > 0).sum() < 2:
            return np.nan
        within = weight @ unit_disagreement(units, ranks[units.value])
        return float(1 - (n - 1) * within / between)


def influence(sums: Sums, level: str) -> Floats:
    """How each cluster moves alpha, to first order and times the number of clusters.

    As Gwet does, the correction of alpha for small samples is left out.
    """
    totals = sums.linear.sum(axis=0)
    n, within = totals[1:3]
    sizes, own = sums.linear[:, 1], sums.linear[:, 2]
    if level == "interval":
        x, x2 = totals[3:]
        between = 2 * (n * x2 - x**2)
        push = 2 * (sizes * x2 + n * sums.linear[:, 4] - 2 * x * sums.linear[:, 3])
    else:
        assert sums.vector is not None
        total: Floats = np.asarray(sums.vector.sum(axis=0)).ravel()
        pull = total if sums.form is None else sums.form @ total
        between, push = total @ pull, 2 * (sums.vector @ pull)
        if sums.form is None:
            between, push = n**2 - between, 2 * n * sizes - push
    moved = sizes * within + n * own - n * within * push / between
    return np.asarray(-moved / between * len(sizes))


def distances_from(sums: Sums, level: str, largest: float) -> Distances:
    """The whole distance sums behind alpha."""
    totals = sums.linear.sum(axis=0)
    n, within = totals[1:3]
    if level == "interval":
        between = 2 * (n * totals[4] - totals[3] ** 2)
    else:
        assert sums.vector is not None
        total: Floats = np.asarray(sums.vector.sum(axis=0)).ravel()
        between = n**2 - total @ total if sums.form is None else total @ sums.form @ total
    return Distances(float(within), float(between), largest)


def unit_table(units: Units) -> Any:
    """How often each value occurs in each unit."""
    shape = (units.n_units, len(units.categories))
    return table_of(units.unit, units.value, np.ones(len(units.unit)), shape)


def cluster_table(units: Units) -> Any:
    """How often each value occurs in each cluster."""
    shape = (units.n_clusters, len(units.categories))
    return table_of(units.cluster[units.unit], units.value, np.ones(len(units.unit)), shape)


def _linear(units: Units, disagreement: Floats, *more: Floats) -> Floats:
    ones = np.ones(units.n_units)
    columns = (ones, units.size, disagreement, *more)
    return by_cluster(units.cluster, units.n_clusters, *columns)


def _alpha(count: Floats, n: Floats, within: Floats, between: Floats, least: Any) -> Floats:
    """Alpha, NaN from fewer than two units or where all labels are alike."""
    defined = (count >= 2) & (between > least)
    return np.asarray(np.where(defined, 1 - (n - 1) * within / between, np.nan))
