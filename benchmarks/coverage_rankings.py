"""Simulated rankings of systems under two assessors, for `benchmarks.coverage`."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from benchmarks.coverage_cases import FEW_ASSESSORS, FEW_ITEMS, Floats, IntervalCase, Limits
from stats.agreement.specific import relevant_overlap
from stats.inference.two_way_bootstrap import LEAST_ASSESSORS, two_way_bootstrap
from stats.ranking.rank_biased_overlap import rbo_rows
from stats.ranking.rank_similarity import tau_ap_a_rows, tau_ap_b_rows, tau_b_rows
from stats.ranking.resampled_topics import Similarity, similarities_over_topics, topic_samples
from stats.ranking.topic_means import LEAST_TOPICS

TRUE_VALUE: dict[Similarity, Callable[[Floats, Floats], Floats]] = {
    "tau_b": tau_b_rows,
    "tau_ap_a": tau_ap_a_rows,
    "tau_ap_b": tau_ap_b_rows,
    "rbo": partial(rbo_rows, ties="b"),
}
NOISE, SHARED_NOISE = 0.25, 0.7
"""Of a system on a topic, and the correlation of both assessors' noise: the run is the same."""


def _true_means(
    rng: np.random.Generator, shape: str, n_systems: int, spread: float, alike: float
) -> tuple[Floats, Floats]:
    """The systems' means under either assessor; `alike` is the correlation of what they measure."""
    first = rng.normal(size=n_systems)
    if shape == "two groups":
        first = np.where(np.arange(n_systems) < n_systems // 2, -1, 1) + 0.2 * first
    second = alike * first + (1 - alike**2) ** 0.5 * rng.normal(size=n_systems)
    return spread * first, spread * second


def ranking_similarity(
    rng: np.random.Generator,
    *,
    name: Similarity,
    shape: str,
    n_systems: int,
    n_topics: int,
    spread: float,
    alike: float,
) -> Limits:
    first, second = _true_means(rng, shape, n_systems, spread, alike)
    noise, mine, yours = rng.normal(size=(3, n_systems, n_topics))
    of_topic = 0.2 * rng.normal(size=n_topics)
    here, there = (
        means[:, None]
        + of_topic
        + NOISE * (SHARED_NOISE**0.5 * noise + (1 - SHARED_NOISE) ** 0.5 * own)
        for means, own in ((first, mine), (second, yours))
    )
    samples = topic_samples(n_topics, 300, rng)
    (found,) = similarities_over_topics(here, there, [name], samples=samples)
    return found.ci_low, found.ci_high, float(TRUE_VALUE[name](first[None], second[None])[0])


def label_overlap(rng: np.random.Generator, *, n_topics: int, per_topic: int = 14) -> Limits:
    """Two assessors with a third of relevant documents in common, more of some topics."""
    easy = rng.beta(2, 2, n_topics)[:, None]
    both, one = easy / 4, 0.15
    drawn = rng.random((n_topics, per_topic))
    first = (drawn < both) | ((drawn >= both) & (drawn < both + one / 2))
    second = (drawn < both) | ((drawn >= both + one / 2) & (drawn < both + one))
    topic = np.repeat(np.arange(n_topics), per_topic)
    found = relevant_overlap(first.ravel(), second.ravel(), topic)
    return found.ci_low, found.ci_high, 0.125 / (0.125 + one)


def crossed_mean(rng: np.random.Generator, *, n_topics: int, n_assessors: int) -> Limits:
    """Assessors of all topics, who differ in how much they find relevant."""
    of_topic, of_assessor = rng.normal(0, 0.25, n_topics), rng.normal(0, 0.08, (n_assessors, 1))
    values = 0.4 + of_topic + of_assessor + rng.normal(0, 0.15, (n_assessors, n_topics))
    return *two_way_bootstrap(values, n_resamples=500, rng=rng), 0.4


def ranking_intervals() -> Iterator[IntervalCase]:
    """Of coefficients of two rankings, of labels' overlap, and of means by several assessors."""
    designs = [("normal", 0.12), ("two groups", 0.05)]
    sizes = [(5, 50), (10, 10), (10, 20), (10, 50), (20, 50), (20, 200)]
    for (shape, spread), (n_systems, n_topics), alike in product(designs, sizes, (1.0, 0.3)):
        yield _case("tau_b", shape, spread, n_systems, n_topics, alike)
    for n_systems, n_topics in ((10, 20), (20, 50)):
        for shape, spread in designs:
            yield _case("tau_b", shape, spread, n_systems, n_topics, 0.8)
    names: tuple[Similarity, ...] = ("tau_ap_a", "tau_ap_b", "rbo")
    for name, (shape, spread), alike in product(names, designs, (1.0, 0.3)):
        yield _case(name, shape, spread, 10, 20, alike)
        yield _case(name, shape, spread, 20, 50, alike)
    for n in (10, 20, 50, 200):
        noted = FEW_ITEMS if n < LEAST_TOPICS else ""
        draw = partial(label_overlap, n_topics=n)
        yield IntervalCase("overlap", f"overlap .45, {n} topics x 14", draw, noted)
    for n_topics, n_assessors in product((20, 50), (3, 10, 30)):
        noted = FEW_ASSESSORS if n_assessors < LEAST_ASSESSORS else ""
        draw = partial(crossed_mean, n_topics=n_topics, n_assessors=n_assessors)
        setting = f"both resampled, {n_topics} topics x {n_assessors} assessors"
        yield IntervalCase("assessors", setting, draw, noted)


def _case(
    name: Similarity, shape: str, spread: float, n_systems: int, n_topics: int, alike: float
) -> IntervalCase:
    setting = f"{name}, {n_systems} systems ({shape}), {n_topics} topics, assessors {alike:g} alike"
    draw = partial(
        ranking_similarity,
        name=name,
        shape=shape,
        n_systems=n_systems,
        n_topics=n_topics,
        spread=spread,
        alike=alike,
    )
    noted = FEW_ITEMS if n_topics < LEAST_TOPICS else ""
    return IntervalCase("rankings", setting, draw, noted)
