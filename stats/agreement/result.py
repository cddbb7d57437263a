from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Protocol

from error_codes import InvalidValue, note_if
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
from stats.libraries import np, pd, scipy

PREVALENCE_WORTH_A_WARNING = 0.8
# Below so many items, or clusters of them, intervals hold less often than they say.
FEW_ITEMS = 20
FEW_OF_A_CLASS = 5
# Items that carry the spread of ratings, below which their interval is a rough guide.
LEAST_SPREAD = 5.0


class Reason(StrEnum):
    NO_LABELS = "no_labels"
    ONE_ANNOTATOR = "one_annotator"
    NO_OVERLAP = "no_overlap"
    NO_PAIRABLE_UNITS = "no_pairable_units"
    SINGLE_ITEM = "single_item"
    SINGLE_CATEGORY = "single_category"
    NOT_TWO_ANNOTATORS = "not_two_annotators"
    NEEDS_ORDER = "needs_order"
    NEEDS_NUMBERS = "needs_numbers"
    INCOMPLETE_DESIGN = "incomplete_design"
    TOO_MANY_CATEGORIES = "too_many_categories"
    NO_ITEM_VARIANCE = "no_item_variance"


class CiMethod(StrEnum):
    JACKKNIFE_ITEMS = "jackknife-t-items"
    JACKKNIFE_CLUSTERS = "jackknife-t-clusters"
    BOOTSTRAP_ITEMS = "bootstrap-percentile-items"
    BOOTSTRAP_CLUSTERS = "bootstrap-percentile-clusters"
    NORMAL = "asymptotic-normal"
    LINEARISED = "linearised-t"
    F = "analytic-f"
    POSTERIOR = "dirichlet-posterior"
    JEFFREYS = "jeffreys"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """A coefficient of agreement, its interval, and what it rests on.

    Attributes
    ----------
    name : str
        The coefficient, with its weights, such as ``cohen_kappa_linear``.
    value : float
        The coefficient; NaN where undefined, and then `reason` says why.
    se, ci_low, ci_high : float
        Standard error and confidence limits; NaN where they cannot be computed.
    ci_method : CiMethod
        How the limits were computed.
    confidence : float
        The confidence level of the limits, between 0 and 1.
    observed, expected : float
        Observed and chance agreement, so that
        ``value == (observed - expected) / (1 - expected)``. Where distances count (weighted
        kappa; ordinal and interval alpha) a pair agrees by one minus its distance over the
        largest distance in the data or, for kappa, among the categories.
    n_items : int
        Items the coefficient rests on.
    n_items_dropped : int
        Items left out because only one annotator labelled them.
    n_annotators, n_labels : int
        Annotators and labels handed in.
    n_pairable : int
        Labels on the items the coefficient rests on.
    prevalence : float
        Share of the most frequent category; NaN for interval values.
    reason : Reason or None
        Why `value` is undefined; None where it is defined.
    level : str or None
        Level of measurement the coefficient takes the values to have: nominal, ordinal,
        interval, ratio or set.
    n_resamples : int
        Bootstrap samples behind the interval; 0 where it is not a bootstrap.
    seed : int or None
        Seed of the bootstrap; None where there is none, or a generator was handed in.
    warnings : tuple of str
        What a reader should know before trusting the value.
    """

    name: str
    value: float
    se: float
    ci_low: float
    ci_high: float
    ci_method: CiMethod
    confidence: float
    observed: float
    expected: float
    n_items: int
    n_items_dropped: int
    n_annotators: int
    n_labels: int
    n_pairable: int
    prevalence: float
    reason: Reason | None = None
    level: str | None = None
    n_resamples: int = 0
    seed: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_defined(self) -> bool:
        return not isnan(self.value)


def prevalence_warnings(prevalence: float) -> tuple[str, ...]:
    return note_if(
        prevalence > PREVALENCE_WORTH_A_WARNING,
        f"one category holds {prevalence:.0%} of the labels: chance agreement is high, "
        "and the coefficient low even where annotators mostly agree",
        "prevalence",
    )


def few_items_warnings(n_items: int, n_clusters: int | None = None) -> tuple[str, ...]:
    is_apart = n_clusters is None or n_clusters == n_items
    where = "" if is_apart else f" in {n_clusters} clusters"
    return note_if(
        n_items < FEW_ITEMS,
        f"only {n_items} items{where} have two labels: the interval is a rough guide",
        "few_items",
    ) or note_if(
        n_clusters is not None and n_clusters < FEW_ITEMS,
        f"only {n_clusters} clusters of items: the interval is a rough guide",
        "few_clusters",
    )


def rare_class_warnings(n_rarer: int | None) -> tuple[str, ...]:
    return note_if(
        n_rarer is not None and n_rarer < FEW_OF_A_CLASS,
        f"only {n_rarer} items have the rarer category from half their annotators or more: the "
        "interval is a rough guide",
        "rare_category",
    )


def rare_label_warnings(
    n_labels: int, *, n_annotators: int, n_categories: int = 2
) -> tuple[str, ...]:
    """The warning that categories deserve of which annotators gave one to few items each.

    Where one in ten of 50 items has the rarer category at kappa .4, the studies with five labels of
    it an annotator hold the truth in .96; with items that either gave it counted, .92.

    Examples
    --------
    >>> rare_label_warnings(9, n_annotators=2)
    ('only 9 labels are of the rarer category, 4.5 an annotator: the interval is a rough guide',)
    """
    each = n_labels / n_annotators
    which = "rarer" if n_categories == 2 else "rarest"
    return note_if(
        each < FEW_OF_A_CLASS,
        f"only {n_labels} labels are of the {which} category, {each:g} an annotator: the "
        "interval is a rough guide",
        "rare_labels",
    )


def carried_by_few_warnings(n_carrying: float) -> tuple[str, ...]:
    """The warning that numbers deserve whose spread is that of a few items.

    Examples
    --------
    >>> carried_by_few_warnings(2.6)[0][:47]
    'most of the spread of the ratings is that of ab'
    """
    return note_if(
        n_carrying < LEAST_SPREAD,
        f"most of the spread of the ratings is that of about {max(1, n_carrying):.0f} "
        "items, as where few are unlike the rest: the interval is a rough guide",
        "few_carry_spread",
    )


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
