"""Confidence intervals of correlations: the bootstrap's limits, and Fisher's."""

from dataclasses import dataclass
from math import nan

import numpy as np
from scipy import stats

from stats.arguments import Floats
from stats.correlation.result import CiMethod

PERFECT_WITHIN = 1e-12
"""A correlation this close to 1 is 1 but for rounding, where Fisher's z is infinite."""


@dataclass(frozen=True)
class Interval:
    """Confidence limits, how they came about, and how many resamples were drawn and undefined."""

    low: float
    high: float
    method: CiMethod
    n_resamples: int = 0
    n_undefined: int = 0


NO_INTERVAL = Interval(nan, nan, CiMethod.NONE)


def percentile(
    replicates: Floats, confidence: float, method: CiMethod = CiMethod.BOOTSTRAP_ITEMS
) -> Interval:
    """The limits that cut equal tails off the defined replicates.

    Examples
    --------
    >>> interval = percentile(np.array([0.0, 0.25, 0.5, 0.75, 1.0, np.nan]), 0.5)
    >>> interval.low, interval.high, interval.n_undefined
    (0.25, 0.75, 1)
    """
    defined = replicates[~np.isnan(replicates)]
    n_undefined = len(replicates) - len(defined)
    if not len(defined):
        return Interval(nan, nan, CiMethod.NONE, len(replicates), n_undefined)
    low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), method, len(replicates), n_undefined)


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
    half = float(stats.norm.ppf((1 + confidence) / 2)) * np.sqrt(factor / spare)
    centre = np.arctanh(value)
    return Interval(float(np.tanh(centre - half)), float(np.tanh(centre + half)), method)
