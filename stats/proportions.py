from dataclasses import dataclass
from math import inf, nan, sqrt

from error_codes import CodedText
from stats.arguments import Column, coded_in_order, complete_numbers, require, require_confidence
from stats.jackknife import effective_freedom, mean_left_out
from stats.libraries import np, scipy


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


@dataclass(frozen=True)
class ClusteredShare:
    """A share with its interval.

    Attributes
    ----------
    value : float
        Between 0 and 1; NaN where there are no outcomes.
    ci_low, ci_high : float
        NaN where there are fewer than two clusters.
    n : int
        Outcomes.
    n_clusters : int
    effective_n : float
        How many independent outcomes would say as much.
    reason : str or None
        Why a number is NaN.
    """

    value: float
    ci_low: float
    ci_high: float
    n: int
    n_clusters: int
    effective_n: float
    reason: str | None = None


def clustered_share(
    outcome: Column, cluster: Column, *, confidence: float = 0.95
) -> ClusteredShare:
    """The share of outcomes that are 1, with an interval for other clusters.

    Parameters
    ----------
    outcome : array-like, shape (n,)
        0 or 1.
    cluster : array-like, shape (n,)
        The annotator, or whatever else outcomes come in groups by.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    ClusteredShare

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing, or an outcome is not 0 or 1.

    Notes
    -----
    Clopper's and Pearson's interval with the effective number of outcomes in the place of theirs
    (Korn & Graubard 1998): their number by how much larger the variance between clusters is than
    that of independent outcomes, less what Student's t costs with one degree less than there are
    effective clusters, and never more than there are. Where all outcomes are the same nothing is
    known of that variance, and the effective number is that of clusters: if a share q of all
    clusters ever had the other outcome, its probability is no more than q. In 1,500
    samples each of 3, 6, 12 and 40 clusters of 10 outcomes, with shares from .003 to .7, the
    intervals held the truth in .95 to 1; of clusters of unequal size, one of which has half of the
    outcomes, in .92 to .99.

    References
    ----------
    L. Kish (1965). Survey Sampling. Wiley.
    E. L. Korn and B. I. Graubard (1998). Confidence intervals for proportions with small expected
    number of positive counts estimated from survey data. Survey Methodology 24(2), 193-201.
    C. J. Clopper and E. S. Pearson (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26, 404-413.

    Examples
    --------
    >>> never = clustered_share([0] * 60, list("abcdef") * 10)
    >>> never.value, never.ci_low, round(never.ci_high, 3), never.effective_n
    (0.0, 0.0, 0.459, 6.0)
    """
    require_confidence(confidence)
    y = complete_numbers(outcome, "outcome")
    code, distinct = coded_in_order(cluster, "cluster")
    n, n_clusters = len(y), len(distinct)
    require(
        len(code) == n,
        f"outcome and cluster must be of one length, not {n} and {len(code)}",
        code="unequal_lengths",
    )
    require(
        np.isin(y, (0, 1)).all(), "outcome must be 0 or 1 in every row", code="outcome_out_of_range"
    )
    if not n:
        return ClusteredShare(
            nan, nan, nan, 0, 0, nan, CodedText("no outcomes", code="no_outcomes")
        )
    share = float(y.mean())
    if n_clusters < 2:
        return ClusteredShare(
            share, nan, nan, n, n_clusters, nan, CodedText("one cluster alone", code="one_cluster")
        )
    effective = float(n_clusters)
    tail = (1 - confidence) / 2
    if 0 < share < 1:
        left_out = mean_left_out(y - share, code)
        variance, freedom = float(left_out.variance), effective_freedom(left_out.effective)
        alone = share * (1 - share) / (n - 1)
        effective = n * alone / variance if variance > 0 else inf
        t_all, t_clusters = (scipy.stats.t.ppf(1 - tail, one) for one in (n - 1, freedom))
        effective = min(float(n), effective * float(t_all / t_clusters) ** 2)
    of_one, of_none = share * effective, (1 - share) * effective
    low = float(scipy.stats.beta.ppf(tail, of_one, of_none + 1)) if of_one else 0.0
    high = float(scipy.stats.beta.ppf(1 - tail, of_one + 1, of_none)) if of_none else 1.0
    return ClusteredShare(share, low, high, n, n_clusters, effective)


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
    require(
        min(counts) >= 0 and sum(counts) > 0,
        f"counts must not be negative, and not all 0: {counts}",
        code="counts_out_of_range",
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
    require(
        0 <= successes <= n,
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
