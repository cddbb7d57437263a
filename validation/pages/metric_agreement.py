from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import urlencode

from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.models import Study
from console.chart_values import Axis, Span, correlation_axis
from console.templatetags.numbers import coefficient as coefficient_text
from presentation.documents import Figure, Table
from presentation.numbers import group_values
from results.models import ResultPart
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    Measure,
    SystemRecord,
)
from validation.documents.figures import (
    forest_figure,
    heat_map_figure,
    ranks_figure,
    scatter_caption,
    scatter_figure,
    significance_figure,
)
from validation.documents.methods import methods_paragraph
from validation.documents.metric_tables import (
    ceilings_table,
    comparisons_table,
    coverage_table,
    sensitivity_table,
)
from validation.documents.metrics_answers import MetricsAnswer
from validation.documents.system_tables import (
    disagreements_table,
    estimated_differences_table,
    estimated_means_table,
    systems_table,
    worst_table,
)
from validation.documents.terms import COEFFICIENTS, LEVELS, family, percent_text
from validation.result_kinds.validation import ValidationKind
from validation.results import ALL, CONDITION, measure_of
from validation.versions import StoredResults, list_validations, unpack_table


@dataclass(frozen=True)
class MetricRow:
    label: str
    record: CorrelationRecord
    span: Span | None
    level: str

    @property
    def coverage(self) -> str:
        row = self.record
        if self.level != "item":
            return f"{row.n_rows:,}"
        return _("%(n)s of %(total)s") % {"n": f"{row.n_used:,}", "total": f"{row.n_groups:,}"}


class BestMetrics(MetricsAnswer):
    @cached_property
    def axis(self) -> Axis:
        lows = [row.ci_low if row.ci_low is not None else row.value for row in self.defined]
        return correlation_axis([low for low in lows if low is not None])

    @cached_property
    def top(self) -> list[MetricRow]:
        return [self._row(row) for row in self.best_records]

    @cached_property
    def behind(self) -> list[MetricRow]:
        known = {id(row) for row in self.best_records}
        others = [row for row in self.defined if id(row) not in known]
        undefined = [row for row in self.records if row.is_primary and row.value is None]
        return [self._row(row) for row in [*others, *undefined]]

    def _row(self, row: CorrelationRecord) -> MetricRow:
        span = self.axis.span(row.value, row.ci_low, row.ci_high)
        return MetricRow(self.results.label(row), row, span, row.level)

    @cached_property
    def ceiling_span(self) -> Span | None:
        if self.ceiling is None:
            return None
        one = self.ceiling
        return self.axis.span(one.attainable, one.attainable_low, one.attainable_high)

    @property
    def coefficient(self) -> str:
        first = next(iter(self.records), None)
        return "" if first is None else COEFFICIENTS.get(first.coefficient, first.coefficient)

    @property
    def behind_text(self) -> str:
        defined = [row for row in self.behind if row.span is not None]
        if not defined:
            return ""
        ends = [defined[0], defined[-1]][: len(defined)]
        texts = [f"{row.label} {coefficient_text(row.record.value)}" for row in ends]
        if len(texts) == 1:
            return texts[0]
        return _("%(first)s to %(last)s") % {"first": texts[0], "last": texts[1]}


@dataclass(frozen=True)
class TableRow:
    question: str
    metric: str
    signature: str
    shares_its_metric: bool
    cells: tuple[CorrelationRecord, ...]

    @property
    def first(self) -> CorrelationRecord:
        return self.cells[0]


@dataclass(frozen=True)
class ValidationView:
    results: StoredResults
    question: str
    level: str
    coefficient: str
    condition: str
    metric: str

    @classmethod
    def from_query(cls, results: StoredResults, query: Mapping[str, str]) -> ValidationView:
        """Raises KeyError with the name of a parameter whose value does not exist."""
        labels = list(results.labels.values())
        options = {
            "question": (results.questions, results.questions[0]),
            "level": (results.levels, results.level),
            "coefficient": (results.coefficients, results.coefficient),
            "condition": (["", *results.conditions], ""),
            "metric": (labels, labels[0]),
        }
        values = {name: query.get(name) or default for name, (_, default) in options.items()}
        for name, (names, _default) in options.items():
            if values[name] not in names:
                raise KeyError(f"{name} {values[name]}")
        results.chosen_level, results.chosen_coefficient = values["level"], values["coefficient"]
        return cls(results, **values)

    @property
    def query(self) -> str:
        names = ("question", "level", "coefficient", "condition", "metric")
        values = {name: getattr(self, name) for name in names}
        values["report"] = str(self.results.version.number)
        return urlencode(values | ({"variants": "1"} if self.results.with_variants else {}))

    @property
    def confidence(self) -> str:
        return percent_text(self.results.settings.confidence)

    @property
    def coefficients(self) -> list[tuple[str, str]]:
        return [(name, COEFFICIENTS.get(name, name)) for name in self.results.coefficients]

    @property
    def level_words(self) -> str:
        return LEVELS.get(self.level, self.level)

    @property
    def levels(self) -> list[tuple[str, str]]:
        return [(level, LEVELS.get(level, level)) for level in self.results.levels]

    @property
    def metrics(self) -> list[str]:
        return list(self.results.labels.values())

    @property
    def condition_filter(self) -> dict[str, str]:
        return {"scope": CONDITION if self.condition else ALL, "by": self.condition}

    @property
    def measure(self) -> dict[str, str]:
        return {"level": self.level, "coefficient": self.coefficient, "by": self.condition}

    @cached_property
    def correlations(self) -> list[TableRow]:
        rows = self.results.rows(CorrelationRecord, level=self.level, **self.condition_filter)
        groups = group_values(((row.question, row.metric, row.signature), row) for row in rows)
        order = {source: number for number, source in enumerate(self.results.labels)}
        several = {source for source, label in self.results.labels.items() if label != source[0]}
        return [
            TableRow(*names, shares_its_metric=names[1:] in several, cells=tuple(cells))
            for names, cells in sorted(groups.items(), key=lambda group: order[group[0][1:]])
        ]

    @cached_property
    def best(self) -> BestMetrics:
        of_level = self.results.rows(CorrelationRecord, level=self.level, **self.condition_filter)
        records = [
            row
            for row in of_level
            if (row.question, row.coefficient) == (self.question, self.coefficient)
        ]
        ceilings = self.results.rows(CeilingRecord, **self._filter)
        return BestMetrics(self.results, records, self._tests, next(iter(ceilings), None))

    @property
    def _filter(self) -> dict[str, str]:
        return {"question": self.question, **self.condition_filter, **self.measure}

    @property
    def _tests(self) -> list[ComparisonRecord]:
        """The same query as the chart of the tests, so that both share it."""
        return self.results.rows(ComparisonRecord, **self._filter)

    @property
    def tests_text(self) -> str:
        tested = [row for row in self._tests if row.p_holm is not None]
        alpha = self.results.settings.alpha
        different = sum(row.p_holm < alpha for row in tested if row.p_holm is not None)
        counts = {"n": different, "total": len(self._tests)}
        text = ngettext("%(n)d of %(total)d pair", "%(n)d of %(total)d pairs", len(self._tests))
        return text % counts if tested else _("no pair was tested")

    @property
    def orders_text(self) -> str:
        systems = self.results.rows(SystemRecord, question=self.question, **self.condition_filter)
        differences = group_values(
            ((metric.metric, metric.signature), metric.rank_difference)
            for row in systems
            for metric in row.metrics
            if metric.is_primary
        )
        return ngettext("%(n)d of %(total)d does", "%(n)d of %(total)d do", len(differences)) % {
            "n": sum(not any(one is None or one for one in row) for row in differences.values()),
            "total": len(differences),
        }

    @cached_property
    def charts(self) -> dict[str, dict[str, str]]:
        texts = {name: text(self) for name, text in TEXTS.items()}
        return {name.replace("-", "_"): one for name, one in texts.items() if one is not None}

    def figure(self, name: str) -> Figure | None:
        return CHARTS[name](self) if name in CHARTS else None

    @property
    def tables(self) -> list[tuple[str, str | Promise]]:
        return [(name, title) for name, (title, _) in TABLES.items()]

    def table(self, name: str) -> Table | None:
        return TABLES[name][1](self) if name in TABLES else None

    @cached_property
    def estimated_means(self) -> Table:
        """Of the metric that agrees with people best."""
        return estimated_means_table(self.results, question=self.question, **self._best_metric)

    @cached_property
    def estimated_differences(self) -> Table:
        return estimated_differences_table(
            self.results, question=self.question, **self._best_metric
        )

    @cached_property
    def _best_metric(self) -> dict[str, str]:
        records = [row.record for row in (*self.best.top, *self.best.behind)][:1]
        return {name: getattr(one, name) for one in records for name in ("metric", "signature")}

    @property
    def methods(self) -> str:
        return methods_paragraph(self.results.settings, self.results.all_inputs)

    @property
    def family(self) -> str:
        return family(self.results.all_inputs)

    @property
    def n_variants(self) -> int:
        return len(self.results.all_inputs.variants)

    @property
    def source(self) -> tuple[str, str]:
        return next(s for s, label in self.results.labels.items() if label == self.metric)


def _significance(view: ValidationView) -> Figure | None:
    if len(view.results.inputs.primary) < 2:
        return None
    return significance_figure(view.results, view.question, **view.measure)


def _ranks(view: ValidationView) -> Figure | None:
    if len(view.results.rows(SystemRecord, question=view.question, **view.condition_filter)) < 2:
        return None
    return ranks_figure(view.results, view.question, by=view.condition)


def _scatter(view: ValidationView) -> Figure | None:
    rows = view.results.scatter(view.question, *view.source)
    return None if rows is None else scatter_figure(view.results, view.question, view.metric, rows)


def _scatter_text(view: ValidationView) -> dict[str, str] | None:
    words = view.results.scatter_words(view.question, *view.source)
    if words is None:
        return None
    title = scatter_caption(view.question, view.metric)
    return {"name": "scatter", "title": title, "words": words}


Draw = Callable[[ValidationView], Figure | None]
CHARTS: dict[str, Draw] = {
    "heat-map": lambda view: heat_map_figure(view.results, **view.measure),
    "forest": lambda view: forest_figure(view.results, view.question, **view.measure),
    "significance": _significance,
    "ranks": _ranks,
    "scatter": _scatter,
}


def _chart_text(view: ValidationView, *, name: str) -> dict[str, str] | None:
    figure = CHARTS[name](view)
    if figure is None:
        return None
    return {"name": name, "title": figure.caption, "words": figure.words}


TEXTS: dict[str, Callable[[ValidationView], dict[str, str] | None]] = {
    name: partial(_chart_text, name=name) for name in CHARTS
} | {"scatter": _scatter_text}
TABLES: dict[str, tuple[str | Promise, Callable[[ValidationView], Table]]] = {
    "estimated-means": (
        gettext_lazy("The mean rating over all scored items, by every metric"),
        lambda view: estimated_means_table(view.results, question=view.question),
    ),
    "estimated-differences": (
        gettext_lazy("Differences of systems over all scored items, by every metric"),
        lambda view: estimated_differences_table(view.results, question=view.question),
    ),
    "comparisons": (
        gettext_lazy("Metrics tested pair by pair"),
        lambda view: comparisons_table(view.results, view.question),
    ),
    "systems": (
        gettext_lazy("The systems by human ratings and by metrics"),
        lambda view: systems_table(view.results, view.question),
    ),
    "disagreements": (
        gettext_lazy("Pairs of systems that a metric orders otherwise than human ratings do"),
        lambda view: disagreements_table(view.results),
    ),
    "worst": (
        gettext_lazy("Candidates on which each metric is most wrong"),
        lambda view: worst_table(view.results),
    ),
    "sensitivity": (
        gettext_lazy("What other policies would give"),
        lambda view: sensitivity_table(view.results),
    ),
    "ceilings": (
        gettext_lazy("What a perfect metric could reach, given how well people agree"),
        lambda view: ceilings_table(view.results),
    ),
    "coverage": (gettext_lazy("Coverage"), lambda view: coverage_table(view.results)),
}


@dataclass(frozen=True)
class ProtocolCell:
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0


@dataclass(frozen=True)
class ProtocolValidations:
    numbers: list[int]
    rows: list[tuple[str, list[ProtocolCell]]]

    @property
    def finding(self) -> str:
        n = len(self.numbers)
        return ngettext("%(n)d version", "%(n)d versions", n) % {"n": n}


def protocol_validations(study: Study, view: ValidationView) -> ProtocolValidations | None:
    kind = ValidationKind()
    of_protocol = list_validations(study).filter(settings__protocol__gt=0)
    numbers = {
        version: number
        for version, number, fingerprint in of_protocol.values_list(
            "pk", "settings__protocol", "fingerprint"
        )
        if fingerprint == kind.fingerprint(study, {"protocol": number})
    }
    if len(numbers) < 2:
        return None
    cells = _cells(view, numbers)
    in_order = sorted(numbers.values())
    rows = [
        (label, [cells.get((*source, number), ProtocolCell()) for number in in_order])
        for source, label in view.results.labels.items()
    ]
    return ProtocolValidations(in_order, rows)


def _cells(
    view: ValidationView, numbers: Mapping[int, int]
) -> dict[tuple[str, str, int], ProtocolCell]:
    measure = Measure(view.question, ALL, "", view.level, view.coefficient)
    return {
        (row.metric, row.signature, numbers[table.result_id]): ProtocolCell(
            row.value, row.ci_low, row.ci_high, row.n_used
        )
        for table in ResultPart.objects.filter(result__in=numbers, name="correlations")
        for row in unpack_table(CorrelationRecord, table.content)
        if measure_of(row) == measure
    }
