"""The tables of systems: what human ratings and metrics say of each, and where they disagree."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from presentation.documents import Column, Number, Row, Table
from validation.analysis.records import (
    DisagreementRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
)
from validation.documents.cells import signed
from validation.documents.rated_systems import TABLE_TITLE
from validation.documents.tables import METRIC, QUESTION, SYSTEM
from validation.results import ALL, Results

NO_SCORE = gettext_noop("no candidate of the system has a score")


def systems_table(results: Results, question: str) -> Table:
    """The systems by human mean with its interval and rank, and by each metric's mean."""
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
    """A system's mean human value, with its interval."""
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
    """Systems that share two ranks have the mean of them."""
    return 0 if rank is None or float(rank).is_integer() else 1


def disagreements_table(results: Results) -> Table:
    """Pairs of systems that a metric orders otherwise than annotators do, over all conditions."""
    columns = [
        QUESTION,
        METRIC,
        Column(_("%(raters)s prefer") % {"raters": results.raters.subject}, is_number=False),
        Column("to", is_number=False),
        Column("by"),
        Column(_("The metric's difference")),
    ]
    rows: list[Row] = [
        (
            record.question,
            results.label(record),
            record.better,
            record.worse,
            Number(record.human_delta, signature=_of_pair(results, "human_delta", record)),
            Number(record.metric_delta, 3, signature=_of_pair(results, "metric_delta", record)),
        )
        for record in results.rows(DisagreementRecord, scope=ALL)
    ]
    return Table(
        name="disagreements",
        caption=_("Pairs of systems that a metric orders otherwise than human ratings do"),
        columns=columns,
        rows=rows,
    )


def _of_pair(results: Results, kind: str, record: DisagreementRecord) -> str:
    pair = f"{record.better} - {record.worse}"
    return signed(results, kind, record, system=pair)


def worst_table(results: Results) -> Table:
    """The candidates on which each metric is most wrong."""
    columns = [
        QUESTION,
        METRIC,
        Column(_("Item"), is_number=False),
        Column(_("Candidate"), is_number=False),
        Column(_("System"), is_number=False),
        Column(_("Human ratings")),
        Column(_("Score")),
        Column(_("Residual, SD")),
    ]
    rows: list[Row] = [
        (
            record.question,
            results.label(record),
            record.item,
            record.candidate,
            record.system,
            *_wrong(results, record),
        )
        for record in results.rows(WorstRecord)
    ]
    return Table(
        name="worst",
        caption=_("Candidates on which each metric is most wrong"),
        columns=columns,
        rows=rows,
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
