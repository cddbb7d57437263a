"""Limits of a share of independent units, which are never of zero width."""

from stats.libraries import scipy


def jeffreys_limits(successes: float, n: float, confidence: float) -> tuple[float, float]:
    """Jeffreys' limits of a share, which reach 0 or 1 where all units are on one side.

    Parameters
    ----------
    successes, n : float
        Of `n` units, those that count.
    confidence : float
        Confidence level, of equal tails.

    Returns
    -------
    low, high : float

    References
    ----------
    L. D. Brown, T. T. Cai and A. DasGupta (2001). Interval estimation for a binomial
    proportion. Statistical Science 16(2), 101-133.

    Examples
    --------
    >>> low, high = jeffreys_limits(10, 10, 0.95)
    >>> round(low, 3), high
    (0.783, 1.0)
    """
    tail = (1 - confidence) / 2
    posterior = scipy.stats.beta(successes + 0.5, n - successes + 0.5)
    low = 0.0 if successes <= 0 else float(posterior.ppf(tail))
    high = 1.0 if successes >= n else float(posterior.ppf(1 - tail))
    return low, high
