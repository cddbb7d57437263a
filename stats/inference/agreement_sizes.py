"""How many items a study of agreement needs, from formulas.

Each function returns the exact solution of its formula; `sample_sizes.whole_items` rounds it up.
"""

from collections.abc import Sequence
from math import log, sqrt

from stats.arguments import Floats, require, require_at_least, require_shares
from stats.libraries import np, scipy

# The intraclass correlation from which on Bonett's formula falls short for two raters.
LEAST_CORRECTED = 0.7


def items_for_kappa(
    kappa: float, null: float, *, prevalence: float, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Items with which two annotators' kappa of a binary label is distinguished from another.

    Parameters
    ----------
    kappa, null : float
        Kappa in the population and the one it is tested against, two-sided.
    prevalence : float
        Share of one class.
    power, alpha : float
        Power and level of the test.

    Returns
    -------
    float
        The exact solution of the goodness of fit formula.

    Raises
    ------
    ValueError
        If the kappas are equal or a share is not strictly between 0 and 1.

    References
    ----------
    A. Donner and M. Eliasziw (1992). A goodness-of-fit approach to inference procedures for
    the kappa statistic. Statistics in Medicine 11, 1511-1519.

    Examples
    --------
    >>> round(items_for_kappa(0.8, 0.6, prevalence=0.3), 2)
    148.01
    """
    require_shares(prevalence=prevalence, power=power, alpha=alpha)
    _require_kappas(kappa, null)
    of_kappa, of_null = (_common_correlation(k, prevalence) for k in (kappa, null))
    distance = float((np.square(of_kappa - of_null) / of_null).sum())
    return _noncentrality(power, alpha) / distance


def items_for_kappa_of_margins(
    kappa: float,
    null: float,
    *,
    margins: Sequence[float],
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """The same for several classes with given shares.

    Parameters
    ----------
    kappa, null : float
        Kappa in the population and the one it is tested against, two-sided.
    margins : sequence of float
        Shares of the classes, the same for both annotators; they sum to 1.
    power, alpha : float
        Power and level of the test.

    Returns
    -------
    float
        The exact solution for the table in which a share kappa of the items is certain to agree
        and the rest agrees by chance. Other tables with these margins can ask for more.

    Raises
    ------
    ValueError
        If the kappas are equal, the margins are not positive or do not sum to 1, or a share is
        out of range.

    References
    ----------
    V. F. Flack, A. A. Afifi, P. A. Lachenbruch and H. J. A. Schouten (1988). Sample size
    determinations for the two rater kappa statistic. Psychometrika 53(3), 321-325.
    A. B. Cantor (1996). Sample-size calculations for Cohen's kappa. Psychological Methods 1(2).

    Examples
    --------
    >>> round(items_for_kappa_of_margins(0.7, 0.5, margins=[0.2, 0.3, 0.5]), 2)
    97.55
    """
    require_shares(power=power, alpha=alpha)
    _require_kappas(kappa, null)
    shares = np.asarray(margins, dtype=np.float64)
    require(
        len(shares) >= 2 and (shares > 0).all() and abs(shares.sum() - 1) <= 1e-9,
        "margins must be two or more positive shares that sum to 1",
        code="margins_unfit",
    )
    z_alpha, z_beta = (float(scipy.stats.norm.ppf(x)) for x in (1 - alpha / 2, power))
    roots = [sqrt(_kappa_variance(k, shares)) for k in (null, kappa)]
    return ((z_alpha * roots[0] + z_beta * roots[1]) / (kappa - null)) ** 2


def items_for_kappa_width(
    kappa: float, width: float, *, prevalence: float, confidence: float = 0.95
) -> float:
    """Items whose interval of two annotators' kappa of a binary label is as narrow as asked.

    Parameters
    ----------
    kappa : float
        The kappa that is expected, from 0 up to 1.
    width : float
        The width of its interval, upper less lower limit.
    prevalence : float
        Share of one class, the same for both annotators.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    float
        The exact solution, to be rounded up.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969). Large sample standard errors of kappa and
    weighted kappa. Psychological Bulletin 72(5), 323-327.

    Examples
    --------
    >>> round(items_for_kappa_width(0.87, 0.12, prevalence=0.17), 1)
    469.9
    """
    require_shares(prevalence=prevalence, confidence=confidence)
    require(
        0 <= kappa < 1 and 0 < width < 2,
        "kappa must lie from 0 up to 1, and width between 0 and 2",
        code="kappa_out_of_range",
    )
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    variance = _kappa_variance(kappa, np.array([prevalence, 1 - prevalence]))
    return (2 * z / width) ** 2 * variance


def items_for_icc(
    icc: float, null: float, *, raters: int, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Items with which an intraclass correlation is shown to exceed another, one-sided.

    Parameters
    ----------
    icc, null : float
        The correlation in the population and the one it must exceed.
    raters : int
        Ratings of each item, at least 2.
    power, alpha : float
        Power and level of the test.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `icc` does not exceed `null`, either is out of range, or `raters` is below 2.

    References
    ----------
    S. D. Walter, M. Eliasziw and A. Donner (1998). Sample size and optimal designs for
    reliability studies. Statistics in Medicine 17, 101-110.

    Examples
    --------
    >>> round(items_for_icc(0.8, 0.6, raters=2), 2)
    38.61
    """
    require_shares(power=power, alpha=alpha)
    require_at_least(2, raters=raters)
    require(
        0 <= null < icc < 1,
        "icc must lie above null, and both from 0 up to 1",
        code="icc_out_of_range",
    )
    ratio = (1 + raters * null / (1 - null)) / (1 + raters * icc / (1 - icc))
    z = float(scipy.stats.norm.ppf(1 - alpha) + scipy.stats.norm.ppf(power))
    return 1 + 2 * z**2 * raters / ((raters - 1) * log(ratio) ** 2)


def items_for_icc_width(
    icc: float, width: float, *, raters: int, confidence: float = 0.95
) -> float:
    """Items with which the interval of an intraclass correlation has about a given width.

    Parameters
    ----------
    icc : float
        The correlation that is expected, from 0 up to 1.
    width : float
        The width of its interval.
    raters : int
        Ratings of each item, at least 2.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    float
        The formula's exact solution, to be rounded up; of two raters and a correlation of .7 or
        more with Bonett's ``5 * icc`` added.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    The formula is of many items. Where two raters agree well few suffice, and the interval of
    exactly so many is too wide: of .9 and a width of .2 the 15 items that it gives have .25 on
    average, and 20 have .20. Bonett's term mends that for two raters alone; of three or more a
    correlation of .9 asks for a few items more than the formula gives. The interval is that from
    the F distribution, of items drawn at random.

    References
    ----------
    D. G. Bonett (2002). Sample size requirements for estimating intraclass correlations with
    desired precision. Statistics in Medicine 21, 1331-1335.

    Examples
    --------
    >>> round(items_for_icc_width(0.8, 0.2, raters=3), 2)
    35.62
    >>> round(items_for_icc_width(0.9, 0.2, raters=2), 2)
    19.37
    """
    require_shares(confidence=confidence)
    require_at_least(2, raters=raters)
    require(
        0 <= icc < 1 and 0 < width < 2,
        "icc must lie from 0 up to 1, and width between 0 and 2",
        code="icc_out_of_range",
    )
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    spread = (1 - icc) ** 2 * (1 + (raters - 1) * icc) ** 2
    exact = 8 * z**2 * spread / (raters * (raters - 1) * width**2) + 1
    return exact + 5 * icc if raters == 2 and icc >= LEAST_CORRECTED else exact


def _common_correlation(kappa: float, prevalence: float) -> Floats:
    spread = prevalence * (1 - prevalence)
    return np.array(
        [
            prevalence**2 + kappa * spread,
            2 * spread * (1 - kappa),
            (1 - prevalence) ** 2 + kappa * spread,
        ]
    )


def _noncentrality(power: float, alpha: float) -> float:
    """Of a chi-square with one degree of freedom, at which its test has this power."""
    critical = float(scipy.stats.chi2.ppf(1 - alpha, 1))
    return float(
        scipy.optimize.brentq(
            lambda x: float(scipy.stats.ncx2.sf(critical, 1, x)) - power, 1e-9, 1e4
        )
    )


def _kappa_variance(kappa: float, margins: Floats) -> float:
    table = (1 - kappa) * np.outer(margins, margins) + kappa * np.diag(margins)
    observed, expected = float(np.trace(table)), float(margins @ margins)
    both = margins[:, None] + margins[None, :]
    own = float((np.diag(table) * ((1 - expected) - 2 * margins * (1 - observed)) ** 2).sum())
    rest = (1 - observed) ** 2 * float(
        (table * both**2).sum() - (np.diag(table) * 4 * margins**2).sum()
    )
    centre = (observed * expected - 2 * expected + observed) ** 2
    return (own + rest - centre) / (1 - expected) ** 4


def _require_kappas(kappa: float, null: float) -> None:
    require(
        0 <= kappa < 1 and 0 <= null < 1 and kappa != null,
        "kappa and null must differ, and lie from 0 up to 1",
        code="kappa_out_of_range",
    )
