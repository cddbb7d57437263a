"""The mean of ratings after each annotator's scale is taken out."""

import numpy as np

from error_codes import CodedText
from stats.aggregation.averages import student_margin
from stats.aggregation.crowd import Ratings, Repeats, code_ratings
from stats.aggregation.result import (
    Aggregation,
    Reason,
    annotator_table,
    nothing,
    repeat_warnings,
    sign,
    value_table,
)
from stats.arguments import Column, Floats, require_confidence


def zscore(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings in standard deviations of the annotator who gave them.

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
        ``label`` is in standard deviations, 0 being an annotator's mean; ``n_labels`` counts
        all ratings, ``n_used`` those that have a z-score. An annotator with one rating, or the
        same one each time, has none (their ``sd`` is NaN or 0); an item of such annotators
        only has no label (``no_usable_labels``).

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    Notes
    -----
    z = (x - mean_j) / sd_j, with the n - 1 standard deviation of annotator j. It supposes that
    annotators saw items of like quality, as under random assignment; where they did not,
    `bias_precision` separates scale and items. Intervals take means and deviations as known.

    References
    ----------
    Y. Graham, T. Baldwin, A. Moffat and J. Zobel (2013). Continuous measurement scales in human
    evaluation of machine translation. LAW VII, 33-41.

    Examples
    --------
    >>> result = zscore([1, 2, 3] * 2, list("aaabbb"), [10, 20, 30, 70, 80, 90])
    >>> result.labels[["item", "label"]]
       item  label
    0     1   -1.0
    1     2    0.0
    2     3    1.0
    """
    require_confidence(confidence)
    ratings = code_ratings(items, annotators, values, repeats)
    signature = sign("zscore", confidence=confidence, repeats=repeats)
    if not ratings.n_labels:
        return nothing(signature)
    centre, spread = _scales(ratings)
    usable = (spread > 0)[ratings.annotator]
    z = np.zeros(ratings.n_labels)
    own = ratings.annotator[usable]
    z[usable] = (ratings.value[usable] - centre[own]) / spread[own]
    size = ratings.per_item(usable.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        label = ratings.per_item(z) / size
        squares = ratings.per_item(usable * (z - label[ratings.item]) ** 2)
        se = np.sqrt(squares / (size * (size - 1)))
    margin = student_margin(se, size - 1, confidence)
    labels = value_table(ratings, label, se, (label - margin, label + margin), _reasons(size))
    return Aggregation(
        method="zscore",
        signature=signature,
        labels=labels.assign(n_used=size.astype(np.intp)),
        annotators=annotator_table(ratings, mean=centre, sd=spread),
        warnings=repeat_warnings(ratings) + _scale_warnings(spread),
    )


def _scales(ratings: Ratings) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each annotator's ratings; exactly 0 where all are equal."""
    count = ratings.labels_per_annotator
    first = np.empty(len(count))
    first[ratings.annotator[::-1]] = ratings.value[::-1]
    # Centred on one of the ratings, equal ratings leave no rounding behind.
    offset = ratings.value - first[ratings.annotator]
    shift = ratings.per_annotator(offset) / count
    squares = ratings.per_annotator((offset - shift[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first + shift, np.sqrt(squares / (count - 1))


def _reasons(size: Floats) -> list[Reason | None]:
    reasons: dict[int, Reason] = {0: Reason.NO_USABLE_LABELS, 1: Reason.ONE_LABEL}
    return [reasons.get(int(count)) for count in size]


def _scale_warnings(spread: Floats) -> tuple[str, ...]:
    without = int((~(spread > 0)).sum())
    if not without:
        return ()
    return (
        CodedText(
            f"{without} of {len(spread)} annotators have no scale, having given one rating or the "
            "same one each time; their ratings were left out",
            code="no_scale",
        ),
    )
