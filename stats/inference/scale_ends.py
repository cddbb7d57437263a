"""How many items carry a mean whose other ratings lie at one end of the scale."""

import numpy as np
from numpy.typing import NDArray

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    coded_in_order,
    complete_numbers,
    require_same_length,
    sum_by,
)

MANY_AT_ONE_END = 0.4
"""Of a system's ratings: from there on a test of means that minds no skewness has type I errors
above .07."""
NEAR_END = 0.05
"""Of the scale: who drags a slider to its end stops a little before it."""
FEWEST_OFF_END = 5
"""Items off the end, of so many and more: the skewness that they give a mean can be seen."""


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
    y = complete_numbers(values, "values")
    return float(_at_fuller_end(y, low, high).mean())


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
    if not require_same_length(items=items, values=values):
        raise InvalidValue("values must not be empty", code="values_empty")
    code, names = coded_in_order(items, "items")
    y = complete_numbers(values, "values")
    is_off = ~_at_fuller_end(y, low, high)
    share = sum_by(code, is_off.astype(float), len(names)) / np.bincount(code)
    return int((share >= 0.5).sum())


def _at_fuller_end(y: Floats, low: float, high: float) -> NDArray[np.bool_]:
    """Which ratings lie at, or near, that end of the scale that has more of them."""
    near = NEAR_END * (high - low)
    at_low, at_high = y <= low + near, y >= high - near
    return at_high if at_high.sum() > at_low.sum() else at_low
