from collections.abc import Callable
from math import atanh, ceil, exp, lgamma, log, pi, sqrt
from typing import Literal, get_args

from error_codes import InvalidValue
from stats.arguments import require, require_one_of, require_shares
from stats.inference.sample_sizes import MOST_ITEMS
from stats.libraries import np, scipy

Coefficient = Literal["pearson", "spearman", "kendall"]
Method = Literal["cohen", "exact", "fisher", "spearman", "spearman-fieller", "point-biserial"]
DESCRIPTIONS: dict[Method, str] = {
    "cohen": "Fisher's z with its bias, as pwr.r.test",
    "exact": "the exact distribution of r in bivariate normal data",
    "fisher": "Fisher's z",
    "spearman": "Spearman's rho, by Bonett and Wright's variance",
    "spearman-fieller": "Spearman's rho, by Fieller's variance",
    "point-biserial": "r as a regression on fixed values, by the noncentral t",
}


def power_for_correlation(
    rho: float,
    n: float,
    *,
    method: Method = "cohen",
    alpha: float = 0.05,
    one_sided: bool = False,
) -> float:
    """The power of the test that a correlation is 0.

    Parameters
    ----------
    rho : float
        The correlation in the population, strictly between -1 and 1.
    n : float
        Items, more than 3.
    method : {"cohen", "exact", "fisher", "spearman", "spearman-fieller", "point-biserial"}
        Fisher's z with its bias and a critical value by t (pwr.r.test); the exact distribution
        in bivariate normal data; Fisher's z alone; Spearman's rho by either variance; or r as a
        regression on fixed values.
    alpha : float
        Level of the test.
    one_sided : bool
        Whether only a correlation of the sign of `rho` counts.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a number is out of range or the method unknown.

    References
    ----------
    J. Cohen (1988). Statistical Power Analysis for the Behavioral Sciences, chapter 3.
    H. Hotelling (1953). New light on the correlation coefficient and its transforms. Journal of
    the Royal Statistical Society B 15, 193-232 (the exact density).
    D. G. Bonett and T. A. Wright (2000). Sample size requirements for estimating Pearson, Kendall
    and Spearman correlations. Psychometrika 65(1), 23-28.
    E. C. Fieller, H. O. Hartley and E. S. Pearson (1957). Tests for rank correlation coefficients.
    Biometrika 44, 470-481.

    Examples
    --------
    >>> round(power_for_correlation(-0.281, 128, alpha=0.05), 4)
    0.8997
    """
    require_one_of(method=(method, get_args(Method)))
    require_shares(alpha=alpha)
    require(-1 < rho < 1, f"rho must lie between -1 and 1, not {rho}", code="rho_out_of_range")
    require(n > 3, f"n must be above 3, not {n}", code="n_out_of_range")
    tails = (1,) if one_sided else (1, -1)
    level = alpha if one_sided else alpha / 2
    of_tail = POWERS[method]
    return float(sum(of_tail(tail * abs(rho), n, level) for tail in tails))


def items_for_power(
    rho: float,
    *,
    method: Method = "cohen",
    power: float = 0.8,
    alpha: float = 0.05,
    one_sided: bool = False,
) -> float:
    """Items with which a correlation is distinguished from 0.

    Parameters
    ----------
    rho : float
        The correlation in the population, strictly between -1 and 1 and not 0.
    method : {"cohen", "exact", "fisher", "spearman", "spearman-fieller", "point-biserial"}
        As in `power_for_correlation`.
    power, alpha : float
        Power and level of the test.
    one_sided : bool
        Whether only a correlation of the sign of `rho` counts.

    Returns
    -------
    float
        The exact solution, to be rounded up (`stats.inference.sample_sizes.whole_items`);
        infinite above a thousand million.

    Raises
    ------
    ValueError
        If a number is out of range or the method unknown.

    References
    ----------
    As `power_for_correlation`.

    Examples
    --------
    >>> round(items_for_power(-0.423, power=0.9), 2), round(items_for_power(-0.281, power=0.9), 2)
    (53.76, 128.13)
    """
    require_shares(power=power)
    require(rho != 0, "rho must not be 0", code="rho_out_of_range")

    def gap(n: float) -> float:
        of_n = power_for_correlation(rho, n, method=method, alpha=alpha, one_sided=one_sided)
        return of_n - power

    low = 4 + 1e-10
    if gap(low) >= 0:
        return 4.0
    high = 16.0
    while gap(high) < 0:
        low, high = high, high * 2
        if high > MOST_ITEMS:
            return float("inf")
    return float(scipy.optimize.brentq(gap, low, high, xtol=1e-9))


def items_for_correlation(rho: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Items with which a correlation is distinguished from 0, two-sided.

    Parameters
    ----------
    rho : float
        The correlation in the population, not 0.
    power, alpha : float
        Power and level of the test.

    Returns
    -------
    float
        The exact solution; infinite above a thousand million.

    Raises
    ------
    ValueError
        If `rho` is 0 or not between -1 and 1, or `power` or `alpha` not between 0 and 1.

    References
    ----------
    As `power_for_correlation`, by Cohen's method.

    Examples
    --------
    >>> round(items_for_correlation(-0.423, power=0.9), 2)
    53.76
    """
    require_shares(power=power, alpha=alpha)
    require(
        rho != 0 and -1 < rho < 1,
        f"rho must lie between -1 and 1 and not be 0, not {rho}",
        code="rho_out_of_range",
    )

    def gap(n: float) -> float:
        return power_for_correlation(rho, n, alpha=alpha) - power

    least = 4 + 1e-10
    if gap(least) >= 0:
        return 4.0
    if gap(MOST_ITEMS) < 0:
        return float("inf")
    return float(scipy.optimize.brentq(gap, least, MOST_ITEMS, xtol=1e-9))


def items_for_correlation_width(
    value: float,
    width: float,
    *,
    coefficient: Coefficient = "pearson",
    confidence: float = 0.95,
) -> int:
    """The least number of items whose interval of a correlation is no wider than asked.

    Parameters
    ----------
    value : float
        The correlation that is expected.
    width : float
        The width of its interval, upper less lower limit.
    coefficient : {"pearson", "spearman", "kendall"}
        Which correlation.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If `value`, `width`, `coefficient` or `confidence` is out of range.

    References
    ----------
    D. G. Bonett and T. A. Wright (2000). Sample size requirements for estimating Pearson,
    Kendall and Spearman correlations. Psychometrika 65(1), 23-28 (the variances; the least n
    is found directly instead of in their two stages).

    Examples
    --------
    >>> items_for_correlation_width(0.5, 0.2)
    219
    """
    require_one_of(coefficient=(coefficient, get_args(Coefficient)))
    require_shares(confidence=confidence)
    require(
        -1 < value < 1 and 0 < width < 2,
        "value must lie between -1 and 1, and width between 0 and 2",
        code="value_out_of_range",
    )
    factor = {"pearson": 1.0, "spearman": 1 + value**2 / 2, "kendall": 0.437}[coefficient]
    spare = 4 if coefficient == "kendall" else 3
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))

    def excess(n: float) -> float:
        half = z * sqrt(factor / (n - spare))
        centre = np.arctanh(value)
        return float(np.tanh(centre + half) - np.tanh(centre - half)) - width

    least = spare + 1.0
    if excess(least) <= 0:
        return int(least)
    return ceil(scipy.optimize.brentq(excess, least, MOST_ITEMS, xtol=1e-9) - 1e-9)


def _cohen(rho: float, n: float, level: float) -> float:
    critical = float(np.arctanh(_critical_r(n, level)))
    shifted = float(np.arctanh(rho)) + rho / (2 * (n - 1))
    return float(scipy.stats.norm.cdf((shifted - critical) * sqrt(n - 3)))


def _fisher(rho: float, n: float, level: float, factor: float = 1.0) -> float:
    z = float(scipy.stats.norm.ppf(1 - level))
    return float(scipy.stats.norm.cdf(float(np.arctanh(rho)) * sqrt((n - 3) / factor) - z))


def _spearman(rho: float, n: float, level: float) -> float:
    return _fisher(rho, n, level, 1 + rho**2 / 2)


def _fieller(rho: float, n: float, level: float) -> float:
    return _fisher(rho, n, level, 1.06)


def _point_biserial(rho: float, n: float, level: float) -> float:
    shifted = rho / sqrt(1 - rho**2) * sqrt(n)
    return float(scipy.stats.nct.sf(scipy.stats.t.ppf(1 - level, n - 2), n - 2, shifted))


def _exact(rho: float, n: float, level: float) -> float:
    """The integral of Hotelling's density above the critical r, on Fisher's scale."""
    constant = log(n - 2) + lgamma(n - 1) - lgamma(n - 0.5) - log(2 * pi) / 2
    constant += (n - 1) / 2 * log(1 - rho**2)

    def density(z: float) -> float:
        r = float(np.tanh(z))
        # 1 - r**2 is the derivative of tanh, and one more power of the density's own.
        logarithm = constant + (n - 2) / 2 * log(1 - r**2) - (n - 1.5) * log(1 - rho * r)
        return exp(logarithm) * float(scipy.special.hyp2f1(0.5, 0.5, n - 0.5, (rho * r + 1) / 2))

    centre, spread = float(np.arctanh(rho)), 1 / sqrt(n - 3)
    low = float(np.arctanh(_critical_r(n, level)))
    high = max(low, centre) + 12 * spread
    area, _ = scipy.integrate.quad(
        density, low, high, points=[min(max(centre, low), high)], limit=200
    )
    return float(area)


def _critical_r(n: float, level: float) -> float:
    t = float(scipy.stats.t.ppf(1 - level, n - 2))
    return t / sqrt(t**2 + n - 2)


POWERS: dict[Method, Callable[[float, float, float], float]] = {
    "cohen": _cohen,
    "exact": _exact,
    "fisher": _fisher,
    "spearman": _spearman,
    "spearman-fieller": _fieller,
    "point-biserial": _point_biserial,
}


Null = Literal["mean", "first"]


def metric_pair_power(
    first: float,
    second: float,
    between: float,
    n: float,
    *,
    alpha: float = 0.05,
    one_sided: bool = False,
    null: Null = "mean",
) -> float:
    """The power of Steiger's test that two metrics correlate alike with the same ratings.

    Parameters
    ----------
    first, second : float
        Correlations of the two metrics with the human ratings.
    between : float
        The correlation of the metrics with each other.
    n : float
        Independent items, above 3.
    alpha : float
    one_sided : bool
    null : {"mean", "first"}
        The correlation that both metrics have under the null hypothesis: the mean of the two, as
        Steiger's test takes it of its data, or the first, as G*Power does.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a correlation is not between -1 and 1, the three cannot occur together, or another
        number is out of range.

    References
    ----------
    J. H. Steiger (1980). Tests for comparing elements of a correlation matrix. Psychological
    Bulletin 87, 245-251 (equations 3 and 14).
    F. Faul, E. Erdfelder, A. Buchner and A.-G. Lang (2009). Statistical power analyses using
    G*Power 3.1: tests for correlation and regression analyses. Behavior Research Methods 41(4),
    1149-1160.

    Examples
    --------
    >>> round(metric_pair_power(0.4, 0.2, 0.5, 144, one_sided=True, null="first"), 3)
    0.801
    """
    require_shares(alpha=alpha)
    require_one_of(null=(null, get_args(Null)))
    _require_correlations(first, second, between)
    require(n > 3, f"n must be above 3, not {n}", code="n_out_of_range")
    both = first if null == "first" else (first + second) / 2
    under_null = sqrt((2 - 2 * _covariance(both, both, between)) / (n - 3))
    spread = sqrt((2 - 2 * _covariance(first, second, between)) / (n - 3))
    shift = abs(atanh(first) - atanh(second))
    critical = float(scipy.stats.norm.ppf(1 - alpha / (1 if one_sided else 2))) * under_null
    power = float(scipy.stats.norm.sf((critical - shift) / spread))
    return power if one_sided else power + float(scipy.stats.norm.cdf((-critical - shift) / spread))


def items_for_metric_pair(
    first: float,
    second: float,
    between: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    one_sided: bool = False,
    null: Null = "mean",
) -> float:
    """Items with which Steiger's test tells two metrics apart.

    Parameters
    ----------
    first, second, between, alpha, one_sided, null
        As in `metric_pair_power`.
    power : float

    Returns
    -------
    float
        The exact solution, to be rounded up.

    Raises
    ------
    ValueError
        As in `metric_pair_power`; if the correlations are the same, or it takes more than a
        thousand million items.

    References
    ----------
    As `metric_pair_power`.

    Examples
    --------
    >>> round(items_for_metric_pair(0.4, 0.2, 0.5, one_sided=True, null="first"), 1)
    143.5
    """
    require_shares(power=power, alpha=alpha)
    _require_correlations(first, second, between)
    require(first != second, "the two correlations must differ", code="equal_correlations")

    def lacking(n: float) -> float:
        reached = metric_pair_power(
            first, second, between, n, alpha=alpha, one_sided=one_sided, null=null
        )
        return power - reached

    low, high = 3.001, 16.0
    if lacking(low) <= 0:
        return 4.0
    while lacking(high) > 0:
        if (high := high * 2) > MOST_ITEMS:
            raise InvalidValue(
                "the two correlations take more than a thousand million items",
                code="too_many_items",
            )
    return max(float(scipy.optimize.brentq(lacking, low, high, xtol=1e-9)), 4.0)


def _covariance(first: float, second: float, between: float) -> float:
    """Of the two Fisher's z, times n - 3."""
    squares = 1 - first**2 - second**2
    psi = between * squares - first * second * (squares - between**2) / 2
    return psi / ((1 - first**2) * (1 - second**2))


def _require_correlations(first: float, second: float, between: float) -> None:
    for name, value in (("first", first), ("second", second), ("between", between)):
        require(
            -1 < value < 1,
            f"{name} must lie between -1 and 1, not {value}",
            code=f"{name}_out_of_range",
        )
    determinant = 1 + 2 * first * second * between - first**2 - second**2 - between**2
    require(
        determinant > 0,
        f"correlations of {first}, {second} and {between} cannot occur together",
        code="impossible_correlations",
    )
