from dataclasses import dataclass
from enum import StrEnum
from math import nan, sqrt

from error_codes import note_if
from stats.arguments import require, require_confidence
from stats.libraries import scipy

# Sensitivity and specificity less 1: below this a judge hardly distinguishes the classes.
LEAST_INFORMATION = 0.1
LEAST_OF_A_CLASS = 5


class Uninformative(StrEnum):
    NO_CALIBRATION = "a class has no calibrated item"
    NO_INFORMATION = "judge is too near to guessing"
    MAYBE_NO_INFORMATION = "judge may be guessing, for all the calibration shows"


@dataclass(frozen=True, kw_only=True)
class CorrectedShare:
    """A share of positives, corrected for a judge's errors, with its interval.

    `raw` is the share the judge called positive. Where the judge may be guessing there is no
    value, and `reason` says so.
    """

    value: float
    ci_low: float
    ci_high: float
    sensitivity: float
    specificity: float
    raw: float
    reason: Uninformative | None = None
    notes: tuple[str, ...] = ()


def corrected_share(
    *,
    true_positives: int,
    false_negatives: int,
    true_negatives: int,
    false_positives: int,
    positives: int,
    n: int,
    confidence: float = 0.95,
) -> CorrectedShare:
    """Rogan and Gladen's estimate, with an interval that knows the calibration is a sample.

    Parameters
    ----------
    true_positives, false_negatives : int
        Of the calibration items that people passed, those the judge passed and did not.
    true_negatives, false_positives : int
        Of those that people failed, those the judge failed and did not.
    positives, n : int
        Of the items to estimate, those the judge passed, and all of them.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    CorrectedShare
        Clipped to 0 to 1 with a note. Without a value where sensitivity and specificity together
        exceed 1 by less than .1, or may not exceed it at all within the interval.

    Raises
    ------
    ValueError
        If a count is negative, `n` is 0 or less than `positives`, or `confidence` is out of
        range.

    Notes
    -----
    Valid where the judge's sensitivity and specificity carry over from the calibration items to
    the others, whose share of positives may be another. Where the calibration items are a
    random part of the same pool, `prediction_powered_mean` is as good or better.

    References
    ----------
    W. J. Rogan and B. Gladen (1978). Estimating prevalence from the results of a screening
    test. American Journal of Epidemiology 107(1), 71-76.
    C. Lee, T. Zeng, J. Jeong, J. Sohn and K. Lee (2025). How to correctly report
    LLM-as-a-judge evaluations. arXiv:2511.21140 (the interval).

    Examples
    --------
    >>> share = corrected_share(
    ...     true_positives=27, false_negatives=5, true_negatives=22, false_positives=6,
    ...     positives=131, n=220,
    ... )
    >>> round(share.value, 3), round(share.ci_low, 3), round(share.ci_high, 3)
    (0.606, 0.414, 0.812)
    """
    require_confidence(confidence)
    counts = {
        "true_positives": true_positives,
        "false_negatives": false_negatives,
        "true_negatives": true_negatives,
        "false_positives": false_positives,
        "positives": positives,
    }
    for name, count in counts.items():
        require(
            count >= 0, f"{name} must not be negative, not {count}", code=f"{name}_out_of_range"
        )
    require(
        n >= max(positives, 1),
        f"n must be at least 1 and at least positives ({positives}), not {n}",
        code="n_out_of_range",
    )
    m1, m0 = true_positives + false_negatives, true_negatives + false_positives
    q1, q0 = (part / of if of else nan for part, of in ((true_positives, m1), (true_negatives, m0)))
    raw = positives / n
    reason = _uninformative(q1, q0, m1, m0, confidence)
    if reason is not None:
        return CorrectedShare(
            value=nan, ci_low=nan, ci_high=nan, sensitivity=q1, specificity=q0, raw=raw,
            reason=reason,
        )  # fmt: skip
    unclipped = (raw + q0 - 1) / (q0 + q1 - 1)
    value = min(max(unclipped, 0.0), 1.0)
    low, high = _limits(raw, n, q1, m1, q0, m0, confidence)
    return CorrectedShare(
        value=value,
        ci_low=min(low, value),
        ci_high=max(high, value),
        sensitivity=q1,
        specificity=q0,
        raw=raw,
        notes=(
            *note_if(
                min(m1, m0) < LEAST_OF_A_CLASS,
                f"only {min(m1, m0)} calibration items of the rarer class",
                "few_of_a_class",
            ),
            *_clipped(unclipped),
        ),
    )


def _uninformative(
    q1: float, q0: float, m1: int, m0: int, confidence: float
) -> Uninformative | None:
    if not (m1 and m0):
        return Uninformative.NO_CALIBRATION
    if q0 + q1 - 1 < LEAST_INFORMATION:
        return Uninformative.NO_INFORMATION
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    s1, s0 = _shrunk(q1, m1), _shrunk(q0, m0)
    se = sqrt(s1 * (1 - s1) / (m1 + 2) + s0 * (1 - s0) / (m0 + 2))
    return None if s1 + s0 - 1 - z * se > 0 else Uninformative.MAYBE_NO_INFORMATION


def _shrunk(share: float, n: int) -> float:
    return (n * share + 1) / (n + 2)


def _limits(
    raw: float, n: int, q1: float, m1: int, q0: float, m0: int, confidence: float
) -> tuple[float, float]:
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    p, size = (n * raw + z**2 / 2) / (n + z**2), n + z**2
    sensitivity, specificity = _shrunk(q1, m1), _shrunk(q0, m0)
    information = specificity + sensitivity - 1
    theta = (p + specificity - 1) / information
    of_0 = specificity * (1 - specificity) / (m0 + 2)
    of_1 = sensitivity * (1 - sensitivity) / (m1 + 2)
    shift = 2 * z**2 * (theta * of_1 - (1 - theta) * of_0)
    se = sqrt(p * (1 - p) / size + (1 - theta) ** 2 * of_0 + theta**2 * of_1) / information
    low, high = theta + shift - z * se, theta + shift + z * se
    return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


def _clipped(share: float) -> tuple[str, ...]:
    many = "more items than its sensitivity allows"
    few = "fewer items than its false positives alone would be"
    return note_if(
        not -1e-9 <= share <= 1 + 1e-9,  # rounding is no reason for a note
        f"the corrected share is {share:.3f} and is given as {0 if share < 0 else 1}: the judge "
        f"passes {few if share < 0 else many}, so that the calibration items may be of another "
        "kind",
        "clipped",
    )
