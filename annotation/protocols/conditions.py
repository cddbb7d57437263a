"""On which answers a question appears, as values of the question before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.protocols.faults import Fault, FaultPath
from annotation.protocols.kinds import ITEM
from annotation.protocols.records import ProtocolQuestion
from annotation.protocols.scales import range_of

OF_NUMBERS = ("line", "number", "likert")
OF_LABELS = ("likert", "category", "categories", "yes_no", "selection")


@dataclass(frozen=True)
class ValueCondition:
    """As the page and the reader of answers apply it: to the value of the question before."""

    question: str
    any_of: tuple[float, ...] = ()
    below: float | None = None
    above: float | None = None

    def holds(self, value: float | Sequence[float] | None) -> bool:
        """Of any of several categories, one is enough. What was not answered meets none."""
        if value is None:
            return False
        values = value if isinstance(value, Sequence) else (value,)
        return any(self._holds(each) for each in values)

    def _holds(self, value: float) -> bool:
        is_less = self.below is not None and value < self.below
        is_more = self.above is not None and value > self.above
        return value in self.any_of or is_less or is_more


def value_condition(question: ProtocolQuestion, before: ProtocolQuestion) -> ValueCondition:
    labels = condition_labels(before)
    low = range_of(before)[0] if before.kind == "likert" else 0
    when = question.when
    assert when is not None
    values = tuple(low + labels.index(label) for label in when.any_of if label in labels)
    return ValueCondition(before.name, values, when.below, when.above)


def condition_labels(before: ProtocolQuestion) -> tuple[str, ...]:
    """What its answers are called in a condition, from the first value on."""
    if before.kind in ("yes_no", "selection"):
        return ("no", "yes")
    return before.points if before.kind == "likert" else before.categories


def condition_faults(questions: Sequence[ProtocolQuestion], index: int) -> Iterator[Fault]:
    """What is wrong with the condition of the question at this index, if it has one."""
    question = questions[index]
    if question.when is None:
        return
    path: FaultPath = ("questions", index, "when")
    before = next((each for each in questions[:index] if each.name == question.when.question), None)
    if before is None:
        text = _("there is no question '%(name)s' before this one.")
        yield Fault(
            (*path, "question"), text % {"name": question.when.question}, code="unknown_question"
        )
        return
    yield from _scope_faults(question, before, path)
    yield from _value_faults(question, before, path)


def _scope_faults(
    question: ProtocolQuestion, before: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    is_of_item = question.options.is_comparison or question.about == ITEM
    if is_of_item and before.about != ITEM:
        text = _("is asked once, but '%(name)s' has an answer for each candidate.")
        yield Fault((*path, "question"), text % {"name": before.name}, code="asked_once")
    if before.kind not in {*OF_NUMBERS, *OF_LABELS}:
        text = _("'%(name)s' has no answers that a condition can name.")
        yield Fault((*path, "question"), text % {"name": before.name}, code="no_answers")


def _value_faults(
    question: ProtocolQuestion, before: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    when, labels = question.when, condition_labels(before)
    assert when is not None
    for position, label in enumerate(when.any_of):
        if label not in labels:
            known = ", ".join(labels) or _("none; use below or above")
            text = _("'%(label)s' is not one of its answers. Answers: %(known)s.")
            values = {"label": label, "known": known}
            yield Fault((*path, "any_of", position), text % values, code="unknown_answer")
    for name in ("below", "above"):
        if getattr(when, name) is not None and before.kind not in OF_NUMBERS:
            text = _("'%(name)s' has no numbers; use any_of.")
            yield Fault((*path, name), text % {"name": before.name}, code="no_numbers")
    if not when.any_of and when.below is None and when.above is None:
        yield Fault(path, _("says no answer: give any_of, below or above."), code="no_answer")
