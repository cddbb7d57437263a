from dataclasses import dataclass, replace

import numpy as np

from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    numbers,
    require,
    require_same_length,
    sum_by,
)
from stats.inference.powered_means import PredictionPowered, Withheld, notes_of_skewness, result_of
from stats.inference.powered_moments import (
    Moments,
    Rules,
    centered_scores,
    checked_columns,
)


def batch_weights(human: Column, batch: Column, probability: Column) -> Floats:
    """How much each rating counts in a mean over all items; the weights sum to 1.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        The human rating of each item, NaN for an item without one.
    batch : array-like of float, shape (n_items,)
        The number of the batch that sent an item first, in their order; NaN for an item that none
        has sent. A rated item without one counts as rated before the first.
    probability : array-like of float, shape (n_items,)
        The chance with which its batch drew it from the items that were left then; NaN for one
        that was picked by hand.

    Returns
    -------
    ndarray of float, shape (n_items,)
        0 for an item without a rating, and for one picked by hand after the last drawn batch.
        All 0 where no batch that was drawn has a rating.

    Raises
    ------
    ValueError
        If the columns differ in length, a probability is not above 0 and at most 1, or a batch
        has items with a probability and others without.

    Notes
    -----
    Whatever the batches before have shown, a drawn batch estimates the total of the items that
    were left by Hájek's ratio, ``R sum(y / p) / sum(1 / p)``; with the ratings from before it
    estimates that of all items. These estimates, one a batch, are martingale differences about
    the truth, so that chances may follow from earlier ratings. They are averaged by weights that
    rest on counts alone: the inverse of ``(R / N)^2 (1 / m - 1 / R)`` for m ratings of R items
    that were left. What a batch has not brought in yet is taken to be like what it has. Items
    picked by hand count for themselves only.

    References
    ----------
    T. Zrnic and E. J. Candes (2024). Active statistical inference. ICML 2024, section 5.
    J. Hajek (1971). Comment on an essay by D. Basu. In: Foundations of Statistical Inference.

    Examples
    --------
    >>> batch_weights([4, 2, np.nan, np.nan], [1, 1, np.nan, np.nan], [0.5] * 4).tolist()
    [0.5, 0.5, 0.0, 0.0]
    >>> chance = [0.25, 0.9, 0.3, np.nan]
    >>> batch_weights([4, 2, 3, np.nan], [1, 2, 2, np.nan], chance).round(3).tolist()
    [0.333, 0.167, 0.5, 0.0]
    """
    require_same_length(human=human, batch=batch, probability=probability)
    y, order, chance = (
        numbers(human, "human"),
        numbers(batch, "batch"),
        numbers(probability, "probability"),
    )
    known = ~np.isnan(y)
    order = np.where(np.isnan(order) & known, -np.inf, order)
    _require_chances(order, chance)
    weights, total = np.zeros(len(y)), 0.0
    for number in np.unique(order[~np.isnan(order)]):
        sent = order == number
        before = order < number
        if np.isnan(chance[sent]).any() or not _has_ratings(order, known, upto=number):
            continue
        part, variance = _estimate_of_batch(sent, before, order, known, chance)
        if variance <= 0:
            return part  # all that was left is rated: nothing is estimated
        weights, total = weights + part / variance, total + 1 / variance
    return weights / total if total else weights


def _require_chances(order: Floats, chance: Floats) -> None:
    drawn = np.isfinite(order) & ~np.isnan(chance)
    require(
        not ((chance[drawn] <= 0) | (chance[drawn] > 1)).any(),
        "probability must be above 0 and at most 1",
        code="probability_out_of_range",
    )
    for number in np.unique(order[drawn]):
        require(
            not np.isnan(chance[order == number]).any(),
            f"probability must be given for every item of batch {number:g}",
            code="probability_missing",
        )


def _has_ratings(order: Floats, known: Flags, *, upto: float) -> bool:
    """Whether this batch and each before it has a rating; those that have none say nothing yet."""
    return all(known[order == number].any() for number in np.unique(order[order <= upto]))


def _estimate_of_batch(
    sent: Flags, before: Flags, order: Floats, known: Flags, chance: Floats
) -> tuple[Floats, float]:
    """The weights of one batch's estimate, and its variance as far as counts tell."""
    n, n_before = len(order), int(before.sum())
    n_left, rated = n - n_before, sent & known
    weights = np.zeros(n)
    inverse = 1 / chance[rated]
    weights[rated] = n_left / n * inverse / inverse.sum()
    for number in np.unique(order[before]):
        earlier = order == number
        weights[earlier & known] = earlier.sum() / n / (earlier & known).sum()
    m = int(rated.sum())
    return weights, float((n_left / n) ** 2 * (1 / m - 1 / n_left))


@dataclass(frozen=True)
class _Weighted:
    y: Floats
    f: Floats
    weight: Floats
    all_f: Floats

    def slope(self) -> float:
        f = self.f - self.weight @ self.f
        spread = float(self.weight @ np.square(f))
        return float(self.weight @ (f * self.y)) / spread if spread > 0 else 0.0

    def judge_spread(self) -> float:
        f, y = (side - self.weight @ side for side in (self.f, self.y))
        spread = float(self.weight @ np.square(y))
        return float(np.sqrt(self.weight @ np.square(f) / spread)) if spread > 0 else 0.0


def sampled_mean(
    human: Column,
    judge: Column,
    batch: Column,
    probability: Column,
    *,
    clusters: Column | None = None,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean human rating of all items, from batches drawn with recorded chances and a judge.

    Parameters
    ----------
    human, batch, probability : array-like of float, shape (n_items,)
        As of `batch_weights`.
    judge : array-like of float, shape (n_items,)
        The judge's score of each item, in any unit; lower scores may go with higher ratings.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    PredictionPowered
        `power` is the share of the way from people alone to the regression on the judge's scores.
        With a reason and no interval where no drawn batch has a rating, and as of
        `prediction_powered_mean`.

    Raises
    ------
    ValueError
        As of `batch_weights`, or if `judge` or a cluster has a missing value or `confidence` is
        out of range.

    Notes
    -----
    ``value = b mean(judge) + sum(w (human - b judge))`` with the weights w of `batch_weights`
    and b the weighted least-squares slope. Its variance is the sum of squares, by
    cluster, of ``b (judge - mean) / N + w (residual - its mean)``, which holds for new items of
    the same kind. The residuals' part is divided by (k - 2) / k for k = 1 / sum(w^2) ratings' worth
    of weights; Student's t has k - 2 degrees of freedom. Drawn at random at once, the value and its
    variance are those of `prediction_powered_mean`.

    References
    ----------
    T. Zrnic and E. J. Candes (2024). Active statistical inference. ICML 2024.
    C.-E. Sarndal, B. Swensson and J. Wretman (1992). Model assisted survey sampling, chapter 6.

    Examples
    --------
    >>> human, judge = [4, 2, 5, 3, 1, 4] + [np.nan] * 6, [4, 2, 5, 3, 1, 4, 2, 5, 3, 3, 1, 4]
    >>> chance = [0.5] * 6 + [np.nan] * 6
    >>> result = sampled_mean(human, judge, [1] * 6 + [np.nan] * 6, chance)
    >>> round(result.value, 3), result.n_labelled
    (3.083, 6)
    """
    rules = Rules(None, True, confidence)
    y, f, cluster = checked_columns(human, judge, clusters, rules)
    weight = batch_weights(human, batch, probability)
    counted = weight > 0
    y = np.where(counted, y, np.nan)
    if not counted.any():
        known = ~np.isnan(numbers(human, "human"))
        reason = Withheld.NO_PROBABILITIES if known.any() else Withheld.NO_LABELS
        return replace(result_of(NOTHING, y, f, rules), reason=reason)
    codes = np.arange(len(y)) if cluster is None else cluster
    f = centered_scores(f)
    moments = _moments(_Weighted(y[counted], f[counted], weight[counted], f), counted, codes)
    result = result_of(moments, y, f, rules)
    return replace(result, notes=(*result.notes, *notes_of_skewness(moments, y, f)))


def _moments(one: _Weighted, counted: Flags, cluster: Integers) -> Moments:
    slope = one.slope() if len(one.y) > 2 and len(one.all_f) > len(one.y) else 0.0
    n, n_clusters = len(one.all_f), int(cluster.max()) + 1
    worth = _worth(one.weight, cluster[counted], n_clusters)
    fitted = slope * (one.all_f - one.all_f.mean()) / n
    value, variance = _part(one, slope, fitted, counted, cluster, worth - (2 if slope else 1))
    people, people_variance = _part(one, 0.0, np.zeros(n), counted, cluster, worth - 1)
    share = n / (n - len(one.y)) if n > len(one.y) else 1.0
    return Moments(
        power=slope / share,
        judge_spread=one.judge_spread(),
        value=value,
        variance=variance,
        freedom=worth - (2 if slope else 1),
        people=people,
        people_variance=people_variance,
        people_freedom=worth - 1,
        count=len(np.unique(cluster[counted])),
    )


def _worth(weight: Floats, cluster: Integers, n_clusters: int) -> float:
    """How many ratings, or clusters of them, of equal weight would be as few."""
    return float(1 / np.square(sum_by(cluster, weight, n_clusters)).sum())


def _part(
    one: _Weighted,
    slope: float,
    fitted: Floats,
    counted: Flags,
    cluster: Integers,
    spare: float,
) -> tuple[float, float]:
    residual = one.y - slope * one.f
    centre = float(one.weight @ residual)
    n_clusters = int(cluster.max()) + 1
    moved = np.zeros(len(fitted))
    moved[counted] = one.weight * (residual - centre)
    worth = _worth(one.weight, cluster[counted], n_clusters)
    scale = np.sqrt(worth / spare) if spare > 0 else np.inf
    sums = sum_by(cluster, fitted, n_clusters) + scale * sum_by(cluster, moved, n_clusters)
    return slope * float(one.all_f.mean()) + centre, float(np.square(sums).sum())


NOTHING = Moments(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, 0)
