"""Outcome studies of crowds and simulated users that are known, for `benchmarks.coverage`."""

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau

from benchmarks.coverage_cases import Floats, IntervalCase, Limits, TestCase
from simulation.outcome_study import MARGIN, Order, biases, counterfactual, orders

ABLE = np.linspace(-1.0, 1.0, 6)
"""Logits of the recommenders' final items doing, over all targets."""

TARGET_SD, ITEM_SD = 0.6, 0.6
N_ANNOTATORS = 5
N_DRAWS = 400
ERRS = {
    "true": np.zeros(6),
    "generous": np.full(6, 0.6),
    "favours some": np.array([0.9, 0.0, 0.0, 0.0, 0.0, -0.9]),
}
"""What simulated users add to the logits."""


def _names() -> list[str]:
    return [f"r{n}" for n in range(len(ABLE))]


@lru_cache
def _mean(at: float) -> float:
    """How often an item does whose logit is this on average."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    values = expit(at + np.hypot(TARGET_SD, ITEM_SD) * points)
    return float(values @ weights / weights.sum())


def _means(err: Floats) -> Floats:
    return np.array([_mean(float(at)) for at in ABLE + err])


def crowd(rng: np.random.Generator, n_targets: int, *errs: Floats) -> tuple[Floats, list[Floats]]:
    """Shares of annotators for each recommender and target, and each user's outcomes."""
    shape = len(ABLE), n_targets
    logits = ABLE[:, None] + rng.normal(0, TARGET_SD, n_targets) + rng.normal(0, ITEM_SD, shape)
    human = rng.binomial(N_ANNOTATORS, expit(logits)) / N_ANNOTATORS
    users = [(rng.random(shape) < expit(logits + err[:, None])).astype(float) for err in errs]
    return human, users


def bias(rng: np.random.Generator, *, user: str, n_targets: int, what: str) -> Limits:
    """Of the first recommender, which the third user is most wrong of."""
    human, [simulated] = crowd(rng, n_targets, ERRS[user])
    row = biases(human, {user: simulated}, _names())[0]
    truth = _means(ERRS[user]) - _means(ERRS["true"])
    if what == "bias":
        return row.ci_low, row.ci_high, float(truth[0])
    return row.apart_low, row.apart_high, float(truth[0] - truth.mean())


def _order(rng: np.random.Generator, user: str, n_targets: int) -> Order:
    human, [simulated] = crowd(rng, n_targets, ERRS[user])
    seed = int(rng.integers(2**31))
    [row] = orders(human, {user: simulated}, _names(), n_draws=N_DRAWS, seed=seed)
    return row


def order(rng: np.random.Generator, *, user: str, n_targets: int, what: str) -> Limits:
    low, high = _order(rng, user, n_targets).limits[what]
    return low, high, _true_order(user, n_targets, what)


@lru_cache
def _true_order(user: str, n_targets: int, what: str) -> float:
    """Of tau over all targets; of soft pairwise accuracy, which grows with targets since it
    counts what is decided, its mean over studies of as many."""
    if what == "tau_b":
        return float(kendalltau(_means(ERRS["true"]), _means(ERRS[user])).statistic)
    rng = np.random.default_rng(20_261_126)
    studies = [_order(rng, user, n_targets).values[what] for _ in range(1000)]
    return float(np.mean(studies))


def truer(rng: np.random.Generator, differs: bool, *, n_targets: int) -> float:
    """Of soft pairwise accuracy: both users err alike, or the second is true."""
    human, users = crowd(
        rng, n_targets, ERRS["favours some"], ERRS["true" if differs else "favours some"]
    )
    seed = int(rng.integers(2**31))
    named = dict(zip(("first", "second"), users, strict=True))
    return orders(human, named, _names(), n_draws=N_DRAWS, seed=seed)[1].p


def equivalent(rng: np.random.Generator, differs: bool, *, n_targets: int) -> float:
    """Equivalence of a user who errs by just the margin, or not at all, for one recommender."""
    err = np.zeros(len(ABLE))
    err[0] = 0.0 if differs else _logit_apart()
    human, [simulated] = crowd(rng, n_targets, err)
    return biases(human, {"user": simulated}, _names())[0].p_equivalence


@lru_cache
def _logit_apart() -> float:
    """What raises the first recommender's mean by the margin, by halving."""
    low, high = 0.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        is_more = _mean(float(ABLE[0]) + middle) - _mean(float(ABLE[0])) > MARGIN
        low, high = (low, middle) if is_more else (middle, high)
    return low


def gain(rng: np.random.Generator, *, n_targets: int) -> Limits:
    """Of a user chosen on four recommenders on the other two, whom the choice is clear about."""
    errs = {"generous": ERRS["generous"], "true": ERRS["true"]}
    human, users = crowd(rng, n_targets, *errs.values())
    named, names = dict(zip(errs, users, strict=True)), _names()
    seed = int(rng.integers(2**31))
    found = counterfactual(human, named, names, names[:4], n_draws=N_DRAWS, seed=seed)
    # That of the user who was chosen in this study.
    squares = {name: (_means(err) - _means(ERRS["true"]))[4:] ** 2 for name, err in errs.items()}
    truth = (squares["generous"] - squares[found.chosen]).mean()
    return *found.gain_limits, float(truth)


def outcome_intervals() -> Iterator[IntervalCase]:
    for what, user, n_targets in product(("bias", "apart"), ("true", "favours some"), (40, 200)):
        draw = partial(bias, user=user, n_targets=n_targets, what=what)
        yield IntervalCase("outcomes", f"{what}, {user}, {n_targets} targets", draw)
    for what, user, n_targets in product(("tau_b", "spa"), ("true", "favours some"), (40, 200)):
        draw = partial(order, user=user, n_targets=n_targets, what=what)
        yield IntervalCase("outcomes", f"{what}, {user}, {n_targets} targets", draw)
    for n_targets in (40, 200):
        draw = partial(gain, n_targets=n_targets)
        yield IntervalCase("outcomes", f"counterfactual gain, {n_targets} targets", draw)


def outcome_tests() -> Iterator[TestCase]:
    for n_targets in (40, 200):
        yield TestCase(
            "outcomes", f"truer, {n_targets} targets", partial(truer, n_targets=n_targets)
        )
    for n_targets in (200, 1000):
        yield TestCase(
            "outcomes", f"equivalent, {n_targets} targets", partial(equivalent, n_targets=n_targets)
        )
