from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from retrieval.evaluated_runs import Settings
from retrieval.evaluation import run_names
from retrieval.rankings.label_sets import LabelSets
from retrieval.rankings.records import ComparisonSettings, CrossedMean, RandomDesign
from retrieval.trec_files import Run
from stats.arguments import Floats, Integers
from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.inference.resampled_means import two_way_bootstrap
from stats.ranking import Measure, judged_lists
from stats.ranking.rank_similarity import random_assessors

ONE_EACH = "each topic has one assessor: topics and assessors cannot be separated"
NO_CHOICE = "each topic has one assessor: there is none to draw at random"


def values_by_assessor(
    sets: LabelSets, runs: Sequence[Run], settings: Settings
) -> dict[Measure, Floats]:
    """Of each measure the values by assessor, run and topic.

    NaN where the assessor has not judged the topic, or the run lacks it.
    """
    judged = np.array([sets.has_judged(name) for name in sets.names])
    shape = (len(sets.names), len(runs), len(sets.topics))
    values = {one: np.full(shape, np.nan) for one in settings.measures}
    assessor, topic = np.nonzero(judged)
    for at, run in enumerate(runs):
        for one, of_cells in _cell_values(sets, run, (assessor, topic), settings):
            values[one][assessor, at, topic] = of_cells
    if settings.missing == "zero":
        for table in values.values():
            filled = np.isnan(table) & judged[:, None, :]
            table[filled] = 0.0
    return values


def _cell_values(
    sets: LabelSets, run: Run, cells: tuple[Integers, Integers], settings: Settings
) -> Iterator[tuple[Measure, Floats]]:
    """A run's values in cells of an assessor and a topic, each as a topic of its own."""
    assessor, topic = cells
    cell = np.full((len(sets.names), len(sets.topics)), -1, dtype=np.intp)
    cell[assessor, topic] = np.arange(len(topic))
    names = sorted(set(run.documents).union(sets.documents), key=str.encode)
    of_run, of_sets = (_positions(each, names) for each in (run.documents, sets.documents))
    line_topic = _positions(run.topics, sets.topics)[run.topic]
    order = np.argsort(line_topic, kind="stable")
    start, end = (np.searchsorted(line_topic[order], topic, side=s) for s in ("left", "right"))
    size = end - start
    within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    line = order[np.repeat(start, size) + within]
    pairs = [sets.pair[name] for name in sets.names]
    number = np.repeat(np.arange(len(pairs)), [len(each) for each in pairs])
    pair, grade = np.concatenate(pairs), np.concatenate(list(sets.grade.values()))
    judged_cell = cell[number, sets.topic_of(pair)]
    known = judged_cell >= 0
    lists = judged_lists(
        np.repeat(np.arange(len(topic)), size),
        of_run[run.document[line]],
        run.score[line],
        judged_cell[known],
        of_sets[pair[known] % len(sets.documents)],
        grade[known],
        n_topics=len(topic),
        ties=settings.ties,
        single_precision=settings.single_precision,
    )
    for one in settings.measures:
        yield one, np.where(size > 0, one.values(lists), np.nan)


def _positions(names: Sequence[str], known: Sequence[str]) -> Integers:
    number = dict(zip(known, range(len(known)), strict=True))
    return np.array([number.get(name, -1) for name in names], dtype=np.intp)


def random_designs(
    sets: LabelSets,
    runs: Sequence[Run],
    values: Mapping[Measure, Floats],
    merged: tuple[str, Mapping[Measure, Floats]],
    settings: ComparisonSettings,
) -> Iterator[RandomDesign]:
    """Voorhees' design: one assessor a topic at random, for each measure.

    None where no topic has two: every draw would be the merged ranking itself.
    """
    name, means = merged
    judged = np.array([sets.has_judged(each) for each in sets.names])
    counted = judged.any(axis=0)
    if not has_choice(sets):
        return
    for one, of_assessors in values.items():
        drawn = random_assessors(
            of_assessors[:, :, counted],
            judged[:, counted],
            means[one],
            n_draws=settings.n_draws,
            rng=settings.evaluation.seed,
        )
        yield RandomDesign(one, name, tuple(run_names(runs)), drawn)


def has_choice(sets: LabelSets) -> bool:
    judged = np.array([sets.has_judged(name) for name in sets.names])
    return bool((judged.sum(axis=0) > 1).any())


def crossed_means(
    sets: LabelSets,
    runs: Sequence[Run],
    values: Mapping[Measure, Floats],
    settings: ComparisonSettings,
) -> Iterator[CrossedMean]:
    """Each system's mean over topics and assessors, both of which are samples.

    Limits are cut where measures end, at 0 and 1.
    """
    evaluation = settings.evaluation
    separable = has_choice(sets)
    for one, of_assessors in values.items():
        for at, run in enumerate(run_names(runs)):
            table = of_assessors[:, at]
            assessor, topic = np.nonzero(~np.isnan(table))
            mean = mean_over_items_and_annotators(
                topic, assessor, table[assessor, topic], confidence=evaluation.confidence
            )
            mean = replace(mean, ci_low=max(mean.ci_low, 0.0), ci_high=min(mean.ci_high, 1.0))
            low, high = two_way_bootstrap(
                table,
                n_resamples=settings.n_resamples,
                confidence=evaluation.confidence,
                rng=evaluation.seed,
            )
            yield CrossedMean(run, one, mean, low, high, None if separable else ONE_EACH)
