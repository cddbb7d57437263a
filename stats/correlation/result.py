from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isnan, nan
from typing import Literal

from error_codes import InvalidValue, note_if
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded,
    coded_in_order,
    numbers,
    require,
    require_same_length,
)
from stats.libraries import np, pd, scipy
from stats.proportions import jeffreys_limits

Level = Literal["pooled", "system", "item"]
Resample = Literal["items", "systems", "both"]
Undefined = Literal["drop", "zero", "nan"]
LEAST_ITEMS = 20
# Of items and systems: the sizes from which measured coverage is as it says (docs/coverage.md).
LEAST_SYSTEMS = 6
# Of fewer there is hardly another panel to draw: nothing is said of new systems.
LEAST_SYSTEMS_FOR_INTERVAL = 4


class Reason(StrEnum):
    TOO_FEW = "too_few"
    CONSTANT_HUMAN = "constant_human"
    CONSTANT_METRIC = "constant_metric"
    NO_DEFINED_ITEM = "no_defined_item"
    CONSTANT_ITEMS = "constant_items"


class NoInterval(StrEnum):
    UNDEFINED_RESAMPLES = "undefined_resamples"
    NO_SPREAD = "no_spread"
    TOO_FEW = "too_few"
    TOO_FEW_SYSTEMS = "too_few_systems"


class CiMethod(StrEnum):
    BOOTSTRAP_ITEMS = "bootstrap-items-percentile"
    BOOTSTRAP_SYSTEMS = "bootstrap-systems-percentile"
    BOOTSTRAP_BOTH = "bootstrap-items-and-systems-percentile"
    CLUSTERS_ITEMS = "cluster-z-t-items"
    CLUSTERS_SYSTEMS = "cluster-z-t-systems"
    CLUSTERS_BOTH = "cluster-z-t-items-and-systems"
    T_ITEMS = "z-t-items"
    ORDER_ITEMS = "jeffreys-order-items"
    JACKKNIFE_ITEMS = "jackknife-z-t-items"
    FISHER_CELLS = "fisher-z-cells"
    FISHER_SYSTEMS = "fisher-z-systems"
    NONE = "none"


def small_sample_notes(
    ci_method: str, n_units: int | None, n_systems: int | None
) -> tuple[str, ...]:
    """Why the interval of a correlation is a rough guide, from what it was computed of.

    Examples
    --------
    >>> small_sample_notes("z-t-items", 12, 4)
    ('only 12 items or clusters of them: the interval is a rough guide below 20',)
    """
    if ci_method == CiMethod.NONE:
        return ()
    return note_if(
        n_units is not None and n_units < LEAST_ITEMS,
        f"only {n_units} items or clusters of them: the interval is a rough guide below "
        f"{LEAST_ITEMS}",
        "few_items",
    ) + note_if(
        "systems" in ci_method and n_systems is not None and n_systems < LEAST_SYSTEMS,
        f"only {n_systems} systems: what is said of new ones is a rough guide below "
        f"{LEAST_SYSTEMS}",
        "few_systems",
    )


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """A correlation of a metric with human values at one level, and what it rests on.

    Attributes
    ----------
    value : float
        The coefficient; NaN where undefined, and then `reason` says why.
    coefficient : {"pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star", "spa"}
        Kendall is tau-b, or tau-c with ``_c``; ``acc`` is pairwise accuracy with ties, calibrated
        with ``_star``; ``spa`` is soft pairwise accuracy.
    level : {"pooled", "system", "item"}
        What was correlated: all cells, the systems' means, or the cells of each item, averaged
        over items (also called sample level).
    n_groups : int
        Coefficients there could have been: the items at the item level, otherwise 1.
    n_used : int
        Coefficients that were defined and entered `value`.
    undefined : {"drop", "zero", "nan"}
        What was done with constant groups: left out, counted as 0, or passed on as NaN.
    n_zeroed : int
        Constant groups that entered `value` as 0.
    n_too_few, n_constant_human, n_constant_metric : int
        Undefined groups, by the first reason that applies: fewer than two cells (or systems),
        all human values equal, all metric values equal.
    n_items, n_systems : int or None
        Distinct items and systems with a complete cell; None where the column was not given.
    n_rows : int
        Complete cells.
    n_missing : int
        Cells dropped because the human or the metric value is missing.
    n_empty_items : int
        Items left out because none of their cells is complete.
    threshold : float or None
        With ``"acc_star"``, how far apart two scores may be (at the system level, two means of
        scores) and count as tied; otherwise None.
    reason : Reason or None
        Why `value` is undefined; None where it is defined.
    ci_low, ci_high : float
        Confidence limits; NaN where there are none.
    ci_method : CiMethod
        How the limits were computed, and what was resampled.
    confidence : float
        The confidence level of the limits, between 0 and 1.
    n_resamples, n_resamples_undefined : int
        Bootstrap resamples drawn, and those of them without a defined coefficient.
    seed : int or None
        The seed of the bootstrap; None where a generator was handed in or nothing was drawn.
    n_units : int or None
        Items, or clusters of them, that the interval takes for independent; None where it is of
        systems or cells.
    ci_reason : NoInterval or None
        Why a defined value has no limits.
    """

    value: float
    coefficient: str
    level: Level
    n_groups: int
    n_used: int
    n_too_few: int
    n_constant_human: int
    n_constant_metric: int
    n_items: int | None
    n_systems: int | None
    n_rows: int
    n_missing: int
    reason: Reason | None
    ci_low: float
    ci_high: float
    ci_method: CiMethod
    confidence: float
    undefined: Undefined = "drop"
    n_zeroed: int = 0
    threshold: float | None = None
    n_resamples: int = 0
    n_resamples_undefined: int = 0
    seed: int | None = None
    n_units: int | None = None
    ci_reason: NoInterval | None = None
    n_empty_items: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        items = "1 item has" if self.n_empty_items == 1 else f"{self.n_empty_items:,} items have"
        return (
            *note_if(
                self.n_empty_items,
                f"{items} no system with both a human and a metric value: left out",
                "empty_items",
            ),
            *small_sample_notes(str(self.ci_method), self.n_units, self.n_systems),
        )

    @property
    def n_undefined(self) -> int:
        return self.n_groups - self.n_used

    @property
    def is_defined(self) -> bool:
        return not isnan(self.value)


# A correlation this close to 1 is 1 but for rounding, where Fisher's z is infinite.
PERFECT_WITHIN = 1e-12
# Of the resamples: with more, the rest describe another design.
MOST_UNDEFINED = 0.05
# Of items or clusters: with fewer, percentiles of resamples are too narrow.
FEW_UNITS = 60


@dataclass(frozen=True)
class Interval:
    """Confidence limits, how they came about, and what they rest on.

    Where there are none, `reason` says why; `n_units` are those drawn: items, or their clusters.
    """

    low: float
    high: float
    method: CiMethod
    n_resamples: int = 0
    n_undefined: int = 0
    drawn: Floats | None = field(default=None, compare=False, repr=False)
    n_units: int | None = None
    reason: NoInterval | None = None


NO_INTERVAL = Interval(nan, nan, CiMethod.NONE)


def percentile(
    replicates: Floats,
    confidence: float,
    method: CiMethod = CiMethod.BOOTSTRAP_ITEMS,
    n_units: int | None = None,
) -> Interval:
    """The limits that cut equal tails off the defined replicates.

    Parameters
    ----------
    replicates : ndarray of float, shape (n_resamples,)
        The coefficient in each resample, NaN where it is undefined.
    confidence : float
        Confidence level, between 0 and 1.
    method : CiMethod
        What was drawn.
    n_units : int, optional
        How many units were drawn from. Below 60 the tails are those that make percentiles of a
        mean as wide as Student's t.

    Returns
    -------
    Interval
        Without limits, with a reason, where over one in twenty resamples is undefined or none
        differs from the others.

    References
    ----------
    T. C. Hesterberg (2015). What teachers should know about the bootstrap. The American
    Statistician 69(4), 371-386 (expanded percentiles).

    Examples
    --------
    >>> interval = percentile(np.linspace(0, 1, 101), 0.5)
    >>> interval.low, interval.high, interval.n_undefined
    (0.25, 0.75, 0)
    >>> str(percentile(np.array([0.5, np.nan]), 0.95).reason)
    'undefined_resamples'
    """
    defined = replicates[~np.isnan(replicates)]
    n_undefined = len(replicates) - len(defined)
    without = Interval(nan, nan, CiMethod.NONE, len(replicates), n_undefined, n_units=n_units)
    if len(defined) < max(2, (1 - MOST_UNDEFINED) * len(replicates)):
        return replace(without, reason=NoInterval.UNDEFINED_RESAMPLES)
    if np.ptp(defined) <= PERFECT_WITHIN:
        return replace(without, reason=NoInterval.NO_SPREAD)
    tail = tail_of(confidence, n_units)
    low, high = np.quantile(defined, [tail, 1 - tail])
    return replace(without, low=float(low), high=float(high), method=method)


def tail_of(confidence: float, n_units: int | None) -> float:
    """The share that percentiles cut off at each end; less of it where there are few units.

    Examples
    --------
    >>> round(tail_of(0.9, None), 3), round(tail_of(0.9, 10), 3)
    (0.05, 0.027)
    """
    tail = (1 - confidence) / 2
    if n_units is None or not 2 <= n_units < FEW_UNITS:
        return tail
    reach = float(scipy.stats.t.ppf(1 - tail, n_units - 1)) * np.sqrt(n_units / (n_units - 1))
    return float(scipy.stats.norm.sf(reach))


def share_of_order(value: float, n_units: int, confidence: float) -> tuple[float, float]:
    """Limits of a mean of coefficients without spread, as of a share of items ordered alike.

    Two systems an item have coefficients of 1 and -1 only, whose mean m is the share (1 + m) / 2
    of items on which both sides order them alike.

    Examples
    --------
    >>> low, high = share_of_order(1.0, 5, 0.95)
    >>> round(low, 2), high
    (0.24, 1.0)
    """
    share = float(np.clip((1 + value) / 2, 0, 1))
    low, high = jeffreys_limits(round(share * n_units, 9), n_units, confidence)
    return 2 * low - 1, 2 * high - 1


def fisher(value: float, n: int, coefficient: str, confidence: float, method: CiMethod) -> Interval:
    """Fisher's z interval, with the variances of Bonett and Wright for rank coefficients.

    Parameters
    ----------
    value : float
        The correlation.
    n : int
        Number of independent points it rests on.
    coefficient : {"pearson", "spearman", "kendall"}
        The variance of z is ``1 / (n - 3)``, ``(1 + value**2 / 2) / (n - 3)`` or
        ``0.437 / (n - 4)``.
    confidence : float
        Confidence level, between 0 and 1.
    method : CiMethod
        What the points are.

    Returns
    -------
    Interval
        Without limits for a perfect or undefined correlation, or too few points.

    References
    ----------
    D. G. Bonett and T. A. Wright (2000). Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations. Psychometrika 65(1), 23-28.

    Examples
    --------
    >>> interval = fisher(0.5, 28, "pearson", 0.95, CiMethod.FISHER_CELLS)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.156, 0.736)
    """
    spare = n - (4 if coefficient == "kendall" else 3)
    if spare < 1 or not abs(value) < 1 - PERFECT_WITHIN:
        return NO_INTERVAL
    factor = {"pearson": 1.0, "spearman": 1 + value**2 / 2, "kendall": 0.437}[coefficient]
    half = float(scipy.stats.norm.ppf((1 + confidence) / 2)) * np.sqrt(factor / spare)
    centre = np.arctanh(value)
    return Interval(float(np.tanh(centre - half)), float(np.tanh(centre + half)), method)


@dataclass(frozen=True)
class Cells:
    """Human and metric values of complete cells, and how many were not complete.

    `item` and `system` are codes, None where the column was not given; `n_groups` counts the
    items handed in, with or without a complete cell.
    """

    human: Floats
    metric: Floats
    item: Integers | None
    system: Integers | None
    n_groups: int
    n_missing: int
    cluster: Integers | None = None
    # Whether items and systems keep the order of their codes, so that draws are shared.
    in_order: bool = False

    @property
    def drawn_units(self) -> Integers | None:
        """What a resample of items draws: clusters, where items come in them."""
        return self.item if self.cluster is None else self.cluster

    def numbered(self, codes: Integers) -> tuple[Integers, int]:
        """The codes without a gap, by appearance or in order."""
        if not self.in_order:
            return renumbered(codes)
        distinct, new = np.unique(codes, return_inverse=True)
        return np.asarray(new, dtype=np.intp), len(distinct)

    @property
    def n_rows(self) -> int:
        return len(self.human)


def complete_cells(
    human: Column,
    metric: Column,
    items: Column | None,
    systems: Column | None,
    clusters: Column | None = None,
) -> Cells:
    columns = {"human": human, "metric": metric, "items": items, "systems": systems}
    require_same_length(**{name: column for name, column in columns.items() if column is not None})
    x, y = numbers(human, "human"), numbers(metric, "metric")
    item = None if items is None else coded(items, "items")[0]
    system = None if systems is None else coded_in_order(systems, "systems")[0]
    if item is not None and system is not None:
        _refuse_repeats(item, system)
    complete = ~(np.isnan(x) | np.isnan(y))
    return Cells(
        human=x[complete],
        metric=y[complete],
        item=None if item is None else item[complete],
        system=None if system is None else system[complete],
        n_groups=0 if item is None else int(item.max(initial=-1)) + 1,
        n_missing=int((~complete).sum()),
        cluster=_clusters(clusters, item, complete),
    )


def _clusters(clusters: Column | None, item: Integers | None, complete: Flags) -> Integers | None:
    if clusters is None:
        return None
    if item is None:
        raise InvalidValue("clusters are of items: items must be given", code="items_missing")
    require_same_length(items=item, clusters=clusters)
    cluster = coded(clusters, "clusters")[0]
    require(
        np.unique(np.stack([item, cluster]), axis=1).shape[1] <= len(np.unique(item)),
        "clusters must hold whole items: an item is in two of them",
        code="clusters_split_items",
    )
    return cluster[complete]


def _refuse_repeats(item: Integers, system: Integers) -> None:
    repeated = int(pd.DataFrame({"item": item, "system": system}).duplicated().sum())
    require(
        not repeated,
        f"items and systems name the same cell again in {repeated} rows; "
        "average the judgments of a cell first",
        code="repeated_cells",
    )


def renumbered(codes: Integers) -> tuple[Integers, int]:
    """The same grouping with codes 0, 1, ... and none unused, and how many there are."""
    new, distinct = pd.factorize(codes)
    return np.asarray(new, dtype=np.intp), len(distinct)
