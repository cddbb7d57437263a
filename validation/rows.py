"""The rows of a version in the database: records written at once, and read by one query each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar, cast

from django.db import models

from annotation.models import Question
from annotation.simulated_answers import Raters, raters_of
from validation.analysis.rating_records import (
    EstimatedDifferenceRecord,
    EstimatedMeanRecord,
    RatedPairRecord,
    RatedSystemRecord,
)
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    DisagreementRecord,
    Inputs,
    LabelSourceRecord,
    Measure,
    PlanRecord,
    Record,
    ScoreSetRecord,
    SensitivityRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
)
from validation.analysis.report import ValidationReport
from validation.analysis.settings import Settings
from validation.models import (
    Ceiling,
    Comparison,
    Correlation,
    Disagreement,
    EstimatedDifference,
    EstimatedMean,
    LabelSource,
    OfVersion,
    Plan,
    RatedPair,
    RatedSystem,
    Scatter,
    ScatterPoint,
    ScoreSet,
    Sensitivity,
    SystemRow,
    SystemScore,
    ValidationVersion,
    WorstCandidate,
)
from validation.results import KINDS, Results, ScatterRows

MODELS: dict[type[Record], type[OfVersion]] = {
    CorrelationRecord: Correlation,
    ComparisonRecord: Comparison,
    CeilingRecord: Ceiling,
    SensitivityRecord: Sensitivity,
    SystemRecord: SystemRow,
    DisagreementRecord: Disagreement,
    WorstRecord: WorstCandidate,
    PlanRecord: Plan,
    RatedSystemRecord: RatedSystem,
    RatedPairRecord: RatedPair,
    EstimatedMeanRecord: EstimatedMean,
    EstimatedDifferenceRecord: EstimatedDifference,
}
# Fields of records that are columns of other tables.
ELSEWHERE = {
    "metric": "score_set__metric",
    "signature": "score_set__signature",
    "higher_is_better": "score_set__higher_is_better",
    "is_primary": "score_set__is_primary",
    "metric_a": "score_set_a__metric",
    "signature_a": "score_set_a__signature",
    "metric_b": "score_set_b__metric",
    "signature_b": "score_set_b__signature",
    "input": "version__fingerprint",
}
AT_ONCE = 500
R = TypeVar("R", bound=Record)
Sets = dict[tuple[str, str], int]
Scatters = dict[tuple[str, str, str], ScatterRows]


def write_rows(version: ValidationVersion, report: ValidationReport, scatters: Scatters) -> None:
    """Write everything a report holds under a new version."""
    sets = _write_sets(version, report.inputs)
    LabelSource.objects.bulk_create(
        LabelSource(
            version=version,
            question=source.question,
            label_version=source.version,
            signature=source.signature,
            n_labels=source.n_labels,
            n_adjudicated=source.n_adjudicated,
        )
        for source in report.inputs.labels
    )
    for name, kind in KINDS.items():
        if kind is not SystemRecord:
            _write(version, MODELS[kind], getattr(report, name), sets)
    _write_systems(version, report.systems, sets)
    _write_scatters(version, scatters, sets)


def _write_sets(version: ValidationVersion, inputs: Inputs) -> Sets:
    sets = ScoreSet.objects.bulk_create(
        ScoreSet(version=version, **_values(one)) for one in inputs.score_sets
    )
    return {(one.metric, one.signature): one.pk for one in sets}


def _write(
    version: ValidationVersion, model: type[OfVersion], records: Iterable[Record], sets: Sets
) -> None:
    rows = [model(version=version, **_columns(record, sets)) for record in records]
    model._default_manager.bulk_create(rows, batch_size=AT_ONCE)


def _write_systems(version: ValidationVersion, records: Sequence[SystemRecord], sets: Sets) -> None:
    rows = SystemRow.objects.bulk_create(
        [SystemRow(version=version, **_columns(record, sets)) for record in records],
        batch_size=AT_ONCE,
    )
    SystemScore.objects.bulk_create(
        [
            SystemScore(row=row, **_columns(score, sets))
            for row, record in zip(rows, records, strict=True)
            for score in record.metrics
        ],
        batch_size=AT_ONCE,
    )


def _write_scatters(version: ValidationVersion, scatters: Scatters, sets: Sets) -> None:
    stored = Scatter.objects.bulk_create(
        Scatter(
            version=version,
            question=question,
            score_set_id=sets[metric, signature],
            words=rows.words,
        )
        for (question, metric, signature), rows in scatters.items()
    )
    ScatterPoint.objects.bulk_create(
        [
            ScatterPoint(scatter=scatter, **_point(row))
            for scatter, rows in zip(stored, scatters.values(), strict=True)
            for row in rows.rows
        ],
        batch_size=AT_ONCE,
    )


# A part of the plane has limits where a candidate has values.
OF_PARTS = {"human_low": "human", "score_low": "score"}


def _point(row: dict[str, Any]) -> dict[str, Any]:
    return {OF_PARTS.get(name, name): value for name, value in row.items()}


def _values(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _columns(record: Any, sets: Sets) -> dict[str, Any]:
    """A record's fields as columns, its sets of scores by their keys."""
    values = _values(record)
    columns = {n: v for n, v in values.items() if n not in ELSEWHERE and n != "metrics"}
    for side in ("", "_a", "_b"):
        if f"metric{side}" in values:
            source = (values[f"metric{side}"], values[f"signature{side}"])
            columns[f"score_set{side}_id"] = sets[source]
    return columns


class StoredResults(Results):
    """The results of a stored version: each kind of row is one query, asked once."""

    def __init__(self, version: ValidationVersion, *, with_variants: bool = False) -> None:
        self.version = version
        self.study = version.study.slug
        self.fingerprint = version.fingerprint
        self.settings = Settings.of(version.rules)
        self.with_variants = with_variants
        self._known: dict[tuple[Any, ...], list[Any]] = {}

    @cached_property
    def all_inputs(self) -> Inputs:
        version = self.version
        sets = ScoreSet.objects.filter(version=version)
        return Inputs(
            n_judgments=version.n_judgments,
            n_rejected=version.n_rejected,
            n_counted=version.n_counted,
            n_annotators=version.n_annotators,
            n_items=version.n_items,
            n_candidates=version.n_candidates,
            score_sets=tuple(
                ScoreSetRecord(*row)
                for row in sets.values_list(*(field.name for field in fields(ScoreSetRecord)))
            ),
            labels=self._label_sources(),
        )

    @cached_property
    def raters(self) -> Raters:
        return raters_of(self.version.study)

    @cached_property
    def scales(self) -> Mapping[str, tuple[float, float]]:
        if self.settings.ratings != "raw":
            return {}
        questions = Question.objects.filter(study=self.version.study_id)
        rows = questions.values_list("name", "scale_min", "scale_max")
        return {name: (low, high) for name, low, high in rows}

    def _label_sources(self) -> tuple[LabelSourceRecord, ...]:
        if not self.settings.labels:
            return ()
        names = ("question", "label_version", "signature", "n_labels", "n_adjudicated")
        rows = LabelSource.objects.filter(version=self.version).values_list(*names)
        return tuple(LabelSourceRecord(*row) for row in rows)

    @cached_property
    def measures(self) -> list[Measure]:
        return [Measure(*names) for names in self.version.measures]

    def rows(self, kind: type[R], **of: Any) -> list[R]:
        key = (kind, *sorted(of.items()))
        if key not in self._known:
            self._known[key] = self._read(kind, of)
        return self._known[key]

    def _read(self, kind: type[R], of: dict[str, Any]) -> list[R]:
        rows = self._queryset(kind, of)
        if kind is SystemRecord:
            return cast("list[R]", self._systems(rows))
        columns = [ELSEWHERE.get(field.name, field.name) for field in fields(kind)]
        return [kind(*row) for row in rows.values_list(*columns)]

    def _queryset(self, kind: type[Any], of: dict[str, Any]) -> models.QuerySet[Any]:
        model = MODELS[kind]
        lookups: dict[str, Any] = {}
        for name, value in of.items():
            lookup = ELSEWHERE.get(name, name)
            lookups[f"{lookup}__in" if isinstance(value, tuple) else lookup] = value
        has_set = any(field.name == "score_set" for field in model._meta.get_fields())
        if has_set and not self.with_variants:
            lookups["score_set__is_primary"] = True
        return model._default_manager.filter(version=self.version, **lookups)

    def _systems(self, rows: models.QuerySet[Any]) -> list[SystemRecord]:
        names = [field.name for field in fields(SystemRecord) if field.name != "metrics"]
        if not self.with_variants:
            rows = rows.filter(scores__score_set__is_primary=True)
        columns = [ELSEWHERE.get(field.name, field.name) for field in fields(SystemScoreRecord)]
        of_scores = (f"scores__{column}" for column in columns)
        systems: dict[int, tuple[list[Any], list[SystemScoreRecord]]] = {}
        for pk, *values in rows.order_by("pk", "scores__pk").values_list("pk", *names, *of_scores):
            _, scores = systems.setdefault(pk, (values[: len(names)], []))
            scores.append(SystemScoreRecord(*values[len(names) :]))
        return [SystemRecord(*[*values, tuple(scores)]) for values, scores in systems.values()]

    def scatter_words(self, question: str, metric: str, signature: str) -> str | None:
        """What a scatter shows, in words; None where there is none."""
        scatters = self._scatters(question, metric, signature)
        return scatters.values_list("words", flat=True).first()

    def scatter(self, question: str, metric: str, signature: str) -> ScatterRows | None:
        names = ("item", "candidate", "system", "human", "score", "human_high", "score_high", "n")
        points = ScatterPoint.objects.filter(
            scatter__in=self._scatters(question, metric, signature)
        )
        rows = list(points.values("scatter__words", *names))
        if not rows:
            return None
        return ScatterRows(rows[0]["scatter__words"], tuple(_drawn(row) for row in rows))

    def _scatters(self, question: str, metric: str, signature: str) -> models.QuerySet[Scatter]:
        return Scatter.objects.filter(
            version=self.version,
            question=question,
            score_set__metric=metric,
            score_set__signature=signature,
        )


def _drawn(row: dict[str, Any]) -> dict[str, Any]:
    """A candidate or a part, with the columns that its picture takes."""
    if row["n"] is None:
        return {n: row[n] for n in ("human", "score", "item", "candidate", "system")}
    return {
        "human_low": row["human"],
        "human_high": row["human_high"],
        "score_low": row["score"],
        "score_high": row["score_high"],
        "n": row["n"],
    }
