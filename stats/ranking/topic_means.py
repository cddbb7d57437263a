from dataclasses import dataclass
from math import nan
from typing import Literal, get_args

from error_codes import CodedText
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    complete_numbers,
    require,
    require_confidence,
    require_one_of,
    require_same_length,
)
from stats.inference.resampled_means import sign_flip_test
from stats.libraries import np, scipy
from stats.proportions import mcnemar, wilson

Test = Literal["randomisation", "t", "mcnemar"]
LEAST_TOPICS = 20
# With fewer topics, or fewer whose value is not the commonest, intervals of skewed values may be
# too narrow: the part `topics` of docs/coverage.md.
LEAST_OTHERS = 10


@dataclass(frozen=True)
class TopicMean:
    """A mean over topics.

    Attributes
    ----------
    value, ci_low, ci_high : float
        In the measure's units; NaN with the `reason` where undefined.
    method : str
        How the interval was computed.
    n_topics : int
    reason : str or None
        Why what is NaN is undefined.
    """

    value: float
    ci_low: float
    ci_high: float
    method: str
    n_topics: int
    reason: str | None = None


@dataclass(frozen=True)
class TopicDifference:
    """The mean difference of two systems over the same topics.

    Attributes
    ----------
    delta, ci_low, ci_high : float
        The first's mean less the second's.
    test : {"randomisation", "t", "mcnemar"}
    p : float
        Two-sided.
    n_topics, n_better, n_worse : int
        Topics; those on which the first is better, and worse.
    reason : str or None
        Why what is NaN is undefined.
    """

    delta: float
    ci_low: float
    ci_high: float
    test: Test
    p: float
    n_topics: int
    n_better: int
    n_worse: int
    reason: str | None = None


def mean_over_topics(
    values: Column, *, confidence: float = 0.95, binary: bool = False
) -> TopicMean:
    """The mean of a measure with the interval for topics of this kind.

    Parameters
    ----------
    values : array-like of float, shape (n_topics,)
        Between 0 and 1.
    confidence : float
        Confidence level of the interval.
    binary : bool
        Whether each value is 0 or 1.

    Returns
    -------
    TopicMean
        Student's t interval, cut where a measure ends, at 0 and 1; Wilson's of binary values.
        It has no limits where there are fewer than two topics or all have the same value.

    Raises
    ------
    ValueError
        If a value is missing, `confidence` is out of range, or binary values are not.

    Notes
    -----
    How often they hold the mean is measured by ``python -m benchmarks.coverage --part topics``.

    References
    ----------
    W. S. Gosset (Student, 1908). The probable error of a mean. Biometrika 6(1), 1-25.
    E. B. Wilson (1927). Probable inference, the law of succession, and statistical inference.
    JASA 22, 209-212.

    Examples
    --------
    >>> mean = mean_over_topics([0.2, 0.4, 0.6, 0.8])
    >>> round(mean.value, 3), round(mean.ci_low, 3), round(mean.ci_high, 3)
    (0.5, 0.089, 0.911)
    """
    require_confidence(confidence)
    column = complete_numbers(values, "values")
    n = len(column)
    if not n:
        return TopicMean(nan, nan, nan, "none", 0, "no topics")
    mean = float(column.mean())
    if binary:
        hits = int(column.sum())
        require(
            np.isin(column, (0, 1)).all(), "binary values must be 0 or 1", code="values_not_binary"
        )
        return TopicMean(mean, *wilson(hits, n, confidence=confidence), "Wilson", n)
    low, high, reason = _t_limits(column, confidence)
    return TopicMean(mean, max(low, 0.0), min(high, 1.0), "Student's t", n, reason)


def compare_over_topics(
    a: Column,
    b: Column,
    *,
    test: Test = "randomisation",
    confidence: float = 0.95,
    n_permutations: int = 10_000,
    rng: int | np.random.Generator = 0,
) -> TopicDifference:
    """Whether the means of two systems over the same topics differ.

    Parameters
    ----------
    a, b : array-like of float, shape (n_topics,)
        The systems' values, of the same topics in the same order.
    test : {"randomisation", "t", "mcnemar"}
        Flip the signs of topics' differences, Student's paired t, or, for values of 0 and 1,
        McNemar's exact test.
    confidence : float
        Confidence level of the interval.
    n_permutations : int
        Sign flips drawn where there are more than 16 topics; with fewer all are tried.
    rng : int or Generator
        Seed or generator of the flips.

    Returns
    -------
    TopicDifference
        Student's t interval of the mean difference; Newcombe's for McNemar's test.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing, the test is unknown, or McNemar's
        is asked of values that are not 0 and 1.

    References
    ----------
    M. D. Smucker, J. Allan and B. Carterette (2007). A comparison of statistical significance
    tests for information retrieval evaluation. CIKM 2007, 623-632.
    Q. McNemar (1947). Note on the sampling error of the difference between correlated
    proportions or percentages. Psychometrika 12(2), 153-157.

    Examples
    --------
    >>> found = compare_over_topics([0.5, 0.9, 0.4, 0.7, 0.8, 0.6], [0.4, 0.5, 0.3, 0.6, 0.5, 0.1])
    >>> round(found.delta, 2), found.p, found.n_better
    (0.25, 0.03125, 6)
    """
    require_one_of(test=(test, get_args(Test)))
    require_confidence(confidence)
    require_same_length(a=a, b=b)
    first, second = complete_numbers(a, "a"), complete_numbers(b, "b")
    gaps = first - second
    better, worse = int((gaps > 0).sum()), int((gaps < 0).sum())
    if len(gaps) < 2:
        delta = float(gaps.mean()) if len(gaps) else nan
        return TopicDifference(
            delta, nan, nan, test, nan, len(gaps), better, worse, "fewer than two topics"
        )
    if test == "mcnemar":
        return _by_mcnemar(first, second, confidence)
    low, high, reason = _t_limits(gaps, confidence)
    p = _t_p(gaps) if test == "t" else 1.0
    if test == "randomisation" and gaps.any():
        p = sign_flip_test(np.arange(len(gaps)), gaps, n_permutations=n_permutations, rng=rng)
    return TopicDifference(float(gaps.mean()), low, high, test, p, len(gaps), better, worse, reason)


def _by_mcnemar(first: Floats, second: Floats, confidence: float) -> TopicDifference:
    require(
        np.isin(np.concatenate([first, second]), (0, 1)).all(),
        "test 'mcnemar' compares values of 0 and 1",
        code="values_not_binary",
    )
    both, a_only = int((first * second).sum()), int((first * (1 - second)).sum())
    b_only = int(((1 - first) * second).sum())
    n = len(first)
    pair = mcnemar(both, a_only, b_only, n - both - a_only - b_only, confidence=confidence)
    return TopicDifference(
        pair.difference, pair.ci_low, pair.ci_high, "mcnemar", pair.p, n, a_only, b_only
    )


def _t_limits(values: Floats, confidence: float) -> tuple[float, float, str | None]:
    n = len(values)
    if n < 2:
        return nan, nan, "fewer than two topics"
    spread = float(values.std(ddof=1))
    if np.ptp(values) < 1e-12:
        return nan, nan, "all topics have the same value"
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * spread / n**0.5
    return float(values.mean()) - half, float(values.mean()) + half, None


def _t_p(gaps: Floats) -> float:
    if not gaps.any():
        return 1.0
    if np.ptp(gaps) < 1e-12:
        return nan
    return float(scipy.stats.ttest_1samp(gaps, 0.0).pvalue)


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
    require(
        ((chance > 0) & (chance <= 1)).all(),
        "probabilities must be above 0 and at most 1",
        code="probabilities_out_of_range",
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
    variances = sizes / (sizes - 1) * np.bincount(stratum, np.square(residuals - centre[stratum]))
    total = variances.sum()
    if total <= TINY**2:
        return nan, nan, CodedText("all topics have the same value", code="all_tied")
    freedom = total**2 / (np.square(variances) / (sizes - 1)).sum()
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(total))
    return mean - half, mean + half, None
