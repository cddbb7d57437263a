from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _, gettext_noop, ngettext

from console.chart_values import Axis
from console.templatetags.numbers import p_text, percent
from error_codes import CodedText
from presentation.documents import Column, Number, P, Table
from presentation.numbers import format_interval, format_number, shorten_names
from presentation.writers import TABLE_FORMS
from results.computing import sign_result
from results.kinds import Chart
from retrieval.answers.pools import describe_unweighted, find_evaluation_draw
from retrieval.charts import differences, differences_in_words, topic_differences
from retrieval.evaluated_runs import SIGNIFICANT
from retrieval.models import EvaluatedMeasure, ResultFile, RunResult
from retrieval.result_kinds.evaluation import StoredEvaluation, order_of

# Fewer topics give no answer, as fewer items give none on Results.
LEAST_TOPICS = 10
# Runs of which a reader should know that much less was judged.
UNEVEN, INCOMPLETE = 0.1, 0.9
# Which would be written as 100 %.
ALL = 0.995


@dataclass(frozen=True)
class EvaluationAnswer:
    """`results` are sorted, the best run first."""

    measure: EvaluatedMeasure
    results: Sequence[RunResult]
    pairs: Sequence[SimpleNamespace]
    n_topics: int

    @cached_property
    def first(self) -> RunResult:
        return self.results[0]

    @cached_property
    def rivals(self) -> list[RunResult]:
        """The runs that are not significantly worse than the first."""
        order = order_of(self.results, self.pairs)
        first = self.first.run.name
        return [row for row in self.results[1:] if not order.is_better(first, row.run.name)]

    @property
    def first_sentence(self) -> str:
        names = {"run": self.first.run.name, "measure": self.measure.name}
        if self.first.mean is None:
            return CodedText(
                _("{measure} is undefined for every run.").format(**names), code="undefined"
            )
        if len(self.results) == 1:
            return CodedText(
                _("{run} is the only run: its {measure} is {mean}.").format(
                    mean=format_number(self.first.mean), **names
                ),
                code="only_run",
            )
        if self.n_topics < LEAST_TOPICS:
            return CodedText(_("Too few topics for an answer."), code="too_few_topics")
        if self.rivals:
            return CodedText(
                _("It is not decided which run is best by {measure}.").format(**names),
                code="undecided",
            )
        return CodedText(_("{run} is best by {measure}.").format(**names), code="best")

    @property
    def details(self) -> list[str]:
        return list(self._details())

    def _details(self) -> Iterator[str]:
        if len(self.results) > 1 and self.first.mean is not None:
            yield from self._lead()
        yield from self._judged()

    def _lead(self) -> Iterator[str]:
        first_two = {row.run.name for row in self.results[:2]}
        pair = next(each for each in self.pairs if {each.a, each.b} == first_two)
        yield self._lead_text(pair)
        if self.n_topics < LEAST_TOPICS:
            yield CodedText(
                _("Below {n} topics chance decides too much to name a best run.").format(
                    n=LEAST_TOPICS
                ),
                code="below_least_topics",
            )
        elif not self.measure.is_primary:
            yield CodedText(
                _("This measure is not primary: its tests are not corrected, and decide nothing."),
                code="not_primary",
            )
        elif self.rivals:
            names = [row.run.name for row in self.rivals]
            yield CodedText(
                _("{runs} may be as good as {first}, or better.").format(
                    runs=shorten_names(names), first=self.first.run.name
                ),
                code="rivals",
            )
        else:
            n = len(self.pairs)
            yield CodedText(
                ngettext(
                    "If the two were equally good, a lead this large would be rare: p %(p)s, "
                    "adjusted for %(n)d comparison and all primary measures.",
                    "If the two were equally good, a lead this large would be rare: p %(p)s, "
                    "adjusted for %(n)d comparisons and all primary measures.",
                    n,
                )
                % {"p": p_text(pair.p_adjusted), "n": n},
                code="lead_is_rare",
            )

    def _lead_text(self, pair: SimpleNamespace) -> str:
        is_turned = pair.a != self.first.run.name
        delta, low, high = pair.delta, pair.ci_low, pair.ci_high
        if is_turned:
            delta, low, high = _minus(delta), _minus(high), _minus(low)
        names = {"first": self.first.run.name, "second": self.results[1].run.name}
        if delta is None:
            return CodedText(
                _("{first} and {second} have no topic in common.").format(**names),
                code="no_common_topic",
            )
        if delta < 0:
            names = {"first": names["second"], "second": names["first"]}
            delta, low, high = _minus(delta), _minus(high), _minus(low)
        return CodedText(
            _("{first} leads {second} by {delta} {interval}, on {n} topics.").format(
                **names,
                delta=format_number(delta),
                interval=format_interval(low, high),
                n=f"{pair.n_topics:,}",
            ),
            code="lead",
        )

    def _judged(self) -> Iterator[str]:
        judged = sorted(
            (row.judged, row.run.name) for row in self.results if row.judged is not None
        )
        if not judged:
            return
        (least, run_of_least), (most, run_of_most) = judged[0], judged[-1]
        if most - least >= UNEVEN:
            yield CodedText(
                _(
                    "Where {measure} looks, {most} of {best}'s documents were judged and {least} "
                    "of {worst}'s. What nobody judged counts as not relevant, which favours {best}."
                ).format(
                    measure=self.measure.name,
                    most=percent(most),
                    best=run_of_most,
                    least=percent(least),
                    worst=run_of_least,
                ),
                code="uneven_judged",
            )
        elif least < INCOMPLETE:
            yield CodedText(
                _(
                    "Where {measure} looks, {least} or more of each run's documents were judged; "
                    "what nobody judged counts as not relevant."
                ).format(measure=self.measure.name, least=percent(least)),
                code="incomplete_judged",
            )
        elif least >= ALL:
            yield CodedText(
                _("Where {measure} looks, everything that the runs show was judged.").format(
                    measure=self.measure.name
                ),
                code="all_judged",
            )
        else:
            yield CodedText(
                _("Where {measure} looks, {least} or more of each run was judged.").format(
                    measure=self.measure.name, least=percent(least)
                ),
                code="most_judged",
            )


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


TOPICS = "topics"
RUN, MEASURE = (
    Column(gettext_noop("Run"), is_number=False),
    Column(gettext_noop("Measure"), is_number=False),
)


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
        pairs = self.rows.pairs[self.measure.name]
        return EvaluationAnswer(self.measure, self.results, pairs, self.version.facts["n_topics"])

    @cached_property
    def unweighted(self) -> str:
        return describe_unweighted(self.version, find_evaluation_draw(self.version))

    @cached_property
    def axis(self) -> Axis:
        limits = [value for row in self.results for value in (row.ci_high, row.mean) if value]
        return Axis(0.0, max([1.0, *limits]), 0.25)

    @cached_property
    def means(self) -> list[dict[str, Any]]:
        return [
            {
                "result": row,
                "span": self.axis.span(row.mean, row.ci_low, row.ci_high),
                "value": format_number(row.mean),
                "interval": format_interval(row.ci_low, row.ci_high),
                "complete": format_number(row.mean_complete),
            }
            for row in self.results
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
        pairs = self.rows.pairs[self.measure.name]
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
        return weighted_table(self.rows.weighted, [self.measure]) if self.rows.weighted else None


def means_table(rows: StoredEvaluation) -> Table:
    return Table(
        "means",
        _("Means over topics"),
        (
            RUN,
            MEASURE,
            Column(_("Mean")),
            Column(_("Judged")),
            Column(_("Topics")),
            Column(_("Complete")),
        ),
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
            "Judged: the share of judged documents among those that the measure counts. "
            "Complete: the mean with 0 for the topics that a run lacks."
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
                row.a,
                row.b,
                Number(row.delta, 4, row.ci_low, row.ci_high, reason=row.reason or ""),
                row.test,
                P(row.p),
                P(row.p_adjusted),
                row.n_topics,
            )
            for one in measures
            for row in rows.pairs[one.name]
        ],
        note=_(
            "Differences over the topics that count for both. p is adjusted by Holm's method over "
            "all pairs and primary measures; each interval is of its pair alone."
        ),
    )


def weighted_table(weighted: Mapping[str, Any], measures: list[EvaluatedMeasure]) -> Table:
    names = {one.name for one in measures}
    return Table(
        "weighted",
        _("For all targets that the topics were drawn from"),
        (
            MEASURE,
            RUN,
            Column(_("Less"), is_number=False),
            Column(_("Mean, or difference")),
            Column(_("Topics")),
        ),
        [
            (
                *(row["measure"], row.get("run") or row["a"], row.get("b", "")),
                Number(
                    row["mean"] if "mean" in row else row["delta"],
                    *(4, row["ci_low"], row["ci_high"], row["reason"] or ""),
                ),
                row["n_topics"],
            )
            for row in (*weighted["means"], *weighted["differences"])
            if row["measure"] in names
        ],
        note=_(
            "Each topic counts 1 / the probability that it was drawn with, by {name}. Intervals "
            "are Student's t over strata. Means, tests and groups beside these, and the pages on "
            "trust, reuse and a machine's labels, weigh nothing: they are of the topics as drawn."
        ).format(name=weighted["file"]),
    )
