from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.inference.crossed_means import (
    ROUNDING,
    MeanOfCells,
    mean_over_items_and_annotators,
    mean_with_limits,
    spread_by_items,
    two_way_spread,
)
from stats.proportions import jeffreys_limits

# Of ratings whose annotator rated the other system's output of the item too.
PAIRED_SHARE = 0.8


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
        by leaving out items and annotators.

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
    require(
        not first.all() and first.any(),
        "is_first must name ratings of both systems",
        code="one_system",
    )
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
    system = first.astype(np.intp)
    if len(people) < 2 or len(np.unique(cell)) == len(people):
        spread = spread_by_items(moved, item, system)
    else:
        spread = two_way_spread(moved, item, annotator, cell, system)
    return mean_with_limits(
        float(y[first].mean() - y[~first].mean()),
        spread,
        confidence,
        largest=largest,
        skewed=skewed,
        busiest_share=float(np.bincount(annotator).max() / len(y)),
        n_items=len(names),
        n_annotators=len(people),
        n=len(y),
    )


def _paired(cell: Integers, first: Flags, y: Floats) -> tuple[Integers, Floats]:
    size = int(cell.max(initial=-1)) + 1
    sums, counts = zip(
        *(
            (sum_by(cell[s], y[s], size), np.bincount(cell[s], minlength=size))
            for s in (first, ~first)
        ),
        strict=True,
    )
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return both, sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both]


@dataclass(frozen=True, kw_only=True)
class OrderedComparison:
    """How often people rate the first of two systems above the second.

    Attributes
    ----------
    above, below, tied : float
        Shares of the items that an annotator rated both systems on, by what that annotator said.
    lead : MeanOfCells
        ``above - below``, with its interval and p over items and annotators.
    odds_ratio, odds_low, odds_high : float
        ``above / below``: the odds of being rated above, where the two are not rated alike. The
        limits are those of the lead at the share of ties seen, and so agree with its p.
    """

    above: float
    below: float
    tied: float
    lead: MeanOfCells
    odds_ratio: float
    odds_low: float
    odds_high: float


def ordered_comparison(
    items: Column,
    annotators: Column,
    is_first: Column,
    values: Column,
    *,
    clusters: Column | None = None,
    confidence: float = 0.95,
) -> OrderedComparison | None:
    """Two systems compared by whether each annotator rated one above the other, item by item.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_ratings,)
        One row a rating of one of the two systems' output of an item, on an ordered or a yes/no
        scale; only the order of the values counts.
    is_first : array-like of bool, shape (n_ratings,)
        Whether it is of the first system.
    clusters : array-like, shape (n_ratings,), optional
        The cluster of each rating's item, where items are not independent.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    OrderedComparison or None
        None where no annotator rated both systems on an item. Where all say the same, the lead's
        interval is Jeffreys's of a share of as many items, and p that of a sign test of them.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, or `confidence` is out of range.

    Notes
    -----
    Items' and annotators' own effects, however large and on whatever scale, cancel within a pair
    of ratings. With yes and no the odds ratio is the conditional estimate of a logistic model
    with an effect of each item and annotator, which mixed models (R's ``glmer``) approach; on
    longer scales it is the odds of being rated above, not those of a cumulative-link model.

    References
    ----------
    A. Agresti (2010). Analysis of Ordinal Categorical Data, 2nd edition. Wiley, section 8.2.
    P. McCullagh (1977). A logistic model for paired comparisons with ordered categorical data.
    Biometrika 64(3), 449-453.

    Examples
    --------
    >>> items = np.arange(20).repeat(2)
    >>> values = np.where(np.arange(40) % 2, 2, np.arange(20).repeat(2) % 4)
    >>> one = ordered_comparison(items, ["ann"] * 40, [1, 0] * 20, values)
    >>> one.above, one.tied, one.odds_ratio
    (0.25, 0.25, 0.5)
    """
    require_confidence(confidence)
    require_same_length(items=items, annotators=annotators, is_first=is_first, values=values)
    item, names = coded_in_order(items, "items")
    annotator, people = coded_in_order(annotators, "annotators")
    first, y = complete_numbers(is_first, "is_first") > 0, complete_numbers(values, "values")
    both, differences = _paired(item * len(people) + annotator, first, y)
    if not len(both):
        return None
    sign = np.sign(differences)
    unit = both // len(people)
    if clusters is not None:
        require_same_length(items=items, clusters=clusters)
        of_item = np.zeros(len(names), dtype=np.intp)
        of_item[item] = coded_in_order(clusters, "clusters")[0]
        unit = of_item[unit]
    lead = mean_over_items_and_annotators(unit, both % len(people), sign, confidence=confidence)
    above, below = float((sign > 0).mean()), float((sign < 0).mean())
    decided = above + below
    if abs(lead.value) == 1 and not lead.se > 0:
        lead = _of_one_mind(lead, confidence)
    return OrderedComparison(
        above=above,
        below=below,
        tied=1 - decided,
        lead=lead,
        odds_ratio=_odds(lead.value, decided),
        odds_low=_odds(lead.ci_low, decided),
        odds_high=_odds(lead.ci_high, decided),
    )


def _of_one_mind(lead: MeanOfCells, confidence: float) -> MeanOfCells:
    """Limits of a lead of all ratings: those of a share of items, all of one kind."""
    low, high = jeffreys_limits(lead.n_items, lead.n_items, confidence)
    limits = sorted(float(np.sign(lead.value)) * (2 * share - 1) for share in (low, high))
    p = min(1.0, 2.0 * 0.5**lead.n_items)
    return replace(lead, ci_low=limits[0], ci_high=limits[1], p=p, method="sign-test-items")


def _odds(lead: float, decided: float) -> float:
    if np.isnan(lead) or not decided:
        return nan
    if lead >= decided:
        return inf
    return max(0.0, (decided + lead) / (decided - lead))


# Of a system's ratings: from there on a test of means that minds no skewness has type I errors
# above .07.
MANY_AT_ONE_END = 0.4
# Of the scale: who drags a slider to its end stops a little before it.
NEAR_END = 0.05
# Items off the end, of so many and more: the skewness that they give a mean can be seen.
FEWEST_OFF_END = 5


def share_at_one_end(values: Column, *, low: float, high: float) -> float:
    """The share of ratings at, or near, the end of the scale that has more of them.

    Parameters
    ----------
    values : array-like, shape (n_ratings,)
        A system's ratings.
    low, high : float
        The ends of the scale.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `values` holds a missing value.

    References
    ----------
    As `items_off_the_end`.

    Examples
    --------
    >>> share_at_one_end([1, 1, 1, 5], low=1, high=5)
    0.75
    """
    return float(_at_fuller_end(complete_numbers(values, "values"), low, high).mean())


def items_off_the_end(items: Column, values: Column, *, low: float, high: float) -> int:
    """Items at least half of whose ratings are off the end of the scale that has more of them.

    Parameters
    ----------
    items, values : array-like, shape (n_ratings,)
        One row a rating of a system's output of an item.
    low, high : float
        The ends of the scale.

    Returns
    -------
    int
        With fewer than five, a mean's standard error says little of how far it may lie.

    Raises
    ------
    ValueError
        If the columns differ in length, are empty or hold a missing value.

    References
    ----------
    J. Aitchison (1955). On the distribution of a positive random variable having a discrete
    probability mass at the origin. Journal of the American Statistical Association 50, 901-908.

    Examples
    --------
    >>> items_off_the_end(["a", "a", "b", "b", "c"], [1, 1, 1, 4, 1], low=1, high=5)
    1
    """
    require(
        require_same_length(items=items, values=values),
        "values must not be empty",
        code="values_empty",
    )
    code, names = coded_in_order(items, "items")
    is_off = ~_at_fuller_end(complete_numbers(values, "values"), low, high)
    return int(((sum_by(code, is_off.astype(float), len(names)) / np.bincount(code)) >= 0.5).sum())


def _at_fuller_end(y: Floats, low: float, high: float) -> Flags:
    near = NEAR_END * (high - low)
    at_low, at_high = y <= low + near, y >= high - near
    return at_high if at_high.sum() > at_low.sum() else at_low
