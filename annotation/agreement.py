"""From a study's judgments to how well its annotators agree, question by question.

`annotation/reassessment.py` sets one round against another, and `annotation/disagreement.py`
says who and what pulls agreement down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from annotation.frames import judgment_frame
from annotation.models import Protocol, Question, Study, Submission
from annotation.units import judged_units
from presentation.records import plain_values
from stats.agreement import Agreement

if TYPE_CHECKING:
    import pandas as pd


EVERY_CONDITION = ""
# Items without a condition beside those of one; without any name it stands for all items.
UNNAMED = "(none)"


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement on one question, in one condition or (with none named) in all."""

    question: str
    level: str
    condition: str
    coefficients: tuple[Agreement, ...]

    @property
    def alpha(self) -> Agreement:
        return next(c for c in self.coefficients if c.name == "krippendorff_alpha")

    def record(self) -> dict[str, Any]:
        return self._record(self.alpha)

    def coefficient_records(self) -> list[dict[str, Any]]:
        return [self._record(coefficient) for coefficient in self.coefficients]

    def _record(self, coefficient: Agreement) -> dict[str, Any]:
        named = {"question": self.question, "by": self.condition, "level": self.level}
        return named | plain_values(asdict(coefficient))


@dataclass(frozen=True)
class AgreementReport:
    """Coefficients by question and condition, and kappa of every pair of annotators by question.

    `questions` counts the submissions that are flagged; `unflagged` leaves them out, and is
    empty where none is flagged.
    """

    round: int
    questions: tuple[QuestionAgreement, ...]
    pairs: pd.DataFrame
    n_flagged: int = 0
    unflagged: tuple[QuestionAgreement, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        return [row.record() for row in self.questions]

    def coefficient_records(self) -> list[dict[str, Any]]:
        both = ((True, self.questions), (False, self.unflagged))
        return [
            {"with_flagged": with_flagged, **record}
            for with_flagged, rows in both
            for row in rows
            for record in row.coefficient_records()
        ]


def study_agreement(
    study: Study,
    *,
    round: int = 1,
    frame: pd.DataFrame | None = None,
    protocol: Protocol | None = None,
) -> AgreementReport:
    """Agreement on every question of a study in one round, from judgments not rejected.

    `frame` is the study's judgment frame, where the caller has it; with a `protocol`, only what
    was judged under that version counts.
    """
    whole = judgment_frame(study, protocol=protocol) if frame is None else frame
    frame = _of_round(whole, round)
    questions = list(study.questions.all())
    submissions = Submission.objects.of(study).accepted().filter(round=round)
    if protocol is not None:
        submissions = submissions.filter(protocol=protocol)
    n_flagged = submissions.flagged().count()
    unflagged: tuple[QuestionAgreement, ...] = ()
    if n_flagged:
        rest = _of_round(judgment_frame(study, with_flagged=False, protocol=protocol), round)
        unflagged = tuple(_by_condition(questions, rest))
    return AgreementReport(
        round=round,
        questions=tuple(_by_condition(questions, frame)),
        pairs=_pairs(questions, frame),
        n_flagged=n_flagged,
        unflagged=unflagged,
    )


def rounds_of(study: Study) -> list[int]:
    rounds = Submission.objects.of(study).accepted().order_by("round")
    return list(rounds.values_list("round", flat=True).distinct())


def judged_protocols(study: Study, *, round: int) -> list[int]:
    submissions = Submission.objects.of(study).accepted().filter(round=round)
    used = submissions.exclude(protocol=None).order_by().values("protocol")
    numbers = Protocol.objects.filter(pk__in=used).order_by("number")
    return list(numbers.values_list("number", flat=True))


def protocol_reports(study: Study) -> list[tuple[int, AgreementReport]]:
    """Agreement under each version of the protocol by its number, a report a round; none where all
    was judged under one."""
    submissions = Submission.objects.of(study).accepted().exclude(protocol=None).order_by()
    used = set(submissions.values_list("protocol", "round"))
    versions = Protocol.objects.filter(pk__in={pk for pk, _ in used}).in_bulk()
    if len(versions) < 2:
        return []
    in_order = sorted((versions[pk].number, round, pk) for pk, round in used)
    return [
        (number, study_agreement(study, round=round, protocol=versions[pk]))
        for number, round, pk in in_order
    ]


def _of_round(frame: pd.DataFrame, round: int) -> pd.DataFrame:
    return frame[frame["round"] == round]


def _by_condition(questions: list[Question], frame: pd.DataFrame) -> Iterator[QuestionAgreement]:
    """Each question in all conditions together and, where there are several, in each."""
    for question in questions:
        rows = frame[frame["question"] == question.name]
        conditions = list(rows["condition"].unique())
        parts = [(EVERY_CONDITION, rows)]
        if len(conditions) > 1:
            parts += [(name or UNNAMED, rows[rows["condition"] == name]) for name in conditions]
        for condition, part in parts:
            level = judged_units(question, part).level
            yield QuestionAgreement(question.name, level, condition, _coefficients(question, part))


def _coefficients(question: Question, part: pd.DataFrame) -> tuple[Agreement, ...]:
    """Those of the candidates one by one and, where they are ticked, of the ticks of an item."""
    judged = judged_units(question, part)
    is_ticked = question.study.kind == Study.Kind.ALTERNATIVES and len(question.categories) == 2
    return judged.coefficients() + ((judged.set_alpha(),) if is_ticked else ())


def _pairs(questions: list[Question], frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    tables = [(question.name, judged_units(question, frame).pairs()) for question in questions]
    named = [table.assign(question=name) for name, table in tables if len(table.columns)]
    if not named:
        return pd.DataFrame()
    pairs = pd.concat(named, ignore_index=True)
    return pairs[["question", *pairs.columns.drop("question")]]
