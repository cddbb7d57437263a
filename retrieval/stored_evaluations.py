from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from presentation.row_files import RowFile
from results.models import Result
from retrieval.evaluated_runs import RunOrder
from retrieval.models import (
    CollectionFile,
    EvaluatedMeasure,
    EvaluationWeights,
    ResultFile,
    RunPair,
    RunResult,
    TopicValue,
    WeightedResult,
)

RESULT_FIELDS = (
    *("mean", "mean_complete", "mean_other_ties", "n_topics", "ci_low", "ci_high", "ci_method"),
    *("reason", "judged"),
)
PAIR_FIELDS = (
    *("delta", "ci_low", "ci_high", "test", "p", "p_adjusted", "n_topics", "n_better", "n_worse"),
    "reason",
)
SETTINGS = (
    *("ties", "single_precision", "missing", "leave_out_without_relevant", "confidence", "seed"),
)


class StoredEvaluation:
    def __init__(self, version: Result) -> None:
        self.version = version

    @cached_property
    def measures(self) -> list[EvaluatedMeasure]:
        return sorted(self.version.measures.all(), key=lambda one: (not one.is_primary, one.pk))

    @cached_property
    def files(self) -> dict[int, ResultFile]:
        return {file.pk: file for file in self.version.files.all()}

    @property
    def runs(self) -> list[ResultFile]:
        return [file for file in self.files.values() if file.kind == CollectionFile.Kind.RUN]

    @property
    def qrels(self) -> ResultFile:
        return next(file for file in self.files.values() if file.kind == CollectionFile.Kind.QRELS)

    @cached_property
    def results(self) -> dict[int, list[RunResult]]:
        by_measure: dict[int, list[RunResult]] = defaultdict(list)
        for row in self.version.results.all():
            row.run = self.files[row.run_id]
            by_measure[row.measure_id].append(row)
        for measure, rows in by_measure.items():
            position = {name: at for at, name in enumerate(self.order(measure, rows).names)}
            rows.sort(key=lambda row: position[row.run.name])
        return by_measure

    def order(self, measure: int, rows: Sequence[RunResult]) -> RunOrder:
        return RunOrder.of(
            {row.run.name: row.mean for row in rows},
            [
                (row.a.name, row.b.name, row.delta, row.p_adjusted)
                for row in self.pairs.get(measure, [])
            ],
        )

    @cached_property
    def pairs(self) -> dict[int, list[RunPair]]:
        by_measure: dict[int, list[RunPair]] = defaultdict(list)
        for row in self.version.pairs.all():
            row.a, row.b = self.files[row.a_id], self.files[row.b_id]
            by_measure[row.measure_id].append(row)
        return by_measure

    @cached_property
    def weights(self) -> EvaluationWeights | None:
        return EvaluationWeights.objects.filter(version=self.version).first()

    @cached_property
    def weighted(self) -> list[WeightedResult]:
        rows = list(self.version.weighted_results.all())
        names = {one.pk: one for one in self.measures}
        for row in rows:
            row.measure, row.run = names[row.measure_id], self.files[row.run_id]
            row.other = self.files[row.other_id] if row.other_id else None
        return rows

    @cached_property
    def notes(self) -> list[str]:
        return [note["text"] for note in self.version.notes]

    def groups(self, one: EvaluatedMeasure) -> list[list[str]]:
        groups: dict[int, list[str]] = defaultdict(list)
        for row in self.results[one.pk]:
            groups[row.group or 0].append(row.run.name)
        return [groups[number] for number in sorted(groups)]

    def record(self, *, per_topic: bool = True) -> dict[str, Any]:
        in_order = sorted(self.measures, key=lambda one: one.pk)
        primary = [one for one in in_order if one.is_primary]
        rules = self.version.settings
        return {
            "results": list(self._results(per_topic=per_topic)),
            "comparisons": [
                {"a": row.a.name, "b": row.b.name, "measure": one.name}
                | {name: getattr(row, name) for name in PAIR_FIELDS}
                | {"reason": row.reason or None}
                for one in in_order
                for row in self.pairs.get(one.pk, [])
            ],
            "groups": [{"measure": one.name, "groups": self.groups(one)} for one in primary],
            "runs": [
                {"run": run.name, "n_topics": run.n_topics}
                | {"n_missing": run.n_missing, "n_foreign": run.n_foreign}
                for run in self.runs
            ],
            "n_topics": self.version.facts["n_topics"],
            "n_without_relevant": self.version.facts["n_without_relevant"],
            "settings": {"primary": [one.name for one in primary], "pairs": True}
            | {name: rules[name] for name in SETTINGS if name in rules},
            "notes": self.notes,
        } | self._weighted()

    def _weighted(self) -> dict[str, Any]:
        if (weights := self.weights) is None:
            return {}
        means = [row for row in self.weighted if row.other is None]
        pairs = [row for row in self.weighted if row.other is not None]
        return {
            "weighted": {
                "file": weights.name,
                "has_strata": weights.has_strata,
                "effective_n": weights.effective_n,
                "means": [
                    {"run": row.run.name, "measure": row.measure.name, "mean": row.value}
                    | _limits(row)
                    for row in means
                ],
                "differences": [
                    {"a": row.run.name, "b": str(row.other), "measure": row.measure.name}
                    | {"delta": row.value}
                    | _limits(row)
                    for row in pairs
                ],
            }
        }

    def _results(self, *, per_topic: bool) -> Iterator[dict[str, Any]]:
        values = self._topic_values() if per_topic else {}
        names = {one.pk: one.name for one in self.measures}
        for rows in self.results.values():
            for row in sorted(rows, key=lambda row: row.pk):
                yield (
                    {"run": row.run.name, "measure": names[row.measure_id]}
                    | {name: getattr(row, name) for name in RESULT_FIELDS}
                    | {"reason": row.reason or None}
                    | ({"per_topic": values[row.pk]} if per_topic else {})
                )

    def _topic_values(self) -> dict[int, dict[str, float]]:
        by_result: dict[int, dict[str, float]] = defaultdict(dict)
        rows = TopicValue.objects.filter(result__version=self.version).order_by("pk")
        for result, topic, value in rows.values_list("result", "topic", "value").iterator():
            by_result[result][topic] = value
        return by_result

    def topic_rows(self) -> RowFile:
        rows = TopicValue.objects.filter(result__version=self.version).order_by("pk")
        columns = ("topic", "result__run__name", "result__measure__name", "value")
        return RowFile(
            {"topic": "text", "run": "text", "measure": "text", "value": "number"},
            rows.values_list(*columns).iterator(),
        )

    def values_by_topic(
        self, one: EvaluatedMeasure, runs: Sequence[ResultFile]
    ) -> list[dict[str, float]]:
        values: dict[int, dict[str, float]] = {run.pk: {} for run in runs}
        rows = TopicValue.objects.filter(result__measure=one, result__run__in=runs)
        for run, topic, value in rows.values_list("result__run", "topic", "value"):
            values[run][topic] = value
        return [values[run.pk] for run in runs]


def _limits(row: WeightedResult) -> dict[str, Any]:
    names = ("ci_low", "ci_high", "ci_method", "n_topics")
    return {name: getattr(row, name) for name in names} | {"reason": row.reason or None}
