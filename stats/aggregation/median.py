"""The median rating of each item."""

import numpy as np

from stats.aggregation.averages import averaged, few_label_reasons, sorted_positions
from stats.aggregation.crowd import Repeats, code_ratings
from stats.aggregation.result import Aggregation, nothing, sign, value_table
from stats.arguments import Column, Floats, Integers, require_confidence
from stats.libraries import scipy

MCKEAN_SCHRADER_Z = 2.5758293035489004


def median(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The median of each item's ratings, with an interval that assumes no distribution.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    confidence : float
        Least confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        The limits are two of the item's own ratings, and cover the median with at least the
        level asked for. Where even its lowest and highest rating do not, which at 95 % is so
        below six ratings, they are NaN (``too_few_labels``; ``one_label``). ``se`` is McKean
        and Schrader's. ``annotators`` as for `mean`.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    References
    ----------
    W. J. Conover (1999). Practical nonparametric statistics, section 3.2. Wiley.
    J. W. McKean and R. M. Schrader (1984). A comparison of methods for studentizing the sample
    median. Communications in Statistics - Simulation and Computation 13(6), 751-773.

    Examples
    --------
    >>> result = median([1] * 6, list("abcdef"), [10, 20, 30, 40, 50, 99])
    >>> result.labels[["label", "ci_low", "ci_high"]]
       label  ci_low  ci_high
    0   35.0    10.0     99.0
    """
    require_confidence(confidence)
    ratings = code_ratings(items, annotators, values, repeats)
    signature = sign("median", confidence=confidence, repeats=repeats)
    if not ratings.n_labels:
        return nothing(signature)
    order, start, size = sorted_positions(ratings)
    value = ratings.value[order]
    label = (value[start + (size - 1) // 2] + value[start + size // 2]) / 2
    depth = _depth(size, confidence)
    covered, inside = depth >= 0, np.maximum(depth, 0)
    limits = (
        np.where(covered, value[start + inside], np.nan),
        np.where(covered, value[start + size - 1 - inside], np.nan),
    )
    reasons = few_label_reasons(~covered, size)
    se = _standard_error(value, start, size)
    labels = value_table(ratings, label, se, limits, reasons)
    return averaged(signature, ratings, labels)


def _depth(size: Integers, confidence: float) -> Integers:
    """How many ratings lie outside the limits on each side; negative where there are none."""
    depth = np.asarray(scipy.stats.binom.ppf((1 - confidence) / 2, size, 0.5), dtype=np.intp)
    outside = scipy.stats.binom.cdf(depth, size, 0.5)
    return np.where(outside > (1 - confidence) / 2, depth - 1, depth)


def _standard_error(value: Floats, start: Integers, size: Integers) -> Floats:
    depth = np.rint((size + 1) / 2 - MCKEAN_SCHRADER_Z * np.sqrt(size / 4)).astype(np.intp)
    inside = np.maximum(depth, 1) - 1
    width = value[start + size - 1 - inside] - value[start + inside]
    return np.where(size > 1, width / (2 * MCKEAN_SCHRADER_Z), np.nan)
