from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from inspect import cleandoc
from math import nan
from typing import Any, TypedDict, Unpack

from stats.agreement.intervals import (
    NO_INTERVAL,
    CiChoice,
    Interval,
    Request,
    interval_warnings,
)
from stats.agreement.kappa import recoded
from stats.agreement.result import (
    FEW_ITEMS,
    Agreement,
    CiMethod,
    Labels,
    Reason,
    Units,
    carried_by_few_warnings,
    code_labels,
    few_items_warnings,
    pairable,
    prevalence_warnings,
    rare_class_warnings,
    table_of,
)
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    require,
    require_one_of,
    require_same_length,
)
from stats.libraries import np, pd, scipy

LEVELS = ("nominal", "ordinal", "interval", "ratio", "set")
NUMERIC_LEVELS = ("ordinal", "interval", "ratio")


class Options(TypedDict, total=False):
    """What every coefficient of a long frame takes beside its three columns.

    Attributes
    ----------
    clusters : array-like, shape (n_labels,)
        The cluster of each row's item, where items are not independent. Intervals then leave
        out or resample clusters instead of items.
    categories : sequence
        All categories of the scale, in order; without it, those that occur, ascending.
    confidence : float
        Confidence level of the interval, between 0 and 1; 0.95.
    ci : {"jackknife", "analytic", "bootstrap"}
        How the interval is made; the delete-one jackknife with Student's t by default.
    n_resamples : int
        Bootstrap samples; 1000.
    rng : int or Generator
        Seed or generator of the bootstrap; 0.
    """

    clusters: Column | None
    categories: Sequence[Hashable] | None
    confidence: float
    ci: CiChoice
    n_resamples: int
    rng: int | np.random.Generator


def interval_request(options: Options) -> Request:
    return Request(
        options.get("confidence", 0.95),
        options.get("ci", "jackknife"),
        options.get("n_resamples", 1000),
        options.get("rng", 0),
    )


@dataclass(frozen=True)
class Design:
    """Labels as codes, the cluster of each item, and the categories of the scale.

    `clustered` says whether clusters of items, and not items, are independent. `value` are
    positions in `domain`, which may list categories nobody used.
    """

    labels: Labels
    level: str
    cluster: Integers
    n_clusters: int
    clustered: bool
    value: Integers
    domain: list[Hashable]

    @cached_property
    def units(self) -> Units:
        return pairable(self.labels, self.cluster)

    @cached_property
    def size(self) -> Floats:
        return np.bincount(self.labels.item, minlength=self.labels.n_items).astype(np.float64)

    @cached_property
    def table(self) -> scipy.sparse.csr_array[np.float64]:
        shape = (self.labels.n_items, len(self.domain))
        return table_of(self.labels.item, self.value, np.ones(len(self.value)), shape)

    @cached_property
    def reason(self) -> Reason | None:
        """Why no coefficient whatever is defined, but for the variety of the labels."""
        if not len(self.labels.item):
            return Reason.NO_LABELS
        if len(self.labels.annotators) == 1:
            return Reason.ONE_ANNOTATOR
        if self.units.n_units == 0:
            return Reason.NO_PAIRABLE_UNITS
        if self.units.n_units == 1:
            return Reason.SINGLE_ITEM
        return None

    def _rough_interval(self, level: str) -> tuple[str, ...]:
        if self.units.n_units < FEW_ITEMS:
            return ()
        few = few_items_warnings(self.units.n_units, self.units.n_clusters)
        if level in ("nominal", "ordinal") and self.n_rarer is not None:
            return few + rare_class_warnings(self.n_rarer)
        return few + (carried_by_few_warnings(self.n_carrying) if level in NUMERIC_LEVELS else ())

    @cached_property
    def n_carrying(self) -> float:
        """How many items would hold all the spread of items' means, if each held as much.

        With d the squared distance of an item's mean from theirs, ``sum(d)**2 / sum(d**2)``; of
        clusters of items where those are independent.
        """
        units = self.units
        numbers = np.array(units.categories, dtype=np.float64)
        if self.level == "ordinal":
            numbers = np.arange(len(numbers), dtype=np.float64)
        unit = units.cluster[units.unit] if self.clustered else units.unit
        mean = np.bincount(unit, numbers[units.value]) / np.bincount(unit)
        squares = np.square(mean - mean.mean())
        return float(squares.sum() ** 2 / np.square(squares).sum()) if squares.any() else np.nan

    @cached_property
    def n_rarer(self) -> int | None:
        """Items with the rarer of two categories from half their annotators or more."""
        units = self.units
        if len(units.categories) != 2:
            return None
        second = np.bincount(units.unit, units.value == 1, units.n_units) / units.size
        return int(min((second >= 0.5).sum(), (second <= 0.5).sum()))

    @property
    def numeric(self) -> bool:
        return all(
            isinstance(category, (int, float, np.number)) and not isinstance(category, str)
            for category in self.domain
        )

    def result(
        self,
        name: str,
        request: Request,
        *,
        value: float = nan,
        observed: float = nan,
        expected: float = nan,
        interval: Interval = NO_INTERVAL,
        reason: Reason | None = None,
        level: str = "nominal",
        warnings: tuple[str, ...] = (),
    ) -> Agreement:
        units = self.units
        n = units.n_labels
        prevalence = float(units.counts.max()) / n if n and level in ("nominal", "ordinal") else nan
        is_small = units.n_units < FEW_ITEMS
        if reason is None:
            warnings = (
                prevalence_warnings(prevalence)
                + (few_items_warnings(units.n_units, units.n_clusters) if is_small else ())
                + (self._rough_interval(level) if not np.isnan(interval.low) else ())
                + interval_warnings(value, interval)
                + warnings
            )
        drawn = interval.method in (CiMethod.BOOTSTRAP_ITEMS, CiMethod.BOOTSTRAP_CLUSTERS)
        return Agreement(
            name=name,
            value=float(value),
            se=interval.se,
            ci_low=interval.low,
            ci_high=interval.high,
            ci_method=interval.method,
            confidence=request.confidence,
            observed=float(observed),
            expected=float(expected),
            n_items=units.n_units,
            n_items_dropped=self.labels.n_items - units.n_units,
            n_annotators=len(self.labels.annotators),
            n_labels=len(self.labels.item),
            n_pairable=n,
            prevalence=prevalence,
            reason=reason,
            level=level,
            n_resamples=request.n_resamples if drawn else 0,
            seed=request.seed if drawn else None,
            warnings=() if reason else warnings,
        )


def design_of(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    level: str = "nominal",
    clusters: Column | None = None,
    categories: Sequence[Hashable] | None = None,
) -> Design:
    """Check and code the columns of a long frame for one level of measurement."""
    require_one_of(level=(level, LEVELS))
    if level == "set":
        values = as_sets(values)
    labels = code_labels(items, annotators, values, numeric=level in NUMERIC_LEVELS)
    value, domain = recoded(labels.value, labels.categories, categories, "values")
    cluster = np.arange(labels.n_items)
    n_clusters = labels.n_items
    if clusters is not None:
        require_same_length(items=labels.item, clusters=clusters)
        codes, distinct = coded(clusters, "clusters")
        cluster = np.zeros(labels.n_items, dtype=np.intp)
        cluster[labels.item] = codes
        require(
            not (cluster[labels.item] != codes).any(),
            "clusters must put every item in exactly one cluster",
            code="clusters_split_items",
        )
        n_clusters = len(distinct)
    return Design(labels, level, cluster, n_clusters, clusters is not None, value, domain)


class Coefficient:
    """A coefficient of nominal labels: called with the columns of a long frame, or, as
    `of_design`, with a design that is coded once for many coefficients.

    Its documentation is that of the function it is made of, with the sections on columns,
    options, result and errors that all of them share.
    """

    SECTIONS = """
        Parameters
        ----------
        items, annotators, values : array-like, shape (n_labels,)
            One row a label. A missing label is an absent row.
        **options : Options
            Clusters, categories and the interval, as `stats.agreement.design.Options` says.

        Returns
        -------
        Agreement
            `value` is NaN, and `reason` set, where it is undefined.

        Raises
        ------
        ValueError
            If the columns differ in length or hold a missing value, an annotator labels an item
            twice, or an option is not usable.

        """
    __name__: str

    def __init__(self, of_design: Callable[[Design, Request], Agreement]) -> None:
        update_wrapper(self, of_design)
        self.of_design = of_design
        summary, notes, rest = cleandoc(of_design.__doc__ or "").partition("Notes\n-----\n")
        self.__doc__ = f"{summary}{cleandoc(self.SECTIONS)}\n\n{notes}{rest}"

    def __call__(
        self, items: Column, annotators: Column, values: Column, **options: Unpack[Options]
    ) -> Agreement:
        design = design_of(
            items,
            annotators,
            values,
            clusters=options.get("clusters"),
            categories=options.get("categories"),
        )
        return self.of_design(design, interval_request(options))


def as_sets(values: Column) -> pd.Series[Any]:
    sets = []
    for value in values:
        require(
            hasattr(value, "__iter__") and not isinstance(value, (str, bytes)),
            f"values must be sets at the set level, and one is {value!r}",
            code="values_not_sets",
        )
        sets.append(frozenset(value))
    return pd.Series(sets, dtype=object)
