"""The agreement of a study's annotators, computed once for a state of its judgments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from django.db import models, transaction
from django.db.models import Max, QuerySet

from annotation.agreement import (
    AgreementReport,
    RoundAgreement,
    protocol_reports,
    round_agreement,
    rounds_of,
    study_agreement,
)
from annotation.disagreement import (
    PairTable,
    PositionRecord,
    annotator_table,
    default_threshold,
    pair_table,
    position_effects,
    random_positions,
    unit_table,
)
from annotation.frames import judgment_frame
from annotation.models import (
    AgreementCoefficient,
    AgreementVersion,
    AnnotatorAgreement,
    JudgedQuestion,
    Judgment,
    PairAgreement,
    PositionEffect,
    ProtocolCoefficient,
    Question,
    RoundCoefficient,
    Study,
    UnitAgreement,
)
from presentation.progress import Progress, silently
from presentation.records import plain_records, plain_values
from stats.agreement import Agreement
from stats.libraries import pd

FORM = 8
"""Of the rows; versions of another form are out of date."""


def agreement_fingerprint(study: Study) -> str:
    """What agreement depends on: the count of changes of the judgments of the loaded study."""
    return sha256(repr((FORM, study.pk, study.judgments_version)).encode()).hexdigest()


def current_agreement(study: Study) -> AgreementVersion | None:
    """The agreement of the study as it was loaded; None where it is not computed yet."""
    return AgreementVersion.objects.of(study).fingerprinted(agreement_fingerprint(study))


def compute_agreement(study: Study, progress: Progress = silently) -> AgreementVersion:
    """Compute coefficients, candidates, pairs and annotators of every question and round, and
    keep them as the study's next version."""
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    frame = judgment_frame(study)
    frame = frame.assign(position=random_positions(study, frame))
    reports = [
        study_agreement(study, round=round, frame=frame) for round in rounds_of(study) or [1]
    ]
    steps = [(report, question) for report in reports for question in study.questions.all()]
    tables = [
        _tables_of(question, report, frame) for report, question in progress(steps, len(steps))
    ]
    across = round_agreement(study, frame=frame)
    return _store(study, ComputedAgreement(reports, across, tables, protocol_reports(study)))


def _tables_of(question: Question, report: AgreementReport, frame: pd.DataFrame) -> QuestionTables:
    rows = frame[(frame["question"] == question.name) & (frame["round"] == report.round)]
    return QuestionTables(
        question=question,
        round=report.round,
        n_flagged=report.n_flagged,
        n_cannot_judge=_n_cannot_judge(question, report.round),
        units=unit_table(question, round=report.round, frame=frame),
        pairs=pair_table(question, rows, report.pairs),
        annotators=_annotators(question, report.round, rows),
        positions=list(position_effects(question, rows)),
    )


def _n_cannot_judge(question: Question, round: int) -> int:
    """Answers that a frame leaves out, since they have no place in the order."""
    if question.level != Question.Level.ORDINAL or question.highest >= question.scale_max:
        return 0
    answers = Judgment.objects.accepted().filter(question=question, submission__round=round)
    return answers.filter(value__gt=question.highest).count()


def _annotators(question: Question, round: int, rows: pd.DataFrame) -> pd.DataFrame:
    if rows.empty:
        return pd.DataFrame(columns=ANNOTATOR_COLUMNS)
    return annotator_table(question, round=round, frame=rows)


@transaction.atomic
def _store(study: Study, computed: ComputedAgreement) -> AgreementVersion:
    Study.objects.select_for_update().get(pk=study.pk)
    versions = AgreementVersion.objects.of(study)
    last = versions.aggregate(last=Max("version"))["last"] or 0
    UnitAgreement.objects.filter(version__study=study).delete()
    versions.delete()
    version = AgreementVersion.objects.create(
        study=study,
        version=last + 1,
        judgments_version=study.judgments_version,
        fingerprint=agreement_fingerprint(study),
        first_round=computed.reports[0].round,
        n_disputed=sum(table.n_disputed for table in computed.tables),
    )
    write_rows(version, computed)
    return version


COEFFICIENT = (
    *("level", "name", "value", "se", "ci_low", "ci_high", "ci_method", "confidence"),
    *("observed", "expected", "n_items", "n_items_dropped", "n_annotators", "n_labels"),
    *("n_pairable", "prevalence", "reason", "n_resamples", "seed", "warnings"),
)
# The names that a pair has in the file, and its columns.
PAIR = {
    "question": "question__name",
    "annotator_a": "annotator_a",
    "annotator_b": "annotator_b",
    "n_overlap": "n_shared",
    "observed": "observed",
    "expected": "expected",
    "kappa": "value",
    "se": "se",
    "ci_low": "ci_low",
    "ci_high": "ci_high",
    "reason": "reason",
}
POSITION = (
    *("round", "question", "annotator", "n_pages", "n_annotators", "first", "last"),
    *("value", "ci_low", "ci_high"),
)


def agreement_records(version: AgreementVersion) -> dict[str, list[dict[str, Any]]]:
    """Every coefficient of every round, rounds against each other, versions of the protocol where
    there are several, the first round's kappas of pairs of annotators, and position effects."""
    return {
        "coefficients": _coefficients(version),
        "between_rounds": _between_rounds(version),
        "by_protocol": _by_protocol(version),
        "pairs": _pairs(version),
        "positions": list(_records(version.position_effects.all(), POSITION)),
    }


def _coefficients(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("round", "with_flagged", "question", "by", *COEFFICIENT)
    return [
        row | _signature(version, row, str(row["round"]))
        for row in _records(version.coefficients.all(), names)
    ]


def _between_rounds(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("question", "level", "earlier", "later", "by", "n_pairs", *COEFFICIENT[1:])
    return [
        row | _signature(version, row, f"{row['earlier']}-{row['later']}")
        for row in _records(version.round_coefficients.all(), names)
    ]


def _by_protocol(version: AgreementVersion) -> list[dict[str, Any]]:
    names = ("round", "protocol", "question", *COEFFICIENT)
    rows = _records(version.protocol_coefficients.all(), names)
    return [
        row | _signature(version, row, f"{row['round']}|protocol:{row['protocol']}") for row in rows
    ]


def _records(rows: QuerySet[Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    columns = ("question__name" if name == "question" else name for name in names)
    return (dict(zip(names, row, strict=True)) for row in rows.values_list(*columns))


def _pairs(version: AgreementVersion) -> list[dict[str, Any]]:
    rows = version.pairs.filter(round=version.first_round, is_kappa=True)
    return [dict(zip(PAIR, row, strict=True)) for row in rows.values_list(*PAIR.values())]


def _signature(version: AgreementVersion, row: dict[str, Any], rounds: str) -> dict[str, str]:
    """All that tells the number from others of the same input: question, level, condition."""
    parts = [row["name"], f"question:{row['question']}", f"level:{row['level']}"]
    if row.get("by"):
        # Of rounds against each other it is who judged again.
        parts.append(f"{'by' if 'earlier' in row else 'condition'}:{row['by']}")
    parts += [f"ci:{row['ci_method']}", f"round:{rounds}"]
    if not row.get("with_flagged", True):
        parts.append("flagged:without")
    return {"signature": "|".join([*parts, f"input:{version.fingerprint[:12]}"])}


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
        _write(AgreementCoefficient, _coefficient_rows(version, report, questions))
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
            (AnnotatorAgreement(**key, **row) for row in plain_records(_annotator_rows(table))),
        )
        records = (plain_values(asdict(one)) for one in table.positions)
        _write(PositionEffect, (PositionEffect(**key, **record) for record in records))


def _write(model: type[models.Model], rows: Iterable[models.Model]) -> None:
    model._default_manager.bulk_create(rows, batch_size=AT_ONCE)


def _coefficient_rows(
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


def _annotator_rows(table: QuestionTables) -> pd.DataFrame:
    names = {table.statistic: "agreement", "median_seconds": "seconds"}
    return table.annotators.rename(columns=names)[ANNOTATOR_COLUMNS]
