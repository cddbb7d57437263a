"""What a test of two metrics returns, and the interval and p of resampled differences."""

from dataclasses import dataclass
from enum import StrEnum
from math import isnan, nan

import numpy as np

from stats.arguments import Floats
from stats.correlation.result import (
    FEW_UNITS,
    LEAST_SYSTEMS,
    LEAST_SYSTEMS_FOR_INTERVAL,
    MOST_UNDEFINED,
    Resample,
)
from stats.libraries import scipy


class Undecided(StrEnum):
    """Why a test of two metrics has no p-value."""

    UNDEFINED = "undefined_correlation"
    TOO_FEW = "too_few"
    SAME_METRIC = "same_metric"
    TOO_FEW_SYSTEMS = "too_few_systems"
    NO_RESAMPLES = "no_resamples"
    UNDEFINED_RESAMPLES = "undefined_resamples"
    NO_SPREAD = "no_spread"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better metric a agrees with human ratings than metric b, and how sure that is.

    Attributes
    ----------
    value_a, value_b : float
        The coefficients on the cells both metrics and annotators have a value for.
    delta : float
        ``value_a - value_b``.
    p : float
        Two-sided; NaN where there is no test, and then `reason` says why.
    n_cells : int
        Cells the test rests on.
    n_permutations : int
        Permutations drawn; 0 where none are.
    seed : int or None
        Their seed; None where a generator was handed in or nothing was drawn.
    reason : Undecided or None
        Why there is no `p`.
    """

    value_a: float
    value_b: float
    delta: float
    p: float
    n_cells: int
    n_permutations: int = 0
    seed: int | None = None
    reason: Undecided | None = None


LEAST_SYSTEMS_FOR_P = LEAST_SYSTEMS
# Below this, a p counted from the resamples has too few of them behind it.
COUNTED_FROM = 0.02
ROUNDING = 1e-12


@dataclass(frozen=True)
class DifferenceLimits:
    """The interval and p of a difference, or the reason why there is none."""

    low: float
    high: float
    p: float
    reason: Undecided | None = None


def difference_limits(
    delta: float,
    drawn: Floats | None,
    resample: Resample,
    n_systems: int | None,
    confidence: float,
    *,
    n_units: int | None = None,
) -> DifferenceLimits:
    """The interval of a difference and the p of the same draws, which never contradict each other.

    Parameters
    ----------
    delta : float
        The difference observed.
    drawn : ndarray of float, shape (n_resamples,), or None
        The difference in each resample, NaN where it is undefined.
    resample : {"items", "systems", "both"}
        What was drawn.
    n_systems : int or None
        How many systems there are.
    confidence : float
        Confidence level.
    n_units : int, optional
        How many items (or clusters of them) were drawn from.

    Returns
    -------
    DifferenceLimits

    Notes
    -----
    Percentiles, and p twice the smaller share of differences beyond 0, counting one more; below
    .02 the normal tail is taken where that is less. Of fewer than 60 items, whose percentiles are
    too narrow, Student's t with the draws' standard deviation. None where over one in twenty
    draws is undefined.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall,
    chapters 12 and 13.

    Examples
    --------
    >>> limits = difference_limits(0.5, np.linspace(0.1, 0.9, 999), "items", 4, 0.95)
    >>> round(limits.low, 2), round(limits.high, 2), limits.p < 0.05
    (0.12, 0.88, True)
    >>> str(difference_limits(0.5, np.ones(99), "both", 3, 0.95).reason)
    'too_few_systems'
    """
    if isnan(delta):
        return DifferenceLimits(nan, nan, nan, Undecided.UNDEFINED)
    of_systems = resample != "items"
    if of_systems and (n_systems or 0) < LEAST_SYSTEMS_FOR_INTERVAL:
        return DifferenceLimits(nan, nan, nan, Undecided.TOO_FEW_SYSTEMS)
    known = np.empty(0) if drawn is None else drawn[~np.isnan(drawn)]
    if drawn is None or not len(drawn):
        return DifferenceLimits(nan, nan, nan, Undecided.NO_RESAMPLES)
    if len(known) < max(2, (1 - MOST_UNDEFINED) * len(drawn)):
        return DifferenceLimits(nan, nan, nan, Undecided.UNDEFINED_RESAMPLES)
    if np.ptp(known) <= ROUNDING:
        same = abs(delta) <= ROUNDING
        return DifferenceLimits(
            nan, nan, nan, Undecided.SAME_METRIC if same else Undecided.NO_SPREAD
        )
    if not of_systems and n_units is not None and 2 <= n_units < FEW_UNITS:
        return _student(delta, known, n_units, confidence)
    low, high = _percentiles(known, confidence)
    if of_systems and (n_systems or 0) < LEAST_SYSTEMS_FOR_P:
        return DifferenceLimits(low, high, nan, Undecided.TOO_FEW_SYSTEMS)
    return DifferenceLimits(low, high, p_of_draws(delta, known))


def _student(delta: float, drawn: Floats, n_units: int, confidence: float) -> DifferenceLimits:
    """By Student's t; draws of n units spread as if there were one unit fewer to know."""
    se = float(drawn.std(ddof=1)) * (n_units / (n_units - 1)) ** 0.5
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n_units - 1)) * se
    p = float(2 * scipy.stats.t.sf(abs(delta) / se, n_units - 1))
    return DifferenceLimits(delta - half, delta + half, p)


def _percentiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    """The draws that leave out 0 exactly where `p_of_draws` is below 1 less the confidence."""
    ordered = np.sort(drawn)
    cut = int(np.ceil((1 - confidence) / 2 * (len(drawn) + 1) - ROUNDING)) - 1
    cut = min(max(cut, 1), len(drawn) // 2)
    return float(ordered[cut - 1]), float(ordered[-cut])


def p_of_draws(delta: float, drawn: Floats) -> float:
    """Two-sided p of a difference from what it is in resamples, one more counted.

    Examples
    --------
    >>> round(p_of_draws(0.5, np.linspace(-0.1, 0.9, 101)), 3)
    0.235
    """
    beyond = min(int((drawn <= ROUNDING).sum()), int((drawn >= -ROUNDING).sum()))
    counted = min(1.0, 2 * (1 + beyond) / (1 + len(drawn)))
    if counted > COUNTED_FROM:
        return counted
    spread = float(drawn.std(ddof=1))
    return min(counted, float(2 * scipy.special.ndtr(-abs(delta) / spread)))
