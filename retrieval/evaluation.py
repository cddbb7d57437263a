from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from error_codes import CodedText
from presentation.numbers import count_of
from presentation.progress import Progress, silently
from retrieval.evaluated_runs import (
    Evaluation,
    RunsCompared,
    RunValues,
    Settings,
    TopicCounts,
    paired,
)
from retrieval.exceptions import RunsUnfit
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Flags, Floats, Integers
from stats.ranking import JudgedLists, Measure, Ties, judged_lists
from stats.ranking.judged_lists import in_single_precision, score_keys
from stats.ranking.measures import judged
from stats.ranking.topic_means import (
    LEAST_OTHERS,
    LEAST_TOPICS,
    compare_over_topics,
    mean_over_topics,
)
from stats.significance.adjustments import holm


def evaluate_runs(
    grades: RelevanceGrades,
    runs: Sequence[Run],
    settings: Settings,
    *,
    progress: Progress = silently,
    pair_progress: Progress = silently,
) -> Evaluation:
    with_relevant = has_relevant(grades)
    counted = with_relevant if settings.leave_out_without_relevant else np.ones_like(with_relevant)
    if not counted.any():
        raise RunsUnfit(
            f"No topic of {grades.path.name} has a relevant document.", code="nothing_relevant"
        )
    require_scale(grades, settings.measures)
    results: list[RunValues] = []
    counts: list[TopicCounts] = []
    named = dict(zip(run_names(runs), runs, strict=True))
    for name, run in progress(named.items(), len(named)):
        position = positions(run.topics, grades.topics)
        listed = np.zeros(len(grades.topics), dtype=bool)
        listed[position[position >= 0]] = True
        n_topics = int((listed & counted).sum())
        if not n_topics:
            raise RunsUnfit(
                f"{run.path.name} ({name}) has no topic of {grades.path.name} that counts. "
                "Leave it out, or choose the qrels of its topics.",
                code="no_topic",
            )
        orders = lists_of_run(grades, run, position, settings.single_precision)
        n_lacking = int(counted.sum()) - n_topics
        n_foreign = int((position < 0).sum())
        n_foreign_lines = int((position[run.topic] < 0).sum())
        n_unjudged = int((orders["falling"].grade < 0).sum())
        counts.append(
            TopicCounts(name, n_topics, n_lacking, n_foreign, n_foreign_lines, n_unjudged)
        )
        results += _run_values(name, orders, (listed, counted), settings)
    topics = [each for each, counts_here in zip(grades.topics, counted, strict=True) if counts_here]
    evaluation = Evaluation(
        topics=topics,
        n_without_relevant=int((~with_relevant).sum()),
        results=tuple(results),
        comparisons=tuple(_compared(results, settings, pair_progress)) if settings.pairs else (),
        runs=tuple(counts),
        settings=settings,
    )
    return replace(evaluation, notes=tuple(notes_of(evaluation, named)))


def require_scale(grades: RelevanceGrades, measures: Sequence[Measure]) -> None:
    highest = int(grades.grade.max())
    for one in measures:
        if dict(one.settings).get("max_rel", highest) < highest:
            raise RunsUnfit(
                f"{one.name}: {grades.path.name} has the grade {highest}.",
                code="grade_beyond_scale",
            )


def run_names(runs: Sequence[Run]) -> list[str]:
    """What each run is called: its tag, or where another has the same or it has none, its file."""
    tags = Counter(run.tag for run in runs)
    names = [run.tag if run.tag and tags[run.tag] == 1 else run.path.name for run in runs]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise RunsUnfit(
            f"Two runs are called {twice[0]}. Give one another tag, or another name.",
            code="run_twice",
        )
    return names


def lists_of_run(
    grades: RelevanceGrades, run: Run, position: Integers, single_precision: bool
) -> dict[Ties, JudgedLists]:
    """A run's lists of the qrels' topics, with their grades, by either order of ties.

    Where nothing is tied both are the same object.
    """
    known = position[run.topic] >= 0
    columns = (
        position[run.topic[known]],
        run.document[known],
        run.score[known],
        grades.topic,
        _numbered_after(run.documents, grades.documents)[grades.document],
        grades.grade,
    )

    def lists(ties: Ties) -> JudgedLists:
        return judged_lists(
            *columns, n_topics=len(grades.topics), ties=ties, single_precision=single_precision
        )

    falling = lists("falling")
    return {"falling": falling, "rising": lists("rising") if falling.has_ties else falling}


def _numbered_after(names: Sequence[str], others: Sequence[str]) -> Integers:
    position = positions(others, names)
    is_new = position < 0
    position[is_new] = len(names) + np.arange(int(is_new.sum()))
    return position


def positions(names: Sequence[str], known: Sequence[str]) -> Integers:
    """Where among the known names each name is, -1 where it is not."""
    number = dict(zip(known, range(len(known)), strict=True))
    return np.array([number.get(name, -1) for name in names], dtype=np.intp)


def has_relevant(grades: RelevanceGrades) -> Flags:
    has = np.zeros(len(grades.topics), dtype=bool)
    has[grades.topic[grades.grade > 0]] = True
    return has


def _run_values(
    name: str,
    orders: dict[Ties, JudgedLists],
    flags: tuple[Flags, Flags],
    settings: Settings,
) -> Iterator[RunValues]:
    listed, counted = flags
    lists = orders.pop(settings.ties)
    [lists_other_way] = orders.values()
    for one in settings.measures:
        values = _by_topic(one, lists, flags, settings)
        here = values[~np.isnan(values)]
        yield RunValues(
            run=name,
            measure=one,
            values=values,
            mean=mean_over_topics(here, confidence=settings.confidence, binary=one.is_binary),
            judged=float(share_judged(lists, one)[listed & counted].mean()),
            other_ties=float(
                here.mean()
                if lists_other_way is lists
                else np.nanmean(_by_topic(one, lists_other_way, flags, settings))
            ),
        )


def _by_topic(
    one: Measure, lists: JudgedLists, flags: tuple[Flags, Flags], settings: Settings
) -> Floats:
    listed, counted = flags
    values: Floats = np.where(listed, one.values(lists), settings.of_missing)[counted]
    return values


def share_judged(lists: JudgedLists, one: Measure) -> Floats:
    longest = int(lists.rank.max(initial=1))
    return judged(lists, cutoff=one.cutoff or longest)


def _compared(
    results: Sequence[RunValues], settings: Settings, progress: Progress
) -> Iterator[RunsCompared]:
    rows = []
    pairs = [
        pair
        for one in settings.measures
        for pair in combinations([row for row in results if row.measure == one], 2)
    ]
    for a, b in progress(pairs, len(pairs)):
        difference = compare_over_topics(
            *paired(a.values, b.values),
            test=settings.test or ("mcnemar" if a.measure.is_binary else "randomisation"),
            confidence=settings.confidence,
            rng=settings.seed,
        )
        rows.append(RunsCompared(a.run, b.run, a.measure, difference))
    primary = settings.primary or settings.measures
    family = [row.difference.p if row.measure in primary else np.nan for row in rows]
    for row, p in zip(rows, holm(family) if rows else [], strict=True):
        yield replace(row, p_adjusted=float(p))


def notes_of(evaluation: Evaluation, runs: Mapping[str, Run]) -> Iterator[str]:
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
    for one in evaluation.settings.measures:
        if evaluation.order(one).contradicts_means:
            yield CodedText(
                f"means of {one.name} are of different topics, and do not order the runs: they are "
                "ordered by their differences on the topics that two have",
                code="means_of_different_topics",
            )


def _notes_of_order(name: str, run: Run) -> Iterator[str]:
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
    keys = score_keys(run.topic, in_single_precision(run.score))
    if keys is None:
        return False
    order = np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    return bool((same & (run.score[order[1:]] != run.score[order[:-1]])).any())
