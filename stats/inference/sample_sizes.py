"""How many items or topics a study needs, from formulas: differences and systems.

Each function returns the exact solution of its formula; `whole_items` rounds it up, since
rounding to the nearest loses the power that was asked for.
"""

from math import ceil, exp, lgamma, sqrt

from error_codes import InvalidValue
from stats.arguments import require, require_at_least, require_shares
from stats.libraries import np, scipy

MOST_ITEMS = 1e9


def whole_items(n: float, *, per_cluster: float = 1.0, icc: float = 0.0) -> int:
    """The least whole number of items, more where they come in clusters.

    Parameters
    ----------
    n : float
        Independent items.
    per_cluster : float
        Items of a cluster, at least 1.
    icc : float
        Correlation of items of a cluster, 0 to 1.

    Returns
    -------
    int
        ``n (1 + (per_cluster - 1) icc)``, rounded up.

    Raises
    ------
    ValueError
        If `per_cluster` is below 1, `icc` is not between 0 and 1 or over 1e9 items are needed.

    References
    ----------
    L. Kish (1965). Survey Sampling. Wiley (the design effect).

    Examples
    --------
    >>> whole_items(53.76), whole_items(53.76, per_cluster=4, icc=0.1)
    (54, 70)
    """
    require(
        per_cluster >= 1 and 0 <= icc <= 1,
        "per_cluster must be at least 1 and icc between 0 and 1",
        code="per_cluster_out_of_range",
    )
    items = n * (1 + (per_cluster - 1) * icc)
    require(
        items < MOST_ITEMS,
        f"more than {MOST_ITEMS:.0e} items would be needed: too small an effect",
        code="too_many_items",
    )
    return ceil(items - 1e-9)


def items_for_difference(
    difference: float, sd: float, *, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Items on which two systems' mean difference is distinguished from 0, two-sided.

    Parameters
    ----------
    difference : float
        The mean difference in the population, not 0.
    sd : float
        Standard deviation of the items' differences.
    power, alpha : float
        Power and level of the paired t test.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the difference is 0, `sd` is not positive, or `power` or `alpha` is out of range.

    References
    ----------
    J. Cohen (1988). Statistical Power Analysis for the Behavioral Sciences, chapter 2.

    Examples
    --------
    >>> round(items_for_difference(0.5, 1.0), 2)
    33.37
    """
    require_shares(power=power, alpha=alpha)
    _require_difference(difference, sd)
    normal = (
        float(scipy.stats.norm.ppf(1 - alpha / 2) + scipy.stats.norm.ppf(power))
        * sd
        / abs(difference)
    )

    def gap(n: float) -> float:
        return difference_power(difference, sd, n, alpha=alpha) - power

    if gap(2.0) >= 0:
        return 2.0
    return float(scipy.optimize.brentq(gap, 2.0, 2 * normal**2 + 50, xtol=1e-9))


def difference_power(difference: float, sd: float, n: float, *, alpha: float = 0.05) -> float:
    """The power of the paired t test that a mean difference is 0, two-sided.

    Parameters
    ----------
    difference : float
        The mean difference in the population, not 0.
    sd : float
        Standard deviation of the items' differences.
    n : float
        Items, at least 2.
    alpha : float
        Level of the test.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the difference is 0, `sd` is not positive, or another number is out of range.

    References
    ----------
    As `items_for_difference`.

    Examples
    --------
    >>> round(difference_power(0.5, 1.0, 34), 3)
    0.808
    """
    require_shares(alpha=alpha)
    _require_difference(difference, sd)
    require(n >= 2, f"n must be at least 2, not {n}", code="n_out_of_range")
    t = scipy.stats.t.ppf(1 - alpha / 2, n - 1)
    shifted = abs(difference) / sd * sqrt(n)
    # scipy has NaN for a tail of the other sign that is below 1e-300 or so
    other_sign = np.nan_to_num(scipy.stats.nct.cdf(-t, n - 1, shifted))
    return float(scipy.stats.nct.sf(t, n - 1, shifted) + other_sign)


def least_difference(sd: float, n: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """The least mean difference that so many items distinguish from 0, two-sided.

    Parameters
    ----------
    sd : float
        Standard deviation of the items' differences.
    n : float
        Items, at least 2.
    power, alpha : float
        Power and level of the paired t test.

    Returns
    -------
    float
        The difference for which `items_for_difference` returns `n`.

    Raises
    ------
    ValueError
        If `sd` is not positive, or another number is out of range.

    References
    ----------
    As `items_for_difference`.

    Examples
    --------
    >>> round(least_difference(1.0, 33.37), 2)
    0.5
    """
    require_shares(power=power, alpha=alpha)
    _require_difference(1.0, sd)
    require(n >= 2, f"n must be at least 2, not {n}", code="n_out_of_range")

    def gap(times: float) -> float:
        return difference_power(times, 1.0, n, alpha=alpha) - power

    high = 1.0
    while gap(high) < 0:
        high *= 2
    return sd * float(scipy.optimize.brentq(gap, 1e-9, high, xtol=1e-12))


def _require_difference(difference: float, sd: float) -> None:
    require(
        difference != 0 and sd > 0,
        "difference must not be 0, and sd must be positive",
        code="difference_out_of_range",
    )


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
    require_at_least(2, n_systems=n_systems)

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
    require(
        n_systems >= 2 and n_topics >= 2,
        "n_systems and n_topics must be at least 2",
        code="n_systems_out_of_range",
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
    require(
        difference > 0 and sd > 0,
        "the difference, or the width, and sd must be positive",
        code="difference_out_of_range",
    )
