"""Simulated judges and preferences, for `benchmarks.coverage`."""

from collections.abc import Iterator
from functools import cache, partial
from math import nan

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage_cases import FEW_ITEMS, IntervalCase, Limits, TestCase
from stats.arguments import Integers
from stats.inference.alternative_annotator import alternative_annotator_test
from stats.inference.alternative_result import AlternativeTest
from stats.inference.judge_soundness import judge_shift
from stats.inference.paired_accuracy import mcnemar
from stats.inference.powered_moments import Flags
from stats.inference.preferences_with_ties import abilities_with_ties
from validation.conclusions.drift import ANCHORS


def judge_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    before = rng.normal(size=n)
    return judge_shift(before, before + 0.3 * differs + 0.6 * rng.normal(size=n)).p


def accuracy_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    a, b = rng.random(n) < 0.7 + 0.15 * differs, rng.random(n) < 0.7
    pairs = ((a, b), (a, ~b), (~a, b), (~a, ~b))
    return mcnemar(*(int((one & other).sum()) for one, other in pairs)).mid_p


def _compared(
    rng: np.random.Generator, n: int, ability: tuple[float, float, float]
) -> tuple[Integers, Integers, Integers, Integers]:
    """Each two of three systems on n items with a taste of their own: items, systems, outcomes."""
    item = np.arange(n).repeat(3)
    first, second = np.tile([0, 0, 1], n), np.tile([1, 2, 2], n)
    taste, of = rng.normal(size=(n, 3)), np.array(ability)
    odds = of[first] - of[second] + taste[item, first] - taste[item, second]
    chances = np.exp(np.stack([odds / 2, np.full_like(odds, -0.5), -odds / 2]))
    drawn = (rng.random(len(odds)) > np.cumsum(chances / chances.sum(axis=0), axis=0)).sum(axis=0)
    return item, first, second, 1 - drawn


def preference_p(rng: np.random.Generator, differs: bool, *, n: int) -> float:
    """Two systems of three compared on items that each favour one of them."""
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
    """A judge that moves by a third of a point, or, on five points, on one item in five."""
    if whole:
        before = rng.integers(1, 5, size=n)
        found = judge_shift(before, before + (rng.random(n) < 0.2))
        return found.ci_low, found.ci_high, 0.2
    before = rng.normal(size=n)
    found = judge_shift(before, before + 0.3 + 0.6 * rng.normal(size=n))
    return found.ci_low, found.ci_high, 0.3


def _right(
    rng: np.random.Generator, n: int, accuracies: tuple[float, float]
) -> tuple[Flags, Flags]:
    """Two judges who err on the same hard items in part."""
    alike, shared, own, other = rng.random((4, n))
    a, b = (np.where(alike < 0.5, shared, one) for one in (own, other))
    return a < accuracies[0], b < accuracies[1]


def accuracy_difference(rng: np.random.Generator, *, n: int) -> Limits:
    a, b = _right(rng, n, (0.85, 0.7))
    pairs = ((a, b), (a, ~b), (~a, b), (~a, ~b))
    found = mcnemar(*(int((one & other).sum()) for one, other in pairs))
    return found.ci_low, found.ci_high, 0.15


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
    """Of preferences, of a judge's drift, and of a judge beside another or beside people."""
    for n in (20, 60):
        yield IntervalCase(
            "preferences", f"log ability, 3 systems, {n} items", partial(preference, n=n)
        )
        for whole in (False, True):
            kind = "one item in five moves" if whole else "normal"
            draw = partial(drift, n=n, whole=whole)
            noted = FEW_ITEMS if n < ANCHORS else ""
            yield IntervalCase("drift", f"{kind}, {n} anchors", draw, noted)
        of_two = partial(accuracy_difference, n=n)
        yield IntervalCase("mcnemar", f"difference of accuracies, {n} items", of_two)
    for n in (30, 60):
        noted = FEW_ITEMS if n < 50 else ""
        for name, one in (
            ("advantage probability", advantage),
            ("an annotator's difference", annotator_difference),
        ):
            yield IntervalCase("alt_test", f"{name}, {n} items", partial(one, n=n), noted)


def judge_tests() -> Iterator[TestCase]:
    """Of judges, and of preferences."""
    for n in (20, 60):
        yield TestCase("preferences", f"3 systems, {n} items", partial(preference_p, n=n))
        yield TestCase("drift", f"{n} anchors", partial(judge_p, n=n))
        yield TestCase("mcnemar", f"{n} items, mid-p", partial(accuracy_p, n=n))
    yield TestCase("alt_test", "3 annotators, 60 items, epsilon .2", partial(annotator_p, n=60))
