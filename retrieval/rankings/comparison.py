from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import nan
from operator import itemgetter

import numpy as np

from error_codes import CodedText
from presentation.numbers import count_of, group_values, plain_values
from presentation.progress import Progress, silently
from retrieval.evaluated_runs import Evaluation, RunValues, Settings
from retrieval.evaluation import evaluate_runs, positions, run_names
from retrieval.rankings.label_sets import (
    ComparedSets,
    LabelSets,
    assessors_agree,
    compared_sets,
    labels_compared,
)
from retrieval.rankings.records import (
    ComparisonSettings,
    PairOfSystems,
    QrelsComparison,
    RankingComparison,
    Row,
)
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Floats, Integers
from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.inference.resampled_means import LEAST_ASSESSORS, two_way_bootstrap
from stats.ranking import Measure, judged_lists
from stats.ranking.rank_biased_overlap import rbo, tie_groups
from stats.ranking.rank_similarity import random_assessors
from stats.ranking.resampled_topics import (
    UNMOVED,
    Similarity,
    TopicSamples,
    similarities_over_topics,
    topic_samples,
    weighted_means,
    weighted_scores,
)
from stats.ranking.topic_means import LEAST_TOPICS

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
            table[np.isnan(table) & judged[:, None, :]] = 0.0
    return values


def _cell_values(
    sets: LabelSets, run: Run, cells: tuple[Integers, Integers], settings: Settings
) -> Iterator[tuple[Measure, Floats]]:
    """A run's values in cells of an assessor and a topic, each as a topic of its own."""
    assessor, topic = cells
    cell = np.full((len(sets.names), len(sets.topics)), -1, dtype=np.intp)
    cell[assessor, topic] = np.arange(len(topic))
    names = sorted(set(run.documents).union(sets.documents), key=str.encode)
    of_run, of_sets = (positions(each, names) for each in (run.documents, sets.documents))
    line_topic = positions(run.topics, sets.topics)[run.topic]
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


def random_designs(
    sets: LabelSets,
    runs: Sequence[Run],
    values: Mapping[Measure, Floats],
    merged: tuple[str, Mapping[Measure, Floats]],
    settings: ComparisonSettings,
) -> Iterator[Row]:
    """Voorhees' design: one assessor a topic at random, for each measure.

    None where no topic has two: every draw would be the merged ranking itself.
    """
    name, means = merged
    names = run_names(runs)
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
        yield {
            "measure": one.name,
            "merged": name,
            "n_draws": len(drawn.tau),
            "n_undefined": int(np.isnan(drawn.tau).sum()),
            "n_topics_with_choice": drawn.n_topics_with_choice,
            "tau_b": _summary(drawn.tau[~np.isnan(drawn.tau)]),
            "swaps": [
                {"a": names[a], "b": names[b], "share": float(drawn.swapped[a, b])}
                for a, b in np.argwhere(drawn.swapped > 0)
            ],
        }


def _summary(tau: Floats) -> dict[str, float | None]:
    if not len(tau):
        return dict.fromkeys(("mean", "sd", "min", "q05", "median", "q95", "max"))
    low, middle, high = (float(each) for each in np.quantile(tau, [0.05, 0.5, 0.95]))
    return plain_values(
        {
            "mean": float(tau.mean()),
            "sd": float(tau.std()),
            "min": float(tau.min()),
            "q05": low,
            "median": middle,
            "q95": high,
            "max": float(tau.max()),
        }
    )


def has_choice(sets: LabelSets) -> bool:
    return bool((np.array([sets.has_judged(name) for name in sets.names]).sum(axis=0) > 1).any())


def crossed_means(
    sets: LabelSets,
    runs: Sequence[Run],
    values: Mapping[Measure, Floats],
    settings: ComparisonSettings,
) -> Iterator[Row]:
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
            row = {
                "run": run,
                "measure": one.name,
                "mean": mean.value,
                "ci_low": mean.ci_low,
                "ci_high": mean.ci_high,
                "ci_method": mean.method,
                "bootstrap_low": low,
                "bootstrap_high": high,
                "n_topics": mean.n_items,
                "n_assessors": mean.n_annotators,
                "n_assessments": mean.n,
                "reason": None if separable else ONE_EACH,
            }
            yield plain_values(row)


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
    return np.array([row.values for row in _rows(evaluation, one)])


def _means(evaluation: Evaluation, one: Measure) -> Floats:
    values = _values(evaluation, one)
    means: Floats = weighted_means(values, np.ones((1, values.shape[1])))[0]
    return means


def _scores(evaluation: Evaluation, one: Measure) -> Floats:
    """What orders the runs: means, or differences if runs lack topics."""
    values = _values(evaluation, one)
    scores: Floats = weighted_scores(values, np.ones((1, values.shape[1])))[0]
    return scores


def _rankings(evaluations: Mapping[str, Evaluation], settings: ComparisonSettings) -> Iterator[Row]:
    primary = settings.evaluation.primary or settings.evaluation.measures
    for name, evaluation in evaluations.items():
        for one in settings.evaluation.measures:
            scores = _scores(evaluation, one)
            systems = [
                plain_values(
                    {
                        "run": row.run,
                        # that of the first of those it ties with
                        "rank": 1 + int((scores > score).sum()),
                        "mean": row.mean.value,
                        "ci_low": row.mean.ci_low,
                        "ci_high": row.mean.ci_high,
                        "n_topics": row.mean.n_topics,
                    }
                )
                for row, score in zip(_rows(evaluation, one), scores, strict=True)
            ]
            yield {
                "qrels": name,
                "measure": one.name,
                "systems": sorted(systems, key=itemgetter("rank", "run")),
                "groups": evaluation.groups(one) if one in primary else [],
            }


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


FEW_SYSTEMS = 10


def notes(compared: QrelsComparison, sets: ComparedSets) -> Iterator[str]:
    yield from _of_topics(compared, sets)
    yield from _of_rules(compared)
    yield from _of_systems(compared)
    if max((row["n_assessors"] for row in compared.crossed), default=nan) < LEAST_ASSESSORS:
        yield CodedText(
            f"below {LEAST_ASSESSORS} assessors limits of means with both resampled are a rough "
            "guide; those of topics x assessors allow for few",
            code="few_assessors",
        )
    if any(row["reason"] == ONE_EACH for row in compared.crossed):
        yield ONE_EACH
        yield NO_CHOICE
    if "union" in sets.grades and "majority" not in sets.grades:
        yield CodedText(
            "no document has three judgments, so that a majority would be the intersection",
            code="no_majority",
        )


def _of_rules(compared: QrelsComparison) -> Iterator[str]:
    names = [one["name"] for one in compared.qrels]
    judgments = compared.settings.judgments
    same = group_values((judgments[name], name) for name in names if judgments.get(name))
    for whose, of_one in same.items():
        if len(of_one) > 1:
            yield CodedText(
                f"{', '.join(of_one)} are the same judgments ({whose}) by several rules, and count "
                f"as one assessor, by {of_one[0]}",
                code="same_judgments",
            )


def _of_topics(compared: QrelsComparison, sets: ComparedSets) -> Iterator[str]:
    if compared.n_topics < LEAST_TOPICS:
        yield CodedText(
            f"below {LEAST_TOPICS} topics intervals are a rough guide", code="few_topics"
        )
    for name, n in sets.n_left_out.items():
        if n and name in sets.grades:
            yield CodedText(
                f"{name} has {count_of(n, 'topic')} that not all have, which nothing here counts",
                code="topics_not_shared",
            )


def _of_systems(compared: QrelsComparison) -> Iterator[str]:
    n = compared.pairs[0].tau_b.n_systems
    if 2 <= n <= FEW_SYSTEMS:
        n_pairs = n * (n - 1) // 2
        yield CodedText(
            f"{count_of(n, 'system')} have {count_of(n_pairs, 'pair')}: tau-b is coarse, and moves "
            f"by {2 / n_pairs:.2f} with one swap",
            code="few_systems",
        )
    coefficients = ((pair.tau_b, pair.tau_ap, pair.rbo) for pair in compared.pairs)
    if any(one.reason == UNMOVED for three in coefficients for one in three):
        yield CodedText(
            "where a coefficient has no interval every sample of topics gives the same value: that "
            "is no certainty, since new topics may be unlike all of these",
            code="no_interval",
        )
    p = compared.settings.rbo_p
    yield CodedText(
        f"ranks below the {count_of(n, 'system')}, where all agree, weigh {p**n:.2f} in "
        f"rank-biased overlap with p = {p:g}",
        code="rank_biased_tail",
    )
