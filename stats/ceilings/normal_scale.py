"""Coefficients as functions of the correlation of normal variables, and the way back."""

from dataclasses import dataclass
from math import asin, isnan, nan, pi, sin, sqrt

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_same_length,
    sum_by,
)
from stats.correlation import RowCoefficient
from stats.libraries import np, scipy

# From so many values on the mean of r is r, within .005.
MANY = 50


@dataclass(frozen=True)
class NormalScale:
    """What a coefficient is expected to be of normal variables of a correlation.

    Errors of measurement weaken the correlation of all values by a factor, and no other
    coefficient: another one's value is turned into the r that normal variables of it have, which
    errors weaken, and back. Pearson's r of few values is another coefficient too: it is nearer to
    0 on average, of four values that correlate .5 at .44.

    Attributes
    ----------
    coefficient : str
        One of `stats.correlation.RowCoefficient`.
    sizes : array of int
        How many values of each side a correlation is of: Pearson's and Spearman's coefficients
        depend on it.
    untied_halves, untied : float
        The share of pairs of values without a tie in the halves and in the means of all ratings:
        Kendall's tau-b counts them alone, and a scale of few steps has the more ties the fewer the
        ratings of a mean.

    References
    ----------
    H. Hotelling (1953). New light on the correlation coefficient and its transforms. JRSS B 15(2),
    193-232: the mean of r of n pairs is
    ``2 / (n - 1) * (G(n / 2) / G((n - 1) / 2))**2 * r * F(1/2, 1/2; (n + 1) / 2; r**2)``.
    R. Greiner (1909). Über das Fehlersystem der Kollektivmaßlehre. Zeitschrift für Mathematik und
    Physik 57: Kendall's tau is ``2 / pi * arcsin(r)``.
    P. A. P. Moran (1948). Rank correlation and product-moment correlation. Biometrika 35(1/2),
    203-206: Spearman's rho of n pairs is
    ``6 / (pi * (n + 1)) * (arcsin(r) + (n - 2) * arcsin(r / 2))``.
    """

    coefficient: RowCoefficient
    sizes: Integers
    untied_halves: float = 1.0
    untied: float = 1.0

    def value(self, r: float, *, n_rated: int = 1) -> float:
        """What the coefficient is expected to be at a correlation of Pearson's, where one side or
        both (`n_rated`) are means of all ratings and the other has no ties."""
        if isnan(r):
            return r
        # Halves that disagree are stepped down past -1.
        r = max(-1.0, min(1.0, r))
        if self.coefficient == "pearson":
            return _mean_of_pearson(r, self.sizes[self.sizes > 1])
        if self.coefficient == "spearman":
            n = self.sizes[self.sizes > 1]
            if not len(n):
                return nan
            of_r, of_half = float(np.mean(1 / (n + 1))), float(np.mean((n - 2) / (n + 1)))
            return 6 / pi * (of_r * asin(r) + of_half * asin(r / 2))
        tau = 2 / pi * asin(r)
        if self.coefficient == "kendall":
            return max(-1.0, min(1.0, tau / float(self.untied ** (n_rated / 2))))
        return (tau + 1) / 2 if self.coefficient == "acc_eq" else tau

    def correlation(self, value: float) -> float:
        """Pearson's r of two halves of which the coefficient is expected to be this."""
        if isnan(value):
            return value
        if self.coefficient in ("pearson", "spearman"):
            most = self.value(1.0)
            if isnan(most) or abs(value) >= most:
                return nan if isnan(most) else float(np.sign(value))
            return float(scipy.optimize.brentq(lambda r: self.value(r) - value, -1.0, 1.0))
        tau = 2 * value - 1 if self.coefficient == "acc_eq" else value
        if self.coefficient == "kendall":
            tau *= self.untied_halves
        return sin(pi / 2 * tau)


def _mean_of_pearson(r: float, sizes: Integers) -> float:
    """What r is on average of so many normal pairs each, of a correlation of `r`."""
    if not len(sizes):
        return nan
    n, count = np.unique(np.minimum(sizes, MANY), return_counts=True)
    factor = (
        2
        / (n - 1)
        * np.exp(2 * (scipy.special.gammaln(n / 2) - scipy.special.gammaln((n - 1) / 2)))
    )
    means = np.where(n < MANY, factor * scipy.special.hyp2f1(0.5, 0.5, (n + 1) / 2, r**2), 1.0)
    return max(-1.0, min(1.0, r * float(means @ count) / float(count.sum())))


def untied_share(values: Floats, group: Integers, n_groups: int) -> float:
    """The share of a group's pairs of values without a tie, on average over those that have one."""
    size = np.bincount(group, minlength=n_groups)
    rows = np.lexsort((values, group))
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (np.diff(group[rows]) != 0) | (np.diff(values[rows]) != 0)
    count = np.bincount(np.cumsum(is_new) - 1)
    tied = np.bincount(group[rows][is_new], weights=count * (count - 1), minlength=n_groups)
    several = size > 1
    share = 1 - tied[several] / (size * (size - 1))[several]
    return float(share[share > 0].mean()) if (share > 0).any() else 1.0


# Of the correlation of the halves, for a difference quotient.
STEP = 1e-6
# Of a correlation: halves that order everything oppositely come out so far from -1.
ROUNDING = 1e-9


@dataclass(frozen=True)
class AllRatings:
    """What halves of the ratings say of all of them, `factor` times as many."""

    scale: NormalScale
    factor: float

    def reliability(self, split_half: float) -> float:
        half = self.scale.correlation(split_half)
        is_opposite = half < ROUNDING - 1  # what is stepped up from there is no correlation
        return nan if isnan(half) or is_opposite else spearman_brown(half, self.factor)

    def attainable(self, split_half: float) -> float:
        """What a perfect metric would reach: what no relation has where the halves do not agree."""
        if isnan(split_half):
            return nan
        known = self.scale.correlation(split_half) > 0
        return self.scale.value(sqrt(self.reliability(split_half)) if known else 0.0)

    def slope(self, split_half: float) -> float:
        """By how much the attainable grows with the correlation of the halves."""
        low, high = max(split_half - STEP, -1.0), min(split_half + STEP, 1.0)
        return (self.attainable(high) - self.attainable(low)) / (high - low)


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
        return sqrt(self.icc_mean) if self.icc_mean > 0 else nan

    def of_mean(self, n_annotators: float) -> float:
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
    require(factor > 0, f"factor must be positive, not {factor}", code="factor_out_of_range")
    denominator = 1 + (factor - 1) * reliability
    return factor * reliability / denominator if denominator > 0 else nan
