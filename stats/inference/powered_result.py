"""What prediction-powered inference returns, and when it gives no interval."""

from dataclasses import dataclass
from enum import StrEnum
from math import nan

import numpy as np

from error_codes import CodedText
from stats.arguments import Floats
from stats.inference.powered_moments import Moments, Rules

LEAST_LABELS = 5
LEAST_OF_A_CLASS = 5
FEW_LABELS = 20
NO_GAIN = 0.02
"""Below this lambda, were all but the rated items unrated, the judge adds nothing."""


class Withheld(StrEnum):
    """Why a value or its interval is not given."""

    NO_LABELS = "no_labels"
    NO_PROBABILITIES = "no_recorded_probabilities"
    TOO_FEW_LABELS = "too_few_labels"
    TOO_FEW_OF_A_CLASS = "too_few_of_a_class"
    TOO_FEW_IN_A_STRATUM = "too_few_in_a_stratum"
    TOO_FEW_BEYOND = "too_few_beyond_the_quantile"
    NO_VARIATION = "no_variation"
    PERFECT = "perfect_correlation"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its interval; NaN where there is none."""

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
        Lambda: how much the judge's scores count, from 0 (not at all) to 1. With strata the
        mean of theirs, weighted by their shares.
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
    notes: tuple[str, ...] = ()


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
        power=moments.power,
        n_labelled=len(known),
        n=len(y),
        effective_n=len(known) * gain,
        freedom=moments.freedom,
        people_only=people,
        reason=reason,
        notes=notes_of(moments, len(known), len(y)),
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
    from scipy import stats

    if reason is not None or not variance > 0 or freedom < 1:
        return Estimate(value=value, ci_low=nan, ci_high=nan, se=nan)
    se = float(np.sqrt(variance))
    half = float(stats.t.ppf((1 + rules.confidence) / 2, freedom)) * se
    return Estimate(value=value, ci_low=value - half, ci_high=value + half, se=se)


def notes_of(moments: Moments, n_labelled: int, n: int) -> tuple[str, ...]:
    """What to say beside a value: that the judge adds nothing, that labels are few.

    Examples
    --------
    >>> from stats.inference.powered_moments import moments_of
    >>> y, rules = np.arange(8.0), Rules(None, True, 0.95)
    >>> len(notes_of(moments_of(y, y, None, rules), 8, 8))
    1
    """
    notes = []
    # where little is unrated lambda is small however well the judge scores
    power = moments.power * n / (n - n_labelled) if n > n_labelled else 1.0
    if moments.count > 1 and power < NO_GAIN:
        notes.append(
            CodedText(
                "the judge adds nothing: its scores do not go with the human ratings",
                code="judge_adds_nothing",
            )
        )
    if 0 < moments.count < FEW_LABELS:
        notes.append(
            CodedText(
                f"only {moments.count} human ratings, or clusters of them: the interval is a rough "
                f"guide below {FEW_LABELS}",
                code="few_ratings",
            )
        )
    return tuple(notes)
