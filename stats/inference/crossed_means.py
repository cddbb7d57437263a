from dataclasses import dataclass
from math import nan

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.jackknife import effective_freedom, mean_left_out, variance_of_both
from stats.libraries import np, scipy

FEW = 4
# With fewer than four items or annotators, degrees of freedom are at most twice theirs: covers .94
# of 50 items by 3 annotators where Satterthwaite's own cover .92.
FREEDOM_OF_FEWER = 2
QUASI_F = "quasi-f"
# Ends the name of a method that corrects for skewness.
SKEWED = "-hall"
# Of skewness times t. At 1 Hall's cubic is level: beyond, a limit is three to four times as far as
# t's and holds no more. At .8 tests reject about as often; intervals are up to 40 % narrower.
MOST_SKEWED = 0.8
# Of the largest value: smaller differences come from how decimals are stored.
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class MeanOfCells:
    """A mean over items and annotators that are both random, with its interval.

    Attributes
    ----------
    value, se, ci_low, ci_high, freedom, p : float
        The mean, its standard error for new items and new annotators, the interval and the
        two-sided p of a mean of 0 by Student's t with that many degrees of freedom.
    method : str
        ``"quasi-f"`` where every annotator rated every item, ``"two-way-clusters"`` where not,
        ``"items"`` where there are too few annotators to generalise over, or each rated one item;
        each followed by ``"-hall"`` where it is corrected for skewness.
    skewness : float
        Where interval and p are corrected for it: the third cumulant of the mean, by items, over
        the cube of its standard error, at most .8 over the limits' t.
    n_items, n_annotators, n : int
        Levels and cells.
    effective_items, effective_annotators : float
        The number of equally large ones that would vary as much: 1 / sum(share ** 2) of the cells.
    busiest_share : float
        The share of the cells that are by the annotator who has most.
    of_items, of_annotators, of_cells : float
        The variances by items, by annotators and by cells that the standard error is made of;
        NaN for annotators that are not generalised over.
    """

    value: float
    se: float
    ci_low: float
    ci_high: float
    freedom: float
    p: float
    method: str
    n_items: int
    n_annotators: int
    n: int
    effective_items: float = nan
    effective_annotators: float = nan
    busiest_share: float = nan
    of_items: float = nan
    of_annotators: float = nan
    of_cells: float = nan
    skewness: float = 0.0

    def t_against(self, mean: float) -> float:
        return skewness_corrected((self.value - mean) / self.se, self.skewness)

    def p_with(self, freedom: float) -> float:
        """The two-sided p of a mean of 0 with other degrees of freedom, as many or fewer."""
        if freedom == self.freedom or not self.se > 0:
            return self.p
        return float(2 * scipy.stats.t.sf(abs(self.t_against(0.0)), freedom))


def skewness_corrected(t: float, skewness: float) -> float:
    """Hall's monotone cubic of a studentised mean, whose distribution is nearly Student's.

    Parameters
    ----------
    t : float
        The mean over its standard error.
    skewness : float
        Of the mean: its third cumulant over the cube of its standard error.

    Returns
    -------
    float

    References
    ----------
    P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical
    Society B 54(1), 221-228.

    Examples
    --------
    >>> skewness_corrected(-2.0, 0.0), round(skewness_corrected(-2.0, 0.5), 3)
    (-2.0, -1.324)
    """
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def _uncorrected(t: float, skewness: float) -> float:
    if not skewness:
        return t
    return float(3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1))


def mean_over_items_and_annotators(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    skewed: bool = False,
) -> MeanOfCells:
    """The mean of ratings, or of differences of two systems, by both kinds of sampling.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_cells,)
        One row a rating (or a difference) of an item by an annotator.
    confidence : float
        Confidence level of the interval.
    skewed : bool
        Whether to correct interval and p for the skewness that items give the mean.

    Returns
    -------
    MeanOfCells
        Without an interval where there is one item only.

    Raises
    ------
    ValueError
        If the columns differ in length, are empty or hold a missing value, or `confidence` is
        out of range.

    Notes
    -----
    Complete tables: ``I A mean**2 / (MS_item + MS_annotator - MS_residual)`` with Satterthwaite's
    degrees of freedom, which is F with one degree above; with fewer than four annotators (or
    items) at most twice theirs, since what so few differ by is itself uncertain. Others: the
    jackknife's variance over items and that over annotators, less that over cells, never below
    the larger of the two, with one degree of freedom less than the fewer effective items or
    annotators: a few annotators who rate most of the cells say little of others. Where each
    annotator rated one item, annotators come with items. Where most ratings lie at the floor of
    a scale and a few items carry the mean, t is beyond its limits up to three times as often as
    it says; of Hall's cubic, which removes that skewness, about as often. The skewness is at most
    .8 over t, since the cubic is level where their product is 1: its limits would jump away.

    References
    ----------
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2(6), 110-114.
    H. H. Clark (1973). The language-as-fixed-effect fallacy. Journal of Verbal Learning and
    Verbal Behavior 12(4), 335-359.
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011). Robust inference with multiway
    clustering. Journal of Business & Economic Statistics 29(2), 238-249.
    J. G. MacKinnon, M. O. Nielsen and M. D. Webb (2023). Fast and reliable jackknife and bootstrap
    methods for cluster-robust inference. Journal of Applied Econometrics 38(5), 671-694.
    P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical
    Society B 54(1), 221-228.

    Examples
    --------
    >>> items, annotators = np.repeat([0, 1, 2, 3], 3), list("abc") * 4
    >>> mean = mean_over_items_and_annotators(
    ...     items, annotators, [1, 2, 1, 0, 1, 1, 2, 3, 1, 1, 2, 2]
    ... )
    >>> round(mean.value, 2), mean.method, round(mean.freedom, 1)
    (1.42, 'quasi-f', 3.3)
    """
    require_confidence(confidence)
    n = require_same_length(items=items, annotators=annotators, values=values)
    require(n > 0, "values must not be empty", code="values_empty")
    item, names = coded_in_order(items, "items")
    annotator, people = coded_in_order(annotators, "annotators")
    y = complete_numbers(values, "values")
    return mean_with_limits(
        float(y.mean()),
        spread_of_mean(y, item, annotator, len(names), len(people)),
        confidence,
        largest=float(np.abs(y).max()),
        skewed=skewed,
        busiest_share=float(np.bincount(annotator).max() / n),
        n_items=len(names),
        n_annotators=len(people),
        n=n,
    )


@dataclass(frozen=True)
class Spread:
    variance: float
    freedom: float
    method: str
    of_items: float = nan
    of_annotators: float = nan
    of_cells: float = nan
    third_cumulant: float = 0.0
    effective_items: float = nan
    effective_annotators: float = nan


def mean_with_limits(
    mean: float,
    spread: Spread,
    confidence: float,
    *,
    largest: float,
    skewed: bool = False,
    busiest_share: float = nan,
    **counts: int,
) -> MeanOfCells:
    """The mean with its interval and p; without them where nothing varies.

    That differences of decimals are stored inexactly is no variation beside the `largest` value.
    """
    variance, freedom = spread.variance, spread.freedom
    se = float(np.sqrt(variance)) if variance > (ROUNDING * largest) ** 2 else nan
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) if freedom >= 1 else nan
    most = MOST_SKEWED / t
    skewness = min(max(spread.third_cumulant / se**3, -most), most) if skewed and se > 0 else 0.0
    beyond = abs(skewness_corrected(mean / se, skewness))
    return MeanOfCells(
        value=mean,
        se=se,
        ci_low=mean - _uncorrected(t, skewness) * se,
        ci_high=mean - _uncorrected(-t, skewness) * se,
        freedom=freedom,
        p=float(2 * scipy.stats.t.sf(beyond, freedom)) if freedom >= 1 and se > 0 else nan,
        method=f"{spread.method}{SKEWED}" if skewed else spread.method,
        of_items=spread.of_items,
        of_annotators=spread.of_annotators,
        of_cells=spread.of_cells,
        skewness=skewness,
        effective_items=spread.effective_items,
        effective_annotators=spread.effective_annotators,
        busiest_share=busiest_share,
        **counts,
    )


def spread_of_mean(
    y: Floats, item: Integers, annotator: Integers, n_items: int, n_annotators: int
) -> Spread:
    cell = item * n_annotators + annotator
    distinct = len(np.unique(cell))
    if n_items < 2:
        return Spread(nan, 0.0, "items")
    moved = y - y.mean()
    if n_annotators < 2 or distinct == n_annotators:
        return spread_by_items(moved, item)
    if len(y) == n_items * n_annotators and distinct == len(y):
        table = np.zeros((n_items, n_annotators))
        table[item, annotator] = y
        return _quasi_f(table)
    return two_way_spread(moved, item, annotator, cell)


def spread_by_items(moved: Floats, item: Integers, part: Integers | None = None) -> Spread:
    items = mean_left_out(moved, item, part)
    variance = float(items.variance)
    return Spread(
        variance,
        effective_freedom(items.effective),
        "items",
        of_items=variance,
        third_cumulant=cluster_third_cumulant(_of_both(moved, part), item, int(item.max()) + 1),
        effective_items=items.effective,
    )


def two_way_spread(
    moved: Floats,
    item: Integers,
    annotator: Integers,
    cell: Integers,
    part: Integers | None = None,
) -> Spread:
    """From residuals, of two means in two parts: the jackknife's variance over items and that over
    annotators, less that over cells."""
    distinct_cell = np.unique(cell, return_inverse=True)[1]
    items, annotators, cells = (
        mean_left_out(moved, code, part) for code in (item, annotator, distinct_cell)
    )
    of_items, of_annotators, of_cells = (float(one.variance) for one in (items, annotators, cells))
    return Spread(
        float(variance_of_both(of_items, of_annotators, of_cells)),
        effective_freedom(items.effective, annotators.effective),
        "two-way-clusters",
        of_items,
        of_annotators,
        of_cells,
        cluster_third_cumulant(_of_both(moved, part), item, int(item.max()) + 1),
        items.effective,
        annotators.effective,
    )


def _of_both(moved: Floats, part: Integers | None) -> Floats:
    """Residuals whose mean is the error of a mean, or of the difference of two parts' means."""
    return moved if part is None else moved * len(moved) / np.bincount(part)[part]


def cluster_third_cumulant(moved: Floats, code: Integers, size: int) -> float:
    """The third cumulant of such a mean; 0 where two clusters or one say nothing of it."""
    sums = sum_by(code, moved, size) / len(moved)
    unbiased = size**2 / ((size - 1) * (size - 2)) if size > 2 else 0.0
    return float(unbiased * (sums**3).sum())


def _quasi_f(table: Floats) -> Spread:
    """Of the mean of a complete table, with Satterthwaite's degrees of freedom."""
    n_items, n_annotators = table.shape
    by_item, by_annotator, by_cell = np.array(mean_squares(table)) / table.size
    variance, freedom = satterthwaite(by_item, by_annotator, by_cell, n_items, n_annotators)
    fewer = min(n_items, n_annotators)
    moved = table.mean(axis=1) - table.mean()
    cumulant = cluster_third_cumulant(moved, np.arange(n_items), n_items)
    return Spread(
        float(variance),
        float(min(freedom, FREEDOM_OF_FEWER * (fewer - 1) if fewer < FEW else np.inf)),
        QUASI_F,
        float(by_item),
        float(by_annotator),
        float(by_cell),
        cumulant,
        float(n_items),
        float(n_annotators),
    )


def satterthwaite(
    of_items: Floats | float,
    of_annotators: Floats | float,
    of_cells: Floats | float,
    n_items: Floats | float,
    n_annotators: Floats | float,
) -> tuple[Floats, Floats]:
    """The variance of the mean of a complete table, and its degrees of freedom.

    Parameters
    ----------
    of_items, of_annotators, of_cells : float or ndarray of float
        The variances of the mean by items, by annotators and by cells: mean squares over cells.
    n_items, n_annotators : float or ndarray of float
        Levels, at least 2 of each.

    Returns
    -------
    variance, freedom : ndarray of float
        Where a component is estimated below 0 it counts as 0, and the larger of the others is all.

    References
    ----------
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2(6), 110-114.

    Examples
    --------
    >>> variance, freedom = satterthwaite(2.0, 3.0, 1.0, 11, 5)
    >>> float(variance), round(float(freedom), 2)
    (4.0, 5.98)
    """
    total = np.asarray(of_items + of_annotators - of_cells)
    spread = np.asarray(
        of_items**2 / (n_items - 1)
        + of_annotators**2 / (n_annotators - 1)
        + of_cells**2 / ((n_items - 1) * (n_annotators - 1))
    )
    freedom = np.divide(total**2, spread, out=np.ones_like(spread), where=spread > 0)
    is_below = (total <= 0) | (of_cells > np.minimum(of_items, of_annotators))
    of_larger = np.where(np.greater_equal(of_items, of_annotators), n_items, n_annotators) - 1.0
    variance = np.where(is_below, np.maximum(of_items, of_annotators), total)
    return variance, np.where(is_below, of_larger, freedom)


def mean_squares(table: Floats) -> tuple[float, float, float]:
    """Of items, of annotators and of the residual, from a complete table.

    Parameters
    ----------
    table : ndarray of float, shape (n_items, n_annotators)
        A value for each item by each annotator.

    Returns
    -------
    item, annotator, residual : float

    Examples
    --------
    >>> mean_squares(np.array([[1.0, 2.0], [3.0, 5.0]]))
    (6.25, 2.25, 0.25)
    """
    n_items, n_annotators = table.shape
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    of_item = n_annotators * rows.var(ddof=1)
    of_annotator = n_items * columns.var(ddof=1)
    left = table - rows[:, None] - columns + table.mean()
    residual = np.square(left).sum() / ((n_items - 1) * (n_annotators - 1))
    return float(of_item), float(of_annotator), float(residual)
