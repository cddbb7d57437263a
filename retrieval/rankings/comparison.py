"""Runs ranked under several qrels: how alike the rankings are, and what stays significant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from presentation.progress import Progress, silently
from retrieval.evaluation import evaluate_runs
from retrieval.evaluation_records import Evaluation, RunValues
from retrieval.rankings.assessors import crossed_means, random_designs, values_by_assessor
from retrieval.rankings.compared_sets import compared_sets
from retrieval.rankings.labels import assessors_agree, labels_compared
from retrieval.rankings.notes import notes
from retrieval.rankings.records import (
    ComparisonSettings,
    PairOfSystems,
    QrelsComparison,
    RankedSystem,
    Ranking,
    RankingComparison,
)
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Floats
from stats.ranking import Measure
from stats.ranking.rank_biased_overlap import rbo, tie_groups
from stats.ranking.resampled_topics import (
    Similarity,
    TopicSamples,
    similarities_over_topics,
    topic_samples,
    weighted_means,
    weighted_scores,
)


def compare_qrels(
    runs: Sequence[Run],
    qrels: Mapping[str, RelevanceGrades],
    settings: ComparisonSettings,
    *,
    assessors: Mapping[str, RelevanceGrades] | None = None,
    progress: Progress = silently,
) -> QrelsComparison:
    """The runs ranked under each of the qrels, and every pair of rankings compared.

    All is of the topics that every one of the qrels names, and some assessor. Union, intersection
    and majority are derived of the assessors, or where there are none of the qrels that no
    machine made.
    """
    sets = compared_sets(qrels, assessors or {}, settings)
    # Topics without a relevant document have been left out for all sets alike.
    each = replace(settings.evaluation, leave_out_without_relevant=False)
    evaluations = {
        name: evaluate_runs(grades, runs, each)
        for name, grades in progress(sets.grades.items(), len(sets.grades))
    }
    compared = QrelsComparison(
        qrels=tuple(sets.described()),
        evaluations=evaluations,
        rankings=tuple(_rankings(evaluations, settings)),
        pairs=tuple(_pairs(evaluations, settings)),
        labels=tuple(
            labels_compared(sets.judgments, sets.handed_in, settings.evaluation.confidence)
        ),
        assessors=None,
        random_assessor=(),
        crossed=(),
        n_topics=len(sets.topics),
        settings=settings,
    )
    if len(sets.people.names) > 1:
        values = values_by_assessor(sets.people, runs, each)
        merged = {one: _means(evaluations[sets.merged()], one) for one in each.measures}
        designs = random_designs(sets.people, runs, values, (sets.merged(), merged), settings)
        compared = replace(
            compared,
            assessors=assessors_agree(sets.people, settings.evaluation.confidence),
            random_assessor=tuple(designs),
            crossed=tuple(crossed_means(sets.people, runs, values, settings)),
        )
    return replace(compared, notes=tuple(notes(compared, sets)))


def _rows(evaluation: Evaluation, one: Measure) -> list[RunValues]:
    return [row for row in evaluation.results if row.measure == one]


def _values(evaluation: Evaluation, one: Measure) -> Floats:
    """By run and topic; NaN where a run lacks one, unless that counts 0."""
    return np.array([row.values for row in _rows(evaluation, one)])


def _means(evaluation: Evaluation, one: Measure) -> Floats:
    values = _values(evaluation, one)
    means: Floats = weighted_means(values, np.ones((1, values.shape[1])))[0]
    return means


def _scores(evaluation: Evaluation, one: Measure) -> Floats:
    """What orders the runs: means, or differences where runs lack topics."""
    values = _values(evaluation, one)
    scores: Floats = weighted_scores(values, np.ones((1, values.shape[1])))[0]
    return scores


def _rankings(
    evaluations: Mapping[str, Evaluation], settings: ComparisonSettings
) -> Iterator[Ranking]:
    primary = settings.evaluation.primary or settings.evaluation.measures
    for name, evaluation in evaluations.items():
        for one in settings.evaluation.measures:
            scores = _scores(evaluation, one)
            rows = _rows(evaluation, one)
            systems = [
                RankedSystem(
                    row.run,
                    1 + int((scores > score).sum()),
                    row.mean.value,
                    row.mean.ci_low,
                    row.mean.ci_high,
                    row.mean.n_topics,
                )
                for row, score in zip(rows, scores, strict=True)
            ]
            systems.sort(key=lambda system: (system.rank, system.run))
            groups = evaluation.groups(one) if one in primary else []
            yield Ranking(name, one, tuple(systems), groups)


def _pairs(
    evaluations: Mapping[str, Evaluation], settings: ComparisonSettings
) -> Iterator[RankingComparison]:
    """Every two sets under every measure; the truth comes first in its pairs."""
    n_topics = len(next(iter(evaluations.values())).topics)
    samples = topic_samples(n_topics, settings.n_resamples, settings.evaluation.seed)
    names = sorted(evaluations, key=lambda name: name != settings.truth)
    for one in settings.evaluation.measures:
        for first, second in combinations(names, 2):
            both = {name: evaluations[name] for name in (first, second)}
            yield _rankings_compared(both, one, samples, settings)


def _rankings_compared(
    both: Mapping[str, Evaluation],
    one: Measure,
    samples: TopicSamples,
    settings: ComparisonSettings,
) -> RankingComparison:
    first, second = both
    here, there = (_values(each, one) for each in both.values())
    similarities = partial(
        similarities_over_topics,
        samples=samples,
        confidence=settings.evaluation.confidence,
        p=settings.rbo_p,
        ties=settings.rbo_ties,
    )
    runs = [row.run for row in _rows(both[first], one)]
    scores = _scores(both[first], one), _scores(both[second], one)
    prefixes = (tie_groups(runs, each) for each in scores)
    best: list[int] = []
    if settings.top is not None and settings.top < len(runs):
        best = np.argsort(-scores[0], kind="stable")[: settings.top].tolist()
    ap: Similarity = "tau_ap_a" if first == settings.truth else "tau_ap_b"
    tau_b, tau_ap, overlap = similarities(here, there, ["tau_b", ap, "rbo"])
    return RankingComparison(
        first=first,
        second=second,
        measure=one,
        tau_b=tau_b,
        tau_ap=tau_ap,
        rbo=overlap,
        rbo_bounds=rbo(*prefixes, p=settings.rbo_p, ties=settings.rbo_ties),
        pairs=tuple(_pairs_of_systems(both, one)),
        top=similarities(here[best], there[best], ["tau_b"])[0] if best else None,
        top_systems=tuple(runs[at] for at in best),
    )


def _pairs_of_systems(both: Mapping[str, Evaluation], one: Measure) -> Iterator[PairOfSystems]:
    """Every two systems, the better under the first set first."""
    of_sets = [[row for row in each.comparisons if row.measure == one] for each in both.values()]
    for here, there in zip(*of_sets, strict=True):
        # Rounded, as means are, so that the order of sums swaps no two that are equal.
        first, second = (round(each.difference.delta, 12) for each in (here, there))
        a, b = here.a, here.b
        if first < 0:
            a, b, first, second = b, a, -first, -second
        yield PairOfSystems(a, b, first, second, here.p_adjusted, there.p_adjusted)
