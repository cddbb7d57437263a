from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import nan
from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from error_codes import CodedText
from presentation.numbers import group_values
from presentation.progress import Reporter
from presentation.row_files import RowFile
from results.kinds import Chosen, Computed, Given, register_kind
from results.models import Result
from retrieval.evaluated_runs import Evaluation, RunOrder, RunValues
from retrieval.evaluation import evaluate_runs
from retrieval.exceptions import CollectionUnfit, RunsUnfit
from retrieval.models import (
    Collection,
    CollectionFile,
    EvaluatedMeasure,
    ResultFile,
    ResultType,
    RunResult,
    SampledTarget,
    TopicValue,
)
from retrieval.result_kinds.base import EvaluationSettings, Kind, RunsKind, settings_of, write_rows
from retrieval.stored_files import opened_files
from retrieval.weighted_means import WeightedMeans, topic_weights, weighted_means
from stats.ranking import Measure

EVALUATE = "evaluate_collection"
MOST_VALUES = 3_000_000
WEIGHTS = "weights"


@register_kind
class EvaluationKind(RunsKind):
    """Runs evaluated against qrels. Values per topic are rows: pages and the API page them."""

    name = ResultType.EVALUATION.value
    title = gettext_lazy("Evaluation")
    job = EVALUATE
    job_label = gettext_lazy("Evaluating runs")
    form = 2
    settings = EvaluationSettings

    def offer_inputs(self, subject: Collection) -> Mapping[str, Sequence[CollectionFile]]:
        several = list(subject.files.usable().filter(kind=Kind.ASSESSORS))
        return {**super().offer_inputs(subject), "assessors": several}

    def explain_missing(self, offered: Chosen) -> str:
        if not offered["runs"]:
            return CodedText(
                _("An evaluation needs runs and qrels; there are no runs yet."), code="no_runs"
            )
        if offered["qrels"]:
            return ""
        if offered["assessors"]:
            text = _(
                "An evaluation needs one grade of each document; there are only several assessors' "
                "grades yet. Make qrels of them by a rule."
            )
            return CodedText(text, code="only_assessors")
        return CodedText(
            _("An evaluation needs runs and qrels; there are no qrels yet."), code="no_qrels"
        )

    def check_request(self, chosen: Chosen, settings: Mapping[str, Any]) -> None:
        if not chosen["runs"]:
            raise RunsUnfit(_("Choose at least one run."))
        n_values = len(settings["measures"]) * len(chosen["runs"]) * chosen["qrels"][0].n_topics
        if n_values > MOST_VALUES:
            raise CollectionUnfit(
                _("These are more than {n} values by topic. Choose fewer runs or measures.").format(
                    n=f"{MOST_VALUES:,}"
                )
            )

    def compute(self, given: Given[Collection]) -> Computed:
        evaluation = _evaluated(given.inputs, given.settings, given.progress)
        weighted = _weighted(given.subject, evaluation, given.settings)
        return Computed(
            record={
                "comparisons": [row.record() for row in evaluation.comparisons],
                "weighted": weighted
                and {name: one for name, one in weighted.record().items() if name != "notes"},
            },
            facts={
                "n_topics": len(evaluation.topics),
                "n_without_relevant": evaluation.n_without_relevant,
            },
            notes=[*evaluation.notes, *([] if weighted is None else weighted.notes())],
            seed=evaluation.settings.seed,
            write_rows=lambda result: _write(result, evaluation),
        )


def _evaluated(
    files: Sequence[CollectionFile], rules: Mapping[str, Any], reporter: Reporter
) -> Evaluation:
    with opened_files(files) as (runs, qrels):
        [grades] = qrels.values()
        return evaluate_runs(
            grades,
            runs,
            settings_of(rules),
            progress=reporter(_("run")),
            pair_progress=reporter(_("pair of runs")),
        )


def _weighted(
    collection: Collection, evaluation: Evaluation, rules: Mapping[str, Any]
) -> WeightedMeans | None:
    if not (key := rules.get(WEIGHTS)):
        return None
    sample = Result.objects.of(collection, ResultType.TARGETS).filter(pk=key).first()
    if sample is None:
        raise RunsUnfit(_("The sample whose probabilities were chosen is not there."))
    rows = SampledTarget.objects.filter(version=sample)
    drawn = {
        topic: (inclusion, float(stratum) if stratum else nan)
        for topic, inclusion, stratum in rows.values_list("topic", "inclusion", "stratum")
    }
    return weighted_means(
        evaluation, topic_weights(f"sample {sample.number}", evaluation.topics, drawn)
    )


def _write(version: Result, evaluation: Evaluation) -> None:
    runs = {one.name: one for one in version.files.all()}
    for each in evaluation.runs:
        run = runs[each.run]
        run.n_topics, run.n_missing, run.n_foreign = each.n_topics, each.n_missing, each.n_foreign
        run.save(update_fields=["n_topics", "n_missing", "n_foreign"])
    measures = _write_measures(version, evaluation)
    groups = {
        (one.name, run): number
        for one in evaluation.settings.primary or evaluation.settings.measures
        for number, group in enumerate(evaluation.groups(one), 1)
        for run in group
    }
    for row in evaluation.results:
        group = groups.get((row.measure.name, row.run))
        _write_result(version, evaluation.topics, row, measures, runs[row.run], group)


def _write_measures(version: Result, evaluation: Evaluation) -> dict[Measure, EvaluatedMeasure]:
    primary = evaluation.settings.primary or evaluation.settings.measures
    return {
        one: EvaluatedMeasure.objects.create(
            version=version, name=one.name, is_primary=one in primary, is_binary=one.is_binary
        )
        for one in evaluation.settings.measures
    }


def _write_result(
    version: Result,
    topics: Sequence[str],
    row: RunValues,
    measures: Mapping[Measure, EvaluatedMeasure],
    run: ResultFile,
    group: int | None,
) -> None:
    record = row.record(topics)
    per_topic = record.pop("per_topic")
    record |= {"run": run, "measure": measures[row.measure], "group": group}
    record["reason"] = record["reason"] or ""
    result = RunResult.objects.create(version=version, **record)
    write_rows(
        TopicValue,
        ({"result": result, "topic": topic, "value": value} for topic, value in per_topic.items()),
    )


RESULT_FIELDS = (
    *("mean", "mean_complete", "mean_other_ties", "n_topics", "ci_low", "ci_high", "ci_method"),
    *("reason", "judged"),
)
SETTINGS = (
    *("ties", "single_precision", "missing", "leave_out_without_relevant", "confidence", "seed"),
)


def order_of(rows: Sequence[RunResult], pairs: Sequence[SimpleNamespace]) -> RunOrder:
    return RunOrder.of(
        {row.run.name: row.mean for row in rows},
        [(pair.a, pair.b, pair.delta, pair.p_adjusted) for pair in pairs],
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
        names = {one.pk: one.name for one in self.measures}
        for measure, rows in by_measure.items():
            order = order_of(rows, self.pairs[names[measure]])
            position = {name: at for at, name in enumerate(order.names)}
            rows.sort(key=lambda row: position[row.run.name])
        return by_measure

    @cached_property
    def pairs(self) -> dict[str, list[SimpleNamespace]]:
        rows = self.version.record["comparisons"]
        return group_values((row["measure"], SimpleNamespace(**row)) for row in rows)

    @property
    def weighted(self) -> dict[str, Any] | None:
        weighted: dict[str, Any] | None = self.version.record["weighted"]
        return weighted

    @cached_property
    def notes(self) -> list[str]:
        return [note["text"] for note in self.version.notes]

    def groups(self, one: EvaluatedMeasure) -> list[list[str]]:
        groups = group_values((row.group or 0, row.run.name) for row in self.results[one.pk])
        return [groups[number] for number in sorted(groups)]

    def record(self, *, per_topic: bool = True) -> dict[str, Any]:
        in_order = sorted(self.measures, key=lambda one: one.pk)
        primary = [one for one in in_order if one.is_primary]
        rules = self.version.settings
        return {
            "results": list(self._results(per_topic=per_topic)),
            "comparisons": [vars(row) for one in in_order for row in self.pairs[one.name]],
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
        } | ({"weighted": self.weighted} if self.weighted else {})

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
