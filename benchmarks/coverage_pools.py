"""Simulated pools for `benchmarks.coverage`: what one further system loses by not being pooled."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.coverage_cases import FEW_GROUPS_LEFT_OUT, Floats, IntervalCase, Limits
from stats.arguments import Integers
from stats.ranking import JudgedLists, Measure, judged_lists, measure
from stats.ranking.pool_bias import (
    FEW_GROUPS,
    expected_underestimate,
    judgments_only_of,
    lists_without,
    pool_ranks,
)

N_DOCUMENTS, N_LISTED, DEPTH = 200, 30, 10
SKILL, SD_OF_SKILL, SHARED = 1.2, 0.2, 0.7
"""What relevance adds to a score, its spread over families, and the noise that all share."""


def pool_bias(
    rng: np.random.Generator, *, one: Measure, n_families: int, n_runs: int, n_topics: int
) -> Limits:
    """The limits for a further family from those that were pooled, and what it truly loses."""
    grades = np.where(rng.random((n_topics, N_DOCUMENTS)) < 0.08, rng.integers(1, 4), 0)
    scores = _scores(rng, grades, n_families + 1, n_runs)
    lists = _judged(scores, grades)
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
    found = expected_underestimate([loss(each, inside) for each in inside])
    return found.ci_low, found.ci_high, loss(n_families, np.arange(n_families + 1))


def _scores(rng: np.random.Generator, grades: Integers, n_families: int, n_runs: int) -> Floats:
    """By run, topic and document: families differ in skill and in what else they look for."""
    shared = SHARED * rng.normal(size=grades.shape)
    skill = rng.normal(SKILL, SD_OF_SKILL, size=(n_families, 1, 1))
    of_family = skill * (grades > 0) + shared + rng.normal(size=(n_families, *grades.shape)) * 0.8
    runs = np.repeat(of_family, n_runs, axis=0)
    scores: Floats = runs + 0.4 * rng.normal(size=runs.shape)
    return scores


def _judged(scores: Floats, grades: Integers) -> list[JudgedLists]:
    """Each run's first documents with all grades, as if all had been judged."""
    n_topics = len(grades)
    topics, documents = (axis.ravel() for axis in np.indices(grades.shape))
    listed = np.argsort(-scores, axis=2)[:, :, :N_LISTED]
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
        for each, score in zip(listed, scores, strict=True)
    ]


def pool_intervals() -> Iterator[IntervalCase]:
    """Of the underestimate of a family that was not pooled."""
    for name, n_families, n_runs in (
        ("nDCG@10", 4, 1),
        ("nDCG@10", 6, 1),
        ("nDCG@10", 6, 2),
        ("nDCG@10", 12, 1),
        ("AP", 6, 1),
        ("AP", 12, 1),
    ):
        sizes = {"n_families": n_families, "n_runs": n_runs, "n_topics": 50}
        draw = partial(pool_bias, one=measure(name), **sizes)
        runs = "" if n_runs == 1 else f" of {n_runs} runs"
        noted = FEW_GROUPS_LEFT_OUT if n_families < FEW_GROUPS else ""
        yield IntervalCase("pool_bias", f"{name}, {n_families} families{runs}", draw, noted)
