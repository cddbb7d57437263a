from dataclasses import dataclass
from math import inf, nan, sqrt

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    complete_numbers,
    require,
    require_confidence,
    require_same_length,
)
from stats.jackknife import effective_freedom, mean_left_out
from stats.libraries import np, scipy


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
    require(
        n >= 2 and looks >= 1,
        "before must have at least two items, and looks be at least 1",
        code="too_few_items",
    )
    require(
        0 <= tolerance < inf,
        f"tolerance must be 0 or more, and finite, not {tolerance}",
        code="tolerance_out_of_range",
    )
    cluster = np.arange(n)
    if clusters is not None:
        require_same_length(before=before, clusters=clusters)
        cluster = coded(clusters, "clusters")[0]
    require(cluster.any(), "clusters must be two or more", code="too_few_clusters")
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
