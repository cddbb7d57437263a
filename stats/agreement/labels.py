"""The labels of a long frame as integer codes, and the units whose labels can be paired."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    coded_in_order,
    complete_numbers,
    require_same_length,
)
from stats.libraries import pd, scipy

FLAGS_A_LABEL = 100
"""Bytes of flags for each label, beyond which hashing the codes takes less memory."""


@dataclass(frozen=True)
class Labels:
    """Rows of (item, annotator, value) as codes; `categories` lists what value codes mean."""

    item: Integers
    annotator: Integers
    value: Integers
    annotators: list[Hashable]
    categories: list[Hashable]
    n_items: int


def code_labels(
    items: Column, annotators: Column, values: Column, *, numeric: bool = False
) -> Labels:
    """Check the three columns and code them; annotators and values by ascending order."""
    require_same_length(items=items, annotators=annotators, values=values)
    item, distinct_items = coded(items, "items")
    annotator, distinct_annotators = coded_in_order(annotators, "annotators")
    value, categories = coded_in_order(
        complete_numbers(values, "values") if numeric else values, "values"
    )
    pair = item * len(distinct_annotators) + annotator
    if repeated := _repeated(pair, len(distinct_items) * len(distinct_annotators)):
        raise InvalidValue(
            f"annotators label an item more than once in {repeated} rows of items and annotators",
            code="repeated_labels",
        )
    return Labels(item, annotator, value, distinct_annotators, categories, len(distinct_items))


def _repeated(codes: Integers, n_codes: int) -> int:
    """How many codes occurred before; by a table of flags where that is small."""
    if n_codes > FLAGS_A_LABEL * max(1, len(codes)):
        return int(pd.Series(codes).duplicated().sum())
    is_present = np.zeros(n_codes, dtype=np.bool_)
    is_present[codes] = True
    return len(codes) - int(np.count_nonzero(is_present))


@dataclass(frozen=True)
class Cells:
    """Counts of values by row (a unit or a cluster), sorted by row and value, no zeros."""

    row: Integers
    value: Integers
    count: Floats


def count_cells(row: Integers, value: Integers, n_rows: int, n_values: int) -> Cells:
    """How often each value occurs in each row."""
    ones = np.ones(len(row))
    table = scipy.sparse.coo_array((ones, (row, value)), shape=(n_rows, n_values)).tocsr()
    table.sort_indices()
    rows = np.repeat(np.arange(n_rows), np.diff(table.indptr))
    return Cells(rows, table.indices.astype(np.intp), table.data)


@dataclass(frozen=True)
class Units:
    """The labels of units that have at least two, with unit, value and cluster renumbered.

    `unit` and `value` have one entry a label, `cluster` and `size` one a unit; `categories`
    are the values that occur, ascending.
    """

    unit: Integers
    value: Integers
    size: Floats
    cluster: Integers
    n_clusters: int
    categories: list[Hashable]

    @property
    def n_labels(self) -> int:
        return len(self.unit)

    @property
    def n_units(self) -> int:
        return len(self.size)

    @property
    def counts(self) -> Floats:
        """How often each value occurs."""
        return np.bincount(self.value, minlength=len(self.categories)).astype(np.float64)

    @property
    def cells(self) -> Cells:
        """How often each value occurs in each unit."""
        return count_cells(self.unit, self.value, self.n_units, len(self.categories))

    @property
    def cluster_cells(self) -> Cells:
        """How often each value occurs in each cluster."""
        rows = self.cluster[self.unit]
        return count_cells(rows, self.value, self.n_clusters, len(self.categories))


def pairable(labels: Labels, cluster_of_item: Integers) -> Units:
    """The units with at least two labels, and the cluster of each."""
    size = np.bincount(labels.item, minlength=labels.n_items)
    is_paired = size[labels.item] >= 2
    unit = _renumbered(labels.item[is_paired])
    present, value = np.unique(labels.value[is_paired], return_inverse=True)
    n_units = int((size >= 2).sum())
    of_unit = np.zeros(n_units, dtype=np.intp)
    of_unit[unit] = cluster_of_item[labels.item[is_paired]]
    cluster = _renumbered(of_unit)
    return Units(
        unit=unit,
        value=value,
        size=np.bincount(unit, minlength=n_units).astype(np.float64),
        cluster=cluster,
        n_clusters=int(cluster.max()) + 1 if n_units else 0,
        categories=[labels.categories[code] for code in present],
    )


def _renumbered(codes: Integers) -> Integers:
    """The same grouping with codes 0, 1, ... and none unused."""
    return np.asarray(pd.factorize(codes)[0], dtype=np.intp)
