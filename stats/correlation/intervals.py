"""Confidence intervals of correlations: the bootstrap's limits, and Fisher's."""

from dataclasses import dataclass, field, replace
from math import nan

import numpy as np

from stats.arguments import Floats
from stats.correlation.result import CiMethod, NoInterval
from stats.libraries import scipy
from stats.proportions import jeffreys_limits

PERFECT_WITHIN = 1e-12
"""A correlation this close to 1 is 1 but for rounding, where Fisher's z is infinite."""
MOST_UNDEFINED = 0.05
"""Of the resamples: with more, the rest describe another design."""
FEW_UNITS = 60
"""Of items or clusters: with fewer, percentiles of resamples are too narrow."""


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
