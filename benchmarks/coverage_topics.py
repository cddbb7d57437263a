"""Simulated values of topics, for `benchmarks.coverage`: a run's mean, and two runs' difference."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import log

import numpy as np

from benchmarks.coverage_cases import FEW_ITEMS, FEW_OTHERS, Floats, IntervalCase, Limits
from stats.ranking.topic_means import (
    LEAST_OTHERS,
    LEAST_TOPICS,
    compare_over_topics,
    mean_over_topics,
)

Draw = Callable[[np.random.Generator, int], Floats]


def _half_zero(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.5, 0.0, rng.beta(2, 3, n))


def _mostly_zero(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.85, 0.0, rng.beta(2, 3, n))


def _average_precision(rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(0.4, 1.6, n)


def _reciprocal_rank(rng: np.random.Generator, n: int) -> Floats:
    return 1 / rng.geometric(0.25, n)


# Each with its mean, and the share of topics that have the commonest value.
SHAPES: dict[str, tuple[Draw, float, float]] = {
    "half 0": (_half_zero, 0.2, 0.5),
    "85% 0": (_mostly_zero, 0.06, 0.85),
    "like AP": (_average_precision, 0.2, 0.0),
    "like RR": (_reciprocal_rank, 0.25 * log(4) / 0.75, 0.25),
}


def topic_mean(rng: np.random.Generator, *, shape: str, n: int) -> Limits:
    draw, truth, _ = SHAPES[shape]
    found = mean_over_topics(draw(rng, n))
    return found.ci_low, found.ci_high, truth


def topic_share(rng: np.random.Generator, *, n: int) -> Limits:
    found = mean_over_topics(rng.random(n) < 0.8, binary=True)
    return found.ci_low, found.ci_high, 0.8


def topic_difference(rng: np.random.Generator, *, n: int) -> Limits:
    """Seven topics in ten on which two runs do not differ."""
    first = np.where(rng.random(n) < 0.7, 0.0, rng.normal(0.05, 0.3, n))
    found = compare_over_topics(first, np.zeros(n), test="t")
    return found.ci_low, found.ci_high, 0.015


def topic_intervals() -> Iterator[IntervalCase]:
    """Of means over topics."""
    sizes = (10, 20, 50, 200)
    for shape, n in product(SHAPES, sizes):
        noted = _noted(n, SHAPES[shape][2])
        draw = partial(topic_mean, shape=shape, n=n)
        yield IntervalCase("topics", f"{shape}, {n} topics", draw, noted)
    for n in sizes:
        yield IntervalCase("topics", f"success .8, {n} topics", partial(topic_share, n=n))
        # A difference has the note of few topics alone.
        name = f"difference, 70% 0, {n} topics"
        yield IntervalCase("topics", name, partial(topic_difference, n=n), _noted(n, 0.0))


def _noted(n: int, share: float) -> str:
    """Which note most studies of this kind have."""
    if n < LEAST_TOPICS:
        return FEW_ITEMS
    return FEW_OTHERS if n * (1 - share) < LEAST_OTHERS else ""
