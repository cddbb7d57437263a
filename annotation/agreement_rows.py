"""What was computed of a study's agreement, as the rows of a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from django.db import models

from annotation.agreement import AgreementReport
from annotation.annotator_pairs import PairTable
from annotation.disagreement import default_threshold
from annotation.models import (
    AgreementCoefficient,
    AgreementVersion,
    AnnotatorAgreement,
    JudgedQuestion,
    PairAgreement,
    PositionEffect,
    ProtocolCoefficient,
    Question,
    RoundCoefficient,
    UnitAgreement,
)
from annotation.positions import PositionRecord
from annotation.reassessment import RoundAgreement
from presentation.records import plain_records, plain_values
from stats.agreement import Agreement

if TYPE_CHECKING:
    import pandas as pd


AT_ONCE = 1000
UNIT_COLUMNS = ["candidate_id", "n_judgments", "mean", "low", "high", "spread", "agreement"]
# The annotators' agreement with the others, by what it is called at each level.
STATISTICS = {
    "loo_kappa": "Kappa with the other annotators",
    "loo_correlation": "Correlation with the other annotators' mean",
}
NO_STATISTIC = "Agreement"
ANNOTATOR_COLUMNS = [
    *("annotator", "agreement", "reason", "n_judgments", "n_flagged", "seconds"),
    *("alpha_without", "alpha_change"),
]


@dataclass(frozen=True)
class QuestionTables:
    question: Question
    round: int
    n_flagged: int
    n_cannot_judge: int
    units: pd.DataFrame
    pairs: PairTable
    annotators: pd.DataFrame
    positions: Sequence[PositionRecord]

    @property
    def n_disputed(self) -> int:
        return int((self.units["spread"] > default_threshold(self.question)).sum())

    @property
    def statistic(self) -> str:
        """The column of an annotator's agreement with the others; empty without judgments."""
        return next((name for name in STATISTICS if name in self.annotators.columns), "")


@dataclass(frozen=True)
class ComputedAgreement:
    """All that was computed: a report a round, rounds against each other, tables, and a report a
    round under each version of the protocol, where there are several."""

    reports: Sequence[AgreementReport]
    across: Sequence[RoundAgreement]
    tables: Sequence[QuestionTables]
    by_protocol: Sequence[tuple[int, AgreementReport]] = ()


def write_rows(version: AgreementVersion, computed: ComputedAgreement) -> None:
    questions = {table.question.name: table.question for table in computed.tables}
    for report in computed.reports:
        _write(AgreementCoefficient, _coefficients(version, report, questions))
    _write(RoundCoefficient, _round_coefficients(version, computed.across, questions))
    for number, report in computed.by_protocol:
        rows = _protocol_coefficients(version, number, report, questions)
        _write(ProtocolCoefficient, rows)
    _write(JudgedQuestion, (_judged_question(version, table) for table in computed.tables))
    for table in computed.tables:
        key = {"version": version, "question": table.question, "round": table.round}
        pairs, units = table.pairs, table.units[UNIT_COLUMNS]
        is_kappa = {"is_kappa": pairs.is_kappa}
        _write(UnitAgreement, (UnitAgreement(**key, **row) for row in plain_records(units)))
        _write(
            PairAgreement,
            (PairAgreement(**key, **is_kappa, **row) for row in plain_records(pairs.rows)),
        )
        _write(
            AnnotatorAgreement,
            (AnnotatorAgreement(**key, **row) for row in plain_records(_annotators(table))),
        )
        records = (plain_values(asdict(one)) for one in table.positions)
        _write(PositionEffect, (PositionEffect(**key, **record) for record in records))


def _write(model: type[models.Model], rows: Iterable[models.Model]) -> None:
    model._default_manager.bulk_create(rows, batch_size=AT_ONCE)


def _coefficients(
    version: AgreementVersion, report: AgreementReport, questions: dict[str, Question]
) -> Iterator[AgreementCoefficient]:
    for with_flagged, rows in ((True, report.questions), (False, report.unflagged)):
        for row in rows:
            for coefficient in row.coefficients:
                yield AgreementCoefficient(
                    version=version,
                    question=questions[row.question],
                    round=report.round,
                    with_flagged=with_flagged,
                    by=row.condition,
                    **_columns(coefficient),
                )


def _round_coefficients(
    version: AgreementVersion, across: Iterable[RoundAgreement], questions: dict[str, Question]
) -> Iterator[RoundCoefficient]:
    for row in across:
        for coefficient in row.coefficients:
            yield RoundCoefficient(
                version=version,
                question=questions[row.question],
                earlier=row.earlier,
                later=row.later,
                by=row.by,
                n_pairs=row.n_pairs,
                **_columns(coefficient),
            )


def _protocol_coefficients(
    version: AgreementVersion,
    number: int,
    report: AgreementReport,
    questions: dict[str, Question],
) -> Iterator[ProtocolCoefficient]:
    for row in report.questions:
        for coefficient in () if row.condition else row.coefficients:
            yield ProtocolCoefficient(
                version=version,
                question=questions[row.question],
                round=report.round,
                protocol=number,
                **_columns(coefficient),
            )


def _columns(coefficient: Agreement) -> dict[str, Any]:
    return plain_values(asdict(coefficient))


def _judged_question(version: AgreementVersion, table: QuestionTables) -> JudgedQuestion:
    return JudgedQuestion(
        version=version,
        question=table.question,
        round=table.round,
        n_flagged=table.n_flagged,
        n_cannot_judge=table.n_cannot_judge,
        n_units=len(table.units),
        n_disputed=table.n_disputed,
        n_annotators=table.pairs.n_annotators,
        n_in_matrix=table.pairs.n_in_matrix,
        pair_statistic=table.pairs.statistic,
        annotator_statistic=STATISTICS.get(table.statistic, NO_STATISTIC),
    )


def _annotators(table: QuestionTables) -> pd.DataFrame:
    names = {table.statistic: "agreement", "median_seconds": "seconds"}
    return table.annotators.rename(columns=names)[ANNOTATOR_COLUMNS]
