"""The mean rating of each item."""

import numpy as np

from stats.aggregation.averages import average, student_margin
from stats.aggregation.crowd import Repeats, code_ratings
from stats.aggregation.result import Aggregation, nothing, sign
from stats.arguments import Column, require_confidence


def mean(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings, with a t interval.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        An item with one rating has a label but no interval (``one_label``). ``annotators`` has
        ``bias`` and ``error_sd``: mean and standard deviation of an annotator's ratings about
        the labels of their items.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    References
    ----------
    Student (1908). The probable error of a mean. Biometrika 6(1), 1-25.

    Examples
    --------
    >>> result = mean([1, 1, 2], list("aba"), [40, 60, 10])
    >>> result.labels[["item", "label", "se"]]
       item  label    se
    0     1   50.0  10.0
    1     2   10.0   NaN
    """
    require_confidence(confidence)
    ratings = code_ratings(items, annotators, values, repeats)
    signature = sign("mean", confidence=confidence, repeats=repeats)
    if not ratings.n_labels:
        return nothing(signature)
    size = ratings.labels_per_item
    label = ratings.per_item(ratings.value) / size
    squares = ratings.per_item((ratings.value - label[ratings.item]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(squares / (size * (size - 1)))
    margin = student_margin(se, size - 1, confidence)
    return average(signature, ratings, label, se, margin, size.astype(np.intp))
