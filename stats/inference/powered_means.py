from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import nan

from error_codes import CodedText, note_if
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded,
    require,
    require_same_length,
)
from stats.inference.powered_moments import Moments, Rules, checked_columns, moments_of
from stats.label_sampling import compare_labeled
from stats.libraries import np, scipy

LEAST_LABELS = 5
LEAST_OF_A_CLASS = 5
# Intervals of fewer than 50 lognormal ratings hold the mean in less than .90, and a tenth of such
# samples do not look skewed (`notes_of_skewness`).
FEW_LABELS = 50
COCHRAN = 25


class Withheld(StrEnum):
    NO_LABELS = "no_labels"
    NO_PROBABILITIES = "no_recorded_probabilities"
    TOO_FEW_LABELS = "too_few_labels"
    TOO_FEW_OF_A_CLASS = "too_few_of_a_class"
    TOO_FEW_IN_A_STRATUM = "too_few_in_a_stratum"
    TOO_FEW_BEYOND = "too_few_beyond_the_quantile"
    NO_VARIATION = "no_variation"
    PERFECT = "perfect_correlation"
    LABELS_APART = "labels_do_not_overlap"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    value: float
    ci_low: float
    ci_high: float
    se: float


@dataclass(frozen=True, kw_only=True)
class PredictionPowered(Estimate):
    """A mean from human ratings and a judge's scores.

    Attributes
    ----------
    value, ci_low, ci_high, se : float
        The mean, its interval and its standard error.
    power : float
        How much the judge's scores count, from 0 (not at all) to 1: the size of lambda for scores
        with the standard deviation of the human ratings, so that the judge's units and sign do
        not matter. With strata the mean of theirs, weighted by their shares.
    n_labelled, n : int
        Items with a human rating, and all items with a score.
    effective_n : float
        How many human ratings alone would be as precise.
    freedom : float
        Degrees of freedom of t; infinite for a normal interval.
    people_only : Estimate
        The mean of the human ratings alone.
    reason : Withheld or None
        Why there is no interval.
    """

    power: float
    n_labelled: int
    n: int
    effective_n: float
    freedom: float
    people_only: Estimate
    reason: Withheld | None = None
    notes: tuple[CodedText, ...] = ()


def result_of(
    moments: Moments, y: Floats, f: Floats, rules: Rules, reason: Withheld | None = None
) -> PredictionPowered:
    """The result of a mean's moments; of pseudo-values of another statistic with its `reason`.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> y, f, rules = np.arange(8.0), np.arange(8.0), Rules(None, True, 0.95)
    >>> result_of(moments_of(y, f, None, rules), y, f, rules).value
    3.5
    """
    known = y[~np.isnan(y)]
    reason = withheld(known, moments) or reason
    people = estimate_of(
        moments.people, moments.people_variance, moments.people_freedom, rules, reason
    )
    own = estimate_of(moments.value, moments.variance, moments.freedom, rules, reason)
    gain = moments.people_variance / moments.variance if moments.variance > 0 else nan
    return PredictionPowered(
        **vars(own),
        power=min(abs(moments.power) * moments.judge_spread, 1.0),
        n_labelled=len(known),
        n=len(y),
        effective_n=len(known) * gain,
        freedom=moments.freedom,
        people_only=people,
        reason=reason,
        notes=notes_of(moments, len(known), len(y)),
    )


def check_sampling(
    result: PredictionPowered,
    labeled: Flags,
    columns: Mapping[str, Floats],
    *,
    cluster: Integers | None = None,
    stratum: Integers | None = None,
) -> PredictionPowered:
    """The result with a note if the labeled items are no random sample of all (`compare_labeled`).

    Without any value, and with a reason, if they do not overlap with the others.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> f, rules = np.arange(80.0), Rules(None, True, 0.95)
    >>> y = np.where(f > 59, f, np.nan)
    >>> result = result_of(moments_of(y, f, None, rules), y, f, rules)
    >>> found = check_sampling(result, f > 59, {"the judge's score": f})
    >>> str(found.reason), found.value, found.notes[-1].code
    ('labels_do_not_overlap', nan, 'labels_not_random')
    """
    sampling = compare_labeled(labeled, columns, cluster=cluster, stratum=stratum)
    if not sampling.is_apart:
        return replace(result, notes=(*result.notes, *sampling.notes))
    nothing = Estimate(value=nan, ci_low=nan, ci_high=nan, se=nan)
    return replace(
        result,
        **vars(nothing),
        power=nan,
        effective_n=nan,
        people_only=nothing,
        reason=Withheld.LABELS_APART,
        notes=sampling.notes,
    )


def withheld(known: Floats, moments: Moments) -> Withheld | None:
    """Why these ratings give no interval, None where they do.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> rules = Rules(None, True, 0.95)
    >>> y = np.array([1.0, 2, 3, np.nan])
    >>> str(withheld(y[:3], moments_of(y, y, None, rules)))
    'too_few_labels'
    """
    if not len(known):
        return Withheld.NO_LABELS
    if moments.count < LEAST_LABELS:
        return Withheld.TOO_FEW_LABELS
    counts = np.unique(known, return_counts=True)[1]
    if len(counts) == 1:
        return Withheld.NO_VARIATION
    if len(counts) == 2 and counts.min() < LEAST_OF_A_CLASS:
        return Withheld.TOO_FEW_OF_A_CLASS
    return None if moments.variance > 0 else Withheld.NO_VARIATION


def estimate_of(
    value: float, variance: float, freedom: float, rules: Rules, reason: Withheld | None
) -> Estimate:
    """A value with its interval by Student's t; without one where there is a `reason`.

    Examples
    --------
    >>> round(estimate_of(2.0, 1.0, np.inf, Rules(None, True, 0.95), None).ci_high, 2)
    3.96
    """
    if reason is not None or not variance > 0 or freedom < 1:
        return Estimate(value=value, ci_low=nan, ci_high=nan, se=nan)
    se = float(np.sqrt(variance))
    half = float(scipy.stats.t.ppf((1 + rules.confidence) / 2, freedom)) * se
    return Estimate(value=value, ci_low=value - half, ci_high=value + half, se=se)


def notes_of_skewness(moments: Moments, y: Floats, f: Floats) -> tuple[CodedText, ...]:
    """A note if few ratings are so skewed that Student's t is too narrow.

    By Cochran's rule: fewer than 25 times the squared skewness of them, or of residuals.
    Means of 20 to 50 lognormal ratings are covered in .83 to .88 instead of .95.

    References
    ----------
    W. G. Cochran (1977). Sampling Techniques, third edition, section 2.15.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> y, rules = np.exp(np.arange(30) / 5), Rules(None, True, 0.95)
    >>> f = np.zeros(30)
    >>> [note.code for note in notes_of_skewness(moments_of(y, f, None, rules), y, f)]
    ['skewed_ratings']
    """
    known = ~np.isnan(y)
    columns = [column[known] for column in (y, y - moments.power * f)]
    if known.sum() < LEAST_LABELS or not all(column.std() > 0 for column in columns):
        return ()
    skewness = max(
        (float(np.mean(((one - one.mean()) / one.std()) ** 3)) for one in columns), key=abs
    )
    return note_if(
        not moments.count >= COCHRAN * skewness**2,
        f"the ratings are skewed (skewness {skewness:.1f}): with {moments.count} of them the "
        "interval holds the mean less often than it says",
        "skewed_ratings",
    )


def adds_nothing(correlation: float, count: int) -> bool:
    """Whether the judge explains no more of so many ratings than chance does (adjusted R²).

    Examples
    --------
    >>> adds_nothing(0.1, 50), adds_nothing(0.2, 50)
    (True, False)
    """
    return count > 1 and correlation**2 * (count - 1) <= 1


def notes_of(moments: Moments, n_labelled: int, n: int) -> tuple[CodedText, ...]:
    """What to say beside a value: that the judge adds nothing, that labels are few.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> y, rules = np.arange(8.0), Rules(None, True, 0.95)
    >>> len(notes_of(moments_of(y, y, None, rules), 8, 8))
    1
    """
    # where little is unrated lambda is small however well the judge scores
    power = abs(moments.power) * moments.judge_spread * n / max(n - n_labelled, 1)
    adds = n <= n_labelled or not adds_nothing(power, moments.count)
    return judge_notes(adds=adds, count=moments.count, interval="the interval is")


def judge_notes(*, adds: bool, count: int, interval: str) -> tuple[CodedText, ...]:
    return note_if(
        not adds,
        "the judge adds nothing: its scores do not go with the human ratings",
        "judge_adds_nothing",
    ) + note_if(
        0 < count < FEW_LABELS,
        f"only {count} human ratings, or clusters of them: {interval} a rough guide below "
        f"{FEW_LABELS}",
        "few_ratings",
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
        require(
            clusters is None, "clusters and strata cannot both be given", code="clusters_and_strata"
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
