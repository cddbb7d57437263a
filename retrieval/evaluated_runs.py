from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import factorial, fsum, isnan, nan
from typing import Any, Literal, Self

import numpy as np
from django.utils.translation import gettext as _, ngettext

from error_codes import CodedText
from presentation.documents import Cell, Number, P, add_interval
from presentation.numbers import plain_values
from presentation.text_tables import text_report, text_table
from stats.arguments import Floats
from stats.ranking import Measure, Ties
from stats.ranking.topic_means import Test, TopicDifference, TopicMean

# Topics that a run lacks: left out for both runs of a pair, or 0 for the run that lacks them.
Missing = Literal["common", "zero"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How runs are evaluated.

    `primary` are the measures whose tests are corrected together; all by default. `pairs` is
    whether each pair of runs is tested. A topic of
    which nothing is relevant has 0 and counts, unless it is left out for all runs.
    """

    measures: tuple[Measure, ...]
    primary: tuple[Measure, ...] = ()
    pairs: bool = True
    ties: Ties = "falling"
    single_precision: bool = True
    missing: Missing = "common"
    leave_out_without_relevant: bool = False
    test: Test | None = None
    confidence: float = 0.95
    seed: int = 0

    @property
    def of_missing(self) -> float:
        """A run's value in a topic that it lacks: NaN, which counts nowhere, or 0."""
        return 0.0 if self.missing == "zero" else nan


@dataclass(frozen=True)
class RunValues:
    """A run's value of a measure, topic by topic.

    `values` are of all topics of the qrels; where the run has no list NaN, or 0 if that counts.
    `judged` is the share of judged documents within the cutoff, `other_ties` the mean if ties were
    broken the other way.
    """

    run: str
    measure: Measure
    values: Floats
    mean: TopicMean
    judged: float
    other_ties: float

    @property
    def mean_complete(self) -> float:
        return float(np.nan_to_num(self.values).mean())

    @property
    def n_others(self) -> int:
        """Topics whose value is not the commonest; all count where the measure is 0 or 1."""
        values = self.values[~np.isnan(self.values)]
        if self.measure.is_binary:
            return len(values)
        return len(values) - int(np.unique(values, return_counts=True)[1].max(initial=0))

    def record(self, topics: Sequence[str]) -> dict[str, Any]:
        per_topic = zip(topics, self.values.tolist(), strict=True)
        row = {
            "run": self.run,
            "measure": self.measure.name,
            "mean": self.mean.value,
            "mean_complete": self.mean_complete,
            "mean_other_ties": self.other_ties,
            "n_topics": self.mean.n_topics,
            "ci_low": self.mean.ci_low,
            "ci_high": self.mean.ci_high,
            "ci_method": self.mean.method,
            "reason": self.mean.reason,
            "judged": self.judged,
            "per_topic": {topic: value for topic, value in per_topic if value == value},
        }
        return plain_values(row)


@dataclass(frozen=True)
class RunsCompared:
    """The difference of two runs' means of a measure; `p_adjusted` is NaN outside the family."""

    a: str
    b: str
    measure: Measure
    difference: TopicDifference
    p_adjusted: float = nan

    def record(self) -> dict[str, Any]:
        one = self.difference
        row = {
            "a": self.a,
            "b": self.b,
            "measure": self.measure.name,
            "delta": one.delta,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "test": one.test,
            "p": one.p,
            "p_adjusted": self.p_adjusted,
            "n_topics": one.n_topics,
            "n_better": one.n_better,
            "n_worse": one.n_worse,
            "reason": one.reason,
        }
        return plain_values(row)


@dataclass(frozen=True)
class TopicCounts:
    """Topics of a run that count, that it lacks, and that the qrels do not know.

    `n_foreign_lines` are the lines of these, and `n_unjudged` documents of the others that nobody
    judged.
    """

    run: str
    n_topics: int
    n_missing: int
    n_foreign: int
    n_foreign_lines: int
    n_unjudged: int

    def record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("run", "n_topics", "n_missing", "n_foreign")}


def paired(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both]


def _mean_difference(a: Floats, b: Floats) -> float:
    first, second = paired(a, b)
    return float((first - second).mean()) if len(first) else nan


@dataclass
class RunOrder:
    """Runs in the order of their differences from the others on the topics that two have.

    Means of runs that lack topics are of other topics, and their order may contradict every
    test. Where no run lacks one, the order is that of the means.
    """

    means: Mapping[str, float]
    deltas: dict[tuple[str, str], float] = field(default_factory=dict)
    significant: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        means: Mapping[str, float | None],
        pairs: Iterable[tuple[str, str, float | None, float | None]],
    ) -> Self:
        order = cls({run: nan if mean is None else mean for run, mean in means.items()})
        for a, b, delta, p in pairs:
            if delta is None or isnan(delta):
                continue
            order.deltas |= {(a, b): delta, (b, a): -delta}
            if p is not None and p < SIGNIFICANT:
                order.significant |= {(a, b), (b, a)}
        return order

    @property
    def names(self) -> list[str]:
        """From the best on; a run that has no topic in common with another comes last."""
        return sorted(self.means, key=self._key)

    def _key(self, run: str) -> tuple[bool, float, bool, float, str]:
        deltas = [self.deltas[run, other] for other in self.means if (run, other) in self.deltas]
        score = round(fsum(deltas) / len(deltas), DIGITS) if deltas else 0.0
        mean = self.means[run]
        return not deltas, -score, isnan(mean), 0.0 if isnan(mean) else -mean, run

    def is_better(self, a: str, b: str) -> bool:
        return (a, b) in self.significant and self.deltas[a, b] > 0

    def groups(self) -> list[list[str]]:
        names = self.names
        groups: list[list[str]] = []
        for position, name in enumerate(names):
            above, below = names[:position], names[position:]
            if all(self.is_better(a, b) for a in above for b in below):
                groups.append([])
            groups[-1].append(name)
        return groups

    @property
    def contradicts_means(self) -> bool:
        """Whether a run comes before one whose mean over other topics is greater."""
        means = [round(self.means[run], DIGITS) for run in self.names]
        return any(first < second for first, second in pairwise(means))


@dataclass(frozen=True)
class Evaluation:
    topics: list[str]
    n_without_relevant: int
    results: tuple[RunValues, ...]
    comparisons: tuple[RunsCompared, ...]
    runs: tuple[TopicCounts, ...]
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    def order(self, one: Measure) -> RunOrder:
        of_measure = [row for row in self.results if row.measure == one]
        pairs: Iterable[tuple[str, str, float, float]]
        if self.settings.pairs:
            pairs = (
                (row.a, row.b, row.difference.delta, row.p_adjusted)
                for row in self.comparisons
                if row.measure == one
            )
        else:
            pairs = (
                (a.run, b.run, _mean_difference(a.values, b.values), nan)
                for a, b in combinations(of_measure, 2)
            )
        return RunOrder.of({row.run: row.mean.value for row in of_measure}, pairs)

    def groups(self, one: Measure) -> list[list[str]]:
        """The runs from the best on, divided where all above are better than all below.

        Without tests nothing is known to be better: there are no groups.
        """
        if not self.settings.pairs:
            return []
        return self.order(one).groups()

    def record(self) -> dict[str, Any]:
        primary = self.settings.primary or self.settings.measures
        return {
            "results": [row.record(self.topics) for row in self.results],
            "comparisons": [row.record() for row in self.comparisons],
            "groups": [{"measure": each.name, "groups": self.groups(each)} for each in primary],
            "runs": [each.record() for each in self.runs],
            "n_topics": len(self.topics),
            "n_without_relevant": self.n_without_relevant,
            "settings": {
                "primary": [each.name for each in primary],
                "pairs": self.settings.pairs,
                "ties": self.settings.ties,
                "single_precision": self.settings.single_precision,
                "missing": self.settings.missing,
                "leave_out_without_relevant": self.settings.leave_out_without_relevant,
                "confidence": self.settings.confidence,
                "seed": self.settings.seed,
            },
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }


SIGNIFICANT = 0.05
# Scores are rounded to this many digits, so that the order of summation breaks no tie.
DIGITS = 12


# With fewer runs, a sentence says how little tau and rankings mean.
FEW_RUNS = 6


def few_runs_sentence(n_runs: int) -> str:
    if not 2 <= n_runs < FEW_RUNS:
        return ""
    n_pairs = n_runs * (n_runs - 1) // 2
    pairs = ngettext("{n} pair", "{n} pairs", n_pairs).format(n=n_pairs)
    return CodedText(
        _(
            "{n} runs say little: they have {pairs}, tau-b moves by {step} with one swap, and two "
            "rankings that have nothing to do with each other are the same once in {orders} times. "
            "Look at the differences of the runs rather than at tau."
        ).format(n=n_runs, pairs=pairs, step=f"{2 / n_pairs:.2f}", orders=factorial(n_runs)),
        code="few_runs",
    )


RESULTS = ("run", "measure", "mean", "judged", "topics", "complete")
COMPARISONS = ("measure", "runs", "delta", "test", "p", "p (Holm)")


def evaluation_text(evaluation: Evaluation) -> str:
    parts = [text_table(RESULTS, map(_result, evaluation.results))]
    if evaluation.comparisons:
        parts.append(text_table(COMPARISONS, map(_comparison, evaluation.comparisons)))
        parts.append("\n".join(_groups(evaluation)))
    return text_report(parts, evaluation.notes)


def _result(row: RunValues) -> tuple[Cell, ...]:
    return (
        row.run,
        row.measure.name,
        add_interval(row.mean.value, row.mean, 4),
        Number(row.judged, 4),
        row.mean.n_topics,
        Number(row.mean_complete, 4),
    )


def _comparison(row: RunsCompared) -> tuple[Cell, ...]:
    one = row.difference
    delta = add_interval(one.delta, one, 4, is_signed=True)
    return row.measure.name, f"{row.a} - {row.b}", delta, one.test, P(one.p), P(row.p_adjusted)


def _groups(evaluation: Evaluation) -> Iterator[str]:
    for measure in evaluation.settings.primary or evaluation.settings.measures:
        groups = " > ".join(", ".join(group) for group in evaluation.groups(measure))
        yield f"{measure.name}: {groups}"
