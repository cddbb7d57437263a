"""Calibration of a judge's probabilities, and whether one of two judges is right more often."""

from dataclasses import dataclass
from math import nan, sqrt

from error_codes import InvalidValue
from stats.arguments import (
    require_confidence,
)
from stats.libraries import scipy


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
