from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _, gettext_lazy

from error_codes import CodedText
from results.kinds import Chosen, Computed, Given, register_kind
from results.models import Result
from retrieval.evaluated_runs import Evaluation, RunsCompared, RunValues
from retrieval.evaluation import evaluate_runs
from retrieval.exceptions import CollectionUnfit, RunsUnfit
from retrieval.models import (
    CollectionFile,
    EvaluatedMeasure,
    EvaluationWeights,
    ResultFile,
    ResultType,
    RunPair,
    RunResult,
    SampledTarget,
    TopicValue,
    WeightedResult,
)
from retrieval.result_kinds.base import EvaluationSettings, Kind, RunsKind, settings_of, write_rows
from retrieval.stored_files import opened_files
from retrieval.weighted_means import WeightedMeans, topic_weights, weighted_means
from stats.ranking import Measure

if TYPE_CHECKING:
    from retrieval.models import Collection
    from work.execution import RunningJob

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
            text = _("An evaluation needs runs and qrels; there are no runs yet.")
            return CodedText(text, code="no_runs")
        if offered["qrels"]:
            return ""
        if offered["assessors"]:
            text = _(
                "An evaluation needs one grade of each document; there are only several assessors' "
                "grades yet. Make qrels of them by a rule."
            )
            return CodedText(text, code="only_assessors")
        text = _("An evaluation needs runs and qrels; there are no qrels yet.")
        return CodedText(text, code="no_qrels")

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
        evaluation = _evaluated(given.inputs, given.settings, given.running)
        weighted = _weighted(given.subject, evaluation, given.settings)
        return Computed(
            facts={
                "n_topics": len(evaluation.topics),
                "n_without_relevant": evaluation.n_without_relevant,
            },
            notes=[*evaluation.notes, *([] if weighted is None else weighted.notes())],
            seed=evaluation.settings.seed,
            write_rows=lambda result: _write(result, evaluation, weighted),
        )


def _evaluated(
    files: Sequence[CollectionFile], rules: Mapping[str, Any], running: RunningJob
) -> Evaluation:
    with opened_files(files) as (runs, qrels):
        [grades] = qrels.values()
        return evaluate_runs(
            grades,
            runs,
            settings_of(rules),
            progress=running.progress(_("run")),
            pair_progress=running.progress(_("pair of runs")),
        )


def _weighted(
    collection: Collection, evaluation: Evaluation, rules: Mapping[str, Any]
) -> WeightedMeans | None:
    if not (key := rules.get(WEIGHTS)):
        return None
    kind = ResultType.TARGETS
    sample = Result.objects.of(collection, kind).filter(pk=key).first()
    if sample is None:
        raise RunsUnfit(_("The sample whose probabilities were chosen is not there."))
    rows = SampledTarget.objects.filter(version=sample)
    drawn = {
        topic: (inclusion, _number(stratum))
        for topic, inclusion, stratum in rows.values_list("topic", "inclusion", "stratum")
    }
    name = sample_name(sample)
    return weighted_means(evaluation, topic_weights(name, evaluation.topics, drawn))


def sample_name(sample: Result) -> str:
    return f"sample {sample.number}"


def _number(stratum: str) -> float:
    return float(stratum) if stratum else nan


def _write(version: Result, evaluation: Evaluation, weighted: WeightedMeans | None) -> None:
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
    write_rows(RunPair, (_pair(version, row, measures, runs) for row in evaluation.comparisons))
    if weighted is not None:
        _write_weighted(version, weighted, measures, runs)


def _write_weighted(
    version: Result,
    weighted: WeightedMeans,
    measures: Mapping[Measure, EvaluatedMeasure],
    runs: Mapping[str, ResultFile],
) -> None:
    EvaluationWeights.objects.create(
        version=version,
        sample_id=version.settings[WEIGHTS],
        name=weighted.weights.name,
        has_strata=weighted.weights.strata is not None,
        effective_n=weighted.weights.effective_n,
    )
    write_rows(
        WeightedResult,
        (
            {
                "version": version,
                "measure": measures[one.measure],
                "run": runs[one.a],
                "other": runs[one.b] if one.b else None,
                **{name: one.limits[name] for name in ("value", "ci_low", "ci_high")},
                "ci_method": one.mean.method,
                "n_topics": one.mean.n_topics,
                "reason": one.mean.reason or "",
            }
            for one in (*weighted.means, *weighted.differences)
        ),
    )


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
    write_rows(TopicValue, _topic_values(result, per_topic))


def _topic_values(result: RunResult, per_topic: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for topic, value in per_topic.items():
        yield {"result": result, "topic": topic, "value": value}


def _pair(
    version: Result,
    row: RunsCompared,
    measures: Mapping[Measure, EvaluatedMeasure],
    runs: Mapping[str, ResultFile],
) -> dict[str, Any]:
    names = {"a": runs[row.a], "b": runs[row.b], "measure": measures[row.measure]}
    record = row.record()
    return record | {"version": version, "reason": record["reason"] or ""} | names
