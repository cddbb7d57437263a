"""Krippendorff's alpha as a function of sums over clusters, and distances behind it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from stats.agreement.result import Cells, Sums, Units, by_cluster, drawn, row_forms, table_of
from stats.arguments import Flags, Floats, Integers, require, sum_by
from stats.libraries import np, scipy

# As a share of the terms subtracted: a smaller disagreement is their rounding.
TINY = 1e-12
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
    size = len(categories)
    table = np.zeros((size, size))
    for row, first in enumerate(categories):
        for column in range(row):
            table[row, column] = distance(first, categories[column])
    table += table.T
    require(
        np.isfinite(table).all() and not (table < 0).any(),
        "distance must give finite numbers that are not negative",
        code="distance_out_of_range",
    )
    return table


def ratio_table(categories: list[Hashable]) -> Floats:
    """Squared difference over squared sum; values of a ratio scale are not negative."""
    values = np.array(categories, dtype=np.float64)
    require(
        not (values < 0).any(),
        "values must not be negative at the ratio level",
        code="values_out_of_range",
    )
    total = values[:, None] + values
    difference = np.abs(values[:, None] - values)
    share = np.divide(difference, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(np.square(share))


def nominal_sums(units: Units) -> Sums:
    disagreement = (np.square(units.size) - row_forms(unit_table(units), None)) / (units.size - 1)

    def evaluate(count: Floats, n: Floats, within: Floats, squares: Floats) -> Floats:
        return _alpha(count, n, within, np.square(n) - squares, 0.5)

    return Sums(_linear(units, disagreement), evaluate, cluster_table(units))


def interval_sums(units: Units) -> Sums:
    numbers = np.asarray(units.categories, dtype=np.float64)[units.value]
    numbers = numbers - numbers.mean()
    total = sum_by(units.unit, numbers, units.n_units)
    squares = sum_by(units.unit, np.square(numbers), units.n_units)

    def evaluate(count: Floats, n: Floats, within: Floats, x: Floats, x2: Floats) -> Floats:
        return _alpha(count, n, within, 2 * (n * x2 - np.square(x)), TINY * n * x2)

    return Sums(_linear(units, unit_disagreement(units, numbers), total, squares), evaluate)


def table_sums(units: Units, distances: Floats) -> Sums:
    disagreement = row_forms(unit_table(units), distances) / (units.size - 1)

    def evaluate(count: Floats, n: Floats, within: Floats, between: Floats) -> Floats:
        return _alpha(count, n, within, between, TINY * np.square(n) * distances.max())

    return Sums(_linear(units, disagreement), evaluate, cluster_table(units), distances)


@dataclass(frozen=True)
class Distances:
    """Distance sums of all units.

    `within` sums over units the distances of ordered pairs in a unit, divided by its labels
    minus one; `between` sums over all ordered pairs of labels; `largest` is the largest
    squared distance there is.
    """

    within: float
    between: float
    largest: float


@dataclass(frozen=True)
class OrdinalDistances(Distances):
    within_left: Floats
    between_left: Floats


@dataclass(frozen=True)
class OrdinalSums:
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
    shape = (units.n_units, len(units.categories))
    return table_of(units.unit, units.value, np.ones(len(units.unit)), shape)


def cluster_table(units: Units) -> Any:
    shape = (units.n_clusters, len(units.categories))
    return table_of(units.cluster[units.unit], units.value, np.ones(len(units.unit)), shape)


def _linear(units: Units, disagreement: Floats, *more: Floats) -> Floats:
    columns = (np.ones(units.n_units), units.size, disagreement, *more)
    return by_cluster(units.cluster, units.n_clusters, *columns)


def _alpha(count: Floats, n: Floats, within: Floats, between: Floats, least: Any) -> Floats:
    """Alpha, NaN from fewer than two units or where all labels are alike."""
    defined = (count >= 2) & (between > least)
    return np.asarray(np.where(defined, 1 - (n - 1) * within / between, np.nan))


# Bins of a dense table, 2 MB of floats, whatever the number of distinct values.
RANK_BINS = 512


def ordinal_distances(units: Units) -> OrdinalDistances:
    """Squared difference of the mid-ranks among the pairable labels.

    Deleting a cluster moves every rank, by an amount linear in the cluster's counts, and the
    numerator is a quadratic form in the ranks; so each deletion is that form, minus a linear
    and plus a quadratic term. Beyond `RANK_BINS` distinct values the quadratic term, smaller
    than the linear one by the number of labels, is computed from binned values.
    """
    counts, cells, clusters = units.counts, units.cells, units.cluster_cells
    ranks = np.cumsum(counts) - (counts - 1) / 2 - (units.n_labels + 1) / 2
    pull = _pull(units, cells, ranks)
    within = float(ranks @ pull)
    push = clusters.count * _sum_above(pull)[clusters.value]
    linear = sum_by(clusters.row, push, units.n_clusters)
    own = sum_by(units.cluster, _own_disagreement(units, cells, clusters, ranks), units.n_clusters)
    ties = _cubes(counts)
    change = _cubes(counts[clusters.value] - clusters.count) - ties[clusters.value]
    ties_left = ties.sum() + sum_by(clusters.row, change, units.n_clusters)
    n, left = units.n_labels, labels_left(units)
    return OrdinalDistances(
        within=within,
        between=float(2 * n * np.square(ranks) @ counts),
        within_left=within - 2 * linear + _quadratic(units) - own,
        between_left=left * (_cubes(left) - ties_left) / 6,
        largest=float((ranks[-1] - ranks[0]) ** 2),
    )


def labels_left(units: Units) -> Floats:
    return units.n_labels - sum_by(units.cluster, units.size, units.n_clusters)


def _cubes(counts: Floats) -> Floats:
    """t^3 - t: twelve times the sum of squares that t untied ranks have about their mean."""
    return counts**3 - counts


def unit_disagreement(units: Units, numbers: Floats) -> Floats:
    """Sum of squared differences of ordered pairs in each unit, over its labels minus one."""
    first = np.empty(units.n_units)
    first[units.unit] = numbers
    shifted = numbers - first[units.unit]  # so that a unanimous unit gives exactly 0
    mean = sum_by(units.unit, shifted, units.n_units) / units.size
    squares = sum_by(units.unit, np.square(shifted - mean[units.unit]), units.n_units)
    return np.asarray(2 * units.size * squares / (units.size - 1))


def _pull(units: Units, cells: Cells, ranks: Floats) -> Floats:
    """The matrix of the quadratic form of within-unit distances, times the ranks."""
    scale = 2 / (units.size - 1)
    total = sum_by(cells.row, cells.count * ranks[cells.value], units.n_units)
    unit = cells.row
    spread = units.size[unit] * ranks[cells.value] - total[unit]
    return sum_by(cells.value, cells.count * scale[unit] * spread, len(ranks))


def _sum_above(values: Floats) -> Floats:
    """The sum of all later entries and half the entry itself, along the first axis."""
    return np.asarray(np.cumsum(values[::-1], axis=0)[::-1] - values / 2)


def _own_disagreement(units: Units, cells: Cells, clusters: Cells, ranks: Floats) -> Floats:
    """Each unit's disagreement in the ranks that hold once its own cluster is deleted."""
    n_values = len(ranks)
    first = np.searchsorted(clusters.row, np.arange(units.n_clusters))
    running = np.cumsum(clusters.count)
    before_cluster = (running - clusters.count)[first]
    shift = running - clusters.count / 2 - before_cluster[clusters.row]
    key = clusters.row * n_values + clusters.value
    position = np.searchsorted(key, units.cluster[cells.row] * n_values + cells.value)
    moved = ranks[cells.value] - shift[position]
    mean = sum_by(cells.row, cells.count * moved, units.n_units) / units.size
    squares = sum_by(cells.row, cells.count * np.square(moved - mean[cells.row]), units.n_units)
    return np.asarray(2 * units.size * squares / (units.size - 1))


def _quadratic(units: Units) -> Floats:
    """The second-order effect on the distances of the shift in ranks that a deletion causes."""
    n_bins = min(len(units.categories), RANK_BINS)
    binned = units.value * n_bins // len(units.categories)
    ones = np.ones(units.n_labels)
    table = table_of(units.unit, binned, ones, (units.n_units, n_bins))
    scale = 2 / (units.size - 1)
    form = -(table.T @ scipy.sparse.diags_array(scale) @ table).toarray()
    form += np.diag(np.asarray(table.T @ (scale * units.size)))
    kernel = _sum_above(_sum_above(form).T)
    rows = units.cluster[units.unit]
    return row_forms(table_of(rows, binned, ones, (units.n_clusters, n_bins)), kernel)


def constant_left(units: Units) -> Flags:
    cluster = units.cluster[units.unit]
    lowest = np.full(units.n_clusters, len(units.categories), dtype=np.intp)
    highest = np.full(units.n_clusters, -1, dtype=np.intp)
    np.minimum.at(lowest, cluster, units.value)
    np.maximum.at(highest, cluster, units.value)
    return np.equal(_least_of_others(lowest), -_least_of_others(-highest))


def _least_of_others(values: Integers) -> Integers:
    least, second = np.partition(values, 1)[:2]
    others = np.full_like(values, least)
    others[values.argmin()] = second
    return others
