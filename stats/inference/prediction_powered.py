"""Prediction-powered means: a number from few human ratings and a judge's scores of all items."""

from dataclasses import replace

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    require_same_length,
)
from stats.inference.powered_moments import Moments, Rules, checked_columns, moments_of
from stats.inference.powered_result import (
    PredictionPowered,
    Withheld,
    check_sampling,
    notes_of_skewness,
    result_of,
)

LEAST_IN_A_STRATUM = 10


def prediction_powered_mean(
    human: Column,
    judge: Column,
    *,
    clusters: Column | None = None,
    strata: Column | None = None,
    power: float | None = None,
    small_sample: bool = True,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean human rating of all items, from a random part of them and a judge of all.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        The human rating of each item, NaN for an item without one. Which items have one must be
        random, or random within `strata`.
    judge : array-like of float, shape (n_items,)
        The judge's score of each item, in any unit; lower scores may go with higher ratings.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    strata : array-like, shape (n_items,), optional
        Strata that were labelled at rates of their own; each counts as its share of all items.
    power : float, optional
        Lambda between 0 and 1, for a judge on the scale of the human ratings: 0 is people alone,
        1 is plain prediction-powered inference. Without it, tuned to the least variance.
    small_sample : bool
        Student's t with two degrees of freedom fewer than labelled items (or clusters) and a
        variance that pays for the tuning; otherwise normal with population variances, as the
        authors' library has it, which covers too rarely below some 50 labels.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    PredictionPowered
        Without an interval, and with `reason`, where there are fewer than 5 human ratings (or
        clusters with one),
        fewer than 5 of the rarer of two values, or fewer than 10 in a stratum. Without any value
        where the judge's scores of labelled items and of the others do not overlap; with a note
        where they differ, or where ratings are few and skewed.

    Raises
    ------
    ValueError
        If the columns differ in length, `judge` or a cluster or stratum is missing, both
        clusters and strata are given, or `power` or `confidence` is out of range.

    Notes
    -----
    ``value = lambda mean(judge, unlabelled) + mean(human - lambda judge, labelled)``, with
    ``lambda = cov(human, judge) / ((1 + n / N) var(judge))`` of n labelled and N unlabelled
    items. The authors limit lambda to 0 to 1, and so the result would depend on the judge's unit
    and sign; here it has no limit. Clusters enter by sums of linearised residuals. Where a cluster
    is labelled in part, its residuals of both parts are summed together. The judge must not have
    been tuned on the labelled items.

    References
    ----------
    A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic (2023).
    Prediction-powered inference. Science 382, 669-674.
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023). PPI++: Efficient prediction-powered
    inference. arXiv:2311.01453.
    A. Fisch et al. (2024). Stratified prediction-powered inference for hybrid language model
    evaluation. NeurIPS 2024.

    Examples
    --------
    >>> human = [4, 2, 5, 3, 1, 4] + [np.nan] * 6
    >>> judge = [4.2, 2.1, 4.6, 3.3, 1.4, 3.9, 2.2, 4.8, 3.1, 2.9, 1.2, 4.1]
    >>> result = prediction_powered_mean(human, judge)
    >>> round(result.value, 2), result.n_labelled, result.effective_n > 6
    (3.06, 6, True)
    """
    rules = Rules(power, small_sample, confidence)
    y, f, cluster = checked_columns(human, judge, clusters, rules)
    if strata is not None:
        if clusters is not None:
            raise InvalidValue(
                "clusters and strata cannot both be given", code="clusters_and_strata"
            )
        require_same_length(human=human, strata=strata)
        stratum = coded(strata, "strata")[0]
        result = _stratified(y, f, stratum, rules)
        return check_sampling(result, ~np.isnan(y), {"the judge's score": f}, stratum=stratum)
    moments = moments_of(y, f, cluster, rules)
    result = result_of(moments, y, f, rules)
    result = replace(result, notes=(*result.notes, *notes_of_skewness(moments, y, f)))
    return check_sampling(result, ~np.isnan(y), {"the judge's score": f}, cluster=cluster)


def _stratified(y: Floats, f: Floats, stratum: Integers, rules: Rules) -> PredictionPowered:
    n_strata = int(stratum.max(initial=-1)) + 1
    shares = np.bincount(stratum, minlength=n_strata) / max(len(y), 1)
    parts = [moments_of(y[stratum == k], f[stratum == k], None, rules) for k in range(n_strata)]
    least = min(int((~np.isnan(y[stratum == k])).sum()) for k in range(n_strata))
    combined = Moments(
        power=float(
            sum(w * abs(p.power) * p.judge_spread for w, p in zip(shares, parts, strict=True))
        ),
        judge_spread=1.0,
        value=float(sum(w * part.value for w, part in zip(shares, parts, strict=True))),
        variance=float(sum(w**2 * p.variance for w, p in zip(shares, parts, strict=True))),
        freedom=_satterthwaite(shares, [(p.variance, p.freedom) for p in parts]),
        people=float(sum(w * part.people for w, part in zip(shares, parts, strict=True))),
        people_variance=float(
            sum(w**2 * p.people_variance for w, p in zip(shares, parts, strict=True))
        ),
        people_freedom=_satterthwaite(
            shares, [(p.people_variance, p.people_freedom) for p in parts]
        ),
        count=sum(part.count for part in parts),
    )
    reason = Withheld.TOO_FEW_IN_A_STRATUM if least < LEAST_IN_A_STRATUM else None
    return result_of(combined, y, f, rules, reason)


def _satterthwaite(shares: Floats, parts: list[tuple[float, float]]) -> float:
    terms = [
        (w**2 * variance, freedom) for w, (variance, freedom) in zip(shares, parts, strict=True)
    ]
    total = sum(variance for variance, _ in terms)
    spread = sum(variance**2 / freedom for variance, freedom in terms if freedom > 0)
    return float(total**2 / spread) if spread > 0 else np.inf
