from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from annotation.readers.drafts import ReadingReport
from presentation.documents import Cell, add_interval
from presentation.numbers import count_of, plain_values
from presentation.text_tables import text_report, text_table
from retrieval.evaluated_runs import Evaluation, RunValues
from retrieval.exceptions import RunsUnfit
from retrieval.pools.catalogue import line_of_topic, read_target_values
from stats.arguments import Floats
from stats.ranking import Measure
from stats.ranking.topic_means import TopicMean, weighted_mean_over_topics

MEANS = ("run", "measure", "weighted mean", "topics")
# With 24 topics, 95 % intervals of shares cover .92, with 49 .94: 2,000 simulated draws of two
# strata.
LEAST_EQUAL = 30
# No list of targets is long enough for a smaller probability; squares of weights stay finite.
LEAST_PROBABILITY = 1e-12
DIFFERENCES = ("measure", "runs", "weighted delta", "topics")


@dataclass(frozen=True)
class TopicWeights:
    """Of topics in an evaluation's order: the probability to be drawn, and the stratum if known."""

    name: str
    probabilities: Floats
    strata: Floats | None
    n_unused: int

    @property
    def effective_n(self) -> float:
        """Topics of equal weight that would say as much, where topics are alike otherwise."""
        weights = 1 / self.probabilities
        return float(weights.sum() ** 2 / np.square(weights).sum())


@dataclass(frozen=True)
class WeightedMean:
    """A run's mean over all targets, or the difference of two runs' means (`b` is not empty)."""

    measure: Measure
    a: str
    b: str
    mean: TopicMean

    @property
    def limits(self) -> dict[str, float | None]:
        names = ("value", "ci_low", "ci_high")
        return plain_values({name: getattr(self.mean, name) for name in names})

    def record(self) -> dict[str, Any]:
        one = self.mean
        names = {"a": self.a, "b": self.b} if self.b else {"run": self.a}
        row: dict[str, Any] = {"delta" if self.b else "mean": one.value, "ci_low": one.ci_low}
        row |= {"ci_high": one.ci_high, "ci_method": one.method, "n_topics": one.n_topics}
        return plain_values(names | {"measure": self.measure.name} | row | {"reason": one.reason})


@dataclass(frozen=True)
class WeightedMeans:
    weights: TopicWeights
    means: tuple[WeightedMean, ...]
    differences: tuple[WeightedMean, ...]

    def notes(self) -> Iterator[str]:
        yield (
            f"weighted by 1 / probability of {self.weights.name}: for all the targets that topics "
            "were drawn from; means, tests and groups without weights are of the topics drawn"
        )
        if (n_equal := self.weights.effective_n) < LEAST_EQUAL:
            yield (
                f"so unequal weights leave what {n_equal:.0f} topics of equal weight say: "
                f"below {LEAST_EQUAL} intervals are a rough guide"
            )
        if self.weights.strata is None:
            yield f"{self.weights.name} names no strata: intervals take the topics as of one"
        if n := self.weights.n_unused:
            yield f"{count_of(n, 'target')} of {self.weights.name} take no part in the evaluation"

    def record(self) -> dict[str, Any]:
        return {
            "file": self.weights.name,
            "has_strata": self.weights.strata is not None,
            "effective_n": self.weights.effective_n,
            "means": [each.record() for each in self.means],
            "differences": [each.record() for each in self.differences],
            "notes": list(self.notes()),
        }

    def text(self) -> str:
        parts = [text_table(MEANS, [(one.a, one.measure.name, *_cells(one)) for one in self.means])]
        if self.differences:
            pairs = [
                (one.measure.name, f"{one.a} - {one.b}", *_cells(one)) for one in self.differences
            ]
            parts.append(text_table(DIFFERENCES, pairs))
        return text_report(parts, self.notes())


def read_weights(
    path: Path, topics: Sequence[str], *, report: ReadingReport | None = None
) -> TopicWeights:
    targets, probabilities = read_target_values(path, "probability", report=report)
    names = [one.topic for one in targets]
    _, strata = read_target_values(path, "stratum", is_required=False)
    drawn = zip(names, probabilities.tolist(), strata.tolist(), strict=True)
    return topic_weights(
        path.name,
        topics,
        {topic: of_topic for topic, *of_topic in drawn},
        line_of=lambda topic: line_of_topic(path, topic),
    )


def topic_weights(
    name: str,
    topics: Sequence[str],
    drawn: Mapping[str, Sequence[float]],
    *,
    line_of: Callable[[str], int] | None = None,
) -> TopicWeights:
    """The weights of an evaluation's topics by the probability and the stratum of each target.

    No stratum is known where one of the topics has none (NaN). RunsUnfit where a topic was not
    drawn, or with a probability that none can have been drawn with; `line_of` gives its line.
    """
    if missing := [topic for topic in topics if topic not in drawn or isnan(drawn[topic][0])]:
        raise RunsUnfit(
            f"{name} has no probability of topic {missing[0]}, which is judged.",
            code="topic_missing",
        )
    probabilities, strata = np.array([drawn[topic] for topic in topics], dtype=float).T
    is_possible = (probabilities >= LEAST_PROBABILITY) & (probabilities <= 1)
    if len(wrong := np.flatnonzero(~is_possible)):
        topic, probability = topics[wrong[0]], probabilities[wrong[0]]
        where = f"{name}, line {line_of(topic)}" if line_of else name
        least = f"at least {LEAST_PROBABILITY:g}" if 0 < probability < 1 else "above 0"
        raise RunsUnfit(
            f"{where}: the probability of topic {topic} is {probability:g}, and must be "
            f"{least} and at most 1.",
            code="probability",
        )
    known = None if np.isnan(strata).any() else strata
    return TopicWeights(name, probabilities, known, len(set(drawn) - set(topics)))


def weighted_means(evaluation: Evaluation, weights: TopicWeights) -> WeightedMeans:
    rows = evaluation.results
    pairs = [
        (a, b)
        for one in evaluation.settings.measures
        for a, b in combinations([row for row in rows if row.measure == one], 2)
    ]
    return WeightedMeans(
        weights,
        tuple(_weighted(row, None, evaluation, weights) for row in rows),
        tuple(_weighted(a, b, evaluation, weights) for a, b in pairs),
    )


def _weighted(
    a: RunValues, b: RunValues | None, evaluation: Evaluation, weights: TopicWeights
) -> WeightedMean:
    values = a.values if b is None else a.values - b.values
    has = ~np.isnan(values)
    mean = weighted_mean_over_topics(
        values[has],
        weights.probabilities[has],
        None if weights.strata is None else weights.strata[has],
        confidence=evaluation.settings.confidence,
        least=0.0 if b is None else -1.0,
    )
    return WeightedMean(a.measure, a.run, "" if b is None else b.run, mean)


def _cells(one: WeightedMean) -> tuple[Cell, Cell]:
    mean = one.mean
    return add_interval(mean.value, mean, 4, is_signed=bool(one.b)), mean.n_topics
