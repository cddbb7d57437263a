"""Calibration of a judge's probabilities, and whether one of two judges is right more often."""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    complete_numbers,
    require_confidence,
    require_same_length,
)
from stats.libraries import scipy


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How near a judge's probabilities are to what happens.

    Attributes
    ----------
    error : float
        Mean distance of probability and share in bins of the same size (ECE), weighted.
    error_by_width : float
        The same in ten bins of the same width.
    error_if_calibrated, error_p : float
        What a judge with these probabilities would show if it were calibrated, in the mean of
        simulations, since the error is never 0 in a sample; and the share of simulations with
        no less than `error`.
    brier : float
        Mean squared distance of probability and outcome.
    n, n_bins : int
        Items and bins.
    """

    error: float
    error_by_width: float
    error_if_calibrated: float
    error_p: float
    brier: float
    n: int
    n_bins: int


def calibration(
    probability: Column,
    outcome: Column,
    *,
    bins: int | None = None,
    n_simulations: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Calibration:
    """Whether what a judge calls 80 % sure is right in 80 % of cases.

    Parameters
    ----------
    probability : array-like of float, shape (n_items,)
        The judge's probability of the outcome, 0 to 1.
    outcome : array-like of bool or 0 and 1, shape (n_items,)
        Whether it was so.
    bins : int, optional
        Bins of the same size; 10, or 5 below 100 items.
    n_simulations : int
        Of a calibrated judge with the same probabilities.
    rng : int or Generator
        Seed or generator of the simulations.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If the columns differ in length, are empty, or hold anything else.

    References
    ----------
    M. P. Naeini, G. F. Cooper and M. Hauskrecht (2015). Obtaining well calibrated probabilities
    using Bayesian binning. AAAI 2015.
    G. W. Brier (1950). Verification of forecasts expressed in terms of probability. Monthly
    Weather Review 78(1), 1-3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(400)
    >>> found = calibration(probability, rng.random(400) < probability)
    >>> found.error_p > 0.05
    True
    """
    n = require_same_length(probability=probability, outcome=outcome)
    p = complete_numbers(probability, "probability")
    y = complete_numbers(outcome, "outcome")
    if not n or ((p < 0) | (p > 1)).any() or not np.isin(y, (0, 1)).all():
        raise InvalidValue(
            "probability must lie between 0 and 1, and outcome be 0 or 1",
            code="probability_out_of_range",
        )
    count = bins or (10 if n >= 100 else 5)
    order = np.argsort(p, kind="stable")
    p, y = p[order], y[order]
    error = float(_mass_error(p, y[None], count)[0])
    generator = np.random.default_rng(rng)
    simulated = _mass_error(p, (generator.random((n_simulations, n)) < p).astype(float), count)
    return Calibration(
        error=error,
        error_by_width=_width_error(p, y),
        error_if_calibrated=float(simulated.mean()),
        error_p=float((1 + (simulated >= error).sum()) / (1 + n_simulations)),
        brier=float(np.square(p - y).mean()),
        n=n,
        n_bins=count,
    )


def _mass_error(p: Floats, outcomes: Floats, bins: int) -> Floats:
    """By bins of the same size, for each row of outcomes of items by ascending probability."""
    total = np.zeros(len(outcomes))
    for part in np.array_split(np.arange(len(p)), bins):
        if len(part):
            total += np.abs(outcomes[:, part].mean(axis=1) - p[part].mean()) * len(part)
    return np.asarray(total / len(p))


def _width_error(p: Floats, y: Floats, bins: int = 10) -> float:
    code = np.minimum((p * bins + 1e-9).astype(np.intp), bins - 1)
    sums = (np.bincount(code, column, bins) for column in (p, y))
    first, second = sums
    return float(np.abs(first - second).sum() / len(p))


@dataclass(frozen=True, kw_only=True)
class PairedAccuracy:
    """The accuracies of two judges on the same items; p of McNemar's test, exact and mid-p."""

    accuracy_a: float
    accuracy_b: float
    difference: float
    ci_low: float
    ci_high: float
    p: float
    mid_p: float
    n: int
    n_discordant: int


def mcnemar(
    both_right: int,
    only_a_right: int,
    only_b_right: int,
    both_wrong: int,
    *,
    confidence: float = 0.95,
) -> PairedAccuracy:
    """Whether one of two judges is right more often, on the same items.

    Parameters
    ----------
    both_right, only_a_right, only_b_right, both_wrong : int
        Items.
    confidence : float
        Confidence level of the interval of the difference.

    Returns
    -------
    PairedAccuracy
        `p` is exact and `mid_p` counts half of the observed outcome; Newcombe's interval of
        the paired difference.

    Raises
    ------
    ValueError
        If a count is negative, there is no item, or `confidence` is out of range.

    References
    ----------
    Q. McNemar (1947). Note on the sampling error of the difference between correlated
    proportions or percentages. Psychometrika 12(2), 153-157.
    M. W. Fagerland, S. Lydersen and P. Laake (2013). The McNemar test for binary matched-pairs
    data: mid-p and asymptotic are better than exact conditional. BMC Medical Research
    Methodology 13:91.
    R. G. Newcombe (1998). Improved confidence intervals for the difference between binomial
    proportions based on paired data. Statistics in Medicine 17, 2635-2650 (method 10).

    Examples
    --------
    >>> pair = mcnemar(60, 14, 5, 21)
    >>> round(pair.difference, 2), round(pair.p, 3), round(pair.mid_p, 3)
    (0.09, 0.064, 0.041)
    """
    require_confidence(confidence)
    counts = (both_right, only_a_right, only_b_right, both_wrong)
    if min(counts) < 0 or not sum(counts):
        raise InvalidValue(
            f"counts must not be negative, and not all 0: {counts}", code="counts_out_of_range"
        )
    n, discordant = sum(counts), only_a_right + only_b_right
    p = mid_p = 1.0
    if discordant:
        p = float(scipy.stats.binomtest(only_a_right, discordant).pvalue)
        mid_p = p - float(scipy.stats.binom.pmf(only_a_right, discordant, 0.5))
    a, b = (both_right + only_a_right) / n, (both_right + only_b_right) / n
    low, high = _newcombe(both_right, only_a_right, only_b_right, both_wrong, confidence)
    return PairedAccuracy(
        accuracy_a=a,
        accuracy_b=b,
        difference=a - b,
        ci_low=low,
        ci_high=high,
        p=p,
        mid_p=min(mid_p, 1.0),
        n=n,
        n_discordant=discordant,
    )


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    Parameters
    ----------
    successes, n : int
        Of `n` items, those that count.
    confidence : float
        Confidence level.

    Returns
    -------
    low, high : float
        NaN where `n` is 0.

    Raises
    ------
    ValueError
        If `confidence` is out of range or there are more successes than items.

    References
    ----------
    E. B. Wilson (1927). Probable inference, the law of succession, and statistical inference.
    JASA 22, 209-212.

    Examples
    --------
    >>> [round(limit, 3) for limit in wilson(34, 50)]
    [0.542, 0.792]
    """
    require_confidence(confidence)
    if not 0 <= successes <= n:
        raise InvalidValue(
            f"successes must lie between 0 and n ({n}), not {successes}",
            code="successes_out_of_range",
        )
    if not n:
        return nan, nan
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    share, scale = successes / n, 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / scale
    half = z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / scale
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _newcombe(a: int, b: int, c: int, d: int, confidence: float) -> tuple[float, float]:
    """Newcombe's method 10 for the difference of paired shares (a + b) / n and (a + c) / n."""
    n = a + b + c + d
    (l1, u1), (l2, u2) = (wilson(x, n, confidence=confidence) for x in (a + b, a + c))
    p1, p2 = (a + b) / n, (a + c) / n
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    product = float(a * d - b * c)
    if margins:
        product = max(product - n / 2, 0.0) if product > 0 else product
        phi = product / sqrt(margins)
    else:
        phi = 0.0
    below = (p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2
    above = (u1 - p1) ** 2 - 2 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2
    delta = p1 - p2
    return delta - sqrt(max(below, 0.0)), delta + sqrt(max(above, 0.0))
