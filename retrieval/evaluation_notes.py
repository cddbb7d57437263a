"""What a reader of an evaluation must know beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from error_codes import CodedText
from presentation.counts import count_of
from retrieval.evaluation_records import Evaluation
from retrieval.trec_files import Run
from stats.ranking.judged_lists import in_single_precision, score_keys
from stats.ranking.topic_means import LEAST_OTHERS, LEAST_TOPICS


def notes_of(evaluation: Evaluation, runs: Mapping[str, Run]) -> Iterator[str]:
    """What a reader must know beside the numbers."""
    if not evaluation.settings.pairs and len(runs) > 1:
        pairs = count_of(len(runs) * (len(runs) - 1) // 2, "pair")
        yield CodedText(
            f"{pairs} of runs are not tested; --pairs tests them", code="pairs_not_tested"
        )
    yield from _notes_of_topics(evaluation)
    yield from _notes_of_means(evaluation)
    for row in evaluation.results:
        # what four decimals do not show is no difference to a reader
        if f"{row.other_ties:.4f}" != f"{row.mean.value:.4f}":
            yield CodedText(
                f"tied scores move {row.measure.name} of {row.run}: {row.mean.value:.4f}, or "
                f"{row.other_ties:.4f} were ties broken the other way",
                code="ties_move_mean",
            )
    for name, run in runs.items():
        yield from _notes_of_order(name, run)
        yield from _notes_of_infinite(name, run, evaluation.settings.single_precision)
        if evaluation.settings.single_precision and _differs_in_double(run):
            yield CodedText(
                f"{name} has scores that are tied as 32-bit floats and differ as 64-bit ones, by "
                "which trec_eval 10 orders them",
                code="tied_in_single_precision",
            )


def _notes_of_infinite(name: str, run: Run, single_precision: bool) -> Iterator[str]:
    """Scores that are infinite, and those that become so by the precision."""
    n = int(np.isinf(run.score).sum())
    if n:
        yield CodedText(f"{name} has {count_of(n, 'infinite score')}", code="infinite_scores")
    if single_precision and (n_beyond := run.n_infinite - n):
        yield CodedText(
            f"{name} has {count_of(n_beyond, 'score')} beyond the range of 32-bit floats, infinite "
            "and tied there",
            code="beyond_single_precision",
        )


def _notes_of_topics(evaluation: Evaluation) -> Iterator[str]:
    if len(evaluation.topics) < LEAST_TOPICS:
        yield CodedText(
            f"below {LEAST_TOPICS} topics intervals are a rough guide", code="few_topics"
        )
    for row in evaluation.results:
        if row.n_others < LEAST_OTHERS <= LEAST_TOPICS <= row.mean.n_topics:
            most = f"all but {count_of(row.n_others, 'topic')}" if row.n_others else "all topics"
            yield CodedText(
                f"{row.measure.name} of {row.run}: {most} have the same value, which makes its "
                "interval a rough guide",
                code="few_other_values",
            )
    zero = evaluation.settings.missing == "zero"
    for each in evaluation.runs:
        if each.n_missing:
            topics = count_of(each.n_missing, "topic")
            where = "everywhere" if zero else "in mean_complete alone"
            yield CodedText(
                f"{each.run} lacks {topics}, which count 0 {where}", code="missing_topics"
            )
        if each.n_foreign:
            topics = count_of(each.n_foreign, "topic")
            yield CodedText(
                f"{each.run} has {topics} without judgments, which nothing here counts",
                code="foreign_topics",
            )
    if without := evaluation.n_without_relevant:
        left_out = evaluation.settings.leave_out_without_relevant
        counted = "left out for all runs" if left_out else "counted as 0"
        # Topics are the same for all measures, whatever level of relevance each has.
        levels = {dict(one.settings).get("rel", 1) for one in evaluation.settings.measures}
        by = " (of a grade above 0, whatever rel is)" if levels != {1} else ""
        yield CodedText(
            f"{count_of(without, 'topic')} without a relevant document{by}: {counted}",
            code="without_relevant",
        )


def _notes_of_means(evaluation: Evaluation) -> Iterator[str]:
    """Which measures' means are of so different topics that their order says something else."""
    for one in evaluation.settings.measures:
        if evaluation.order(one).contradicts_means:
            yield CodedText(
                f"means of {one.name} are of different topics, and do not order the runs: they are "
                "ordered by their differences on the topics that two have",
                code="means_of_different_topics",
            )


def _notes_of_order(name: str, run: Run) -> Iterator[str]:
    """By what a run was ordered, where its ranks say otherwise, and whether it lists targets."""
    if n := len(run.contradicting):
        lines = count_of(n, "line")
        yield CodedText(
            f"ranks and scores of {name} contradict each other in {lines}: lists are ordered by "
            "falling score, as trec_eval orders them, and ranks are not looked at",
            code="ranks_contradict_scores",
        )
    if n := _n_begun_with_their_topic(run):
        yield CodedText(
            f"{name} begins with the target itself in {n:,} of {count_of(len(run.topics), 'topic')}"
            ", which takes the first rank from what was retrieved: leave targets out of runs",
            code="begins_with_target",
        )


def _n_begun_with_their_topic(run: Run) -> int:
    """Topics named as a document, which no other document of their list exceeds in score."""
    number = dict(zip(run.documents, range(len(run.documents)), strict=True))
    itself = np.array([number.get(topic, -1) for topic in run.topics], dtype=np.intp)
    is_itself = itself[run.topic] == run.document
    if not is_itself.any():
        return 0
    best = np.full(len(run.topics), -np.inf)
    np.maximum.at(best, run.topic, run.score)
    return int((run.score[is_itself] >= best[run.topic[is_itself]]).sum())


def _differs_in_double(run: Run) -> bool:
    """Whether two scores of a topic are the same in single precision and not in double."""
    keys = score_keys(run.topic, in_single_precision(run.score))
    if keys is None:
        return False
    order = np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    return bool((same & (run.score[order[1:]] != run.score[order[:-1]])).any())
