"""What an answer says under each question of a protocol, as judgments and as words.

Whatever the page would not have let a worker send is refused here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from typing import Any

from annotation.models import Candidate, PlacedCheck, Question
from annotation.protocols.conditions import value_condition
from annotation.protocols.records import AskedQuestion, ProtocolDocument
from annotation.protocols.scales import part_name, range_of
from hits.asked_questions import ALL, scope_of
from hits.comparisons import compared_values
from hits.exceptions import AnswerUnreadable

LONGEST_SECONDS = 366 * 24 * 3600
LONGEST_TEXT = 20_000
CHOOSING = ("selection", "preference")
COUNTED = ("likert", "category", "yes_no", "selection")

Row = Mapping[str, Any]
ShownCandidate = Candidate | PlacedCheck
"""What stands on a page to be judged: of the study, or to check with."""
Key = tuple[str | None, str]
"""Whom an answer is about, by blind key, or None for the item; and the question's name."""


@dataclass(frozen=True)
class JudgmentValue:
    """One value under one question; `position` is its candidate's place as shown, from 0."""

    candidate: ShownCandidate | None
    question: Question
    value: float
    position: int | None
    seconds: float | None


@dataclass(frozen=True)
class WrittenText:
    """Words under one question."""

    candidate: ShownCandidate | None
    question: str
    text: str
    seconds: float | None = None
    pasted: bool = False


@dataclass
class AnswerValues:
    """All that is said; `values` is what conditions look at."""

    judged: list[JudgmentValue] = field(default_factory=list)
    written: list[WrittenText] = field(default_factory=list)
    values: dict[Key, float | tuple[float, ...]] = field(default_factory=dict)

    def chosen(self, document: ProtocolDocument) -> list[tuple[str, ShownCandidate]]:
        """Ticked or preferred candidates, with the question's name: those that have a reason."""
        names = {asked.name for asked in document.questions if asked.kind in CHOOSING}
        return [
            (each.question.name, each.candidate)
            for each in self.judged
            if each.candidate and each.value == 1 and each.question.name in names
        ]


def read_answered(
    rows: object,
    document: ProtocolDocument,
    columns: Mapping[str, Question],
    candidates: Sequence[ShownCandidate],
) -> AnswerValues:
    """The answers to every question that appeared, for the candidates as shown."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnswerUnreadable(f"judgments is {short_repr(rows)}, not a list of objects")
    by_key = _by_key(rows)
    reader = _Reader(document, columns, candidates)
    for asked in document.questions:
        for candidate in candidates if scope_of(asked) == "candidate" else [None]:
            reader.read(asked, candidate, by_key.pop((_key(candidate), asked.name), {}))
    if by_key:
        raise AnswerUnreadable(f"a judgment of {short_repr(next(iter(by_key)))} was not asked for")
    answered = reader.answered
    answered.judged.sort(key=lambda each: -1 if each.position is None else each.position)
    return answered


def _by_key(rows: list[dict[str, Any]]) -> dict[Key, Row]:
    by_key: dict[Key, Row] = {}
    for row in rows:
        candidate, question = row.get("candidate"), row.get("question")
        if not isinstance(candidate, str | None) or not isinstance(question, str):
            raise AnswerUnreadable(f"a judgment lacks its candidate or question: {short_repr(row)}")
        if (candidate, question) in by_key:
            raise AnswerUnreadable(f"{short_repr((candidate, question))} is judged twice")
        by_key[candidate, question] = row
    return by_key


def _key(candidate: ShownCandidate | None) -> str | None:
    return None if candidate is None else candidate.blind_key


@dataclass
class _Reader:
    """Reads one question after the other, since some rest on the answers before them."""

    document: ProtocolDocument
    columns: Mapping[str, Question]
    candidates: Sequence[ShownCandidate]
    answered: AnswerValues = field(default_factory=AnswerValues)

    def read(self, asked: AskedQuestion, candidate: ShownCandidate | None, row: Row) -> None:
        name = f"'{asked.name}'" + (f" of candidate '{candidate.blind_key}'" if candidate else "")
        value = row.get("value")
        if not self._appears(asked, candidate):
            if value is not None:
                raise AnswerUnreadable(f"{name} is answered, though it is not asked there")
            return
        if value is None or value == "":
            if asked.required:
                raise AnswerUnreadable(f"{name} is not judged")
            return
        if asked.options.is_text:
            self.answered.written.append(_written(asked, candidate, row, name))
            return
        self._judge(asked, candidate, row, name)
        if scope_of(asked) != ALL:
            plain = tuple(value) if asked.kind == "categories" else float(value)
            self.answered.values[_key(candidate), asked.name] = plain

    def _appears(self, asked: AskedQuestion, candidate: ShownCandidate | None) -> bool:
        before = self.document.question(asked.when.question) if asked.when else None
        if before is None:
            return True
        about = _key(candidate) if scope_of(before) == "candidate" else None
        value = self.answered.values.get((about, before.name))
        return value_condition(asked, before).holds(value)

    def _judge(
        self, asked: AskedQuestion, candidate: ShownCandidate | None, row: Row, name: str
    ) -> None:
        """A judgment in each column that the answer has a value for."""
        value, seconds = row["value"], read_seconds(row, "seconds")
        if scope_of(asked) == ALL:
            compared = compared_values(asked, value, [each.blind_key for each in self.candidates])
            for each in self.candidates:
                self._add(asked.name, each, compared[each.blind_key], seconds)
        elif asked.kind == "categories":
            indexes = _indexes(asked, value, name)
            for index, label in enumerate(asked.categories):
                self._add(part_name(asked, label), candidate, float(index in indexes), seconds)
        else:
            self._add(asked.name, candidate, _number(asked, value, name), seconds)

    def _add(
        self, column: str, candidate: ShownCandidate | None, value: float, seconds: float | None
    ) -> None:
        question = self.columns.get(column)
        if question is None:
            raise AnswerUnreadable(f"the study has no question '{column}'")
        position = None if candidate is None else self.candidates.index(candidate)
        row = JudgmentValue(candidate, question, value, position, seconds)
        self.answered.judged.append(row)


def _indexes(asked: AskedQuestion, value: Any, name: str) -> list[int]:
    n = len(asked.categories)
    is_list = isinstance(value, list) and all(type(each) is int for each in value)
    if not is_list or len(set(value)) < len(value) or not set(value) <= set(range(n)):
        raise AnswerUnreadable(f"{name} is {short_repr(value)}, not categories from 0 to {n - 1}")
    least, most = asked.least or 0, asked.most or n
    if not least <= len(value) <= most:
        raise AnswerUnreadable(f"{name} names {len(value)} categories, not {least} to {most}")
    return list(value)


def _number(asked: AskedQuestion, value: Any, name: str) -> float:
    low, high = range_of(asked)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AnswerUnreadable(f"{name} is {short_repr(value)}, not a number")
    if not low <= value <= high:  # NaN as well
        raise AnswerUnreadable(
            f"{name} is {short_repr(value)}, outside its scale from {low:g} to {high:g}"
        )
    if (asked.kind in COUNTED or asked.whole) and not float(value).is_integer():
        raise AnswerUnreadable(f"{name} is {short_repr(value)}, between two choices")
    return float(value)


def _written(
    asked: AskedQuestion, candidate: ShownCandidate | None, row: Row, name: str
) -> WrittenText:
    text = read_text(row, "value").strip()
    least, most = asked.least_length or 0, asked.most_length or LONGEST_TEXT
    if not least <= len(text) <= most:
        raise AnswerUnreadable(f"{name} has {len(text)} characters, not {least} to {most}")
    seconds, pasted = read_seconds(row, "seconds"), read_boolean(row, "pasted")
    return WrittenText(candidate, asked.name, text, seconds, pasted)


def read_text(answer: Row, name: str) -> str:
    """The text under the name, less what no database can keep: NUL and lone surrogates."""
    text = answer.get(name, "")
    if not isinstance(text, str):
        raise AnswerUnreadable(f"{name} is {short_repr(text)}, not a text")
    mended = text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
    return mended.decode("utf-16-le", "replace")


def read_seconds(answer: Row, name: str) -> float | None:
    seconds = answer.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise AnswerUnreadable(f"{name} is {short_repr(seconds)}, not a number")
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise AnswerUnreadable(f"{name} is {short_repr(seconds)}, no time anybody worked")
    return float(seconds)


def read_boolean(answer: Row, name: str) -> bool:
    value = answer.get(name, False)
    if not isinstance(value, bool):
        raise AnswerUnreadable(f"{name} is {short_repr(value)}, neither true nor false")
    return value
