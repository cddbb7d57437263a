"""Switching and outcome studies whose truth is known, for `benchmarks.coverage`."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import django
import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import kendalltau

from benchmarks.interval_cases.cases import IntervalCase, Limits, TestCase, limits
from stats.arguments import Floats

# The simulation's modules import models.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from simulation.outcome_study import MARGIN, Order, biases, counterfactual, orders  # noqa: E402
from simulation.switching import compare_users, switching_study  # noqa: E402
from simulation.users import meta_sim_prob  # noqa: E402

WORKER_SD, TARGET_SD = 0.8, 0.4
N_TARGETS, N_EACH = 40, 20


@dataclass(frozen=True)
class Rule:
    """Logits of switching after a gain, and what a loss adds; and the share who leave."""

    after_gain: float
    loss: float
    leaves: float = 0.1

    def probability(self, loss: float) -> float:
        return average_logit(self.after_gain + loss * self.loss, (WORKER_SD, TARGET_SD))


RULES = {"as the article": Rule(-3.0, 4.0), "hardly": Rule(-2.0, 0.5)}


@lru_cache
def average_logit(logit: float, sds: tuple[float, float]) -> float:
    """The probability of a logit, averaged over two normal differences with these deviations."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(expit(logit + np.hypot(*sds) * points) @ weights / weights.sum())


def draw_decisions(rng: np.random.Generator, rule: Rule, n_workers: int) -> pd.DataFrame:
    n = n_workers * N_EACH
    worker, target = np.repeat(np.arange(n_workers), N_EACH), rng.integers(0, N_TARGETS, n)
    delta = rng.choice([-1.0, 1.0], n) * rng.uniform(0.05, 1, n)
    logit = rule.after_gain + rule.loss * (delta < 0)
    logit = logit + rng.normal(0, WORKER_SD, n_workers)[worker]
    logit = logit + rng.normal(0, TARGET_SD, N_TARGETS)[target]
    choice = np.where(rng.random(n) < expit(logit), "switch", "keep")
    return pd.DataFrame(
        {
            "worker": worker,
            "target": target,
            "turn": rng.integers(2, 9, n),
            "delta": delta,
            "choice": np.where(rng.random(n) < rule.leaves, "leave", choice),
        }
    )


def switching(rng: np.random.Generator, *, rule: str, n_workers: int, what: str) -> Limits:
    one = RULES[rule]
    study = switching_study(draw_decisions(rng, one, n_workers))
    if what == "P after a loss":
        return limits(study.after_loss, one.probability(1))
    if what == "P after a gain":
        return limits(study.after_gain, one.probability(0))
    return limits(study.model[what], one.loss if what == "loss" else 0.0)


def truer(rng: np.random.Generator, differs: bool, *, n_workers: int) -> float:
    """Of two users one is true and one has the wrong sign; or both err by as much, one to
    either side of how often people switch after a loss."""
    rule = RULES["as the article"]
    p = rule.probability(1)
    users = [meta_sim_prob(0, p - 0.1), meta_sim_prob(0, p + 0.1)]
    if differs:
        users = [meta_sim_prob(0, p, switches_on="gain"), meta_sim_prob(0, p)]
    fits = compare_users(draw_decisions(rng, rule, n_workers), users, seed=int(rng.integers(2**31)))
    return next(fit.p for fit in fits if fit.user == users[1].name)


def switching_intervals() -> Iterator[IntervalCase]:
    for rule, what in product(RULES, ("loss", "turn", "P after a loss", "P after a gain")):
        yield IntervalCase(
            "switching",
            f"{what}, {rule}, 40 workers",
            partial(switching, rule=rule, n_workers=40, what=what),
        )


def switching_tests() -> Iterator[TestCase]:
    for n_workers in (20, 40):
        yield TestCase(
            "switching", f"truer, {n_workers} workers", partial(truer, n_workers=n_workers)
        )


# Logits of the recommenders' final items doing, over all targets.
ABLE = np.linspace(-1.0, 1.0, 6)

# Of targets and of items.
OUTCOME_SDS = (0.6, 0.6)
N_ANNOTATORS = 5
N_DRAWS = 400
# What simulated users add to the logits.
ERRS = {
    "true": np.zeros(6),
    "generous": np.full(6, 0.6),
    "favours some": np.array([0.9, 0.0, 0.0, 0.0, 0.0, -0.9]),
}


def _names() -> list[str]:
    return [f"r{n}" for n in range(len(ABLE))]


def _means(err: Floats) -> Floats:
    return np.array([average_logit(float(at), OUTCOME_SDS) for at in ABLE + err])


def draw_outcomes(
    rng: np.random.Generator, n_targets: int, *errs: Floats
) -> tuple[Floats, list[Floats]]:
    shape = len(ABLE), n_targets
    logits = ABLE[:, None] + rng.normal(0, OUTCOME_SDS[0], n_targets)
    logits = logits + rng.normal(0, OUTCOME_SDS[1], shape)
    human = rng.binomial(N_ANNOTATORS, expit(logits)) / N_ANNOTATORS
    users = [(rng.random(shape) < expit(logits + err[:, None])).astype(float) for err in errs]
    return human, users


def bias(rng: np.random.Generator, *, user: str, n_targets: int, what: str) -> Limits:
    """Of the first recommender, which the third user is most wrong of."""
    human, [simulated] = draw_outcomes(rng, n_targets, ERRS[user])
    row = biases(human, {user: simulated}, _names())[0]
    truth = _means(ERRS[user]) - _means(ERRS["true"])
    if what == "bias":
        return row.ci_low, row.ci_high, float(truth[0])
    return row.apart_low, row.apart_high, float(truth[0] - truth.mean())


def _order(rng: np.random.Generator, user: str, n_targets: int) -> Order:
    human, [simulated] = draw_outcomes(rng, n_targets, ERRS[user])
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
    return float(np.mean([_order(rng, user, n_targets).values[what] for _ in range(1000)]))


def soft_truer(rng: np.random.Generator, differs: bool, *, n_targets: int) -> float:
    """Of soft pairwise accuracy: both users err alike, or the second is true."""
    human, users = draw_outcomes(
        rng, n_targets, ERRS["favours some"], ERRS["true" if differs else "favours some"]
    )
    seed = int(rng.integers(2**31))
    named = dict(zip(("first", "second"), users, strict=True))
    return orders(human, named, _names(), n_draws=N_DRAWS, seed=seed)[1].p


def equivalent(rng: np.random.Generator, differs: bool, *, n_targets: int) -> float:
    """Equivalence of a user who errs by just the margin, or not at all, for one recommender."""
    err = np.zeros(len(ABLE))
    err[0] = 0.0 if differs else _logit_apart()
    human, [simulated] = draw_outcomes(rng, n_targets, err)
    return biases(human, {"user": simulated}, _names())[0].p_equivalence


@lru_cache
def _logit_apart() -> float:
    low, high, able = 0.0, 3.0, float(ABLE[0])
    for _ in range(60):
        middle = (low + high) / 2
        is_more = (
            average_logit(able + middle, OUTCOME_SDS) - average_logit(able, OUTCOME_SDS) > MARGIN
        )
        low, high = (low, middle) if is_more else (middle, high)
    return low


def gain(rng: np.random.Generator, *, n_targets: int) -> Limits:
    """Of a user chosen on four recommenders on the other two, whom the choice is clear about."""
    errs = {"generous": ERRS["generous"], "true": ERRS["true"]}
    human, users = draw_outcomes(rng, n_targets, *errs.values())
    named, names = dict(zip(errs, users, strict=True)), _names()
    seed = int(rng.integers(2**31))
    found = counterfactual(human, named, names, names[:4], n_draws=N_DRAWS, seed=seed)
    # That of the user who was chosen in this study.
    squares = {name: (_means(err) - _means(ERRS["true"]))[4:] ** 2 for name, err in errs.items()}
    return *found.gain_limits, float((squares["generous"] - squares[found.chosen]).mean())


def outcome_intervals() -> Iterator[IntervalCase]:
    estimates = [(bias, "bias"), (bias, "apart"), (order, "tau_b"), (order, "spa")]
    for (draw, what), user, n_targets in product(estimates, ("true", "favours some"), (40, 200)):
        yield IntervalCase(
            "outcomes",
            f"{what}, {user}, {n_targets} targets",
            partial(draw, user=user, n_targets=n_targets, what=what),
        )
    for n_targets in (40, 200):
        yield IntervalCase(
            "outcomes",
            f"counterfactual gain, {n_targets} targets",
            partial(gain, n_targets=n_targets),
        )


def outcome_tests() -> Iterator[TestCase]:
    for n_targets in (40, 200):
        yield TestCase(
            "outcomes", f"truer, {n_targets} targets", partial(soft_truer, n_targets=n_targets)
        )
    for n_targets in (200, 1000):
        yield TestCase(
            "outcomes", f"equivalent, {n_targets} targets", partial(equivalent, n_targets=n_targets)
        )
