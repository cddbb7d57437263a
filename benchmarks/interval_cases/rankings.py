"""Simulated rankings, topics and pools, for `benchmarks.coverage`."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import log

import numpy as np

from benchmarks.interval_cases.cases import (
    FEW_ASSESSORS,
    FEW_GROUPS_LEFT_OUT,
    FEW_ITEMS,
    FEW_OTHERS,
    IntervalCase,
    Limits,
    limits,
)
from stats.agreement.specific import relevant_overlap
from stats.arguments import Floats, Integers
from stats.inference.resampled_means import LEAST_ASSESSORS, two_way_bootstrap
from stats.ranking import JudgedLists, Measure, judged_lists, measure
from stats.ranking.pool_bias import (
    FEW_GROUPS,
    expected_underestimate,
    judgments_only_of,
    lists_without,
    pool_ranks,
)
from stats.ranking.rank_biased_overlap import rbo_rows
from stats.ranking.rank_similarity import tau_ap_a_rows, tau_ap_b_rows, tau_b_rows
from stats.ranking.resampled_topics import Similarity, similarities_over_topics, topic_samples
from stats.ranking.topic_means import (
    LEAST_OTHERS,
    LEAST_TOPICS,
    compare_over_topics,
    mean_over_topics,
)

TRUE_VALUE: dict[Similarity, Callable[[Floats, Floats], Floats]] = {
    "tau_b": tau_b_rows,
    "tau_ap_a": tau_ap_a_rows,
    "tau_ap_b": tau_ap_b_rows,
    "rbo": partial(rbo_rows, ties="b"),
}
# Of a system on a topic, and the correlation of both assessors' noise: the run is the same.
NOISE, SHARED_NOISE = 0.25, 0.7


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
    both, one = rng.beta(2, 2, n_topics)[:, None] / 4, 0.15
    drawn = rng.random((n_topics, per_topic))
    first = (drawn < both) | ((drawn >= both) & (drawn < both + one / 2))
    second = (drawn < both) | ((drawn >= both + one / 2) & (drawn < both + one))
    topic = np.repeat(np.arange(n_topics), per_topic)
    return limits(relevant_overlap(first.ravel(), second.ravel(), topic), 0.125 / (0.125 + one))


def crossed_mean(rng: np.random.Generator, *, n_topics: int, n_assessors: int) -> Limits:
    of_topic, of_assessor = rng.normal(0, 0.25, n_topics), rng.normal(0, 0.08, (n_assessors, 1))
    values = 0.4 + of_topic + of_assessor + rng.normal(0, 0.15, (n_assessors, n_topics))
    return *two_way_bootstrap(values, n_resamples=500, rng=rng), 0.4


def ranking_intervals() -> Iterator[IntervalCase]:
    designs = [("normal", 0.12), ("two groups", 0.05)]
    sizes = [(5, 50), (10, 10), (10, 20), (10, 50), (20, 50), (20, 200)]
    for (shape, spread), (n_systems, n_topics), alike in product(designs, sizes, (1.0, 0.3)):
        yield _case("tau_b", shape, spread, n_systems, n_topics, alike)
    for (n_systems, n_topics), (shape, spread) in product(((10, 20), (20, 50)), designs):
        yield _case("tau_b", shape, spread, n_systems, n_topics, 0.8)
    names: tuple[Similarity, ...] = ("tau_ap_a", "tau_ap_b", "rbo")
    for name, (shape, spread), alike in product(names, designs, (1.0, 0.3)):
        yield _case(name, shape, spread, 10, 20, alike)
        yield _case(name, shape, spread, 20, 50, alike)
    for n in (10, 20, 50, 200):
        noted = FEW_ITEMS if n < LEAST_TOPICS else ""
        yield IntervalCase(
            "overlap", f"overlap .45, {n} topics x 14", partial(label_overlap, n_topics=n), noted
        )
    for n_topics, n_assessors in product((20, 50), (3, 10, 30)):
        yield IntervalCase(
            "assessors",
            f"both resampled, {n_topics} topics x {n_assessors} assessors",
            partial(crossed_mean, n_topics=n_topics, n_assessors=n_assessors),
            FEW_ASSESSORS if n_assessors < LEAST_ASSESSORS else "",
        )


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
    return IntervalCase("rankings", setting, draw, FEW_ITEMS if n_topics < LEAST_TOPICS else "")


Draw = Callable[[np.random.Generator, int], Floats]


def _with_zeros(rng: np.random.Generator, n: int, share: float) -> Floats:
    return np.where(rng.random(n) < share, 0.0, rng.beta(2, 3, n))


# Each with its mean, and the share of topics that have the commonest value.
SHAPES: dict[str, tuple[Draw, float, float]] = {
    "half 0": (partial(_with_zeros, share=0.5), 0.2, 0.5),
    "85% 0": (partial(_with_zeros, share=0.85), 0.06, 0.85),
    "like AP": (lambda rng, n: rng.beta(0.4, 1.6, n), 0.2, 0.0),
    "like RR": (lambda rng, n: 1 / rng.geometric(0.25, n), 0.25 * log(4) / 0.75, 0.25),
}


def topic_mean(rng: np.random.Generator, *, shape: str, n: int) -> Limits:
    draw, truth, _ = SHAPES[shape]
    return limits(mean_over_topics(draw(rng, n)), truth)


def topic_share(rng: np.random.Generator, *, n: int) -> Limits:
    return limits(mean_over_topics(rng.random(n) < 0.8, binary=True), 0.8)


def topic_difference(rng: np.random.Generator, *, n: int) -> Limits:
    first = np.where(rng.random(n) < 0.7, 0.0, rng.normal(0.05, 0.3, n))
    return limits(compare_over_topics(first, np.zeros(n), test="t"), 0.015)


def topic_intervals() -> Iterator[IntervalCase]:
    sizes = (10, 20, 50, 200)
    for shape, n in product(SHAPES, sizes):
        yield IntervalCase(
            "topics",
            f"{shape}, {n} topics",
            partial(topic_mean, shape=shape, n=n),
            _noted(n, SHAPES[shape][2]),
        )
    for n in sizes:
        yield IntervalCase("topics", f"success .8, {n} topics", partial(topic_share, n=n))
        # A difference has the note of few topics alone.
        yield IntervalCase(
            "topics",
            f"difference, 70% 0, {n} topics",
            partial(topic_difference, n=n),
            _noted(n, 0.0),
        )


def _noted(n: int, share: float) -> str:
    if n < LEAST_TOPICS:
        return FEW_ITEMS
    return FEW_OTHERS if n * (1 - share) < LEAST_OTHERS else ""


N_DOCUMENTS, N_LISTED, DEPTH = 200, 30, 10
# What relevance adds to a score, its spread over families, and the noise that all share.
SKILL, SD_OF_SKILL, SHARED = 1.2, 0.2, 0.7


def pool_bias(
    rng: np.random.Generator, *, one: Measure, n_families: int, n_runs: int, n_topics: int
) -> Limits:
    """The limits for a further family from those that were pooled, and what it truly loses."""
    grades = np.where(rng.random((n_topics, N_DOCUMENTS)) < 0.08, rng.integers(1, 4), 0)
    lists = _judged(_scores(rng, grades, n_families + 1, n_runs), grades)
    family = np.repeat(np.arange(n_families + 1), n_runs)
    ranks = pool_ranks(lists, grades.size)
    topics = np.repeat(np.arange(n_topics), N_DOCUMENTS)

    def loss(left_out: int, among: Integers) -> float:
        """Of a family's runs: pooled with the others, less not pooled."""
        pooled = np.isin(family, among)
        own = [one_list for one_list, of in zip(lists, family, strict=True) if of == left_out]
        in_pool = (ranks[pooled] <= DEPTH).any(axis=0)
        only = judgments_only_of(ranks[pooled], (family == left_out)[pooled], DEPTH)
        means = [
            np.mean([one.values(each) for each in lists_without(own, topics, grades.ravel(), gone)])
            for gone in (~in_pool, ~in_pool | only)
        ]
        return float(means[0] - means[1])

    inside = np.arange(n_families)
    return limits(
        expected_underestimate([loss(each, inside) for each in inside]),
        loss(n_families, np.arange(n_families + 1)),
    )


def _scores(rng: np.random.Generator, grades: Integers, n_families: int, n_runs: int) -> Floats:
    shared = SHARED * rng.normal(size=grades.shape)
    skill = rng.normal(SKILL, SD_OF_SKILL, size=(n_families, 1, 1))
    of_family = skill * (grades > 0) + shared + rng.normal(size=(n_families, *grades.shape)) * 0.8
    runs = np.repeat(of_family, n_runs, axis=0)
    return runs + 0.4 * rng.normal(size=runs.shape)


def _judged(scores: Floats, grades: Integers) -> list[JudgedLists]:
    n_topics = len(grades)
    topics, documents = (axis.ravel() for axis in np.indices(grades.shape))
    of_lists = np.repeat(np.arange(n_topics), N_LISTED)
    return [
        judged_lists(
            of_lists,
            each.ravel(),
            np.take_along_axis(score, each, axis=1).ravel(),
            topics,
            documents,
            grades.ravel(),
            n_topics=n_topics,
        )
        for each, score in zip(np.argsort(-scores, axis=2)[:, :, :N_LISTED], scores, strict=True)
    ]


def pool_intervals() -> Iterator[IntervalCase]:
    for name, n_families, n_runs in (
        ("nDCG@10", 4, 1),
        ("nDCG@10", 6, 1),
        ("nDCG@10", 6, 2),
        ("nDCG@10", 12, 1),
        ("AP", 6, 1),
        ("AP", 12, 1),
    ):
        sizes = {"n_families": n_families, "n_runs": n_runs, "n_topics": 50}
        runs = "" if n_runs == 1 else f" of {n_runs} runs"
        yield IntervalCase(
            "pool_bias",
            f"{name}, {n_families} families{runs}",
            partial(pool_bias, one=measure(name), **sizes),
            FEW_GROUPS_LEFT_OUT if n_families < FEW_GROUPS else "",
        )
