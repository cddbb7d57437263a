"""Whether people rate one system above another, whichever items and annotators are taken."""

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy import stats

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_confidence,
    require_same_length,
)
from stats.groups import sum_by
from stats.inference.crossed_means import (
    ROUNDING,
    MeanOfCells,
    mean_over_items_and_annotators,
    mean_with_limits,
    spread_by_items,
    two_way_spread,
)

PAIRED_SHARE = 0.8
"""Of ratings whose annotator rated the other system's output of the item too."""


def difference_of_systems(
    items: Column,
    annotators: Column,
    is_first: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    skewed: bool = False,
) -> MeanOfCells:
    """The difference of two systems' means, whoever rated which of their outputs.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_ratings,)
        One row a rating of one of the two systems' output of an item.
    is_first : array-like of bool, shape (n_ratings,)
        Whether it is of the first system.
    confidence : float
        Confidence level of the interval.
    skewed : bool
        Whether to correct for skewness, as `mean_over_items_and_annotators` does.

    Returns
    -------
    MeanOfCells
        The first's mean less the second's. Where nearly every annotator rated both systems'
        outputs of an item, of their differences, as `mean_over_items_and_annotators`; otherwise
        by sums of residuals over items and annotators.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, or a system has no rating.

    References
    ----------
    As `mean_over_items_and_annotators`.

    Examples
    --------
    >>> items, annotators = [1, 1, 2, 2, 3, 3], list("aaaaaa")
    >>> one = difference_of_systems(items, annotators, [1, 0] * 3, [5, 4, 4, 2, 3, 3])
    >>> one.value, one.method
    (1.0, 'items')
    """
    require_confidence(confidence)
    require_same_length(items=items, annotators=annotators, is_first=is_first, values=values)
    item, names = coded_in_order(items, "items")
    annotator, people = coded_in_order(annotators, "annotators")
    first = complete_numbers(is_first, "is_first") > 0
    y = complete_numbers(values, "values")
    if first.all() or not first.any():
        raise ValueError("is_first must name ratings of both systems")
    cell = item * len(people) + annotator
    paired, differences = _paired(cell, first, y)
    largest = float(np.abs(y).max())
    differences[np.abs(differences) < ROUNDING * largest] = 0.0
    if 2 * len(paired) >= PAIRED_SHARE * len(y):
        return mean_over_items_and_annotators(
            paired // len(people),
            paired % len(people),
            differences,
            confidence=confidence,
            skewed=skewed,
        )
    moved = np.where(first, y - y[first].mean(), -(y - y[~first].mean()))
    moved = moved * len(y) / np.where(first, first.sum(), (~first).sum())
    counts = {"n_items": len(names), "n_annotators": len(people), "n": len(y)}
    if len(people) < 2 or len(np.unique(cell)) == len(people):
        spread = spread_by_items(moved, item, len(names))
    else:
        spread = two_way_spread(moved, item, annotator, cell, len(names), len(people))
    mean = float(y[first].mean() - y[~first].mean())
    return mean_with_limits(mean, spread, confidence, largest=largest, skewed=skewed, **counts)


def _paired(
    cell: Integers, first: "np.ndarray[tuple[int], np.dtype[np.bool_]]", y: Floats
) -> tuple[Integers, Floats]:
    """Cells in which an annotator rated both systems, and the differences of their means."""
    size = int(cell.max()) + 1
    sums, counts = zip(
        *(
            (sum_by(cell[s], y[s], size), np.bincount(cell[s], minlength=size))
            for s in (first, ~first)
        ),
        strict=True,
    )
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return both, sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both]


def equivalence(mean: MeanOfCells, *, margin: float, side: str = "equivalent") -> tuple[float, str]:
    """Whether two systems are equivalent, or one not worse, by a margin fixed beforehand.

    Parameters
    ----------
    mean : MeanOfCells
        Of the differences, first less second.
    margin : float
        The largest difference that does not matter, above 0.
    side : {"equivalent", "not_worse"}
        Two one-sided tests, or only that the first is not worse than the second by the margin.

    Returns
    -------
    p : float
        One-sided; equivalence (or being not worse) is shown where it is below .05.
    conclusion : str
        ``side`` where shown at .05, else ``"not_shown"``.

    Raises
    ------
    ValueError
        If the margin is not positive or the side unknown.

    References
    ----------
    D. J. Schuirmann (1987). A comparison of the two one-sided tests procedure and the power
    approach. Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680.

    Examples
    --------
    >>> items = np.repeat(np.arange(40), 2)
    >>> values = 0.1 * np.random.default_rng(0).normal(size=80)
    >>> mean = mean_over_items_and_annotators(items, list("ab") * 40, values)
    >>> equivalence(mean, margin=0.5)[1]
    'equivalent'
    """
    if not margin > 0:
        raise ValueError(f"margin must be above 0, not {margin}")
    if side not in ("equivalent", "not_worse"):
        raise ValueError(f"side must be 'equivalent' or 'not_worse', not {side!r}")
    if not mean.se > 0 or mean.freedom < 1:
        return nan, "not_shown"
    above = float(stats.t.sf(mean.t_against(-margin), mean.freedom))
    below = float(stats.t.cdf(mean.t_against(margin), mean.freedom))
    p = max(above, below) if side == "equivalent" else above
    return p, side if p < 0.05 else "not_shown"


def least_distinguishable(se: float, freedom: float, *, power: float = 0.8) -> float:
    """The least difference that a study of this precision tells from 0 as often as `power`.

    Parameters
    ----------
    se, freedom : float
        Of the difference: its standard error and degrees of freedom; without any, infinity is
        taken.
    power : float
        The chance of telling it, by a two-sided test at .05.

    Returns
    -------
    float
        In units of `se`.

    Raises
    ------
    ValueError
        If `power` is not between 0 and 1.

    References
    ----------
    H. S. Bloom (1995). Minimum detectable effects. Evaluation Review 19(5), 547-556.

    Examples
    --------
    >>> round(least_distinguishable(1.0, 1000), 2), round(least_distinguishable(1.0, 2), 2)
    (2.8, 5.36)
    """
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, not {power}")
    of_freedom = stats.t(freedom if freedom >= 1 else np.inf)
    return float(se * (of_freedom.ppf(0.975) + of_freedom.ppf(power)))


@dataclass(frozen=True)
class Purchase:
    """How much more would tell a difference from 0, either by items or by annotators.

    Attributes
    ----------
    items : float
        Items in all, with as many annotators an item as now; infinite where annotators differ
        too much for any number of items.
    annotators : float
        Annotators in all, of the same items; infinite likewise.
    """

    items: float
    annotators: float


def purchase_to_distinguish(
    mean: MeanOfCells, difference: float, *, power: float = 0.8
) -> Purchase:
    """How many items, or annotators, would tell a difference of this size from 0.

    Parameters
    ----------
    mean : MeanOfCells
        Of the differences seen so far.
    difference : float
        The difference to be told from 0, not 0: the one seen, or the least that matters.
    power : float
        The chance of telling it, by a two-sided test at .05.

    Returns
    -------
    Purchase

    Raises
    ------
    ValueError
        If `difference` is 0 or `power` not between 0 and 1.

    Notes
    -----
    Of the variances by items V_i, by annotators V_a and by cells V_c, k times as many items with
    the same annotators leave ``V_i / k + V_a - V_c``, and k times as many annotators of the same
    items ``V_a / k + V_i - V_c``; either must come down to ``(difference / 2.8)**2``.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapter 4 (decision studies).

    Examples
    --------
    >>> items, annotators = np.repeat(np.arange(10), 3), np.tile(np.arange(3), 10)
    >>> values = np.random.default_rng(0).normal(size=10)[items] + 0.4
    >>> mean = mean_over_items_and_annotators(items, annotators, values)
    >>> round(purchase_to_distinguish(mean, 0.4).items)
    30
    """
    if difference == 0:
        raise ValueError("difference must not be 0")
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, not {power}")
    reach = float(stats.norm.ppf(0.975) + stats.norm.ppf(power))
    target_variance = (difference / reach) ** 2
    of_items, of_cells = mean.of_items, np.nan_to_num(mean.of_cells)
    of_annotators = np.nan_to_num(mean.of_annotators)
    items = _times(of_items, target_variance - max(0.0, of_annotators - of_cells)) * mean.n_items
    annotators = (
        _times(of_annotators, target_variance - max(0.0, of_items - of_cells)) * mean.n_annotators
    )
    return Purchase(items, annotators if mean.of_annotators > 0 else np.inf)


def _times(variance: float, left: float) -> float:
    return float(variance / left) if left > 0 else np.inf
