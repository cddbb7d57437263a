from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from django.db import models, transaction
from django.db.models import Manager, Max

from annotation.agreement import (
    AgreementReport,
    QuestionAgreement,
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
from stats.libraries import pd

# Of the rows; versions of another form are out of date.
FORM = 8


def agreement_fingerprint(study: Study) -> str:
    return sha256(repr((FORM, study.pk, study.judgments_version)).encode()).hexdigest()


def current_agreement(study: Study) -> AgreementVersion | None:
    return AgreementVersion.objects.of(study).fingerprinted(agreement_fingerprint(study))


def compute_agreement(study: Study, progress: Progress = silently) -> AgreementVersion:
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
        annotators=(
            pd.DataFrame(columns=ANNOTATOR_COLUMNS)
            if rows.empty
            else annotator_table(question, round=report.round, frame=rows)
        ),
        positions=list(position_effects(question, rows)),
    )


def _n_cannot_judge(question: Question, round: int) -> int:
    if question.level != Question.Level.ORDINAL or question.highest >= question.scale_max:
        return 0
    answers = Judgment.objects.accepted().filter(question=question, submission__round=round)
    return answers.filter(value__gt=question.highest).count()


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
    coefficients = _records(
        version.coefficients, "round", "with_flagged", "question", "by", *COEFFICIENT
    )
    names = ("question", "level", "earlier", "later", "by", "n_pairs", *COEFFICIENT[1:])
    between_rounds = _records(version.round_coefficients, *names)
    by_protocol = _records(
        version.protocol_coefficients, "round", "protocol", "question", *COEFFICIENT
    )
    pairs = version.pairs.filter(round=version.first_round, is_kappa=True)
    return {
        "coefficients": [row | _signature(version, row, str(row["round"])) for row in coefficients],
        "between_rounds": [
            row | _signature(version, row, f"{row['earlier']}-{row['later']}")
            for row in between_rounds
        ],
        "by_protocol": [
            row | _signature(version, row, f"{row['round']}|protocol:{row['protocol']}")
            for row in by_protocol
        ],
        "pairs": [dict(zip(PAIR, row, strict=True)) for row in pairs.values_list(*PAIR.values())],
        "positions": list(_records(version.position_effects, *POSITION)),
    }


def _records(rows: Manager[Any], *names: str) -> Iterator[dict[str, Any]]:
    columns = ("question__name" if name == "question" else name for name in names)
    return (dict(zip(names, row, strict=True)) for row in rows.values_list(*columns))


def _signature(version: AgreementVersion, row: dict[str, Any], rounds: str) -> dict[str, str]:
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
        return next((name for name in STATISTICS if name in self.annotators.columns), "")


@dataclass(frozen=True)
class ComputedAgreement:
    reports: Sequence[AgreementReport]
    across: Sequence[RoundAgreement]
    tables: Sequence[QuestionTables]
    by_protocol: Sequence[tuple[int, AgreementReport]] = ()


def write_rows(version: AgreementVersion, computed: ComputedAgreement) -> None:
    _write_coefficients(version, computed)
    for table in computed.tables:
        key = {"version": version, "question": table.question, "round": table.round}
        pairs = table.pairs
        JudgedQuestion.objects.create(
            **key,
            n_flagged=table.n_flagged,
            n_cannot_judge=table.n_cannot_judge,
            n_units=len(table.units),
            n_disputed=table.n_disputed,
            n_annotators=pairs.n_annotators,
            n_in_matrix=pairs.n_in_matrix,
            pair_statistic=pairs.statistic,
            annotator_statistic=STATISTICS.get(table.statistic, NO_STATISTIC),
        )
        _write(UnitAgreement, plain_records(table.units[UNIT_COLUMNS]), **key)
        _write(PairAgreement, plain_records(pairs.rows), **key, is_kappa=pairs.is_kappa)
        names = {table.statistic: "agreement", "median_seconds": "seconds"}
        annotators = table.annotators.rename(columns=names)[ANNOTATOR_COLUMNS]
        _write(AnnotatorAgreement, plain_records(annotators), **key)
        _write(PositionEffect, (plain_values(asdict(one)) for one in table.positions), **key)


def _write(model: type[models.Model], records: Iterable[dict[str, Any]], **key: Any) -> None:
    rows = (model(**key, **record) for record in records)
    model._default_manager.bulk_create(rows, batch_size=AT_ONCE)


def _write_coefficients(version: AgreementVersion, computed: ComputedAgreement) -> None:
    questions = {table.question.name: table.question for table in computed.tables}
    rows: dict[type[models.Model], list[dict[str, Any]]] = defaultdict(list)

    def add(model: type[models.Model], row: QuestionAgreement | RoundAgreement, **key: Any) -> None:
        key["question"] = questions[row.question]
        rows[model] += [key | plain_values(asdict(each)) for each in row.coefficients]

    for report in computed.reports:
        for with_flagged, judged in ((True, report.questions), (False, report.unflagged)):
            key = {"round": report.round, "with_flagged": with_flagged}
            for question in judged:
                add(AgreementCoefficient, question, by=question.condition, **key)
    for row in computed.across:
        key = {"earlier": row.earlier, "later": row.later}
        add(RoundCoefficient, row, by=row.by, n_pairs=row.n_pairs, **key)
    for number, report in computed.by_protocol:
        for question in report.questions:
            if not question.condition:
                add(ProtocolCoefficient, question, round=report.round, protocol=number)
    for model, records in rows.items():
        _write(model, records, version=version)
