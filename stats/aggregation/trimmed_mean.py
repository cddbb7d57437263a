"""The mean of each item's ratings without the most extreme ones."""

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.averages import average, sorted_positions, student_margin
from stats.aggregation.crowd import Repeats, code_ratings
from stats.aggregation.result import Aggregation, nothing, sign
from stats.arguments import Column, require_confidence
from stats.groups import sum_by


def trimmed_mean(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    trim: float = 0.2,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings after cutting a share from both ends.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    trim : float
        Share cut from each end, at least 0 and below 0.5. Of n ratings, floor(trim * n) fall
        away at each end: with the default of 0.2, none below five ratings.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        Intervals are t intervals on the winsorised variance. ``annotators`` as for `mean`.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``, or `trim` or
        `confidence` is out of range.

    References
    ----------
    J. W. Tukey and D. H. McLaughlin (1963). Less vulnerable confidence and significance
    procedures for location based on a single sample. Sankhya A 25, 331-352.
    K. K. Yuen (1974). The two-sample trimmed t for unequal population variances. Biometrika
    61(1), 165-170.

    Examples
    --------
    >>> result = trimmed_mean([1] * 5, list("abcde"), [0, 48, 50, 52, 100])
    >>> result.labels[["item", "label", "n_labels"]]
       item  label  n_labels
    0     1   50.0         5
    """
    require_confidence(confidence)
    if not 0 <= trim < 0.5:
        raise InvalidValue(
            f"trim must be at least 0 and below 0.5, not {trim}", code="trim_out_of_range"
        )
    ratings = code_ratings(items, annotators, values, repeats)
    signature = sign("trimmed_mean", trim=trim, confidence=confidence, repeats=repeats)
    if not ratings.n_labels:
        return nothing(signature)
    order, start, size = sorted_positions(ratings)
    item, value = ratings.item[order], ratings.value[order]
    n_items = len(ratings.items)
    # A tenth of ten is one, whatever the product of floats says.
    cut = np.floor(trim * size + 1e-9).astype(np.intp)
    lowest, highest = start + cut, start + size - cut - 1
    rank = np.arange(len(order))
    is_within = (rank >= lowest[item]) & (rank <= highest[item])
    n_within = (size - 2 * cut).astype(np.float64)
    label = sum_by(item[is_within], value[is_within], n_items) / n_within
    winsorised = value[np.clip(rank, lowest[item], highest[item])]
    centre = sum_by(item, winsorised, n_items) / size
    squares = sum_by(item, (winsorised - centre[item]) ** 2, n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(squares / (n_within * (n_within - 1)))
    margin = student_margin(se, n_within - 1, confidence)
    return average(signature, ratings, label, se, margin, size)
