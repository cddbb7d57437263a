"""Two systems on a scale whose steps are ordered but not equal: how often one is rated above."""

from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from stats.arguments import (
    Column,
    coded_in_order,
    complete_numbers,
    require_confidence,
    require_same_length,
)
from stats.inference.crossed_means import MeanOfCells, mean_over_items_and_annotators
from stats.proportions import jeffreys_limits


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
    cell, size = item * len(people) + annotator, len(names) * len(people)
    sums = [np.bincount(cell[side], y[side], size) for side in (first, ~first)]
    counts = [np.bincount(cell[side], minlength=size) for side in (first, ~first)]
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    if not len(both):
        return None
    sign = np.sign(sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both])
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
    """The odds that go with a lead where so many are not rated alike."""
    if np.isnan(lead) or not decided:
        return nan
    if lead >= decided:
        return inf
    return max(0.0, (decided + lead) / (decided - lead))
