"""Runs against qrels: means over topics with intervals, and which runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from presentation.progress import Progress, silently
from retrieval.evaluation_notes import notes_of
from retrieval.evaluation_records import (
    Evaluation,
    RunsCompared,
    RunValues,
    Settings,
    TopicCounts,
    paired,
)
from retrieval.exceptions import RunsUnfit
from retrieval.trec_files import RelevanceGrades, Run
from stats.arguments import Floats, Integers
from stats.ranking import JudgedLists, Measure, Ties, judged_lists
from stats.ranking.incomplete_judgments import judged
from stats.ranking.topic_means import compare_over_topics, mean_over_topics
from stats.significance.adjustments import holm

Flags = NDArray[np.bool_]


def evaluate_runs(
    grades: RelevanceGrades,
    runs: Sequence[Run],
    settings: Settings,
    *,
    progress: Progress = silently,
    pair_progress: Progress = silently,
) -> Evaluation:
    """Each run's measures by topic, their means, and every pair of runs compared if asked for."""
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
    """Refuse a measure whose scale ends below a grade."""
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
    """The positions of the others among the names; those that are not there come after."""
    position = positions(others, names)
    is_new = position < 0
    position[is_new] = len(names) + np.arange(int(is_new.sum()))
    return position


def positions(names: Sequence[str], known: Sequence[str]) -> Integers:
    """Where among the known names each name is, -1 where it is not."""
    number = dict(zip(known, range(len(known)), strict=True))
    return np.array([number.get(name, -1) for name in names], dtype=np.intp)


def has_relevant(grades: RelevanceGrades) -> Flags:
    """Which topics have a relevant document."""
    has = np.zeros(len(grades.topics), dtype=bool)
    has[grades.topic[grades.grade > 0]] = True
    return has


def _run_values(
    name: str,
    orders: dict[Ties, JudgedLists],
    flags: tuple[Flags, Flags],
    settings: Settings,
) -> Iterator[RunValues]:
    """A row for each measure; a measure's values are of the topics that count."""
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
    """Of the topics that count; where the run has no list NaN, or 0 if that counts."""
    listed, counted = flags
    values: Floats = np.where(listed, one.values(lists), settings.of_missing)[counted]
    return values


def share_judged(lists: JudgedLists, one: Measure) -> Floats:
    """The share of judged documents where the measure looks, in each topic."""
    longest = int(lists.rank.max(initial=1))
    return judged(lists, cutoff=one.cutoff or longest)


def _compared(
    results: Sequence[RunValues], settings: Settings, progress: Progress
) -> Iterator[RunsCompared]:
    """Each pair of runs under each measure, corrected over those that are primary."""
    rows = []
    pairs = [
        pair
        for one in settings.measures
        for pair in combinations([row for row in results if row.measure == one], 2)
    ]
    for a, b in progress(pairs, len(pairs)):
        test = settings.test or ("mcnemar" if a.measure.is_binary else "randomisation")
        difference = compare_over_topics(
            *paired(a.values, b.values),
            test=test,
            confidence=settings.confidence,
            rng=settings.seed,
        )
        rows.append(RunsCompared(a.run, b.run, a.measure, difference))
    primary = settings.primary or settings.measures
    family = [row.difference.p if row.measure in primary else np.nan for row in rows]
    for row, p in zip(rows, holm(family) if rows else [], strict=True):
        yield replace(row, p_adjusted=float(p))
