from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _, gettext_noop, ngettext

from presentation.documents import Column, Number, P, Row, Section, Table
from validation.analysis.records import (
    DisagreementRecord,
    EstimatedDifferenceRecord,
    EstimatedMeanRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
)
from validation.analysis.systems import PLANNED_LOOKS
from validation.documents.metric_tables import METRIC, QUESTION, SYSTEM
from validation.documents.rated_systems import TABLE_TITLE
from validation.documents.terms import (
    Limits,
    mean_on_scale,
    note_of_cuts,
    percent_text,
    reason_in_words,
    signed,
)
from validation.results import ALL, Results

NO_SCORE = gettext_noop("no candidate of the system has a score")


def systems_table(results: Results, question: str) -> Table:
    rows_of = results.rows(SystemRecord, question=question, scope=ALL)
    records = sorted(rows_of, key=lambda row: row.rank or 0.0)
    labels = [results.label(metric) for metric in records[0].metrics] if records else []
    metrics = [Column(title, group=label) for label in labels for title in ("mean", "rank")]
    human_columns = [
        Column(_("mean"), group=_("Human ratings")),
        Column(_("rank"), group=_("Human ratings")),
    ]
    rows: list[Row] = [
        (
            record.system,
            human_mean(results, record),
            Number(record.rank, _rank_decimals(record.rank)),
            record.n_candidates,
            *(cell for metric in record.metrics for cell in _of_metric(results, record, metric)),
        )
        for record in records
    ]
    return Table(
        name=f"systems-q{results.questions.index(question) + 1}",
        caption=_("%(question)s: the systems by human ratings and by metrics")
        % {"question": question},
        columns=[SYSTEM, *human_columns, Column(_("Candidates")), *metrics],
        rows=rows,
        note=_(
            "Intervals of the human means are for new items by the same annotators: those of "
            "“%(other)s” allow for other annotators too, and are wider for it as a rule. Ranks are "
            "the order of the means alone; there they are what tests leave open."
        )
        % {"other": _(TABLE_TITLE) % {"raters": results.raters.named}},
    )


def human_mean(results: Results, record: SystemRecord, decimals: int = 2) -> Number:
    return Number(
        record.mean,
        decimals,
        record.ci_low,
        record.ci_high,
        reason=_("it has no judgment"),
        signature=signed(results, "human_mean", record),
    )


def _of_metric(
    results: Results, record: SystemRecord, metric: SystemScoreRecord
) -> tuple[Number, Number]:
    fields = {name: getattr(record, name) for name in ("question", "scope", "by", "system")}
    signature = signed(results, "metric_mean", None, **fields, signature=metric.signature)
    rank = metric.rank
    return (
        Number(metric.mean, 3, reason=NO_SCORE, signature=signature),
        Number(rank, _rank_decimals(rank), reason=NO_SCORE),
    )


def _rank_decimals(rank: float | None) -> int:
    return 0 if rank is None or float(rank).is_integer() else 1


def disagreements_table(results: Results) -> Table:
    return Table(
        name="disagreements",
        caption=_("Pairs of systems that a metric orders otherwise than human ratings do"),
        columns=[
            QUESTION,
            METRIC,
            Column(_("%(raters)s prefer") % {"raters": results.raters.subject}, is_number=False),
            Column("to", is_number=False),
            Column("by"),
            Column(_("The metric's difference")),
        ],
        rows=[
            (
                record.question,
                results.label(record),
                record.better,
                record.worse,
                Number(record.human_delta, signature=_of_pair(results, "human_delta", record)),
                Number(record.metric_delta, 3, signature=_of_pair(results, "metric_delta", record)),
            )
            for record in results.rows(DisagreementRecord, scope=ALL)
        ],
    )


def _of_pair(results: Results, kind: str, record: DisagreementRecord) -> str:
    return signed(results, kind, record, system=f"{record.better} - {record.worse}")


def worst_table(results: Results) -> Table:
    return Table(
        name="worst",
        caption=_("Candidates on which each metric is most wrong"),
        columns=[
            QUESTION,
            METRIC,
            Column(_("Item"), is_number=False),
            Column(_("Candidate"), is_number=False),
            Column(_("System"), is_number=False),
            Column(_("Human ratings")),
            Column(_("Score")),
            Column(_("Residual, SD")),
        ],
        rows=[
            (
                record.question,
                results.label(record),
                record.item,
                record.candidate,
                record.system,
                *_wrong(results, record),
            )
            for record in results.rows(WorstRecord)
        ],
        note=_(
            "Residual: the standardised score less the standardised human value; above zero, "
            "the metric likes the candidate better than annotators do."
        ),
    )


def _wrong(results: Results, record: WorstRecord) -> tuple[Number, ...]:
    candidate = f"{record.item}/{record.candidate}"
    numbers = (("human", record.human, 2), ("score", record.score, 3))
    return tuple(
        Number(
            value,
            decimals,
            signature=signed(results, f"candidate.{name}", record, system=candidate),
        )
        for name, value, decimals in (*numbers, ("residual", record.residual, 2))
    )


DECIMALS = 2


def estimated_means_table(results: Results, **of: str) -> Table:
    records = results.rows(EstimatedMeanRecord, **of)
    cut = note_of_cuts(results, _limits(records))
    notes = (_note(row, results.settings.confidence) for row in records)
    return Table(
        name="estimated-means",
        caption=_("The mean rating over all scored items, where people rated some of them"),
        columns=[
            QUESTION,
            METRIC,
            SYSTEM,
            Column(_("Mean, with the scores")),
            Column(_("By people alone")),
            Column(_("Rated items")),
            Column(_("Scored items")),
            Column(_("Worth so many rated")),
        ],
        rows=[
            (
                row.question,
                results.label(row),
                row.system,
                _mean(results, row, row.value, (row.ci_low, row.ci_high)),
                _mean(results, row, row.people, (row.people_low, row.people_high)),
                row.n_labelled,
                row.n,
                Number(row.effective_n, 0, reason=reason_in_words(row.reason)),
            )
            for row in records
        ],
        note=" ".join(filter(None, dict.fromkeys([*notes, cut]))),
    )


def estimated_differences_table(results: Results, **of: str) -> Table:
    rows: list[Row] = [
        (
            row.question,
            results.label(row),
            row.a,
            row.b,
            Number(row.value, DECIMALS, row.ci_low, row.ci_high, reason_in_words(row.reason)),
            P(row.p_adjusted, reason_in_words(row.reason)),
            row.n_labelled,
            row.n,
        )
        for row in results.rows(EstimatedDifferenceRecord, **of)
    ]
    return Table(
        name="estimated-differences",
        caption=_("Differences of systems over all scored items, where people rated some of them"),
        columns=[
            QUESTION,
            METRIC,
            SYSTEM,
            Column(_("against"), is_number=False),
            Column(_("Difference, with the scores")),
            Column(_("p (Holm)")),
            Column(_("Rated items")),
            Column(_("Scored items")),
        ],
        rows=rows,
        note=_("p is adjusted over the pairs of a question and metric, and for the batches.")
        if rows
        else "",
    )


def _mean(
    results: Results, row: EstimatedMeanRecord, value: float | None, limits: Limits
) -> Number:
    reason = reason_in_words(row.reason)
    return mean_on_scale(results, row.question, value, limits, DECIMALS, reason)


def _limits(records: Sequence[EstimatedMeanRecord]) -> Iterator[tuple[str, float | None, Limits]]:
    for row in records:
        yield row.question, row.value, (row.ci_low, row.ci_high)
        yield row.question, row.people, (row.people_low, row.people_high)


def _note(row: EstimatedMeanRecord, confidence: float) -> str:
    """`confidence` is for all looks together."""
    said = ngettext(
        "Each rating is weighed by the chance with which its item was drawn; items picked by hand "
        "count for themselves only. After %(n)d batch: intervals of %(level)s, so that those after "
        "up to %(most)d batches hold together %(all)s of the time.",
        "Each rating is weighed by the chance with which its item was drawn; items picked by hand "
        "count for themselves only. After %(n)d batches: intervals of %(level)s, so that those "
        "after up to %(most)d batches hold together %(all)s of the time.",
        row.look,
    ) % {
        "n": row.look,
        "level": f"{100 * row.confidence:.1f} %",
        "most": PLANNED_LOOKS,
        "all": percent_text(confidence),
    }
    if row.look > PLANNED_LOOKS:
        said += " " + _("That is more batches than the intervals are made for.")
    return said


def estimated_means_section(results: Results) -> Section:
    tables = [estimated_means_table(results), estimated_differences_table(results)]
    return Section(_("The mean over all scored items"), [one for one in tables if one.rows])
