"""The bias of simulated users: how much better recommenders are with them than with people, by
recommender, and on recommenders that the user was not chosen by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from presentation.records import plain_values
from simulation.outcome_study import N_DRAWS, SAME, plain_limits, require_outcomes
from stats.arguments import Floats
from stats.ranking.topic_means import LEAST_OTHERS

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
    from scipy import stats

    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if spread < SAME:
        return mean, nan, nan
    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * spread / len(values) ** 0.5
    return mean, mean - half, mean + half


def _equivalence(gaps: Floats, margin: float) -> float:
    """The larger p of two one-sided t tests (D. J. Schuirmann, 1987)."""
    from scipy import stats

    below = stats.ttest_1samp(gaps, -margin, alternative="greater").pvalue
    above = stats.ttest_1samp(gaps, margin, alternative="less").pvalue
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
    from scipy import stats

    without = values[1:]
    n = len(without)
    error = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    if error < SAME:
        return nan, nan
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return float(values[0]) - half, float(values[0]) + half
