"""Whether a judge is sound: swayed by order, less agreed with where people are split, moved."""

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    complete_numbers,
    require_confidence,
    require_same_length,
)
from stats.inference.judge_accuracy import wilson
from stats.jackknife import effective_freedom, mean_left_out
from stats.libraries import scipy


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    """What a judge says of pairs that it saw in both orders.

    `consistency` is the share of pairs with the same winner both times, with Wilson's interval;
    `first_share` of the others that in which the first won both times, and `p` is the exact
    binomial test that it is one half.
    """

    consistency: float
    ci_low: float
    ci_high: float
    first_share: float
    p: float
    n: int


def position_bias(
    consistent: int, first_both_times: int, second_both_times: int, *, confidence: float = 0.95
) -> PositionBias:
    """Whether the order in which two outputs are shown sways a judge.

    Parameters
    ----------
    consistent, first_both_times, second_both_times : int
        Pairs judged in both orders: the same output won, the first place won, the second did.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    PositionBias

    Raises
    ------
    ValueError
        If a count is negative, there is no pair, or `confidence` is out of range.

    References
    ----------
    L. Zheng et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot Arena. NeurIPS.

    Examples
    --------
    >>> bias = position_bias(34, 11, 5)
    >>> bias.consistency, bias.first_share, round(bias.p, 2)
    (0.68, 0.6875, 0.21)
    """
    counts = (consistent, first_both_times, second_both_times)
    if min(counts) < 0 or not sum(counts):
        raise InvalidValue(
            f"counts must not be negative, and not all 0: {counts}", code="counts_out_of_range"
        )
    swayed = first_both_times + second_both_times
    low, high = wilson(consistent, sum(counts), confidence=confidence)
    return PositionBias(
        consistency=consistent / sum(counts),
        ci_low=low,
        ci_high=high,
        first_share=first_both_times / swayed if swayed else nan,
        p=float(scipy.stats.binomtest(first_both_times, swayed).pvalue) if swayed else nan,
        n=sum(counts),
    )


@dataclass(frozen=True, kw_only=True)
class AgreementByCertainty:
    """A judge's agreement with people where they are sure, and where they are not.

    `judge` is the mean share of annotators who say what the judge says (less the mean distance,
    for numbers); `people` the same of one annotator with the others: what can be expected.
    """

    group: str
    n: int
    judge: float
    people: float


def agreement_by_certainty(humans: Column, judge: Column) -> tuple[AgreementByCertainty, ...]:
    """Agreement where annotators are unanimous, and where they are split.

    Parameters
    ----------
    humans : array-like of float, shape (n_items, n_annotators)
        Codes of labels, NaN where there is none.
    judge : array-like of float, shape (n_items,)
        The judge's codes.

    Returns
    -------
    tuple of AgreementByCertainty
        Of ``unanimous`` and of ``split`` items with two labels or more.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    References
    ----------
    A. Elangovan et al. (2025). Beyond correlation: The impact of human uncertainty in measuring
    the effectiveness of automatic evaluation and LLM-as-a-judge. ICLR 2025.

    Examples
    --------
    >>> humans = [[0, 0, 0], [1, 1, 1], [0, 1, 1]]
    >>> groups = agreement_by_certainty(humans, [0, 1, 0])
    >>> [(one.group, one.n, round(one.judge, 2)) for one in groups]
    [('unanimous', 2, 1.0), ('split', 1, 0.33)]
    """
    table, said = np.asarray(humans, dtype=np.float64), np.asarray(judge, dtype=np.float64)
    if table.ndim != 2 or said.shape != table.shape[:1]:
        raise InvalidValue(
            "humans must have a row an item, and judge a value for each row", code="unequal_lengths"
        )
    known = ~np.isnan(table)
    usable = (known.sum(axis=1) >= 2) & ~np.isnan(said)
    low = np.where(known, table, np.inf).min(axis=1, initial=np.inf)
    high = np.where(known, table, -np.inf).max(axis=1, initial=-np.inf)
    groups = (("unanimous", usable & (low == high)), ("split", usable & (low < high)))
    return tuple(_by_group(name, table[rows], said[rows]) for name, rows in groups)


def _by_group(name: str, table: Floats, judge: Floats) -> AgreementByCertainty:
    if not len(table):
        return AgreementByCertainty(group=name, n=0, judge=nan, people=nan)
    known = ~np.isnan(table)
    count = known.sum(axis=1)
    of_judge = (table == judge[:, None]).sum(axis=1) / count
    alike = (table[:, :, None] == table[:, None, :]).sum(axis=(1, 2)) - count
    return AgreementByCertainty(
        group=name,
        n=len(table),
        judge=float(of_judge.mean()),
        people=float((alike / (count * (count - 1))).mean()),
    )


@dataclass(frozen=True, kw_only=True)
class Drift:
    """How a judge's scores of the same anchor items moved from one version to the next.

    `shift` is the later less the earlier mean with its interval, `p` two-sided, and `p_adjusted`
    times the number of looks. `p_beyond`, adjusted too, is that of a shift no larger than the
    tolerance: below .05 where the interval lies beyond it on one side. `n_moved` items have
    another score than before. `distance_before` and `distance_after` are the mean distances of
    the judge and the human ratings (less is better), NaN without human ratings.
    """

    shift: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float
    p_beyond: float
    n: int
    n_moved: int
    n_clusters: int
    distance_before: float
    distance_after: float
    distance_shift: float
    distance_ci_low: float
    distance_ci_high: float


def judge_shift(
    before: Column,
    after: Column,
    *,
    human: Column | None = None,
    clusters: Column | None = None,
    tolerance: float = 0.0,
    looks: int = 1,
    confidence: float = 0.95,
) -> Drift:
    """Whether a judge moved between two versions, on anchor items that both scored.

    Parameters
    ----------
    before, after : array-like of float, shape (n_items,)
        The judge's scores of the same items at two versions of its model or prompt.
    human : array-like of float, shape (n_items,), optional
        Human ratings on the same scale, to say whether the judge came nearer to people.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    tolerance : float
        A shift that does not matter, in either direction.
    looks : int
        How many versions are compared with the first one: p and confidence are adjusted for
        them by Bonferroni's method.
    confidence : float
        Confidence level of the intervals, all looks together.

    Returns
    -------
    Drift

    Raises
    ------
    ValueError
        If the columns differ in length or have a missing value, there are fewer than two items
        (or clusters), `looks` is below 1, `tolerance` is negative or not finite or `confidence`
        is out of range.

    References
    ----------
    Student (1908). The probable error of a mean. Biometrika 6(1), 1-25 (paired differences).

    Examples
    --------
    >>> drift = judge_shift([3, 4, 2, 5, 3, 4], [4, 4, 3, 5, 4, 5])
    >>> round(drift.shift, 2), round(drift.p, 3)
    (0.67, 0.025)
    """
    require_confidence(confidence)
    n = require_same_length(before=before, after=after)
    if n < 2 or looks < 1:
        raise InvalidValue(
            "before must have at least two items, and looks be at least 1", code="too_few_items"
        )
    if not 0 <= tolerance < inf:
        raise InvalidValue(
            f"tolerance must be 0 or more, and finite, not {tolerance}",
            code="tolerance_out_of_range",
        )
    cluster = np.arange(n)
    if clusters is not None:
        require_same_length(before=before, clusters=clusters)
        cluster = coded(clusters, "clusters")[0]
    if not cluster.any():
        raise InvalidValue("clusters must be two or more", code="too_few_clusters")
    one, other = complete_numbers(before, "before"), complete_numbers(after, "after")
    level = 1 - (1 - confidence) / looks
    shift = _paired(other - one, cluster, level, tolerance)
    distance = [nan] * 5
    if human is not None:
        require_same_length(before=before, human=human)
        people = complete_numbers(human, "human")
        far = [np.abs(side - people) for side in (one, other)]
        farther = _paired(far[1] - far[0], cluster, level)
        distance = [float(side.mean()) for side in far]
        distance += [farther.mean, farther.low, farther.high]
    return Drift(
        shift=shift.mean,
        ci_low=shift.low,
        ci_high=shift.high,
        p=shift.p,
        p_adjusted=min(shift.p * looks, 1.0),
        p_beyond=min(shift.p_beyond * looks, 1.0),
        n=n,
        n_moved=int((one != other).sum()),
        n_clusters=int(cluster.max()) + 1,
        distance_before=distance[0],
        distance_after=distance[1],
        distance_shift=distance[2],
        distance_ci_low=distance[3],
        distance_ci_high=distance[4],
    )


@dataclass(frozen=True)
class _Paired:
    mean: float
    low: float
    high: float
    p: float
    p_beyond: float


def _paired(
    difference: Floats, cluster: Integers, confidence: float, tolerance: float = 0.0
) -> _Paired:
    """A mean difference, with its error by leaving out clusters."""
    mean, count = float(difference.mean()), int(cluster.max()) + 1
    left_out = mean_left_out(difference - mean, cluster)
    se, freedom = sqrt(left_out.variance), effective_freedom(left_out.effective)
    if se <= 1e-12 * max(abs(mean), 1.0):
        # every item moved alike: a share of items that moved says how sure that is
        p = float(scipy.stats.binomtest(count, count).pvalue) if mean else 1.0
        return _Paired(mean, nan, nan, p, p if abs(mean) > tolerance else 1.0)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * se
    beyond = max(abs(mean) - tolerance, 0.0)
    p, p_beyond = (float(2 * scipy.stats.t.sf(far / se, freedom)) for far in (abs(mean), beyond))
    return _Paired(mean, mean - half, mean + half, p, p_beyond)
