"""Overlap of what two assessors call relevant: what both do, of what either does."""

from dataclasses import dataclass
from math import nan

import numpy as np

from error_codes import CodedText
from stats.agreement.intervals import jackknife_t
from stats.agreement.result import CiMethod, few_items_warnings
from stats.agreement.sums import Sums, by_cluster
from stats.arguments import Column, Floats, coded, require_confidence, require_same_length


@dataclass(frozen=True)
class LabelOverlap:
    """Items that both call relevant over items that either does.

    Attributes
    ----------
    value, ci_low, ci_high : float
        Between 0 and 1; NaN with the `reason`.
    method : str
        How the limits were computed.
    n_both, n_either, n_items : int
        Items that both call relevant, that either does, and all.
    reason : str or None
        Why what is NaN is undefined.
    warnings : tuple of str
    """

    value: float
    ci_low: float
    ci_high: float
    method: str
    n_both: int
    n_either: int
    n_items: int
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def relevant_overlap(
    first: Column, second: Column, clusters: Column, *, confidence: float = 0.95
) -> LabelOverlap:
    """The overlap of two assessors' relevant items, with an interval for new clusters (topics).

    Parameters
    ----------
    first, second : array-like of bool, shape (n_items,)
        Whether either calls the item relevant.
    clusters : array-like, shape (n_items,)
        The cluster of each item: its topic.
    confidence : float

    Returns
    -------
    LabelOverlap
        Of all items together; limits by the jackknife over clusters and Student's t, cut at 0
        and 1.

    Raises
    ------
    ValueError
        If the columns differ in length, a cluster is missing, or `confidence` is out of range.

    References
    ----------
    E. M. Voorhees (2000). Variations in relevance judgments and the measurement of retrieval
    effectiveness. Information Processing and Management 36(5), 697-716.
    B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9.

    Examples
    --------
    >>> overlap = relevant_overlap([1, 1, 0, 1], [1, 0, 0, 1], ["s", "s", "t", "t"])
    >>> round(overlap.value, 3), overlap.n_both, overlap.n_either
    (0.667, 2, 3)
    """
    require_confidence(confidence)
    n = require_same_length(first=first, second=second, clusters=clusters)
    one, other = (np.asarray(side, dtype=bool) for side in (first, second))
    both, either = one & other, one | other
    counts = int(both.sum()), int(either.sum()), n
    if not either.any():
        reason = (
            CodedText("neither calls an item relevant", code="nothing_relevant")
            if n
            else "no item is judged by both"
        )
        return LabelOverlap(nan, nan, nan, "none", *counts, reason)
    cluster, names = coded(clusters, "clusters")
    sums = Sums(by_cluster(cluster, len(names), both * 1.0, either * 1.0), _ratio)
    limits = jackknife_t(
        sums.value(), sums.without_each(), confidence, CiMethod.JACKKNIFE_CLUSTERS, least=0.0
    )
    return LabelOverlap(
        sums.value(),
        limits.low,
        limits.high,
        limits.method.value,
        *counts,
        limits.missing or None,
        few_items_warnings(n, len(names)),
    )


def _ratio(both: Floats, either: Floats) -> Floats:
    return np.asarray(both / either)
