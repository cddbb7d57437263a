from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.protocols.faults import Fault, FaultPath, broken_rules
from annotation.protocols.fields import ITEM, KINDS
from annotation.protocols.records import ProtocolQuestion
from error_codes import CodedText

LINE = (0.0, 100.0)
# A candidate's value in a comparison: the share of the others it was placed above, ties as half.
COMPARED = (0.0, 1.0)


@dataclass(frozen=True)
class Scale:
    name: str
    level: str
    scale_min: float
    scale_max: float
    low_label: str = ""
    high_label: str = ""
    categories: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """What may not change once there are judgments: wording and labels of ends may."""
        if self.categories:
            return self.level, self.categories
        return self.level, self.scale_min, self.scale_max


def scales_of(question: ProtocolQuestion) -> tuple[Scale, ...]:
    """The columns of a question: none for a text or an attention check, whose answers are not
    judgments; of any of several categories one each, since each is said or not."""
    if question.options.is_text or question.check is not None:
        return ()
    if question.kind == "categories":
        return tuple(
            Scale(part_name(question, label), "nominal", 0, 1, categories=("no", "yes"))
            for label in question.categories
        )
    return (_scale(question),)


def part_name(question: ProtocolQuestion, category: str) -> str:
    return f"{question.name}:{category}"


def range_of(question: ProtocolQuestion) -> tuple[float, float]:
    if question.kind == "likert":
        first = 1 if question.first is None else question.first
        return first, first + max(len(question.points) - 1, 1)
    if question.kind == "category":
        return 0, max(len(question.categories) - 1, 1)
    if question.kind in ("line", "number"):
        low, high = question.minimum, question.maximum
        return (LINE[0] if low is None else low), (LINE[1] if high is None else high)
    return COMPARED


def scale_problem(question: ProtocolQuestion, value: float) -> CodedText | None:
    low, high = range_of(question)
    if low <= value <= high:
        return None
    return CodedText(
        _("is %(value)g, outside the scale %(low)g to %(high)g.")
        % {"value": value, "low": low, "high": high},
        "off_scale",
    )


def _scale(question: ProtocolQuestion) -> Scale:
    low, high = range_of(question)
    low_label, high_label = question.low_label, question.high_label
    if question.kind == "likert" and question.points:
        low_label, high_label = question.points[0], question.points[-1]
    return Scale(
        name=question.name,
        level=question.level or question.options.level,
        scale_min=low,
        scale_max=high,
        low_label=low_label,
        high_label=high_label,
        categories={
            "category": question.categories,
            "yes_no": ("no", "yes"),
            "selection": ("no", "yes"),
        }.get(question.kind, ()),
    )


OF_NUMBERS = ("line", "number", "likert")
OF_LABELS = ("likert", "category", "categories", "yes_no", "selection")


@dataclass(frozen=True)
class ValueCondition:
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
    if before.kind in ("yes_no", "selection"):
        return ("no", "yes")
    return before.labels


def condition_faults(questions: Sequence[ProtocolQuestion], index: int) -> Iterator[Fault]:
    question = questions[index]
    if question.when is None:
        return
    path: FaultPath = ("questions", index, "when")
    before = next((each for each in questions[:index] if each.name == question.when.question), None)
    if before is None:
        yield Fault(
            (*path, "question"),
            _("there is no question '%(name)s' before this one.")
            % {"name": question.when.question},
            code="unknown_question",
        )
        return
    yield from _scope_faults(question, before, path)
    yield from _value_faults(question, before, path)


def _scope_faults(
    question: ProtocolQuestion, before: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    is_compared = question.kind in KINDS and question.options.is_comparison
    is_of_item = is_compared or question.about == ITEM
    yield from broken_rules(
        (*path, "question"),
        (
            is_of_item and before.about != ITEM,
            "",
            _("is asked once, but '%(name)s' has an answer for each candidate.")
            % {"name": before.name},
            "asked_once",
        ),
        (
            before.check is not None,
            "",
            _("'%(name)s' is an attention check, which is only on a share of the pages.")
            % {"name": before.name},
            "attention_check",
        ),
        (
            before.kind not in {*OF_NUMBERS, *OF_LABELS},
            "",
            _("'%(name)s' has no answers that a condition can name.") % {"name": before.name},
            "no_answers",
        ),
    )


def _value_faults(
    question: ProtocolQuestion, before: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    when, labels = question.when, condition_labels(before)
    assert when is not None
    known = ", ".join(labels) or _("none; use below or above")
    yield from broken_rules(
        (*path, "any_of"),
        *(
            (
                label not in labels,
                position,
                _("'%(label)s' is not one of its answers. Answers: %(known)s.")
                % {"label": label, "known": known},
                "unknown_answer",
            )
            for position, label in enumerate(when.any_of)
        ),
    )
    limits = (("below", when.below), ("above", when.above))
    has_numbers = before.kind in OF_NUMBERS
    no_numbers = _("'%(name)s' has no numbers. Choose among its answers.") % {"name": before.name}
    yield from broken_rules(
        path,
        *(
            (limit is not None and not has_numbers, name, no_numbers, "no_numbers")
            for name, limit in limits
        ),
        (
            not when.any_of and when.below is None and when.above is None,
            "",
            _("has no answer. Choose one, or enter a limit."),
            "no_answer",
        ),
    )


# Several categories have no single value, and of a point everybody knows the number.
LABELLED_KINDS = ("likert", "category", "yes_no", "selection")
WRITTEN_KINDS = ("category", "yes_no", "selection")


@dataclass(frozen=True)
class RightValue:
    holder: dict[str, Any]
    key: str
    question: str
    path: FaultPath

    @property
    def value(self) -> Any:
        return self.holder[self.key]


def labelled_values(question: ProtocolQuestion) -> dict[str, float]:
    if question.kind not in LABELLED_KINDS:
        return {}
    first = range_of(question)[0] if question.kind == "likert" else 0
    return {label: first + index for index, label in enumerate(condition_labels(question))}


def with_numbers(
    values: Mapping[str, Any], questions: Sequence[ProtocolQuestion]
) -> dict[str, Any]:
    copied = deepcopy(dict(values))
    labels = {question.name: labelled_values(question) for question in questions}
    for one in right_values_of(copied):
        if isinstance(one.value, str):
            one.holder[one.key] = labels.get(one.question, {}).get(one.value, one.value)
    return copied


def with_labels(values: Mapping[str, Any], questions: Sequence[ProtocolQuestion]) -> dict[str, Any]:
    copied = deepcopy(dict(values))
    labels = {
        question.name: {value: label for label, value in labelled_values(question).items()}
        for question in questions
        if question.kind in WRITTEN_KINDS
    }
    for one in right_values_of(copied):
        one.holder[one.key] = labels.get(one.question, {}).get(one.value, one.value)
    return copied


def label_faults(
    values: Mapping[str, Any], questions: Sequence[ProtocolQuestion]
) -> Iterator[Fault]:
    by_name = {question.name: question for question in questions}
    for one in right_values_of(with_numbers(values, questions)):
        if not isinstance(one.value, str) or one.question not in by_name:
            continue
        known = ", ".join(labelled_values(by_name[one.question]))
        words = {"word": one.value[:60], "known": known}
        unknown = _("'%(word)s' is not one of the answers. Answers: %(known)s.") % words
        yield from broken_rules(
            one.path,
            (known, "", unknown, "unknown_answer"),
            (not known, "", (_("is '%(word)s', where a number belongs.") % words), "not_number"),
        )


def right_values_of(values: dict[str, Any]) -> Iterator[RightValue]:
    for index, example in _records(values, "examples"):
        yield from _scores(example, ("examples", index))
    qualifications = values.get("qualifications")
    for index, test in _records(qualifications, "tests"):
        for number, case in _records(test, "cases"):
            yield from _scores(case, ("qualifications", "tests", index, "cases", number))
    yield from _practice_values(qualifications)
    questions = list(_records(values, "questions"))
    for index, question in questions:
        rule, name = question.get("check"), question.get("name")
        if isinstance(rule, dict) and "value" in rule and isinstance(name, str):
            yield RightValue(rule, "value", name, ("questions", index, "check", "value"))
    first = next((each.get("name") for _n, each in questions if not each.get("check")), None)
    for index, check in _records(values, "checks"):
        name = check.get("question") or first
        for number, case in _records(check, "cases"):
            if "value" in case and isinstance(name, str):
                path: FaultPath = ("checks", index, "cases", number, "value")
                yield RightValue(case, "value", name, path)


def _practice_values(qualifications: Any) -> Iterator[RightValue]:
    practice = qualifications.get("practice") if isinstance(qualifications, dict) else None
    for index, item in _records(practice, "items"):
        path: FaultPath = ("qualifications", "practice", "items", index)
        yield from _scores(item, path)
        for number, candidate in _records(item, "candidates"):
            yield from _scores(candidate, (*path, "candidates", number))


def _scores(record: Mapping[str, Any], path: FaultPath) -> Iterator[RightValue]:
    scores = record.get("scores")
    if not isinstance(scores, dict):
        return
    for name in scores:
        yield RightValue(scores, name, str(name), (*path, "scores", name))


def _records(holder: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    records = holder.get(name) if isinstance(holder, dict) else None
    for index, each in enumerate(records if isinstance(records, list) else ()):
        if isinstance(each, dict):
            yield index, each
