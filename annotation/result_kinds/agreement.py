"""How well a study's annotators agree: coefficients, annotators, pairs, and a row per candidate.

The record has what does not grow with the number of annotators. A part per question and round has
its annotators, their position effects and the pairs of the matrix. The part of all kappas grows
with the square of the annotators, and only a file reads it. Candidates are rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.agreement import (
    AgreementReport,
    protocol_reports,
    round_agreement,
    rounds_of,
    study_agreement,
)
from annotation.disagreement import (
    annotator_table,
    default_threshold,
    pair_table,
    position_effects,
    random_positions,
    unit_table,
)
from annotation.frames import judgment_frame
from annotation.models import Judgment, Question, Study, Submission, UnitAgreement
from annotation.result_kinds.base import StudyKind
from annotation.units import KAPPA_WEIGHTS
from presentation.numbers import plain_records, plain_values
from results.kinds import Computed, Count, Estimate, Given, Table, Text, YesNo, register_kind
from results.models import Result, pack_record, unpack_record
from stats.agreement import Agreement
from stats.libraries import pd

ALPHA = "krippendorff_alpha"
AT_ONCE = 1000
UNIT_COLUMNS = ["candidate_id", "n_judgments", "mean", "low", "high", "spread", "agreement"]
# The annotators' agreement with the others, by what it is called at each level.
STATISTICS = {
    "loo_kappa": "Kappa with the other annotators",
    "loo_correlation": "Correlation with the other annotators' mean",
}
ANNOTATOR_COLUMNS = [
    *("annotator", "agreement", "reason", "n_judgments", "n_flagged", "seconds"),
    *("alpha_without", "alpha_change"),
]
KAPPAS = "kappas"
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """A stored coefficient of a question. An undefined number is None, and `reason` says why."""

    question: str
    level: str | None
    name: str
    value: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    ci_method: str
    confidence: float
    observed: float | None
    expected: float | None
    n_items: int
    n_items_dropped: int
    n_annotators: int
    n_labels: int
    n_pairable: int
    prevalence: float | None
    reason: str | None
    n_resamples: int
    seed: int | None
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class QuestionCoefficient(Coefficient):
    """`by` is the condition, empty for all; `with_flagged` whether flagged submissions count."""

    round: int
    with_flagged: bool
    by: str


@dataclass(frozen=True, kw_only=True)
class RoundCoefficient(Coefficient):
    """`by` is who judged again, `n_pairs` the number of pairs of judgments of one candidate."""

    earlier: int
    later: int
    by: str
    n_pairs: int


@dataclass(frozen=True, kw_only=True)
class ProtocolCoefficient(Coefficient):
    round: int
    protocol: int


@dataclass(frozen=True, kw_only=True)
class JudgedQuestion:
    """A question in a round.

    Attributes
    ----------
    n_flagged : int
        Submissions of the round.
    n_cannot_judge : int
        Answers that say that nothing can be judged; in no coefficient.
    n_units, n_disputed : int
        Candidates that several annotators judged, and those of them in dispute by the threshold
        that fits the question.
    n_in_matrix : int
        Annotators who judged most.
    part : str
        The name of the part with its annotators.
    """

    question: str
    round: int
    n_flagged: int
    n_cannot_judge: int
    n_units: int
    n_disputed: int
    n_annotators: int
    n_in_matrix: int
    pair_statistic: str
    annotator_statistic: str
    part: str


@dataclass(frozen=True)
class QuestionTables:
    summary: JudgedQuestion
    question: Question
    units: "pd.DataFrame"
    part: Mapping[str, list[Row]]


@register_kind
class AgreementKind(StudyKind):
    name = page = "agreement"
    title = gettext_lazy("Agreement")
    form = 9
    tables = {
        "coefficients": Table(
            gettext_lazy("Coefficients"),
            {
                "question": Text(gettext_lazy("Question")),
                "round": Count(gettext_lazy("Round")),
                "by": Text(gettext_lazy("Condition")),
                "with_flagged": YesNo(gettext_lazy("With flagged submissions")),
                "name": Text(gettext_lazy("Coefficient")),
                "value": Estimate(gettext_lazy("Value")),
                "n_items": Count(gettext_lazy("Items")),
                "n_annotators": Count(gettext_lazy("Annotators")),
            },
        )
    }

    def compute(self, given: Given[Study]) -> Computed:
        study = given.subject
        frame = judgment_frame(study)
        frame = frame.assign(position=random_positions(study, frame))
        reports = [
            study_agreement(study, round=round, frame=frame) for round in rounds_of(study) or [1]
        ]
        steps = [(report, question) for report in reports for question in study.questions.all()]
        tables = [
            _question_tables(question, report, frame)
            for report, question in given.progress(_("step"))(steps, len(steps))
        ]
        parts: dict[str, Any] = {one.summary.part: one.part for one in tables}
        kappas = {one.name for one in study.questions.all() if one.level in KAPPA_WEIGHTS}
        pairs = plain_records(reports[0].pairs)
        parts[KAPPAS] = {KAPPAS: [row for row in pairs if row["question"] in kappas]}
        return Computed(
            record={
                "questions": [asdict(one.summary) for one in tables],
                "coefficients": list(_list_coefficients(reports)),
                "between_rounds": list(_list_between_rounds(study, frame)),
                "by_protocol": list(_list_by_protocol(study)),
            },
            facts={
                "first_round": reports[0].round,
                "n_items": frame.loc[frame["round"] == reports[0].round, "item"].nunique(),
                "n_disputed": sum(one.summary.n_disputed for one in tables),
                "n_submissions": Submission.objects.of(study).count(),
            },
            parts={name: pack_record(part) for name, part in parts.items()},
            write_rows=lambda result: _write_units(result, tables),
        )


def _question_tables(
    question: Question, report: AgreementReport, frame: "pd.DataFrame"
) -> QuestionTables:
    rows = frame[(frame["question"] == question.name) & (frame["round"] == report.round)]
    units = unit_table(question, round=report.round, frame=frame)
    pairs = pair_table(question, rows, report.pairs)
    in_matrix = pairs.rows[pairs.rows["in_matrix"].astype(bool)]
    annotators = pd.DataFrame(columns=ANNOTATOR_COLUMNS)
    if not rows.empty:
        annotators = annotator_table(question, round=report.round, frame=rows)
    statistic = next((name for name in STATISTICS if name in annotators.columns), "")
    names = {statistic: "agreement", "median_seconds": "seconds"}
    summary = JudgedQuestion(
        question=question.name,
        round=report.round,
        n_flagged=report.n_flagged,
        n_cannot_judge=_n_cannot_judge(question, report.round),
        n_units=len(units),
        n_disputed=int((units["spread"] > default_threshold(question)).sum()),
        n_annotators=pairs.n_annotators,
        n_in_matrix=pairs.n_in_matrix,
        pair_statistic=pairs.statistic,
        annotator_statistic=STATISTICS.get(statistic, "Agreement"),
        part=f"{report.round}-{question.pk}",
    )
    named = {"round": report.round, "question": question.name}
    part = {
        "annotators": plain_records(annotators.rename(columns=names)[ANNOTATOR_COLUMNS]),
        "positions": [
            named | plain_values(asdict(one)) for one in position_effects(question, rows)
        ],
        "pairs": plain_records(
            in_matrix[["annotator_a", "annotator_b", "n_shared", "value", "reason"]]
        ),
    }
    return QuestionTables(summary, question, units, part)


def _n_cannot_judge(question: Question, round: int) -> int:
    if question.level != Question.Level.ORDINAL or question.highest >= question.scale_max:
        return 0
    answers = Judgment.objects.accepted().filter(question=question, submission__round=round)
    return answers.filter(value__gt=question.highest).count()


def _list_coefficients(reports: Iterable[AgreementReport]) -> Iterator[Row]:
    for report in reports:
        for with_flagged, judged in ((True, report.questions), (False, report.unflagged)):
            key = {"round": report.round, "with_flagged": with_flagged}
            for one in judged:
                yield from _rows(one.coefficients, **key, question=one.question, by=one.condition)


def _list_between_rounds(study: Study, frame: "pd.DataFrame") -> Iterator[Row]:
    for one in round_agreement(study, frame=frame):
        key = {"earlier": one.earlier, "later": one.later, "by": one.by, "n_pairs": one.n_pairs}
        yield from _rows(one.coefficients, question=one.question, level=None, **key)


def _list_by_protocol(study: Study) -> Iterator[Row]:
    for number, report in protocol_reports(study):
        for one in report.questions:
            if not one.condition:
                yield from _rows(
                    one.coefficients, round=report.round, protocol=number, question=one.question
                )


def _rows(coefficients: Iterable[Agreement], **key: Any) -> Iterator[Row]:
    for one in coefficients:
        yield {**key, "level": one.level} | plain_values(asdict(one))


def _write_units(result: Result, tables: Iterable[QuestionTables]) -> None:
    for one in tables:
        key = {"version": result, "question": one.question, "round": one.summary.round}
        rows = (UnitAgreement(**key, **row) for row in plain_records(one.units[UNIT_COLUMNS]))
        UnitAgreement.objects.bulk_create(rows, batch_size=AT_ONCE)


def current_agreement(study: Study) -> Result | None:
    return AgreementKind().find_current(study)


def list_alphas(version: Result | None) -> list[QuestionCoefficient]:
    rows = version.record["coefficients"] if version else ()
    return [QuestionCoefficient(**row) for row in rows if row["name"] == ALPHA]


def read_part(version: Result, name: str) -> dict[str, list[Row]]:
    return unpack_record(bytes(version.parts.get(name=name).content))


def first_annotators(version: Result) -> dict[str, list[Row]]:
    """The part of the first question in the first round; read once of a loaded result."""
    if not hasattr(version, "_first_annotators"):
        names = [row["part"] for row in version.record["questions"][:1]]
        version._first_annotators = read_part(version, names[0]) if names else {}  # type: ignore[attr-defined]
    return version._first_annotators  # type: ignore[attr-defined,no-any-return]


def list_positions(version: Result) -> list[Row]:
    """Position effects by round and question, of all annotators and of each."""
    contents = version.parts.exclude(name=KAPPAS).values_list("content", flat=True)
    return [row for content in contents for row in unpack_record(bytes(content))["positions"]]


def agreement_records(version: Result) -> dict[str, list[Row]]:
    """Every coefficient of every round, rounds against each other, versions of the protocol where
    there are several, the first round's kappas of pairs of annotators, and position effects."""
    return {
        "coefficients": signed_coefficients(version),
        "between_rounds": [
            row | _signature(version, row, f"{row['earlier']}-{row['later']}")
            for row in version.record["between_rounds"]
        ],
        "by_protocol": [
            row | _signature(version, row, f"{row['round']}|protocol:{row['protocol']}")
            for row in version.record["by_protocol"]
        ],
        "pairs": read_part(version, KAPPAS)[KAPPAS],
        "positions": list_positions(version),
    }


def signed_coefficients(version: Result) -> list[Row]:
    return [
        row | _signature(version, row, str(row["round"])) for row in version.record["coefficients"]
    ]


def signed_alphas(study: Study) -> list[Row]:
    """Those of all submissions and conditions together; empty if agreement is not computed."""
    version = current_agreement(study)
    rows = signed_coefficients(version) if version else []
    return [row for row in rows if row["name"] == ALPHA and row["with_flagged"] and not row["by"]]


def _signature(version: Result, row: Row, rounds: str) -> dict[str, str]:
    parts = [row["name"], f"question:{row['question']}", f"level:{row['level']}"]
    if row.get("by"):
        # Of rounds against each other it is who judged again.
        parts.append(f"{'by' if 'earlier' in row else 'condition'}:{row['by']}")
    parts += [f"ci:{row['ci_method']}", f"round:{rounds}"]
    if not row.get("with_flagged", True):
        parts.append("flagged:without")
    return {"signature": "|".join([*parts, f"input:{version.fingerprint[:12]}"])}
