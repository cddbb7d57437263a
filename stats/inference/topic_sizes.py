"""How many topics a test collection needs: to tell two systems apart, several, or for a width."""

from math import exp, lgamma, sqrt

from error_codes import InvalidValue
from stats.inference.sample_sizes import MOST_ITEMS, require_shares
from stats.libraries import scipy


def topics_for_systems(
    difference: float, sd: float, n_systems: int, *, power: float = 0.8, alpha: float = 0.05
) -> int:
    """Topics with which one-way analysis of variance tells systems apart.

    Parameters
    ----------
    difference : float
        Between the best and the worst system's mean, in the measure's units.
    sd : float
        Standard deviation over topics within a system.
    n_systems : int
        At least 2.
    power, alpha : float
        Power and level of the test that all means are the same, where the others lie halfway.

    Returns
    -------
    int
        The least number of topics, at least 2.

    Raises
    ------
    ValueError
        If a number is out of range, or it takes more than a thousand million topics.

    References
    ----------
    T. Sakai (2016). Topic set size design. Information Retrieval Journal 19, 256-283 (the F test
    at noncentrality ``n difference**2 / (2 sd**2)``; the least n is found directly).

    Examples
    --------
    >>> topics_for_systems(0.1, 0.25, 10)
    197
    """
    require_shares(power=power, alpha=alpha)
    _require_spread(difference, sd)
    if n_systems < 2:
        raise InvalidValue(
            f"n_systems must be at least 2, not {n_systems}", code="n_systems_out_of_range"
        )

    def reaches(n: int) -> bool:
        return systems_power(difference, sd, n_systems, n, alpha=alpha) >= power

    high = 2
    while not reaches(high):
        if (high := high * 2) > MOST_ITEMS:
            raise InvalidValue(
                f"a difference of {difference} takes more than {MOST_ITEMS:,.0f} topics",
                code="too_many_topics",
            )
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return high


def systems_power(
    difference: float, sd: float, n_systems: int, n_topics: int, *, alpha: float = 0.05
) -> float:
    """The power of one-way analysis of variance to tell systems apart.

    Parameters
    ----------
    difference, sd, n_systems, alpha
        As in `topics_for_systems`.
    n_topics : int
        At least 2.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    As `topics_for_systems`.

    Examples
    --------
    >>> round(systems_power(0.1, 0.25, 10, 197), 3)
    0.801
    """
    require_shares(alpha=alpha)
    _require_spread(difference, sd)
    if n_systems < 2 or n_topics < 2:
        raise InvalidValue(
            "n_systems and n_topics must be at least 2", code="n_systems_out_of_range"
        )
    between, within = n_systems - 1, n_systems * (n_topics - 1)
    critical = scipy.stats.f.ppf(1 - alpha, between, within)
    return float(
        scipy.stats.ncf.sf(critical, between, within, n_topics * difference**2 / (2 * sd**2))
    )


def topics_for_width(width: float, sd: float, *, confidence: float = 0.95) -> float:
    """Topics whose interval of a mean (or of a mean difference) is as narrow as asked, on average.

    Parameters
    ----------
    width : float
        Upper less lower limit, in the measure's units.
    sd : float
        Standard deviation over topics: of a system's values, or of two systems' differences.
    confidence : float
        Confidence level of Student's t interval.

    Returns
    -------
    float
        The exact solution, at least 2, to be rounded up.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    T. Sakai (2016). Topic set size design. Information Retrieval Journal 19, 256-283.

    Examples
    --------
    >>> round(topics_for_width(0.1, 0.25), 1)
    98.0
    """
    require_shares(confidence=confidence)
    _require_spread(width, sd)

    def excess(n: float) -> float:
        # A standard deviation of n normal values is this share of the population's, on average.
        share = sqrt(2 / (n - 1)) * exp(lgamma(n / 2) - lgamma((n - 1) / 2))
        return (
            2 * float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * sd * share / sqrt(n) - width
        )

    if excess(2.0) <= 0:
        return 2.0
    normal = (2 * float(scipy.stats.norm.ppf((1 + confidence) / 2)) * sd / width) ** 2
    return float(scipy.optimize.brentq(excess, 2.0, 2 * normal + 50, xtol=1e-9))


def _require_spread(difference: float, sd: float) -> None:
    if not difference > 0 or not sd > 0:
        raise InvalidValue(
            "the difference, or the width, and sd must be positive", code="difference_out_of_range"
        )
