"""Sums of squared distances of ranks behind ordinal alpha, whole and with a cluster left out.

The numerator of alpha is a sum over units of within-unit distances, and its denominator the sum
over all pairs of labels. Both have closed forms in the counts, and so have their values after a
cluster of units is deleted: no table of values by values, and no second pass over the labels
for each deletion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stats.agreement.labels import Cells, Units
from stats.agreement.sums import row_forms, table_of
from stats.arguments import Floats, Integers
from stats.groups import sum_by
from stats.libraries import scipy

RANK_BINS = 512
"""Bins of a dense table, 2 MB of floats, whatever the number of distinct values."""


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
    """Distance sums of all units, and of the units left when each cluster is deleted."""

    within_left: Floats
    between_left: Floats


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
    own_of_unit = _own_disagreement(units, cells, clusters, ranks)
    own = sum_by(units.cluster, own_of_unit, units.n_clusters)
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
    """Pairable labels that remain when each cluster is deleted."""
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
    suffix = np.cumsum(values[::-1], axis=0)[::-1]
    return np.asarray(suffix - values / 2)


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
    from_mean = np.square(moved - mean[cells.row])
    squares = sum_by(cells.row, cells.count * from_mean, units.n_units)
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


def constant_left(units: Units) -> NDArray[np.bool_]:
    """Whether one value alone remains when each cluster is deleted."""
    cluster = units.cluster[units.unit]
    lowest = np.full(units.n_clusters, len(units.categories), dtype=np.intp)
    highest = np.full(units.n_clusters, -1, dtype=np.intp)
    np.minimum.at(lowest, cluster, units.value)
    np.maximum.at(highest, cluster, units.value)
    return np.equal(_least_of_others(lowest), -_least_of_others(-highest))


def _least_of_others(values: Integers) -> Integers:
    """For each entry the least of all other entries."""
    least, second = np.partition(values, 1)[:2]
    others = np.full_like(values, least)
    others[values.argmin()] = second
    return others
