"""Qualification tests: the answers that can be chosen, which of them are right, and what is wrong
with a test. An AnswerKey grades choices alone, so a line is asked in eleven points."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from annotation.protocols.faults import Fault, FaultPath
from annotation.protocols.records import (
    GradedCase,
    ProtocolDocument,
    ProtocolQuestion,
    QualificationTest,
)
from annotation.protocols.scales import range_of, scale_problem
from error_codes import CodedText

TESTED_KINDS = ("line", "likert", "category", "yes_no", "selection")
NOMINAL_KINDS = ("category", "yes_no", "selection")
LINE_STEPS = 10


def only_right() -> CodedText:
    """The problem of a tolerance that takes every answer for right."""
    return CodedText(_("has only right answers: lower tolerance_percent."), "only_right")


def choosable_values(question: ProtocolQuestion) -> list[float]:
    low, high = range_of(question)
    if question.kind == "line":
        return [low + (high - low) * step / LINE_STEPS for step in range(LINE_STEPS + 1)]
    if question.kind in ("likert", "category"):
        return [low + step for step in range(len(question.points or question.categories))]
    return [low, high]


def right_values(question: ProtocolQuestion, value: float, tolerance_percent: int) -> list[float]:
    """Those of them that are right where this value is; of categories and ticks only itself."""
    low, high = range_of(question)
    share = 0 if question.kind in NOMINAL_KINDS else tolerance_percent / 100
    # A little more, for decimal fractions that no float is.
    reach = share * (high - low) * (1 + 1e-9)
    return [each for each in choosable_values(question) if abs(each - value) <= reach]


def graded_answers(
    document: ProtocolDocument, case: GradedCase
) -> list[tuple[ProtocolQuestion, float]]:
    """The questions that a case asks, in the protocol's order, with their right values."""
    return [
        (question, case.scores[question.name])
        for question in document.questions
        if question.name in case.scores
    ]


def qualification_test_faults(document: ProtocolDocument) -> Iterator[Fault]:
    tests = document.qualifications.tests
    for index, test in enumerate(tests):
        path: FaultPath = ("qualifications", "tests", index)
        if test.title in [each.title for each in tests[:index]]:
            text = _("'%(title)s' is the title of another test already.")
            yield Fault((*path, "title"), text % {"title": test.title}, code="repeated_title")
        if not test.cases:
            problem = _("is missing: at least one case with its right answers.")
            yield Fault((*path, "cases"), problem, code="missing")
        for number, case in enumerate(test.cases):
            yield from _case_faults(document, test, case, (*path, "cases", number, "scores"))


def _case_faults(
    document: ProtocolDocument, test: QualificationTest, case: GradedCase, path: FaultPath
) -> Iterator[Fault]:
    if not case.scores:
        yield Fault(
            path, _("is missing: the right value under at least one question."), code="missing"
        )
    for name, value in case.scores.items():
        question = document.question(name)
        if problem := _no_test(question, case) or _no_answer(question, value, test):
            yield Fault((*path, name), problem)


def _no_test(question: ProtocolQuestion | None, case: GradedCase) -> CodedText | None:
    if question is None:
        return CodedText(_("is no question of this protocol."), "unknown_question")
    if question.kind not in TESTED_KINDS:
        text = _("cannot be tested: an answer key grades questions of the kinds %(kinds)s.")
        return CodedText(text % {"kinds": ", ".join(TESTED_KINDS)}, "not_tested")
    if "{condition}" in question.wording:
        text = _("cannot be tested: its wording names {condition}, and a test has no items.")
        return CodedText(text, "names_condition")
    if "{reference}" in question.wording and not case.reference.strip():
        text = _("cannot be asked of this case: its wording names {reference}. Give the case one.")
        return CodedText(text, "names_reference")
    return None


def _no_answer(
    question: ProtocolQuestion | None, value: float, test: QualificationTest
) -> CodedText | None:
    if question is None:
        return None
    if problem := scale_problem(question, value):
        return problem
    right = right_values(question, value, test.tolerance_percent)
    if not right:
        choices = ", ".join(f"{each:g}" for each in choosable_values(question))
        text = _("is %(value)g, near none of the answers that can be chosen: %(choices)s.")
        return CodedText(text % {"value": value, "choices": choices}, "near_no_answer")
    if len(right) == len(choosable_values(question)):
        return only_right()
    return None
