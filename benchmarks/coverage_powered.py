"""Simulated judges of all items and people of some, for `benchmarks.coverage`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.coverage_cases import FEW_LABELS, Floats, IntervalCase, Limits
from stats.inference.active_labels import actively_labelled_mean, labelling_probabilities
from stats.inference.looks import Spending, confidence_at_look
from stats.inference.powered_correlations import prediction_powered_correlation
from stats.inference.powered_quantiles import prediction_powered_quantile
from stats.inference.powered_regression import prediction_powered_regression
from stats.inference.prediction_powered import prediction_powered_mean


def powered(rng: np.random.Generator, *, rho: float, n: int, clustered: bool) -> Limits:
    cluster = np.arange(300) // 5
    truth = rng.normal(size=300)
    if clustered:
        truth = (truth + rng.normal(size=60)[cluster]) / np.sqrt(2)
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=300)
    human = np.where(np.arange(300) < n, truth, np.nan)
    found = prediction_powered_mean(human, judge, clusters=cluster if clustered else None)
    return found.ci_low, found.ci_high, 0.0


def powered_share(rng: np.random.Generator, *, share: float, n: int) -> Limits:
    truth = (rng.random(400) < share).astype(float)
    judge = np.where(rng.random(400) < 0.15, 1 - truth, truth)
    found = prediction_powered_mean(np.where(np.arange(400) < n, truth, np.nan), judge)
    return found.ci_low, found.ci_high, share


def active(rng: np.random.Generator, *, budget: int) -> Limits:
    """Items sent to people with chances that follow where the judge is expected to err."""
    spread = rng.gamma(1.0, size=400)
    truth = rng.normal(size=400)
    judge = truth + spread * rng.normal(size=400)
    chance = labelling_probabilities(spread, budget=budget)
    sent = rng.random(400) < chance
    found = actively_labelled_mean(np.where(sent, truth, np.nan), judge, chance)
    return found.ci_low, found.ci_high, 0.0


LOOKED_AT = (20, 40, 60, 80, 100)


def looks(rng: np.random.Generator, *, rho: float, spending: Spending, clustered: bool) -> Limits:
    """Ratings of 20 items more a look: the first interval that misses, or else the last."""
    size, cluster = (5, np.arange(500) // 5) if clustered else (1, None)
    truth = rng.normal(size=100 * size if clustered else 300)
    if clustered:
        truth = (truth + rng.normal(size=100)[cluster]) / np.sqrt(2)
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=len(truth))
    for number, n in enumerate(LOOKED_AT, start=1):
        level = confidence_at_look(number, len(LOOKED_AT), spending=spending)
        rated = np.arange(len(truth)) < n * size * (0.8 if clustered else 1)
        found = prediction_powered_mean(
            np.where(rated, truth, np.nan), judge, clusters=cluster, confidence=level
        )
        if not found.ci_low <= 0 <= found.ci_high:
            break
    return found.ci_low, found.ci_high, 0.0


def active_looks(rng: np.random.Generator) -> Limits:
    """Three looks while items are sent where the judge errs: those sent before remain sent."""
    spread = rng.gamma(1.0, size=400)
    truth = rng.normal(size=400)
    judge, draw = truth + spread * rng.normal(size=400), rng.random(400)
    for number, budget in enumerate((50, 75, 100), start=1):
        chance = labelling_probabilities(spread, budget=budget)
        sent = np.where(draw < chance, truth, np.nan)
        level = confidence_at_look(number, 3)
        found = actively_labelled_mean(sent, judge, chance, confidence=level)
        if not found.ci_low <= 0 <= found.ci_high:
            break
    return found.ci_low, found.ci_high, 0.0


def strata(rng: np.random.Generator, *, n: int) -> Limits:
    stratum = np.arange(300) % 3
    truth = stratum + rng.normal(size=300)
    judge = truth + 0.7 * rng.normal(size=300) - stratum
    human = np.where(np.arange(300) < n, truth, np.nan)
    found = prediction_powered_mean(human, judge, strata=stratum)
    return found.ci_low, found.ci_high, 1.0


@dataclass(frozen=True)
class Rated:
    """What people say of some items, a judge of all; lengths, and clusters if there are any."""

    human: Floats
    judge: Floats
    length: Floats
    cluster: NDArray[np.intp] | None


def _rated(rng: np.random.Generator, *, n: int, rho: float, clustered: bool) -> Rated:
    """300 items with a length, ratings of n that rise with it by half, and a judge of rho."""
    cluster = np.arange(300) // 5
    length, noise = rng.normal(size=(2, 300))
    if clustered:
        length, noise = (
            (side + rng.normal(size=60)[cluster]) / np.sqrt(2) for side in (length, noise)
        )
    truth = 0.5 * length + np.sqrt(0.75) * noise
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=300)
    human = np.where(np.arange(300) < n, truth, np.nan)
    return Rated(human, judge, length, cluster if clustered else None)


def powered_quantile(
    rng: np.random.Generator,
    *,
    quantile: float,
    n: int,
    rho: float,
    whole: bool = False,
    clustered: bool = False,
) -> Limits:
    one = _rated(rng, n=n, rho=rho, clustered=clustered)
    truth = float(stats.norm.ppf(quantile))
    human, judge = one.human, one.judge
    if whole:
        human, judge = np.clip(np.round(3.2 + human), 1, 5), judge + 3.2
        truth = float(np.clip(np.round(3.2 + truth), 1, 5))
    found = prediction_powered_quantile(human, judge, quantile=quantile, clusters=one.cluster)
    return found.ci_low, found.ci_high, truth


def powered_correlation(
    rng: np.random.Generator, *, coefficient: str, n: int, rho: float, clustered: bool = False
) -> Limits:
    one = _rated(rng, n=n, rho=rho, clustered=clustered)
    found = prediction_powered_correlation(
        one.human, one.judge, one.length, coefficient=coefficient, clusters=one.cluster
    )
    truth = {
        "pearson": 0.5,
        "spearman": 6 / np.pi * float(np.arcsin(0.25)),
        "kendall": 2 / np.pi * float(np.arcsin(0.5)),
    }[coefficient]
    return found.ci_low, found.ci_high, truth


def powered_slope(
    rng: np.random.Generator, *, n: int, rho: float, clustered: bool = False
) -> Limits:
    one = _rated(rng, n=n, rho=rho, clustered=clustered)
    found = prediction_powered_regression(
        one.human, one.judge, {"length": one.length}, clusters=one.cluster
    )
    return found.coefficients[1].ci_low, found.coefficients[1].ci_high, 0.5


def powered_intervals() -> Iterator[IntervalCase]:
    """Of prediction-powered means, quantiles, correlations and slopes."""
    for rho, n, clustered in product((0.0, 0.5, 0.9), (10, 20, 50, 100), (False, True)):
        kind = f"judge's r {rho}, {n} of 300 rated" + (", clusters of 5" if clustered else "")
        draw = partial(powered, rho=rho, n=n, clustered=clustered)
        noted = FEW_LABELS if (n // 5 if clustered else n) < 50 else ""
        yield IntervalCase("prediction_powered", kind, draw, noted)
    for share, n in product((0.1, 0.5), (20, 50, 100)):
        draw = partial(powered_share, share=share, n=n)
        setting = f"share {share}, {n} of 400 rated"
        yield IntervalCase("prediction_powered", setting, draw)
    yield IntervalCase("prediction_powered", "3 strata, 60 of 300 rated", partial(strata, n=60))
    for budget in (50, 100):
        draw = partial(active, budget=budget)
        yield IntervalCase("prediction_powered", f"active choice, {budget} of 400", draw)
    yield from _looks()
    yield from _other_estimands()


def _looks() -> Iterator[IntervalCase]:
    """The share of studies of which every look's interval holds the truth."""
    for rho, spending in product((0.0, 0.5, 0.9), get_args(Spending)):
        draw = partial(looks, rho=rho, spending=spending, clustered=False)
        yield IntervalCase("looks", f"5 looks, {spending} spending, judge's r {rho}", draw)
    grouped = partial(looks, rho=0.5, spending="pocock", clustered=True)
    noted = FEW_LABELS  # at the first look there are 16 clusters
    setting = "5 looks, pocock spending, judge's r 0.5, clusters of 5"
    yield IntervalCase("looks", setting, grouped, noted)
    yield IntervalCase("looks", "3 looks, active choice, 50 to 100 of 400", active_looks)


def _other_estimands() -> Iterator[IntervalCase]:
    for (n, quantile), rho in product(((20, 0.5), (50, 0.5), (50, 0.9), (100, 0.25)), (0.0, 0.9)):
        draw = partial(powered_quantile, quantile=quantile, n=n, rho=rho)
        setting = f"quantile {quantile}, judge's r {rho}, {n} of 300 rated"
        yield IntervalCase("powered_quantiles", setting, draw)
    for n, quantile in ((20, 0.5), (50, 0.75)):
        draw = partial(powered_quantile, quantile=quantile, n=n, rho=0.8, whole=True)
        setting = f"quantile {quantile} of five points, {n} of 300 rated"
        yield IntervalCase("powered_quantiles", setting, draw)
    grouped = partial(powered_quantile, quantile=0.5, n=100, rho=0.8, clustered=True)
    setting = "quantile 0.5, 100 of 300 rated, clusters of 5"
    yield IntervalCase("powered_quantiles", setting, grouped)
    for coefficient, n, rho in product(("pearson", "spearman", "kendall"), (20, 50), (0.0, 0.9)):
        of_r = partial(powered_correlation, coefficient=coefficient, n=n, rho=rho)
        setting = f"{coefficient} .5, judge's r {rho}, {n} of 300 rated"
        yield IntervalCase("powered_correlations", setting, of_r)
    for n, rho in product((20, 50), (0.0, 0.9)):
        of_slope = partial(powered_slope, n=n, rho=rho)
        yield IntervalCase(
            "powered_correlations", f"slope, judge's r {rho}, {n} of 300 rated", of_slope
        )
    for name, draw_one in (
        ("pearson .5", partial(powered_correlation, coefficient="pearson")),
        ("slope", powered_slope),
    ):
        clustered = partial(draw_one, n=100, rho=0.8, clustered=True)
        setting = f"{name}, judge's r 0.8, 100 of 300 rated, clusters of 5"
        yield IntervalCase("powered_correlations", setting, clustered)
