"""Means over topics that were drawn with unequal probabilities, from strata or not."""

from math import nan

import numpy as np

from error_codes import CodedText, InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    complete_numbers,
    require_confidence,
    require_same_length,
)
from stats.libraries import scipy
from stats.ranking.topic_means import TopicMean

METHOD = "Student's t, weighted"
TINY = 1e-12


def weighted_mean_over_topics(
    values: Column,
    probabilities: Column,
    strata: Column | None = None,
    *,
    confidence: float = 0.95,
    least: float = 0.0,
) -> TopicMean:
    """The mean over all topics that a sample was drawn from, each weighed by 1 / probability.

    Parameters
    ----------
    values : array-like of float, shape (n_topics,)
        At most 1; differences of two systems' values with ``least=-1``.
    probabilities : array-like of float, shape (n_topics,)
        Of each topic to be drawn, above 0 and at most 1.
    strata : array-like, shape (n_topics,), optional
        The stratum that each topic was drawn from.
    confidence : float
        Confidence level of the interval.
    least : float
        Where the lower limit is cut; the upper one is at 1.

    Returns
    -------
    TopicMean
        Without limits where there are fewer than two topics, a stratum has one alone, or nothing
        varies.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing, or a probability or `confidence` is
        out of range.

    Notes
    -----
    The ratio of weighted sums, with the variance of its linearised residuals: within strata where
    these are known, as if drawn with replacement, which is a little too wide where much of a
    stratum was drawn. Student's t has Satterthwaite's degrees of freedom over strata.

    References
    ----------
    J. Hajek (1971). Comment on an essay by D. Basu. Foundations of Statistical Inference, 236.
    W. G. Cochran (1977). Sampling Techniques, third edition, 5.4 and 6.10. Wiley.

    Examples
    --------
    >>> values, probabilities = [0.2, 0.3, 0.4, 0.8, 0.9, 1.0], [0.1] * 3 + [0.4] * 3
    >>> mean = weighted_mean_over_topics(values, probabilities, list("aaabbb"))
    >>> round(mean.value, 3), round(mean.ci_low, 3), round(mean.ci_high, 3)
    (0.42, 0.235, 0.605)
    """
    require_confidence(confidence)
    n = require_same_length(values=values, probabilities=probabilities)
    column = complete_numbers(values, "values")
    chance = complete_numbers(probabilities, "probabilities")
    if not ((chance > 0) & (chance <= 1)).all():
        raise InvalidValue(
            "probabilities must be above 0 and at most 1", code="probabilities_out_of_range"
        )
    if not n:
        return TopicMean(nan, nan, nan, "none", 0, "no topics")
    weights = 1 / chance / (1 / chance).sum()
    mean = float((weights * column).sum())
    stratum = np.zeros(n, dtype=np.intp)
    if strata is not None:
        require_same_length(values=values, strata=strata)
        stratum = coded(strata, "strata")[0]
    low, high, reason = _limits(mean, weights * (column - mean), stratum, confidence)
    if reason:
        return TopicMean(mean, nan, nan, "none", n, reason)
    return TopicMean(mean, max(low, least), min(high, 1.0), METHOD, n)


def _limits(
    mean: float, residuals: Floats, stratum: Integers, confidence: float
) -> tuple[float, float, str | None]:
    sizes = np.bincount(stratum)
    if len(residuals) < 2:
        return nan, nan, CodedText("fewer than two topics", code="too_few_topics")
    if (sizes < 2).any():
        return nan, nan, CodedText("a stratum has one topic alone", code="one_topic_in_stratum")
    centre = np.bincount(stratum, residuals) / sizes
    squares = np.bincount(stratum, np.square(residuals - centre[stratum]))
    variances = sizes / (sizes - 1) * squares
    total = variances.sum()
    if total <= TINY**2:
        return nan, nan, CodedText("all topics have the same value", code="all_tied")
    freedom = total**2 / (np.square(variances) / (sizes - 1)).sum()
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(total))
    return mean - half, mean + half, None
