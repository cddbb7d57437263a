"""Switching studies of crowds whose rule is known, for `benchmarks.coverage`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.coverage_cases import IntervalCase, Limits, TestCase
from simulation.switching import SwitchingStudy, compare_users, switching_study
from simulation.users import meta_sim_prob

WORKER_SD, TARGET_SD = 0.8, 0.4
N_TARGETS, N_EACH = 40, 20


@dataclass(frozen=True)
class Rule:
    """Logits of switching after a gain, and what a loss adds; and the share who leave."""

    after_gain: float
    loss: float
    leaves: float = 0.1

    def probability(self, loss: float) -> float:
        """Of a switch over all workers and targets."""
        return _averaged(self.after_gain + loss * self.loss)


RULES = {"as the article": Rule(-3.0, 4.0), "hardly": Rule(-2.0, 0.5)}


@lru_cache
def _averaged(logit: float) -> float:
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    values = expit(logit + np.hypot(WORKER_SD, TARGET_SD) * points)
    return float(values @ weights / weights.sum())


def crowd(rng: np.random.Generator, rule: Rule, n_workers: int) -> pd.DataFrame:
    """Decisions of workers, each with an inclination of their own, at targets that differ too."""
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


def _limits(study: SwitchingStudy, rule: Rule, what: str) -> Limits:
    if what in ("loss", "turn"):
        one = study.model[what]
        return one.ci_low, one.ci_high, rule.loss if what == "loss" else 0.0
    if what == "P after a loss":
        return study.after_loss.ci_low, study.after_loss.ci_high, rule.probability(1)
    return study.after_gain.ci_low, study.after_gain.ci_high, rule.probability(0)


def switching(rng: np.random.Generator, *, rule: str, n_workers: int, what: str) -> Limits:
    study = switching_study(crowd(rng, RULES[rule], n_workers))
    return _limits(study, RULES[rule], what)


def truer(rng: np.random.Generator, differs: bool, *, n_workers: int) -> float:
    """Of two users one is true and one has the wrong sign; or both err by as much, one to
    either side of how often people switch after a loss."""
    rule = RULES["as the article"]
    p = rule.probability(1)
    users = [meta_sim_prob(0, p - 0.1), meta_sim_prob(0, p + 0.1)]
    if differs:
        users = [meta_sim_prob(0, p, switches_on="gain"), meta_sim_prob(0, p)]
    fits = compare_users(crowd(rng, rule, n_workers), users, seed=int(rng.integers(2**31)))
    return next(fit.p for fit in fits if fit.user == users[1].name)


def switching_intervals() -> Iterator[IntervalCase]:
    """Of what decides between the article's rule and the released program's."""
    for rule, what in product(RULES, ("loss", "turn", "P after a loss", "P after a gain")):
        draw: Callable[[np.random.Generator], Limits] = partial(
            switching, rule=rule, n_workers=40, what=what
        )
        yield IntervalCase("switching", f"{what}, {rule}, 40 workers", draw)


def switching_tests() -> Iterator[TestCase]:
    """Which of two simulated users is truer."""
    for n_workers in (20, 40):
        yield TestCase(
            "switching", f"truer, {n_workers} workers", partial(truer, n_workers=n_workers)
        )
