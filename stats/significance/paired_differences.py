from dataclasses import dataclass, replace
from math import nan

from error_codes import CodedText
from stats.arguments import (
    Column,
    Floats,
    numbers,
    require_at_least,
    require_confidence,
    require_same_length,
)
from stats.libraries import np, scipy

# Floats drawn at a time, 16 MB.
CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class PairedDifference:
    """The mean of the differences ``second - first``, and tests of its being 0.

    Attributes
    ----------
    mean, mean_first, mean_second : float
        Over the pairs that are complete, in the units of the measurements.
    ci_low, ci_high : float
        Percentile bootstrap interval of `mean`, the pairs resampled.
    t, t_p : float
        Student's paired t and its two-sided p.
    wilcoxon, wilcoxon_p : float
        Wilcoxon's signed-rank statistic, zeros ranked and then left out (Pratt), and its
        two-sided p.
    n_pairs, n_missing, n_equal : int
        Complete pairs; pairs left out since a side is NaN; complete ones without a difference.
    reason : str or None
        Why what is NaN is undefined.
    """

    mean: float
    mean_first: float
    mean_second: float
    ci_low: float
    ci_high: float
    ci_method: str
    confidence: float
    n_resamples: int
    seed: int
    t: float
    t_p: float
    wilcoxon: float
    wilcoxon_p: float
    n_pairs: int
    n_missing: int
    n_equal: int
    reason: str | None = None


def paired_difference(
    first: Column,
    second: Column,
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference:
    """Compare two measurements of the same things.

    Parameters
    ----------
    first, second : array_like, shape (n,)
        Measurements in the same order; a pair with a NaN is left out and counted.
    n_resamples : int
        Draws of the bootstrap.
    confidence : float
        Of the interval, between 0 and 1.
    seed : int
        Of the bootstrap.

    Returns
    -------
    PairedDifference
        With fewer than two complete pairs all but the means is NaN. Where every difference is
        the same, t is undefined; where every difference is 0, Wilcoxon's statistic too.

    Raises
    ------
    ValueError
        If the lengths differ, or an option is out of range.

    References
    ----------
    F. Wilcoxon (1945). Individual comparisons by ranking methods. Biometrics Bulletin 1(6), 80-83.
    J. W. Pratt (1959). Remarks on zeros and ties in the Wilcoxon signed rank procedures.
    JASA 54(287), 655-667.
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.

    Examples
    --------
    >>> found = paired_difference([1, 2, 3, 4, 5], [2, 4, 3, 6, 8], seed=1)
    >>> found.mean, round(found.t_p, 3), found.wilcoxon_p, found.n_equal
    (1.6, 0.035, 0.125, 1)
    """
    require_same_length(first=first, second=second)
    require_confidence(confidence)
    require_at_least(1, n_resamples=n_resamples)
    a, b = numbers(first, "first"), numbers(second, "second")
    complete = ~(np.isnan(a) | np.isnan(b))
    a, b = a[complete], b[complete]
    differences = b - a
    difference = PairedDifference(
        mean=_mean(differences),
        mean_first=_mean(a),
        mean_second=_mean(b),
        ci_low=nan,
        ci_high=nan,
        ci_method="percentile bootstrap of pairs",
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
        t=nan,
        t_p=nan,
        wilcoxon=nan,
        wilcoxon_p=nan,
        n_pairs=len(differences),
        n_missing=int((~complete).sum()),
        n_equal=int((differences == 0).sum()),
    )
    return _tested(difference, differences)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else nan


def _tested(difference: PairedDifference, differences: Floats) -> PairedDifference:
    if len(differences) < 2:
        return replace(
            difference, reason=CodedText("fewer than two complete pairs", code="too_few_pairs")
        )
    low, high = _interval(differences, difference)
    difference = replace(difference, ci_low=low, ci_high=high)
    if not differences.any():
        return replace(difference, reason=CodedText("all differences are 0", code="no_difference"))
    ranked = scipy.stats.wilcoxon(differences, zero_method="pratt")
    difference = replace(
        difference, wilcoxon=float(ranked.statistic), wilcoxon_p=float(ranked.pvalue)
    )
    if np.ptp(differences) == 0:
        reason = CodedText(
            "all differences are the same, so t is undefined", code="equal_differences"
        )
        return replace(difference, reason=reason)
    test = scipy.stats.ttest_1samp(differences, 0)
    return replace(difference, t=float(test.statistic), t_p=float(test.pvalue))


def _interval(differences: Floats, difference: PairedDifference) -> tuple[float, float]:
    rng = np.random.default_rng(difference.seed)
    n = len(differences)
    # How often each pair is drawn; some draws at a time, so that they fit into memory.
    at_once = max(1, CELLS_AT_ONCE // n)
    sizes = [
        min(at_once, difference.n_resamples - start)
        for start in range(0, difference.n_resamples, at_once)
    ]
    shares = np.full(n, 1 / n)
    draws = [rng.multinomial(n, shares, size=size) @ differences / n for size in sizes]
    tail = (1 - difference.confidence) / 2
    low, high = np.quantile(np.concatenate(draws), [tail, 1 - tail])
    return float(low), float(high)
