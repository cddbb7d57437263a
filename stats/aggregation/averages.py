"""What the averages of each item's ratings have in common: order, errors and limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stats.aggregation.crowd import Ratings
from stats.aggregation.result import (
    Aggregation,
    Reason,
    annotator_table,
    name_of,
    repeat_warnings,
    value_table,
)
from stats.arguments import Floats, Integers
from stats.libraries import pd, scipy


def sorted_positions(ratings: Ratings) -> tuple[Integers, Integers, Integers]:
    """Rows by item and ascending value; where each item starts; how many rows it has."""
    order = np.lexsort((ratings.value, ratings.item))
    size = np.bincount(ratings.item, minlength=len(ratings.items))
    return order, np.cumsum(size) - size, size


def student_margin(se: Floats, freedom: Floats, confidence: float) -> Floats:
    """Half the width of a t interval; NaN without a degree of freedom."""
    degrees = np.where(freedom > 0, freedom, np.nan)
    return np.asarray(scipy.stats.t.ppf(0.5 + confidence / 2, degrees) * se)


def few_label_reasons(undefined: NDArray[np.bool_], size: Integers) -> list[Reason | None]:
    """Why an item has no interval: one label, or too few of them."""
    return [
        (Reason.ONE_LABEL if count == 1 else Reason.TOO_FEW_LABELS) if missing else None
        for missing, count in zip(undefined.tolist(), size.tolist(), strict=True)
    ]


def average(
    signature: str, ratings: Ratings, label: Floats, se: Floats, margin: Floats, size: Integers
) -> Aggregation:
    """The result of an average with a symmetric interval."""
    reasons = few_label_reasons(np.isnan(margin), size)
    limits = (label - margin, label + margin)
    return averaged(signature, ratings, value_table(ratings, label, se, limits, reasons))


def averaged(signature: str, ratings: Ratings, labels: pd.DataFrame) -> Aggregation:
    """The result of an average: the labels, and how each annotator departs from them."""
    bias, spread = departures(ratings, labels["label"].to_numpy())
    return Aggregation(
        method=name_of(signature),
        signature=signature,
        labels=labels,
        annotators=annotator_table(ratings, bias=bias, error_sd=spread),
        warnings=repeat_warnings(ratings),
    )


def departures(ratings: Ratings, label: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each annotator's ratings about the items' labels."""
    error = ratings.value - label[ratings.item]
    count = ratings.labels_per_annotator
    bias = ratings.per_annotator(error) / count
    squares = ratings.per_annotator((error - bias[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return bias, np.sqrt(squares / (count - 1))
