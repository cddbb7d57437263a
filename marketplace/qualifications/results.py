"""What came of a graded qualification test, for the worker who took it.

An answer key grades; whether a grade is enough is for the HITs that ask for the qualification. So
a pass mark is known only while its requester has such HITs on offer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from error_codes import CodedText
from marketplace.documents.answers import (
    KeyQuestion,
    parse_answer_key,
    read_explanations,
    read_given_answers,
)
from marketplace.documents.questions import FormQuestion, parse_question_form
from marketplace.models import (
    Hit,
    QualificationRequest,
    QualificationRequirement,
    QualificationType,
    WorkerAccount,
)
from marketplace.qualifications.eligibility import PHRASES
from marketplace.qualifications.system import meets

Comparator = QualificationRequirement.Comparator
# Those that a greater grade may meet where a lesser one does not.
PASSING = (
    *(Comparator.GREATER_THAN_OR_EQUAL_TO, Comparator.GREATER_THAN),
    *(Comparator.EQUAL_TO, Comparator.IN),
)


@dataclass(frozen=True)
class PassMark:
    comparator: str
    values: tuple[int, ...]

    @property
    def phrase(self) -> str:
        return str(PHRASES[self.comparator]).format(", ".join(map(str, self.values)))

    def is_reached_by(self, grade: int) -> bool:
        return meets(self.comparator, is_held=True, value=grade, required=self.values)


@dataclass(frozen=True)
class GradedTest:
    grade: int
    marks: tuple[PassMark, ...]
    n_attempts: int
    answers: list[dict[str, Any]]

    @property
    def phrase(self) -> str:
        return "; ".join(mark.phrase for mark in self.marks)

    @property
    def is_passed(self) -> bool | None:
        """Whether any work on offer accepts the grade; None if no pass mark is known."""
        if not self.marks:
            return None
        return any(mark.is_reached_by(self.grade) for mark in self.marks)


def pass_marks(qualification_type: QualificationType, *, now: datetime) -> tuple[PassMark, ...]:
    pairs = (
        QualificationRequirement.objects.filter(
            qualification_type=qualification_type,
            comparator__in=PASSING,
            hit_type__requester=qualification_type.requester_id,
            hit_type__in=Hit.objects.filter(
                status=Hit.Status.ASSIGNABLE, expiration__gt=now
            ).values("hit_type"),
        )
        .order_by()
        .values_list("comparator", "integer_values")
    )
    marks = {PassMark(comparator, tuple(values)) for comparator, values in pairs if values}
    return tuple(sorted(marks, key=lambda mark: (min(mark.values), mark.comparator)))


def is_too_low(marks: Iterable[PassMark], value: int | None) -> bool:
    marks = tuple(marks)
    return bool(marks and value is not None) and not any(
        mark.is_reached_by(value or 0) for mark in marks
    )


def value_sentence(
    qualification_type: QualificationType, value: int | None, at: datetime
) -> CodedText:
    """A worker's value in words: it counts as the qualification only if it is enough for work on
    offer."""
    marks = pass_marks(qualification_type, now=at)
    names = {"name": qualification_type.name, "value": value}
    if is_too_low(marks, value):
        return CodedText(
            _(
                "In the qualification “%(name)s” you have the value %(value)s. Work on offer asks "
                "for %(mark)s."
            )
            % {**names, "mark": "; ".join(mark.phrase for mark in marks)},
            "value_too_low",
        )
    return CodedText(
        _("You now have the qualification “%(name)s”, with the value %(value)s.") % names, "granted"
    )


def latest_result(
    worker: WorkerAccount, qualification_type: QualificationType, *, now: datetime
) -> GradedTest | None:
    mine = QualificationRequest.objects.filter(worker=worker, qualification_type=qualification_type)
    graded = mine.filter(status=QualificationRequest.Status.GRANTED).exclude(answer_key="")
    last = graded.order_by("-pk").first()
    if last is None:
        return None
    result = GradedTest(
        grade=parse_answer_key(last.answer_key).grade(read_given_answers(last.answer)),
        marks=pass_marks(qualification_type, now=now),
        n_attempts=mine.exclude(test="").filter(pk__lte=last.pk).count(),
        answers=_explained(last),
    )
    # The right answers of a failed test would be the answers of its next attempt.
    can_repeat = qualification_type.retry_delay_seconds is not None
    return replace(result, answers=[]) if can_repeat and not result.is_passed else result


def _explained(request: QualificationRequest) -> list[dict[str, Any]]:
    explanations = read_explanations(request.answer_key)
    if not explanations:
        return []
    keys = {each.identifier: each for each in parse_answer_key(request.answer_key).questions}
    answers = read_given_answers(request.answer)
    return [
        {
            "question": question,
            "chosen": _chosen(question, answers.get(question.identifier, ())),
            "is_right": _is_right(keys[question.identifier], answers.get(question.identifier, ())),
            "explanation": explanations[question.identifier],
        }
        for question in parse_question_form(request.test).questions
        if question.identifier in explanations and question.identifier in keys
    ]


def _chosen(question: FormQuestion, selections: Sequence[str]) -> str:
    texts = {
        option.identifier: option.text
        for option in (question.selection.options if question.selection else ())
    }
    return ", ".join(texts.get(each, each) for each in selections) or _("no answer")


def _is_right(key: KeyQuestion, selections: Sequence[str]) -> bool:
    best = max(key.default_score, *(option.score for option in key.options))
    return best > Decimal(0) and key.score(frozenset(selections)) == best
