from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import urlencode

from django.utils.translation import gettext as _, gettext_noop, ngettext

from console.chart_values import Axis, Span
from presentation.documents import Column, Number, P, Table
from presentation.numbers import format_interval, format_number
from presentation.table_files import TABLE_FORMS
from results.computing import sign_result
from results.kinds import Chart
from retrieval.answers.best_run import EvaluationAnswer
from retrieval.answers.pools import describe_unweighted, find_evaluation_draw
from retrieval.charts.topics import differences, differences_in_words, topic_differences
from retrieval.evaluated_runs import SIGNIFICANT
from retrieval.models import EvaluatedMeasure, ResultFile, RunResult
from retrieval.stored_evaluations import StoredEvaluation

TOPICS = "topics"
RUN, MEASURE = (
    Column(gettext_noop("Run"), is_number=False),
    Column(gettext_noop("Measure"), is_number=False),
)


@dataclass(frozen=True)
class MeanRow:
    result: RunResult
    span: Span | None

    @property
    def value(self) -> str:
        return format_number(self.result.mean)

    @property
    def interval(self) -> str:
        return format_interval(self.result.ci_low, self.result.ci_high)

    @property
    def complete(self) -> str:
        return format_number(self.result.mean_complete)


class EvaluationView:
    table_forms = tuple(TABLE_FORMS)

    def __init__(self, rows: StoredEvaluation, query: Mapping[str, str]) -> None:
        self.rows, self.version = rows, rows.version
        names = {one.name: one for one in rows.measures}
        self.measure: EvaluatedMeasure = names.get(query.get("measure", ""), rows.measures[0])
        self.query = query

    @property
    def signature(self) -> str:
        return sign_result(self.version)

    @property
    def level(self) -> str:
        return self.version.level

    @cached_property
    def results(self) -> list[RunResult]:
        return self.rows.results[self.measure.pk]

    @cached_property
    def answer(self) -> EvaluationAnswer:
        pairs = self.rows.pairs.get(self.measure.pk, [])
        return EvaluationAnswer(self.measure, self.results, pairs, self.version.facts["n_topics"])

    @cached_property
    def unweighted(self) -> str:
        return describe_unweighted(self.version, find_evaluation_draw(self.version))

    @cached_property
    def axis(self) -> Axis:
        limits = [value for row in self.results for value in (row.ci_high, row.mean) if value]
        return Axis(0.0, max([1.0, *limits]), 0.25)

    @cached_property
    def means(self) -> list[MeanRow]:
        return [
            MeanRow(row, self.axis.span(row.mean, row.ci_low, row.ci_high)) for row in self.results
        ]

    @cached_property
    def lacks_topics(self) -> bool:
        return any(run.n_missing for run in self.rows.runs)

    @cached_property
    def compared(self) -> tuple[ResultFile, ResultFile] | None:
        """The two runs of the chart: those that the address names, or the first two."""
        names = {run.name: run for run in self.rows.runs}
        first, second = ([row.run for row in self.results] + [None, None])[:2]
        a = names.get(self.query.get("a", ""), first)
        b = names.get(self.query.get("b", ""), second)
        return None if a is None or b is None or a == b else (a, b)

    @cached_property
    def chart(self) -> Chart | None:
        if self.compared is None:
            return None
        names = {name: run.name for name, run in zip("ab", self.compared, strict=True)}
        frame = differences(*self.rows.values_by_topic(self.measure, self.compared))
        return Chart(
            TOPICS,
            _("{a} and {b} topic by topic").format(**names),
            differences_in_words(frame, **names),
            frame,
            partial(topic_differences, frame, measure=self.measure.name, **names),
        )

    @property
    def query_fields(self) -> list[tuple[str, str]]:
        return [("version", str(self.version.number)), ("measure", self.measure.name)]

    @property
    def chart_query(self) -> str:
        runs = [(name, run.name) for name, run in zip("ab", self.compared or (), strict=False)]
        return urlencode([*self.query_fields, *runs])

    @cached_property
    def pairs_finding(self) -> str:
        pairs = self.rows.pairs.get(self.measure.pk, [])
        n = sum(1 for row in pairs if row.p_adjusted is not None and row.p_adjusted < SIGNIFICANT)
        if not self.measure.is_primary:
            return _("not primary: p is not corrected")
        decided = ngettext("%(n)d differs", "%(n)d differ", n) % {"n": n}
        return _("{decided}, {rest} not decided").format(decided=decided, rest=len(pairs) - n)

    @cached_property
    def pairs_table(self) -> Table:
        return pairs_table(self.rows, [self.measure])

    @cached_property
    def means_table(self) -> Table:
        return means_table(self.rows)

    @cached_property
    def weighted_table(self) -> Table | None:
        return weighted_table(self.rows, [self.measure]) if self.rows.weights else None


def means_table(rows: StoredEvaluation) -> Table:
    columns = (
        RUN,
        MEASURE,
        Column(_("Mean")),
        Column(_("Judged")),
        Column(_("Topics")),
        Column(_("Complete")),
    )
    return Table(
        "means",
        _("Means over topics"),
        columns,
        [
            (
                row.run.name,
                one.name,
                Number(row.mean, 4, row.ci_low, row.ci_high, reason=row.reason),
                Number(row.judged),
                row.n_topics,
                Number(row.mean_complete, 4),
            )
            for one in rows.measures
            for row in rows.results[one.pk]
        ],
        note=_(
            "Judged: the share of judged documents where the measure looks. Complete: the mean "
            "with 0 for the topics that a run lacks."
        ),
    )


def pairs_table(rows: StoredEvaluation, measures: list[EvaluatedMeasure]) -> Table:
    columns = (
        MEASURE,
        RUN,
        Column(_("Against"), is_number=False),
        Column(_("Difference")),
        Column(_("Test"), is_number=False),
        Column(_("p")),
        Column(_("p, adjusted")),
        Column(_("Topics")),
    )
    return Table(
        "comparisons",
        _("Comparisons"),
        columns,
        [
            (
                one.name,
                row.a.name,
                row.b.name,
                Number(row.delta, 4, row.ci_low, row.ci_high, reason=row.reason),
                row.test,
                P(row.p),
                P(row.p_adjusted),
                row.n_topics,
            )
            for one in measures
            for row in rows.pairs.get(one.pk, [])
        ],
        note=_(
            "Differences over the topics that count for both. p is adjusted by Holm's method over "
            "all pairs and primary measures; each interval is of its pair alone."
        ),
    )


def weighted_table(rows: StoredEvaluation, measures: list[EvaluatedMeasure]) -> Table:
    columns = (
        MEASURE,
        RUN,
        Column(_("Less"), is_number=False),
        Column(_("Mean, or difference")),
        Column(_("Topics")),
    )
    return Table(
        "weighted",
        _("For all targets that the topics were drawn from"),
        columns,
        [
            (
                *(row.measure.name, row.run.name, str(row.other or "")),
                *(Number(row.value, 4, row.ci_low, row.ci_high, reason=row.reason), row.n_topics),
            )
            for row in rows.weighted
            if row.measure_id in {one.pk for one in measures}
        ],
        note=_(
            "Each topic counts 1 / the probability that it was drawn with, by {name}. Intervals "
            "are Student's t over strata. Means, tests and groups beside these, and the pages on "
            "trust, reuse and a machine's labels, weigh nothing: they are of the topics as drawn."
        ).format(name=rows.weights.name if rows.weights else ""),
    )
