"""The reliability of ratings from a one-way analysis of variance, and what noise does to r."""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_same_length,
    sum_by,
)


@dataclass(frozen=True)
class Reliability:
    """Reliability of ratings, from a one-way analysis of variance.

    Attributes
    ----------
    icc_single : float
        ICC(1,1): of one rating. Negative where units differ less than chance makes them.
    icc_mean : float
        ICC(1,k): of the mean of a unit's ratings.
    ratings_per_unit : float
        The k of an unbalanced design: the mean number of ratings less its spread's share.
    n_units, n_ratings : int
        Units with two or more ratings, and their ratings.
    """

    icc_single: float
    icc_mean: float
    ratings_per_unit: float
    n_units: int
    n_ratings: int

    @property
    def attainable(self) -> float:
        """The Pearson correlation that a perfect metric would have with the means."""
        return sqrt(self.icc_mean) if self.icc_mean > 0 else nan

    def of_mean(self, n_annotators: float) -> float:
        """The reliability of the mean of another number of ratings."""
        return spearman_brown(self.icc_single, n_annotators)


def reliability(units: Column, values: Column) -> Reliability:
    """The reliability of one rating and of the mean of a unit's ratings.

    Parameters
    ----------
    units : array-like, shape (n_ratings,)
        What was rated: an item under a system. Units with one rating do not count.
    values : array-like of float, shape (n_ratings,)
        The ratings.

    Returns
    -------
    Reliability
        Its coefficients are NaN with fewer than two units, or where no rating differs.

    Raises
    ------
    ValueError
        If the columns differ in length, `units` has a missing value, or `values` is not of
        finite numbers.

    References
    ----------
    P. E. Shrout and J. L. Fleiss (1979). Intraclass correlations: Uses in assessing rater
    reliability. Psychological Bulletin 86(2), 420-428: ICC(1,1) and ICC(1,k).
    A. Donner (1986). A review of inference procedures for the intraclass correlation coefficient
    in the one-way random effects model. International Statistical Review 54(1): unequal sizes.

    Examples
    --------
    >>> targets = [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4 + [6] * 4
    >>> ratings = [9, 2, 5, 8, 6, 1, 3, 2, 8, 4, 6, 8, 7, 1, 2, 6, 10, 5, 6, 9, 6, 2, 4, 7]
    >>> found = reliability(targets, ratings)
    >>> round(found.icc_single, 2), round(found.icc_mean, 2)
    (0.17, 0.44)
    """
    require_same_length(units=units, values=values)
    unit, _ = coded_in_order(units, "units")
    value = complete_numbers(values, "values")
    several = np.bincount(unit)[unit] > 1 if len(unit) else np.zeros(0, dtype=bool)
    code, value = np.unique(unit[several], return_inverse=True)[1], value[several]
    return _one_way(code, value)


def _one_way(unit: Integers, value: Floats) -> Reliability:
    n_units, n_ratings = int(unit.max(initial=-1)) + 1, len(value)
    if n_units < 2:
        return Reliability(nan, nan, nan, n_units, n_ratings)
    size = np.bincount(unit)
    mean = sum_by(unit, value, n_units) / size
    within = float(np.square(value - mean[unit]).sum()) / (n_ratings - n_units)
    between = float((size * np.square(mean - value.mean())).sum()) / (n_units - 1)
    k = (n_ratings - float(np.square(size).sum()) / n_ratings) / (n_units - 1)
    total = between + (k - 1) * within
    if not total > 0 or not between > 0:
        return Reliability(nan, nan, k, n_units, n_ratings)
    single, of_mean = (between - within) / total, (between - within) / between
    return Reliability(single, of_mean, k, n_units, n_ratings)


def spearman_brown(reliability: float, factor: float) -> float:
    """The reliability of a measure lengthened by a factor.

    Parameters
    ----------
    reliability : float
        That of the measure as it is; at most 1.
    factor : float
        How many times as many ratings.

    Returns
    -------
    float
        NaN where the reliability is, or where lengthening such a negative one means nothing.

    Raises
    ------
    ValueError
        If `factor` is not positive.

    References
    ----------
    C. Spearman (1910). Correlation calculated from faulty data. British Journal of Psychology 3.
    W. Brown (1910). Some experimental results in the correlation of mental abilities. Ibid.

    Examples
    --------
    >>> round(spearman_brown(0.5, 3), 4)
    0.75
    """
    if not factor > 0:
        raise InvalidValue(f"factor must be positive, not {factor}", code="factor_out_of_range")
    denominator = 1 + (factor - 1) * reliability
    return factor * reliability / denominator if denominator > 0 else nan


def disattenuated(value: float, reliability: float) -> float:
    """A correlation with ratings corrected for the ratings' noise.

    Parameters
    ----------
    value : float
        The correlation of a metric with mean ratings.
    reliability : float
        The reliability of the mean ratings.

    Returns
    -------
    float
        What the correlation with noiseless ratings would be; it may exceed 1 by chance. NaN
        where the reliability is not positive.

    References
    ----------
    C. Spearman (1904). The proof and measurement of association between two things. American
    Journal of Psychology 15(1), 72-101.

    Examples
    --------
    >>> disattenuated(0.3, 0.25)
    0.6
    """
    return value / sqrt(reliability) if reliability > 0 else nan
