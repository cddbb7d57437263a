"""Limits of shares: of independent units, and of outcomes in clusters."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from error_codes import CodedText, InvalidValue
from stats.arguments import Column, coded_in_order, complete_numbers, require_confidence
from stats.jackknife import effective_freedom, mean_left_out
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
    if len(code) != n:
        raise InvalidValue(
            f"outcome and cluster must be of one length, not {n} and {len(code)}",
            code="unequal_lengths",
        )
    if not np.isin(y, (0, 1)).all():
        raise InvalidValue("outcome must be 0 or 1 in every row", code="outcome_out_of_range")
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
