from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING, Any, TypeVar

from annotation.study_facts import Raters
from presentation.numbers import group_values
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    DisagreementRecord,
    EstimatedDifferenceRecord,
    EstimatedMeanRecord,
    Inputs,
    Measure,
    MetricPairRecord,
    PlanRecord,
    RatedPairRecord,
    RatedSystemRecord,
    Record,
    ScoreSetRecord,
    SensitivityRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
    plain,
)
from validation.analysis.settings import Settings

if TYPE_CHECKING:
    from validation.analysis.report import ValidationReport

# Version of the rows and of the computation; results of another form are made again.
FORM = 9
ALL, CONDITION, MEAN = "all", "condition", "mean_of_conditions"
# What a picture or a short table shows where a report has more: the first of these it has.
FIRST_LEVELS = ("item", "pooled", "system")
FIRST_COEFFICIENTS = ("kendall", "pearson", "spearman")
KINDS: dict[str, type[Record]] = {
    "correlations": CorrelationRecord,
    "comparisons": ComparisonRecord,
    "ceilings": CeilingRecord,
    "sensitivity": SensitivityRecord,
    "systems": SystemRecord,
    "disagreements": DisagreementRecord,
    "worst": WorstRecord,
    "planning": PlanRecord,
    "rated_systems": RatedSystemRecord,
    "rated_pairs": RatedPairRecord,
    "estimated_means": EstimatedMeanRecord,
    "estimated_differences": EstimatedDifferenceRecord,
}
NAMES: dict[type[Any], str] = {kind: name for name, kind in KINDS.items()}
R = TypeVar("R", bound=Record)


MetricScoped = (
    CorrelationRecord
    | SensitivityRecord
    | DisagreementRecord
    | WorstRecord
    | EstimatedMeanRecord
    | EstimatedDifferenceRecord
    | ScoreSetRecord
    | SystemScoreRecord
)


@dataclass(frozen=True)
class ScatterRows:
    """Candidates, or counts per bin, and a description of all of them."""

    words: str
    rows: tuple[dict[str, Any], ...]


class Results(ABC):
    """A validation of a study; without `with_variants`, of primary metrics only. `chosen_level` and
    `chosen_coefficient` are for charts and short tables; "" is the first available."""

    study: str
    fingerprint: str
    settings: Settings
    with_variants: bool
    chosen_level: str = ""
    chosen_coefficient: str = ""

    @property
    @abstractmethod
    def all_inputs(self) -> Inputs:
        """Includes variants."""

    @abstractmethod
    def read_table(self, kind: type[R]) -> Sequence[R]:
        """All rows, in the order in which they were computed."""

    @abstractmethod
    def scatter(self, question: str, metric: str, signature: str) -> ScatterRows | None:
        pass

    @cached_property
    def measures(self) -> list[Measure]:
        return distinct(measure_of(row) for row in self.read_table(CorrelationRecord))

    def rows(self, kind: type[R], **of: Any) -> list[R]:
        """Rows with these field values; a tuple gives several values of a field."""
        names = tuple(sorted(of))
        if (kind, names) not in self._indexes:
            self._indexes[kind, names] = group_values(
                (tuple(getattr(row, name) for name in names), at)
                for at, row in enumerate(self._visible(kind))
            )
        several = [value if isinstance(value := of[name], tuple) else (value,) for name in names]
        found = (self._indexes[kind, names].get(key, ()) for key in product(*several))
        table = self._visible(kind)
        return [table[at] for at in sorted(chain.from_iterable(found))]

    @cached_property
    def _indexes(self) -> dict[tuple[Any, ...], dict[tuple[Any, ...], list[int]]]:
        """By type and field names: from values of these fields to row numbers."""
        return {}

    @cached_property
    def _tables(self) -> dict[type[Any], Sequence[Any]]:
        return {}

    def _visible(self, kind: type[Any]) -> Sequence[Any]:
        if kind not in self._tables:
            rows = self.read_table(kind)
            if not self.with_variants and self.all_inputs.variants:
                rows = self._leave_out_variants(kind, rows)
            self._tables[kind] = rows
        return self._tables[kind]

    def _leave_out_variants(self, kind: type[Any], rows: Sequence[Any]) -> Sequence[Any]:
        hidden = {(one.metric, one.signature) for one in self.all_inputs.variants}
        if kind is SystemRecord:
            return [
                replace(row, metrics=tuple(one for one in row.metrics if one.is_primary))
                for row in rows
            ]
        if "metric" not in (field.name for field in fields(kind)):
            return rows
        return [row for row in rows if (row.metric, row.signature) not in hidden]

    @property
    def raters(self) -> Raters:
        return Raters.PEOPLE

    @property
    def scales(self) -> Mapping[str, tuple[float, float]]:
        """Ends of each question's scale; empty if unknown, or if values are in annotators' standard
        deviations."""
        return {}

    @cached_property
    def inputs(self) -> Inputs:
        inputs = self.all_inputs
        return inputs if self.with_variants else replace(inputs, score_sets=inputs.primary)

    @cached_property
    def questions(self) -> list[str]:
        return distinct(measure.question for measure in self.measures)

    @cached_property
    def conditions(self) -> list[str]:
        return distinct(one.by for one in self.measures if one.scope == CONDITION)

    @cached_property
    def levels(self) -> list[str]:
        return distinct(measure.level for measure in self.measures)

    @cached_property
    def coefficients(self) -> list[str]:
        return distinct(measure.coefficient for measure in self.measures)

    @property
    def level(self) -> str:
        if self.chosen_level:
            return self.chosen_level
        return next((level for level in FIRST_LEVELS if level in self.levels), "item")

    @property
    def coefficient(self) -> str:
        if self.chosen_coefficient:
            return self.chosen_coefficient
        known = self.coefficients or ["kendall"]
        return next((name for name in FIRST_COEFFICIENTS if name in known), known[0])

    @cached_property
    def labels(self) -> dict[tuple[str, str], str]:
        return labels_of((one.metric, one.signature) for one in self.inputs.score_sets)

    def label(self, record: MetricScoped) -> str:
        return self.labels.get((record.metric, record.signature), record.metric)

    def pair_labels(self, record: MetricPairRecord) -> tuple[str, str]:
        a, b = (record.metric_a, record.signature_a), (record.metric_b, record.signature_b)
        return self.labels.get(a, a[0]), self.labels.get(b, b[0])

    def content(self) -> dict[str, Any]:
        return {
            "form": FORM,
            "fingerprint": self.fingerprint,
            "settings": self.settings.content(),
            "inputs": plain(self.inputs),
            **{name: [plain(row) for row in self.rows(kind)] for name, kind in KINDS.items()},
        }


class TableResults(Results):
    def __init__(
        self,
        study: str,
        report: ValidationReport,
        *,
        scatters: dict[tuple[str, str, str], ScatterRows] | None = None,
        with_variants: bool = False,
    ) -> None:
        self.study = study
        self.report = report
        self.fingerprint = report.fingerprint
        self.settings = report.settings
        self.with_variants = with_variants
        self._scatters = scatters or {}

    @property
    def all_inputs(self) -> Inputs:
        return self.report.inputs

    def read_table(self, kind: type[R]) -> Sequence[R]:
        rows: Sequence[R] = getattr(self.report, NAMES[kind])
        return rows

    def scatter(self, question: str, metric: str, signature: str) -> ScatterRows | None:
        return self._scatters.get((question, metric, signature))


def measure_of(row: CorrelationRecord | CeilingRecord | ComparisonRecord) -> Measure:
    return Measure(row.question, row.scope, row.by, row.level, row.coefficient)


def labels_of(sources: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    sets = distinct(sources)
    names = [metric for metric, _ in sets]
    return {
        (metric, signature): metric
        if names.count(metric) == 1
        else f"{metric} ({names[: at + 1].count(metric)})"
        for at, (metric, signature) in enumerate(sets)
    }


def correlations_of(results: Results) -> list[CorrelationRecord]:
    rows = results.rows(CorrelationRecord, scope=(ALL, CONDITION))
    order = {source: number for number, source in enumerate(results.labels)}
    return sorted(rows, key=lambda row: order[row.metric, row.signature])


T = TypeVar("T")


def distinct(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))
