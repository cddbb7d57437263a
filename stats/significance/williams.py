"""Williams' test of two correlations that share a variable."""

from dataclasses import dataclass
from math import nan, sqrt

from error_codes import InvalidValue
from stats.libraries import scipy


@dataclass(frozen=True)
class Williams:
    """Student's t, its degrees of freedom, and the two-sided p."""

    t: float
    df: int
    p: float


def williams_test(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether a variable correlates with a second as it does with a third.

    Parameters
    ----------
    r12, r13 : float
        Pearson correlations of the human ratings with each of two metrics.
    r23 : float
        That of the metrics with each other.
    n : int
        Points all three rest on, independent of each other.

    Returns
    -------
    Williams
        `t` has the sign of ``r12 - r13``. NaN where a correlation is, with fewer than four
        points, or where the metrics are the same but for scale.

    Raises
    ------
    ValueError
        If a correlation lies outside -1 to 1.

    References
    ----------
    E. J. Williams (1959). Regression Analysis. Wiley, New York.
    J. H. Steiger (1980). Tests for comparing elements of a correlation matrix. Psychological
    Bulletin 87(2), 245-251, equation 7.
    Y. Graham and T. Baldwin (2014). Testing for significance of increased correlation with human
    judgment. EMNLP 2014, 172-176.

    Examples
    --------
    >>> test = williams_test(0.4, 0.5, 0.1, 103)
    >>> round(test.t, 2), test.df, round(test.p, 2)
    (-0.89, 100, 0.37)
    """
    for name, r in {"r12": r12, "r13": r13, "r23": r23}.items():
        if abs(r) > 1:
            raise InvalidValue(
                f"{name} must lie between -1 and 1, not {r}", code=f"{name}_out_of_range"
            )
    df = n - 3
    if df < 1:
        return Williams(nan, df, nan)
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    variance = 2 * (n - 1) / df * max(determinant, 0.0) + mean**2 * (1 - r23) ** 3
    if not variance > 0:
        return Williams(nan, df, nan)
    t = (r12 - r13) * sqrt((n - 1) * (1 + r23) / variance)
    return Williams(t, df, float(2 * scipy.stats.t.sf(abs(t), df)))
