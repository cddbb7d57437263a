"""Does the order of recommenders hold with people? Simulated outcomes against annotators' own.

For each target annotators saw the final items of all recommenders, blind and shuffled, and said
which would do. A simulated user has an outcome for each recommender and target, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any

from presentation.numbers import plain_values
from stats.arguments import Flags, Floats, require_confidence
from stats.correlation.pairwise_accuracy import one_less_error, p_by_normal, pair_differences
from stats.libraries import np, scipy
from stats.ranking.rank_similarity import tau_ap_b_rows, tau_b_rows
from stats.ranking.resampled_topics import (
    Similarity,
    similarities_over_topics,
    topic_samples,
    weighted_means,
)
from stats.ranking.topic_means import LEAST_OTHERS
from stats.significance.adjustments import holm

N_DRAWS = 1000
SIGNIFICANT = 0.05
LEAST_TARGETS = 20
SAME = 1e-12
COEFFICIENTS = ("tau_b", "tau_ap", "spa")
TAUS: dict[str, Similarity] = {"tau_b": "tau_b", "tau_ap": "tau_ap_b"}


@dataclass(frozen=True)
class Order:
    """How a user's order of recommenders agrees with people's, with intervals over targets: of tau
    as of rankings under two assessors, of soft pairwise accuracy percentiles.

    `alike`, `opposite` and `undecided` count the pairs that differ significantly with people, by
    what the simulated user says of them. `spa_gain` is against the first user, by the same draws.
    `reasons` say of coefficients why they, or their limits, are undefined.
    """

    user: str
    values: dict[str, float]
    limits: dict[str, tuple[float, float]]
    alike: int
    opposite: int
    undecided: int
    spa_gain: float = nan
    gain_limits: tuple[float, float] = (nan, nan)
    p: float = nan
    p_adjusted: float = nan
    reasons: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return {
            "user": self.user,
            "values": plain_values(self.values),
            "limits": {name: plain_limits(pair) for name, pair in self.limits.items()},
            "reasons": self.reasons,
            "alike": self.alike,
            "opposite": self.opposite,
            "undecided": self.undecided,
            "gain_limits": plain_limits(self.gain_limits),
            **plain_values({"spa_gain": self.spa_gain, "p": self.p, "p_adjusted": self.p_adjusted}),
        }


def plain_limits(limits: tuple[float, float]) -> list[float | None]:
    return [None if isnan(one) else one for one in limits]


def orders(
    human: Floats,
    simulated: Mapping[str, Floats],
    recommenders: Sequence[str],
    *,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> list[Order]:
    """Agreement of each user's order with people's; targets are drawn again, the same for all.

    The first user is what others are compared with (SimBase); p are two-sided, after Holm.
    """
    require_outcomes(human, simulated, recommenders, confidence)
    n_targets = human.shape[1]
    samples = topic_samples(n_targets, n_draws, seed)
    weights = np.vstack([np.ones(n_targets), samples.bootstrap])
    base, tail = None, (1 - confidence) / 2
    rows, p = [], []
    for name, simulated_values in simulated.items():
        spa = _spa(human, simulated_values, weights)
        taus = similarities_over_topics(
            human, simulated_values, list(TAUS.values()), samples=samples, confidence=confidence
        )
        found = dict(zip(TAUS, taus, strict=True))
        values = {each: one.value for each, one in found.items()} | {"spa": float(spa[0])}
        limits = {each: (one.ci_low, one.ci_high) for each, one in found.items()}
        limits["spa"] = _percentiles(spa[1:], tail)
        reasons = {each: one.reason for each, one in found.items() if one.reason}
        row = Order(name, values, limits, *_decided(human, simulated_values), reasons=reasons)
        p.append(nan)
        if base is None:
            base = spa
        else:
            gain = spa - base
            p[-1] = _two_sided(gain[1:])
            row = replace(
                row, spa_gain=float(gain[0]), gain_limits=_percentiles(gain[1:], tail), p=p[-1]
            )
        rows.append(row)
    return [
        replace(row, p_adjusted=float(adjusted))
        for row, adjusted in zip(rows, holm(p), strict=True)
    ]


def _spa(human: Floats, simulated: Floats, weights: Floats) -> Floats:
    p_human, p_simulated = (_pair_p(side, weights) for side in (human, simulated))
    return one_less_error(p_human, p_simulated, np.ones_like(p_human))


def _agreement(first: Floats, second: Floats) -> dict[str, float]:
    every = np.ones((1, first.shape[1]))
    here, there = weighted_means(first, every), weighted_means(second, every)
    return {
        "tau_b": float(tau_b_rows(here, there)[0]),
        "tau_ap": float(tau_ap_b_rows(here, there)[0]),
        "spa": float(_spa(first, second, every)[0]),
    }


def _pair_p(values: Floats, weights: Floats) -> Floats:
    """For each draw and pair how likely sign flips are to reach the difference; a half where the
    two do alike on every target, which says as little of the one as of the other."""
    gaps = pair_differences(values)
    gaps[np.abs(gaps) < SAME] = 0.0
    squares = weights @ (gaps**2).T
    return np.where(squares > 0, p_by_normal(weights @ gaps.T, squares), 0.5)


def _decided(human: Floats, simulated: Floats) -> tuple[int, int, int]:
    """Of pairs that differ with people, how many the user decides alike, oppositely, and not."""
    one = np.ones((1, human.shape[1]))
    p_human, p_simulated = (_pair_p(side, one)[0] for side in (human, simulated))
    verdicts = [_verdict(p) for p in p_human], [_verdict(p) for p in p_simulated]
    pairs = [(a, b) for a, b in zip(*verdicts, strict=True) if a]
    alike = sum(a == b for a, b in pairs)
    opposite = sum(a == -b for a, b in pairs)
    return alike, opposite, len(pairs) - alike - opposite


def _verdict(p: float) -> int:
    """1 or -1 if a two-sided test finds one better, otherwise 0."""
    return int(p < SIGNIFICANT / 2) - int(p > 1 - SIGNIFICANT / 2)


def _two_sided(draws: Floats) -> float:
    below, above = (draws <= 0).sum() + 1, (draws >= 0).sum() + 1
    return float(min(1.0, 2 * min(below, above) / (len(draws) + 1)))


def _percentiles(draws: Floats, tail: float) -> tuple[float, float]:
    defined = draws[~np.isnan(draws)]
    if len(defined) < 0.95 * len(draws):
        return nan, nan
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


@dataclass(frozen=True)
class Ceiling:
    """How far a user's agreement with people can reach.

    `halves` of the annotators against each other: less than can be reached, since both are of few.
    `attainable`, about what a user has who knows what people would say: all annotators against
    the same with the noise of so many once more.
    """

    halves: dict[str, float]
    attainable: dict[str, float]


def ceiling(ratings: Floats, *, n_splits: int = 100, seed: int = 0) -> Ceiling:
    """How well annotators agree with each other on the order, on average over splits in halves.

    `ratings` are (n_recommenders, n_targets, n_annotators), NaN where a target had fewer; whoever
    judged a target judged all its final items.
    """
    has = np.asarray(~np.isnan(ratings).any(axis=0))
    if ratings.ndim != 3 or (has.sum(axis=1) < 2).any():
        raise ValueError("ratings must have at least two annotators for each target")
    rng = np.random.default_rng(seed)
    everybody = _mean_of(ratings, has)
    halves, attainable = dict.fromkeys(COEFFICIENTS, 0.0), dict.fromkeys(COEFFICIENTS, 0.0)
    for _ in range(n_splits):
        place = np.where(has, rng.random(has.shape), np.inf).argsort(axis=1).argsort(axis=1)
        # Of an odd number the larger half is either.
        first = place < (has.sum(axis=1) + rng.integers(0, 2))[:, None] // 2
        one, other = (_mean_of(ratings, has & half) for half in (first, ~first))
        # Scaled to the variance that the mean of all of a target's annotators has.
        n_one, n_all = first.sum(axis=1), has.sum(axis=1)
        again = everybody + (one - other) * np.sqrt(n_one * (n_all - n_one)) / n_all
        for sums, pair in ((halves, (one, other)), (attainable, (everybody, again))):
            for name, value in _agreement(*pair).items():
                sums[name] += value / n_splits
    return Ceiling(halves, attainable)


def _mean_of(ratings: Floats, chosen: Flags) -> Floats:
    return np.asarray((np.nan_to_num(ratings) * chosen).sum(axis=2) / chosen.sum(axis=1))


def require_outcomes(
    human: Floats,
    simulated: Mapping[str, Floats],
    recommenders: Sequence[str],
    confidence: float,
) -> None:
    require_confidence(confidence)
    if human.ndim != 2 or len(human) != len(recommenders):
        raise ValueError("human must have a row for each recommender and a column for each target")
    if len(human) < 2 or human.shape[1] < LEAST_TARGETS:
        raise ValueError(f"human must have two recommenders and {LEAST_TARGETS} targets at least")
    if not simulated:
        raise ValueError("simulated must have at least one user")
    for name, values in {"human": human, **simulated}.items():
        if values.shape != human.shape or np.isnan(values).any():
            raise ValueError(f"the outcomes of {name} must be complete, in the shape of human's")


MARGIN = 0.05


@dataclass(frozen=True)
class Bias:
    """How much better a recommender is with a simulated user than with people.

    `equivalent` says whether two one-sided t tests over targets place it within the margin; None
    with the `reason` where they cannot say. `apart` is the bias less the mean of all
    recommenders': that alone changes their order.
    """

    user: str
    recommender: str
    bias: float
    ci_low: float
    ci_high: float
    p_equivalence: float
    equivalent: bool | None
    apart: float
    apart_low: float
    apart_high: float
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        return plain_values(vars(self))


def biases(
    human: Floats,
    simulated: Mapping[str, Floats],
    recommenders: Sequence[str],
    *,
    margin: float = MARGIN,
    confidence: float = 0.95,
) -> list[Bias]:
    """The bias of each simulated user for each recommender.

    Outcomes are (n_recommenders, n_targets): shares of annotators, and a user's values.
    """
    require_outcomes(human, simulated, recommenders, confidence)
    if not 0 < margin < 1:
        raise ValueError(f"margin must be above 0 and below 1, not {margin:g}")
    rows = []
    for user, values in simulated.items():
        gaps = values - human
        apart = gaps - gaps.mean(axis=0)
        for at, name in enumerate(recommenders):
            mean, low, high = _t_limits(gaps[at], confidence)
            reason = _too_alike(gaps[at])
            p = nan if reason else _equivalence(gaps[at], margin)
            equivalent = None if reason else p < 1 - confidence
            own = _t_limits(apart[at], confidence)
            rows.append(Bias(user, name, mean, low, high, p, equivalent, *own, reason))
    return rows


def _too_alike(gaps: Floats) -> str | None:
    """Why t tests of the gaps could not be relied on: where few targets differ from all others
    they find equivalence twice as often as they say."""
    _values, counts = np.unique(gaps.round(9), return_counts=True)
    n = int(len(gaps) - counts.max())
    if not n:
        return "the difference is the same for all targets"
    if n < LEAST_OTHERS:
        return f"of {len(gaps)} targets {n} differ from the others; {LEAST_OTHERS} are needed"
    return None


def _t_limits(values: Floats, confidence: float) -> tuple[float, float, float]:
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if spread < SAME:
        return mean, nan, nan
    half = (
        float(scipy.stats.t.ppf((1 + confidence) / 2, len(values) - 1))
        * spread
        / len(values) ** 0.5
    )
    return mean, mean - half, mean + half


def _equivalence(gaps: Floats, margin: float) -> float:
    """The larger p of two one-sided t tests (D. J. Schuirmann, 1987)."""
    below = scipy.stats.ttest_1samp(gaps, -margin, alternative="greater").pvalue
    above = scipy.stats.ttest_1samp(gaps, margin, alternative="less").pvalue
    return float(max(below, above))


@dataclass(frozen=True)
class Counterfactual:
    """A user chosen on some recommenders, predicting others.

    `error` is its root mean squared bias on the others, without what chance adds to it, and 0
    where that is all; `base_error` the first user's. `gain` is the difference of the mean squares,
    with limits over targets by the jackknife.
    """

    chosen: str
    chosen_in: dict[str, float]
    error: float
    base_error: float
    gain: float
    gain_limits: tuple[float, float]

    def record(self) -> dict[str, Any]:
        return vars(self) | {"gain_limits": plain_limits(self.gain_limits)}


def counterfactual(
    human: Floats,
    simulated: Mapping[str, Floats],
    recommenders: Sequence[str],
    chosen_on: Sequence[str],
    *,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Counterfactual:
    """Choose the user with the least bias on some recommenders, and test it on all others.

    `chosen_in` is the share of draws of targets in which each user is chosen. Squares, since a
    mean of absolute biases is raised by chance, the more the truer a user is: percentiles of the
    difference held the truth in .63 of studies where they should in .95.
    """
    require_outcomes(human, simulated, recommenders, confidence)
    is_known = np.isin(recommenders, chosen_on)
    if not is_known.any() or is_known.all():
        raise ValueError("chosen_on must name some of the recommenders, and not all")
    n_targets = human.shape[1]
    drawn = np.random.default_rng(seed).multinomial(
        n_targets, np.full(n_targets, 1 / n_targets), size=n_draws
    )
    weights = np.vstack([np.ones(n_targets), drawn])
    known = np.stack(
        [_squared_bias((values - human)[is_known], weights) for values in simulated.values()]
    )
    best, names = known.argmin(axis=0), list(simulated)
    chosen = names[best[0]]
    # All targets, and all but each.
    left_out = np.vstack([np.ones(n_targets), 1 - np.eye(n_targets)])
    base, own = (
        _squared_bias((simulated[name] - human)[~is_known], left_out) for name in (names[0], chosen)
    )
    gain = base - own
    counts = np.bincount(best[1:], minlength=len(names)) / n_draws
    return Counterfactual(
        chosen=chosen,
        chosen_in=dict(zip(names, counts.tolist(), strict=True)),
        error=_root(own[0]),
        base_error=_root(base[0]),
        gain=float(gain[0]),
        gain_limits=_jackknife_limits(gain, confidence),
    )


def _squared_bias(gaps: Floats, weights: Floats) -> Floats:
    """(n_weights,) The mean over recommenders of the squared bias, without bias of its own: of
    products of two targets' gaps, which (n_recommenders, n_targets) are, under weights of targets.
    """
    n = weights.sum(axis=1)
    products = (weights @ gaps.T) ** 2 - weights @ (gaps**2).T
    return np.asarray(products.mean(axis=1) / (n * (n - 1)))


def _root(square: float) -> float:
    return float(np.sqrt(max(square, 0.0)))


def _jackknife_limits(values: Floats, confidence: float) -> tuple[float, float]:
    """Limits by Student's t of a value, which is the first, and it without each target."""
    without = values[1:]
    n = len(without)
    error = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    if error < SAME:
        return nan, nan
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return float(values[0]) - half, float(values[0]) + half
