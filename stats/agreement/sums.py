"""Coefficients as functions of sums over clusters: one pass for every jackknife and bootstrap.

What each cluster of items adds to a coefficient is a row of numbers (`linear`) and, where
chance agreement is a quadratic form in counts, a row of counts (`vector`). The value without a
cluster then follows from the totals, and bootstrap samples are products of matrices; clusters
that add the same are drawn together, as a multinomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.libraries import scipy

CHUNK = 1 << 21
"""Floats handled at a time, 16 MB."""


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
        """The quadratic form of the summed vector, shape (1,)."""
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
    """The quadratic form of every row."""
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
    """Sums of each column by cluster, side by side."""
    return np.column_stack([sum_by(cluster, column, n_clusters) for column in columns])


def table_of(
    row: Integers, column: Integers, data: Floats, shape: tuple[int, int]
) -> scipy.sparse.csr_array[np.float64]:
    """A sparse table with the data of equal positions added up."""
    return scipy.sparse.coo_array((data, (row, column)), shape=shape).tocsr()
