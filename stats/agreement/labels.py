from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

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
    sum_by,
)
from stats.libraries import pd, scipy

# Bytes of flags for each label, beyond which hashing the codes takes less memory.
FLAGS_A_LABEL = 100


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
        return np.bincount(self.value, minlength=len(self.categories)).astype(np.float64)

    @property
    def cells(self) -> Cells:
        return count_cells(self.unit, self.value, self.n_units, len(self.categories))

    @property
    def cluster_cells(self) -> Cells:
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
    return np.asarray(pd.factorize(codes)[0], dtype=np.intp)


# Floats handled at a time, 16 MB.
CHUNK = 1 << 21


class Replicable(Protocol):
    """An estimate that can be made anew without each cluster, or from resampled clusters."""

    def without_each(self) -> Floats:
        """The estimate without each cluster in turn, NaN where undefined."""

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Floats:
        """The estimate from each bootstrap sample of clusters, NaN where undefined."""


@dataclass(frozen=True)
class Sums:
    """A coefficient that depends on sums over clusters.

    `linear` has shape (n_clusters, n_sums) and `vector`, if any, (n_clusters, n_categories).
    `evaluate` turns arrays of sums, one a column of `linear` and then the quadratic form of
    the summed vector, into values. `form` is the symmetric matrix of the quadratic form, the
    identity where it is None.
    """

    linear: Floats
    evaluate: Callable[..., Floats]
    vector: scipy.sparse.csr_array[np.float64] | None = None
    form: Floats | None = None

    def value(self) -> float:
        return float(self._at(self.linear.sum(axis=0)[None], self.total_form())[0])

    def without_each(self) -> Floats:
        left = self.linear.sum(axis=0) - self.linear
        if self.vector is None:
            return self._at(left, None)
        total: Floats = np.asarray(self.vector.sum(axis=0)).ravel()
        pull = total if self.form is None else self.form @ total
        own = row_forms(self.vector, self.form)
        return self._at(left, total @ pull - 2 * (self.vector @ pull) + own)

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Floats:
        rows, count = self._patterns()
        linear = self.linear[rows]
        vector = None if self.vector is None else self.vector[rows]
        wide = max(len(rows), 0 if vector is None else vector.shape[1])
        return np.concatenate(
            [
                self._sampled(weights, linear, vector)
                for weights in drawn(count, n_resamples, rng, wide)
            ]
        )

    def _sampled(
        self, weights: Floats, linear: Floats, vector: scipy.sparse.csr_array[np.float64] | None
    ) -> Floats:
        if vector is None:
            return self._at(weights @ linear, None)
        summed = np.asarray((vector.T @ weights.T).T)
        pulled = summed if self.form is None else summed @ self.form
        return self._at(weights @ linear, np.einsum("bk,bk->b", summed, pulled))

    def _at(self, linear: Floats, form: Floats | None) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.evaluate(*linear.T, *(() if form is None else (form,)))
        return np.asarray(np.where(np.isfinite(values), values, np.nan))

    def total_form(self) -> Floats | None:
        if self.vector is None:
            return None
        total: Floats = np.asarray(self.vector.sum(axis=0)).ravel()
        return np.array([total @ (total if self.form is None else self.form @ total)])

    def _patterns(self) -> tuple[Integers, Integers]:
        """One cluster of each kind of equal rows, and how many there are of the kind."""
        n_clusters = len(self.linear)
        probe = np.random.default_rng(0).random
        key = self.linear @ probe(self.linear.shape[1])
        if self.vector is not None:
            key = key + self.vector @ probe(self.vector.shape[1])
        _, rows, count = np.unique(key, return_index=True, return_counts=True)
        if len(rows) * 2 > n_clusters:
            return np.arange(n_clusters), np.ones(n_clusters, np.intp)
        return rows, count


def drawn(
    count: Integers, n_resamples: int, rng: np.random.Generator, wide: int
) -> Iterator[Floats]:
    """How often each kind of cluster is in each bootstrap sample, in blocks of samples."""
    n_clusters, n_kinds = int(count.sum()), len(count)
    step = max(1, CHUNK // max(1, wide))
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        if n_kinds < n_clusters:
            yield rng.multinomial(n_clusters, count / n_clusters, size).astype(np.float64)
            continue
        draws = rng.integers(n_clusters, size=(size, n_clusters), dtype=np.int32)
        yield np.array([np.bincount(draw, minlength=n_clusters) for draw in draws], np.float64)


def row_forms(rows: scipy.sparse.csr_array[np.float64], form: Floats | None) -> Floats:
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    if form is None:
        return sum_by(row, np.square(rows.data), rows.shape[0])
    step = max(1, CHUNK // len(form))
    weighed = np.empty(len(rows.data))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        at = slice(rows.indptr[start], rows.indptr[start] + len(part.data))
        weighed[at] = np.asarray(part @ form)[row[at] - start, part.indices]
    return sum_by(row, rows.data * weighed, rows.shape[0])


def by_cluster(cluster: Integers, n_clusters: int, *columns: Floats) -> Floats:
    return np.column_stack([sum_by(cluster, column, n_clusters) for column in columns])


def table_of(
    row: Integers, column: Integers, data: Floats, shape: tuple[int, int]
) -> scipy.sparse.csr_array[np.float64]:
    return scipy.sparse.coo_array((data, (row, column)), shape=shape).tocsr()
