from dataclasses import dataclass
from math import exp, pi, sqrt

from stats.arguments import require
from stats.libraries import scipy

LARGEST_D = 30


@dataclass(frozen=True)
class Effect:
    """An effect in four forms.

    Attributes
    ----------
    d : float
        Difference of two means in standard deviations (Cohen's d).
    r : float
        Point-biserial correlation of the value with the group.
    odds_ratio : float
        Of logistic distributions that lie `d` standard deviations apart.
    probability : float
        The odds ratio as a probability, ``odds / (1 + odds)``.
    superiority : float
        The chance that a normal value of the one group exceeds one of the other.
    """

    d: float
    r: float
    odds_ratio: float
    probability: float
    superiority: float


def effect_of_d(d: float) -> Effect:
    """The forms of a standardised difference, of two groups of the same size.

    Parameters
    ----------
    d : float

    Returns
    -------
    Effect

    Raises
    ------
    ValueError
        If `d` is beyond 30 standard deviations.

    References
    ----------
    M. Borenstein, L. V. Hedges, J. P. T. Higgins and H. R. Rothstein (2009). Introduction to
    Meta-Analysis. Wiley, chapter 7 (``log odds = d pi / sqrt(3)``, ``r = d / sqrt(d**2 + 4)``).

    Examples
    --------
    >>> effect = effect_of_d(0.62)
    >>> round(effect.odds_ratio, 4), round(effect.probability, 4)
    (3.0788, 0.7548)
    """
    require(
        abs(d) <= LARGEST_D,
        f"d must lie between -{LARGEST_D} and {LARGEST_D}, not {d}",
        code="d_out_of_range",
    )
    odds = exp(d * pi / sqrt(3))
    superiority = float(scipy.stats.norm.cdf(d / sqrt(2)))
    return Effect(d, d / sqrt(d**2 + 4), odds, odds / (1 + odds), superiority)


def d_of_correlation(r: float) -> float:
    """The standardised difference of a point-biserial correlation, of two groups of one size.

    Parameters
    ----------
    r : float
        Strictly between -1 and 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `r` is not between -1 and 1.

    References
    ----------
    M. S. Ben-Shachar, D. Lüdecke and D. Makowski (2020). effectsize. Journal of Open Source
    Software 5(56), 2815 (r_to_d).

    Examples
    --------
    >>> round(d_of_correlation(-0.423), 4), round(d_of_correlation(0.281), 3)
    (-0.9336, 0.586)
    """
    require(-1 < r < 1, f"r must lie between -1 and 1, not {r}", code="r_out_of_range")
    return 2 * r / sqrt(1 - r**2)
