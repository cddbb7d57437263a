"""Simulated judges, preferences and means from few ratings, for `benchmarks.coverage`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import nan
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.interval_cases.cases import (
    FEW_ITEMS,
    FEW_LABELS,
    IntervalCase,
    Limits,
    TestCase,
    limits,
)
from stats.arguments import Flags, Floats, Integers
from stats.inference.active_labels import actively_labelled_mean, labelling_probabilities
from stats.inference.alternative_annotator import alternative_annotator_test
from stats.inference.annotator_wins import AlternativeTest
from stats.inference.judge_soundness import judge_shift
from stats.inference.looks import Spending, confidence_at_look
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_quantiles import (
    prediction_powered_correlation,
    prediction_powered_quantile,
)
from stats.inference.powered_regression import prediction_powered_regression
from stats.inference.preferences_with_ties import abilities_with_ties
from stats.proportions import PairedAccuracy, mcnemar
from validation.conclusions.judges import ANCHORS


def judge_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    before = rng.normal(size=n)
    return judge_shift(before, before + 0.3 * differs + 0.6 * rng.normal(size=n)).p


def _compared_accuracies(a: Flags, b: Flags) -> PairedAccuracy:
    pairs = ((a, b), (a, ~b), (~a, b), (~a, ~b))
    return mcnemar(*(int((one & other).sum()) for one, other in pairs))


def accuracy_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    return _compared_accuracies(rng.random(n) < 0.7 + 0.15 * differs, rng.random(n) < 0.7).mid_p


def _compared(
    rng: np.random.Generator, n: int, ability: tuple[float, float, float]
) -> tuple[Integers, Integers, Integers, Integers]:
    item = np.arange(n).repeat(3)
    first, second = np.tile([0, 0, 1], n), np.tile([1, 2, 2], n)
    taste, of = rng.normal(size=(n, 3)), np.array(ability)
    odds = of[first] - of[second] + taste[item, first] - taste[item, second]
    chances = np.exp(np.stack([odds / 2, np.full_like(odds, -0.5), -odds / 2]))
    drawn = (rng.random(len(odds)) > np.cumsum(chances / chances.sum(axis=0), axis=0)).sum(axis=0)
    return item, first, second, 1 - drawn


def preference_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    item, first, second, outcome = _compared(rng, n, (0.8 if differs else 0.0, 0.0, 0.0))
    return abilities_with_ties(first, second, outcome, items=item).pairs[0].p


ABILITY = (1.0, 0.0, -0.5)


@cache
def _ability_of_many_items() -> float:
    """What the model makes of the first two systems on 100,000 items, their tastes mixed in."""
    _, first, second, outcome = _compared(np.random.default_rng(0), 100_000, ABILITY)
    return abilities_with_ties(first, second, outcome).pairs[0].delta


def preference(rng: np.random.Generator, *, n: int) -> Limits:
    item, first, second, outcome = _compared(rng, n, ABILITY)
    found = abilities_with_ties(first, second, outcome, items=item)
    if not found.pairs:
        return nan, nan, nan
    return found.pairs[0].ci_low, found.pairs[0].ci_high, _ability_of_many_items()


def drift(rng: np.random.Generator, *, n: int, whole: bool) -> Limits:
    if whole:
        before = rng.integers(1, 5, size=n)
        return limits(judge_shift(before, before + (rng.random(n) < 0.2)), 0.2)
    before = rng.normal(size=n)
    return limits(judge_shift(before, before + 0.3 + 0.6 * rng.normal(size=n)), 0.3)


def accuracy_difference(rng: np.random.Generator, *, n: int) -> Limits:
    alike, shared, own, other = rng.random((4, n))
    a, b = (np.where(alike < 0.5, shared, one) for one in (own, other))
    return limits(_compared_accuracies(a < 0.85, b < 0.7), 0.15)


def _labels(
    rng: np.random.Generator, n: int, good: float
) -> tuple[NDArray[np.intp], NDArray[np.str_], NDArray[np.int64]]:
    """Three annotators right three times in four, and a judge right with the given chance."""
    truth = rng.integers(0, 4, size=n)
    chances = (0.75, 0.75, 0.75, good)
    said = [np.where(rng.random(n) < c, truth, rng.integers(0, 4, size=n)) for c in chances]
    return np.tile(np.arange(n), 4), np.repeat(list("abcJ"), n), np.concatenate(said)


def annotator_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    """0 where the judge passes; without a difference it is just too bad by epsilon."""
    result = alternative_annotator_test(
        *_labels(rng, n, 0.75 if differs else 0.45), judge="J", epsilon=0.2, n_resamples=2,
        n_shuffles=1,
    )  # fmt: skip
    return 0.0 if result.passes else 1.0


def _tested(rng: np.random.Generator, n: int, n_resamples: int) -> AlternativeTest:
    return alternative_annotator_test(
        *_labels(rng, n, 0.6), judge="J", epsilon=0.2, n_resamples=n_resamples, n_shuffles=1
    )


@cache
def _test_of_many_items() -> AlternativeTest:
    return _tested(np.random.default_rng(0), 200_000, 2)


def advantage(rng: np.random.Generator, *, n: int) -> Limits:
    found, many = _tested(rng, n, 400), _test_of_many_items()
    return found.advantage_low, found.advantage_high, many.advantage_probability


def annotator_difference(rng: np.random.Generator, *, n: int) -> Limits:
    found, many = _tested(rng, n, 2), _test_of_many_items()
    truth = float(np.mean([one.mean_difference for one in many.annotators]))
    return found.annotators[0].ci_low, found.annotators[0].ci_high, truth


def judge_intervals() -> Iterator[IntervalCase]:
    for n in (20, 60):
        yield IntervalCase(
            "preferences", f"log ability, 3 systems, {n} items", partial(preference, n=n)
        )
        for whole in (False, True):
            kind = "one item in five moves" if whole else "normal"
            yield IntervalCase(
                "drift",
                f"{kind}, {n} anchors",
                partial(drift, n=n, whole=whole),
                FEW_ITEMS if n < ANCHORS else "",
            )
        yield IntervalCase(
            "mcnemar", f"difference of accuracies, {n} items", partial(accuracy_difference, n=n)
        )
    for n in (30, 60):
        noted = FEW_ITEMS if n < 50 else ""
        for name, one in (
            ("advantage probability", advantage),
            ("an annotator's difference", annotator_difference),
        ):
            yield IntervalCase("alt_test", f"{name}, {n} items", partial(one, n=n), noted)


def judge_tests() -> Iterator[TestCase]:
    for n in (20, 60):
        yield TestCase("preferences", f"3 systems, {n} items", partial(preference_p, n=n))
        yield TestCase("drift", f"{n} anchors", partial(judge_p, n=n))
        yield TestCase("mcnemar", f"{n} items, mid-p", partial(accuracy_p, n=n))
    yield TestCase("alt_test", "3 annotators, 60 items, epsilon .2", partial(annotator_p, n=60))


def powered(rng: np.random.Generator, *, rho: float, n: int, clustered: bool) -> Limits:
    cluster = np.arange(300) // 5
    truth = rng.normal(size=300)
    if clustered:
        truth = (truth + rng.normal(size=60)[cluster]) / np.sqrt(2)
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=300)
    human = np.where(np.arange(300) < n, truth, np.nan)
    return limits(
        prediction_powered_mean(human, judge, clusters=cluster if clustered else None), 0.0
    )


def powered_share(rng: np.random.Generator, *, share: float, n: int) -> Limits:
    truth = (rng.random(400) < share).astype(float)
    judge = np.where(rng.random(400) < 0.15, 1 - truth, truth)
    return limits(
        prediction_powered_mean(np.where(np.arange(400) < n, truth, np.nan), judge), share
    )


def active(rng: np.random.Generator, *, budget: int) -> Limits:
    spread = rng.gamma(1.0, size=400)
    truth = rng.normal(size=400)
    judge = truth + spread * rng.normal(size=400)
    chance = labelling_probabilities(spread, budget=budget)
    sent = rng.random(400) < chance
    return limits(actively_labelled_mean(np.where(sent, truth, np.nan), judge, chance), 0.0)


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
    return limits(prediction_powered_mean(human, judge, strata=stratum), 1.0)


@dataclass(frozen=True)
class Rated:
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
    return limits(
        prediction_powered_quantile(human, judge, quantile=quantile, clusters=one.cluster), truth
    )


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
    for rho, n, clustered in product((0.0, 0.5, 0.9), (10, 20, 50, 100), (False, True)):
        kind = f"judge's r {rho}, {n} of 300 rated" + (", clusters of 5" if clustered else "")
        noted = FEW_LABELS if (n // 5 if clustered else n) < 50 else ""
        yield IntervalCase(
            "prediction_powered", kind, partial(powered, rho=rho, n=n, clustered=clustered), noted
        )
    for share, n in product((0.1, 0.5), (20, 50, 100)):
        yield IntervalCase(
            "prediction_powered",
            f"share {share}, {n} of 400 rated",
            partial(powered_share, share=share, n=n),
        )
    yield IntervalCase("prediction_powered", "3 strata, 60 of 300 rated", partial(strata, n=60))
    for budget in (50, 100):
        yield IntervalCase(
            "prediction_powered", f"active choice, {budget} of 400", partial(active, budget=budget)
        )
    # The share of studies of which every look's interval holds the truth.
    for rho, spending in product((0.0, 0.5, 0.9), get_args(Spending)):
        yield IntervalCase(
            "looks",
            f"5 looks, {spending} spending, judge's r {rho}",
            partial(looks, rho=rho, spending=spending, clustered=False),
        )
    yield IntervalCase(
        "looks",
        "5 looks, pocock spending, judge's r 0.5, clusters of 5",
        partial(looks, rho=0.5, spending="pocock", clustered=True),
        FEW_LABELS,  # at the first look there are 16 clusters
    )
    yield IntervalCase("looks", "3 looks, active choice, 50 to 100 of 400", active_looks)
    yield from _other_estimands()


def _other_estimands() -> Iterator[IntervalCase]:
    for (n, quantile), rho in product(((20, 0.5), (50, 0.5), (50, 0.9), (100, 0.25)), (0.0, 0.9)):
        yield IntervalCase(
            "powered_quantiles",
            f"quantile {quantile}, judge's r {rho}, {n} of 300 rated",
            partial(powered_quantile, quantile=quantile, n=n, rho=rho),
        )
    for n, quantile in ((20, 0.5), (50, 0.75)):
        yield IntervalCase(
            "powered_quantiles",
            f"quantile {quantile} of five points, {n} of 300 rated",
            partial(powered_quantile, quantile=quantile, n=n, rho=0.8, whole=True),
        )
    yield IntervalCase(
        "powered_quantiles",
        "quantile 0.5, 100 of 300 rated, clusters of 5",
        partial(powered_quantile, quantile=0.5, n=100, rho=0.8, clustered=True),
    )
    for coefficient, n, rho in product(("pearson", "spearman", "kendall"), (20, 50), (0.0, 0.9)):
        yield IntervalCase(
            "powered_correlations",
            f"{coefficient} .5, judge's r {rho}, {n} of 300 rated",
            partial(powered_correlation, coefficient=coefficient, n=n, rho=rho),
        )
    for n, rho in product((20, 50), (0.0, 0.9)):
        yield IntervalCase(
            "powered_correlations",
            f"slope, judge's r {rho}, {n} of 300 rated",
            partial(powered_slope, n=n, rho=rho),
        )
    for name, draw_one in (
        ("pearson .5", partial(powered_correlation, coefficient="pearson")),
        ("slope", powered_slope),
    ):
        yield IntervalCase(
            "powered_correlations",
            f"{name}, judge's r 0.8, 100 of 300 rated, clusters of 5",
            partial(draw_one, n=100, rho=0.8, clustered=True),
        )
