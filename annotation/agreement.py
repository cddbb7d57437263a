"""How well a study's annotators agree, question by question, and one round against another.

`annotation/disagreement.py` says who and what pulls agreement down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

from annotation.frames import judgment_frame
from annotation.models import Protocol, Question, Study, Submission
from annotation.units import Level, categories_of, judged_units
from error_codes import CodedText
from presentation.numbers import plain_values
from stats.agreement import Agreement, coefficients_at_level
from stats.label_sampling import compare_labeled, label_columns
from stats.libraries import pd

EVERY_CONDITION = ""
# Items without a condition beside those of one; without any name it stands for all items.
UNNAMED = "(none)"


@dataclass(frozen=True)
class QuestionAgreement:
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
        return [
            {"with_flagged": with_flagged, **record}
            for with_flagged, rows in ((True, self.questions), (False, self.unflagged))
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
    frame = _of_round(judgment_frame(study, protocol=protocol) if frame is None else frame, round)
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
    return list(
        Protocol.objects.filter(pk__in=used).order_by("number").values_list("number", flat=True)
    )


def protocol_reports(study: Study) -> list[tuple[int, AgreementReport]]:
    """Agreement under each version of the protocol by its number, a report a round; none where all
    was judged under one."""
    submissions = Submission.objects.of(study).accepted().exclude(protocol=None).order_by()
    used = set(submissions.values_list("protocol", "round"))
    versions = Protocol.objects.filter(pk__in={pk for pk, _ in used}).in_bulk()
    if len(versions) < 2:
        return []
    return [
        (number, study_agreement(study, round=round, protocol=versions[pk]))
        for number, round, pk in sorted((versions[pk].number, round, pk) for pk, round in used)
    ]


def _of_round(frame: pd.DataFrame, round: int) -> pd.DataFrame:
    return frame[frame["round"] == round]


def _by_condition(questions: list[Question], frame: pd.DataFrame) -> Iterator[QuestionAgreement]:
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
    judged = judged_units(question, part)
    is_ticked = question.study.kind == Study.Kind.ALTERNATIVES and len(question.categories) == 2
    return judged.coefficients() + ((judged.set_alpha(),) if is_ticked else ())


def _pairs(questions: list[Question], frame: pd.DataFrame) -> pd.DataFrame:
    tables = [(question.name, judged_units(question, frame).pairs()) for question in questions]
    named = [table.assign(question=name) for name, table in tables if len(table.columns)]
    if not named:
        return pd.DataFrame()
    pairs = pd.concat(named, ignore_index=True)
    return pairs[["question", *pairs.columns.drop("question")]]


By = Literal["same annotator", "another annotator"]


@dataclass(frozen=True)
class RoundAgreement:
    question: str
    level: str
    earlier: int
    later: int
    by: By
    n_pairs: int
    coefficients: tuple[Agreement, ...]

    def coefficient_records(self) -> list[dict[str, Any]]:
        named = {
            "question": self.question,
            "level": self.level,
            "earlier": self.earlier,
            "later": self.later,
            "by": self.by,
            "n_pairs": self.n_pairs,
        }
        return [named | plain_values(asdict(coefficient)) for coefficient in self.coefficients]


def round_agreement(study: Study, *, frame: pd.DataFrame | None = None) -> list[RoundAgreement]:
    """Every two rounds of a study set against each other, where they judged the same.

    A candidate that the same annotator judged again is distinguished from one that another did.
    """
    rounds = list(combinations(rounds_of(study), 2))
    if not rounds:
        return []
    frame = judgment_frame(study) if frame is None else frame
    return [
        row
        for question in study.questions.all()
        for earlier, later in rounds
        for row in _across(question, frame[frame["question"] == question.name], earlier, later)
    ]


def _across(
    question: Question, judgments: pd.DataFrame, earlier: int, later: int
) -> Iterator[RoundAgreement]:
    pairs = _crossed(judgments, earlier, later)
    warnings = _sampling_warnings(question, judgments, earlier, later)
    same = pairs["annotator_earlier"] == pairs["annotator_later"]
    parts: list[tuple[By, pd.DataFrame]] = [
        ("same annotator", pairs[same]),
        ("another annotator", pairs[~same]),
    ]
    for by, part in parts:
        if len(part):
            coefficients = tuple(
                replace(one, warnings=one.warnings + warnings) if one.is_defined else one
                for one in _crossed_coefficients(question, part)
            )
            yield RoundAgreement(
                question.name, question.level, earlier, later, by, len(part), coefficients
            )


def _sampling_warnings(
    question: Question, judgments: pd.DataFrame, earlier: int, later: int
) -> tuple[CodedText, ...]:
    first, second = (judgments[judgments["round"] == round] for round in (earlier, later))
    units, again = (
        pd.MultiIndex.from_frame(part[["item", "candidate"]].astype(str))
        for part in (first, second)
    )
    is_again = units.isin(again)
    if is_again.all():
        return ()
    codes, values = pd.factorize(first["value"], sort=True)
    columns = label_columns(codes, list(values), has_order=question.level != "nominal")
    sampling = compare_labeled(is_again, columns, cluster=pd.factorize(first["item"])[0])
    if sampling.is_random:
        return ()
    return (
        CodedText(
            f"what round {later} judged again differs from the rest of round {earlier} in "
            f"{sampling.column} ({sampling.p_text}), unlike a random sample: agreement may be "
            "different on the rest",
            code="overlap_not_random",
        ),
    )


def _crossed(judgments: pd.DataFrame, earlier: int, later: int) -> pd.DataFrame:
    columns = ["item", "candidate", "annotator", "value"]
    texts = dict.fromkeys(columns[:3], str)
    first, second = (
        judgments.loc[judgments["round"] == round, columns].astype(texts)
        for round in (earlier, later)
    )
    return first.merge(second, on=["item", "candidate"], suffixes=("_earlier", "_later"))


def _crossed_coefficients(question: Question, pairs: pd.DataFrame) -> tuple[Agreement, ...]:
    values = pd.concat([pairs["value_earlier"], pairs["value_later"]], ignore_index=True)
    units = list(range(len(pairs)))
    level: Level = question.level  # type: ignore[assignment]
    return coefficients_at_level(
        units * 2,
        ["earlier"] * len(pairs) + ["later"] * len(pairs),
        values,
        level=level,
        clusters=list(pairs["item"]) * 2,
        categories=categories_of(question, values),
    )
