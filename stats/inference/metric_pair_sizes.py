"""How many items tell two metrics apart: two correlations with the same human ratings."""

from math import atanh, sqrt
from typing import Literal, get_args

from error_codes import InvalidValue
from stats.arguments import require_one_of
from stats.inference.sample_sizes import MOST_ITEMS, require_shares
from stats.libraries import scipy

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
    if n <= 3:
        raise InvalidValue(f"n must be above 3, not {n}", code="n_out_of_range")
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
    if first == second:
        raise InvalidValue("the two correlations must differ", code="equal_correlations")

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
        if not -1 < value < 1:
            raise InvalidValue(
                f"{name} must lie between -1 and 1, not {value}", code=f"{name}_out_of_range"
            )
    determinant = 1 + 2 * first * second * between - first**2 - second**2 - between**2
    if determinant <= 0:
        raise InvalidValue(
            f"correlations of {first}, {second} and {between} cannot occur together",
            code="impossible_correlations",
        )
