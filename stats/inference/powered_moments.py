from dataclasses import dataclass
from math import nan

import numpy as np

from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded,
    complete_numbers,
    numbers,
    require,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.jackknife import effective_number

# Scores whose range is a smaller share of their size are all equal.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Rules:
    power: float | None
    small_sample: bool
    confidence: float


@dataclass(frozen=True)
class Moments:
    """A mean by prediction-powered inference and by people alone, with their variances.

    `power` is lambda in the judge's units, below 0 if lower scores go with higher ratings, and
    `judge_spread` is the judge's standard deviation over people's: the product has no unit.
    """

    power: float
    judge_spread: float
    value: float
    variance: float
    freedom: float
    people: float
    people_variance: float
    people_freedom: float
    # Labels, or clusters that have any.
    count: int


def checked_columns(
    human: Column, judge: Column, clusters: Column | None, rules: Rules
) -> tuple[Floats, Floats, Integers | None]:
    """Human ratings (NaN where there is none), the judge's scores, and codes of clusters.

    Raises
    ------
    ValueError
        If the columns differ in length, `judge` or a cluster is missing, or lambda or the
        confidence level is out of range.

    Examples
    --------
    >>> checked_columns([1, None], [2, 3], ["a", "a"], Rules(None, True, 0.95))[2].tolist()
    [0, 0]
    """
    require_confidence(rules.confidence)
    require_same_length(human=human, judge=judge)
    require(
        rules.power is None or 0 <= rules.power <= 1,
        f"power must lie between 0 and 1, not {rules.power}",
        code="power_out_of_range",
    )
    cluster = None
    if clusters is not None:
        require_same_length(human=human, clusters=clusters)
        cluster = coded(clusters, "clusters")[0]
    return numbers(human, "human"), complete_numbers(judge, "judge"), cluster


def moments_of(y: Floats, f: Floats, cluster: Integers | None, rules: Rules) -> Moments:
    """A mean by people's ratings of some and a judge's scores of all, and its variance.

    Parameters
    ----------
    y : ndarray of float, shape (n_items,)
        What people say, NaN where they were not asked.
    f : ndarray of float, shape (n_items,)
        What the judge says.
    cluster : ndarray of int, shape (n_items,), or None
        Codes of clusters from 0, where items are not independent.
    rules : Rules
        As of `stats.inference.powered_means.prediction_powered_mean`, which has the formula
        and its source.

    Returns
    -------
    Moments

    Examples
    --------
    >>> y, f = np.array([1.0, 2, 3, np.nan, np.nan]), np.array([1.0, 2, 3, 4, 5])
    >>> moments_of(y, f, None, Rules(1.0, False, 0.95)).value
    4.5
    """
    labelled, f = ~np.isnan(y), centered_scores(f)
    if cluster is None:
        return _of_items(y[labelled], f[labelled], f[~labelled], rules)
    return _of_clusters(y, f, cluster, labelled, rules)


def centered_scores(f: Floats) -> Floats:
    """A judge's scores less their mean; zeros if they are equal up to rounding.

    Examples
    --------
    >>> centered_scores(np.array([0.1, 0.1, 0.1])).tolist()
    [0.0, 0.0, 0.0]
    """
    if not len(f) or np.ptp(f) <= ROUNDING * np.abs(f).max():
        return np.zeros(len(f))
    return np.asarray(f - f.mean(), dtype=np.float64)


def _of_items(y: Floats, f: Floats, rest: Floats, rules: Rules) -> Moments:
    n, n_rest = len(y), len(rest)
    power = rules.power
    if power is None:
        power = _tuned_power(y, f, rest)
    if not n_rest:
        power = 0.0
    residual = y - power * f
    spare = _spare_labels(n, rules, tuned=power != 0)
    variance = float(np.square(residual - residual.mean()).sum()) / spare / n if n else nan
    value = float(residual.mean()) if n else nan
    if n_rest and power:
        value += power * float(rest.mean())
        alone = n_rest < 2  # of one item all scores say the spread
        spread = float((np.concatenate([f, rest]) if alone else rest).var(ddof=rules.small_sample))
        variance += power**2 * spread / n_rest
    people_spare = n - 1 if rules.small_sample else n
    people_variance = float(np.square(y - y.mean()).sum()) / max(people_spare, 1) / n if n else nan
    return Moments(
        power=power,
        judge_spread=float(f.std() / y.std()) if n and y.std() > 0 else 0.0,
        value=value,
        variance=variance,
        freedom=_degrees_of_freedom(n, rules, tuned=power != 0),
        people=float(y.mean()) if n else nan,
        people_variance=people_variance,
        people_freedom=_degrees_of_freedom(n, rules, tuned=False),
        count=n,
    )


def _tuned_power(y: Floats, f: Floats, rest: Floats) -> float:
    """The lambda of least variance.

    The authors limit it to 0 to 1. In the judge's units that would make the result depend on them;
    after a regression of `y` on `f` it is ``1 / (1 + n / n_rest)``, which needs no limit.
    """
    n, n_rest = len(y), len(rest)
    if n < 2 or not n_rest:
        return 0.0
    covariance = float(((y - y.mean()) * (f - f.mean())).mean())
    spread = float(np.concatenate([f, rest]).var(ddof=1))
    return covariance / ((1 + n / n_rest) * spread) if spread > 0 else 0.0


def _spare_labels(n: int, rules: Rules, *, tuned: bool) -> int:
    """What a sum of squares is divided by: the tuning takes one more."""
    return max(n - (2 if tuned else 1), 1) if rules.small_sample else n


def _degrees_of_freedom(n: float, rules: Rules, *, tuned: bool) -> float:
    return float(n - (2 if tuned else 1)) if rules.small_sample else np.inf


def _of_clusters(y: Floats, f: Floats, cluster: Integers, labelled: Flags, rules: Rules) -> Moments:
    """Linearised: what each cluster moves the means by, and the sum of its squares."""
    n_clusters = int(cluster.max(initial=-1)) + 1
    left_out = rules.small_sample
    moved_y = _moves(np.nan_to_num(y), labelled, cluster, n_clusters, left_out=left_out)
    moved_f = _moves(f, labelled, cluster, n_clusters, left_out=left_out)
    moved_rest = _moves(f, ~labelled, cluster, n_clusters, left_out=left_out)
    sizes = np.bincount(cluster[labelled], minlength=n_clusters)
    has_labels, effective = sizes > 0, effective_number(sizes)
    count, count_rest = int(has_labels.sum()), int((~has_labels).sum())
    means = [float(f[part].mean()) if part.any() else nan for part in (labelled, ~labelled)]
    mixed = bool(has_labels[cluster[~labelled]].any())
    gap = moved_f - moved_rest
    power = rules.power
    if power is None and mixed:
        power = _limited(float(moved_y @ gap), float(gap @ gap), moved_y, moved_f)
    elif power is None:
        # each cluster's value in a mean of clusters: its own mean, where all are of one size
        power = _tuned_power(
            count * moved_y[has_labels],
            means[0] + count * moved_f[has_labels],
            means[1] + count_rest * moved_rest[~has_labels],
        )
    power = power if (~labelled).any() else 0.0
    spare = _spare_labels(count, rules, tuned=power != 0)
    if mixed:
        variance = float(np.square(moved_y - power * gap).sum()) * count / spare
    else:
        variance = float(np.square(moved_y - power * moved_f).sum()) * count / spare
        if count_rest < 2:  # of one cluster those of the labelled ones say the spread
            of_rest = float(np.square(moved_f).sum()) * count**2 / max(count - 1, 1)
        else:
            of_rest = float(np.square(moved_rest).sum()) * count_rest
            of_rest /= count_rest - rules.small_sample
        variance += power**2 * of_rest
    people = float(y[labelled].mean()) if labelled.any() else nan
    people_spare = max(count - rules.small_sample, 1)
    spread_y = float(moved_y @ moved_y)
    return Moments(
        power=power,
        judge_spread=float(np.sqrt(moved_f @ moved_f / spread_y)) if spread_y > 0 else 0.0,
        value=people + (power * (means[1] - means[0]) if power else 0.0),
        variance=variance,
        freedom=max(_degrees_of_freedom(effective, rules, tuned=power != 0), 1.0),
        people=people,
        people_variance=float(np.square(moved_y).sum()) * count / people_spare,
        people_freedom=max(_degrees_of_freedom(effective, rules, tuned=False), 1.0),
        count=count,
    )


def _limited(product: float, squares: float, moved_y: Floats, moved_f: Floats) -> float:
    """Their ratio, between 0 and the slope of people's ratings on the judge's scores."""
    own = float(moved_f @ moved_f)
    if not squares > 0 or not own > 0:
        return 0.0
    slope = float(moved_y @ moved_f) / own
    return float(np.clip(product / squares, min(slope, 0.0), max(slope, 0.0)))


def _moves(
    values: Floats, chosen: Flags, cluster: Integers, n_clusters: int, *, left_out: bool
) -> Floats:
    """By how much each cluster moves the mean of the chosen items; with `left_out` by how much that
    moves without it, times a factor that makes both the same for equally large clusters."""
    if not chosen.any():
        return np.zeros(n_clusters)
    residual, n = values[chosen] - values[chosen].mean(), int(chosen.sum())
    sums = sum_by(cluster[chosen], residual, n_clusters) / n
    sizes = np.bincount(cluster[chosen], minlength=n_clusters)
    if not left_out or sizes.max() == n:
        return sums
    return sums * (1 - 1 / np.count_nonzero(sizes)) / (1 - sizes / n)
