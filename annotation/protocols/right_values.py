"""Right values as people write them: the label of an answer instead of its number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.protocols.conditions import condition_labels
from annotation.protocols.faults import Fault, FaultPath
from annotation.protocols.records import ProtocolQuestion
from annotation.protocols.scales import range_of

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
    """The plain values with numbers for labels; what is no label stays."""
    copied = deepcopy(dict(values))
    labels = {question.name: labelled_values(question) for question in questions}
    for one in right_values_of(copied):
        if isinstance(one.value, str):
            one.holder[one.key] = labels.get(one.question, {}).get(one.value, one.value)
    return copied


def with_labels(values: Mapping[str, Any], questions: Sequence[ProtocolQuestion]) -> dict[str, Any]:
    """The plain values with labels where a number alone would say little."""
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
        if known:
            text = _("'%(word)s' is not one of the answers. Answers: %(known)s.")
        else:
            text = _("is '%(word)s', where a number belongs.")
        code = "unknown_answer" if known else "not_number"
        yield Fault(one.path, text % {"word": one.value[:60], "known": known}, code=code)


def right_values_of(values: dict[str, Any]) -> Iterator[RightValue]:
    """All that a document says is right: of examples, tests, practice and checks."""
    for index, example in _records(values, "examples"):
        yield from _scores(example, ("examples", index))
    qualifications = values.get("qualifications")
    for index, test in _records(qualifications, "tests"):
        for number, case in _records(test, "cases"):
            yield from _scores(case, ("qualifications", "tests", index, "cases", number))
    yield from _practice_values(qualifications)
    first = next((each.get("name") for _n, each in _records(values, "questions")), None)
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
