"""A worker's answer as it came back, read into values that can be trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from annotation.models import Candidate, Item, Question, Study
from hits.exceptions import AnswerUnreadable
from hits.questions import judged_questions, scale_of

LONGEST_SECONDS = 366 * 24 * 3600


@dataclass(frozen=True)
class Judged:
    """One candidate's value under one question; `position` is its place as shown, from 0."""

    candidate: Candidate
    question: Question
    value: float
    position: int
    seconds: float | None


@dataclass(frozen=True)
class Answer:
    """All that one worker said about one item; `order` holds candidate keys as shown."""

    order: tuple[str, ...]
    judgments: tuple[Judged, ...]
    justification: str
    comment: str
    active_seconds: float | None
    pasted: bool


def read_answers_xml(xml: str) -> dict[str, str]:
    """The free text given under each identifier of a QuestionFormAnswers document."""
    root = _parsed(xml)
    answers: dict[str, str] = {}
    for answer in root:
        parts = {_local(child): child.text or "" for child in answer}
        name = parts.get("QuestionIdentifier", "")
        if _local(answer) != "Answer" or not name:
            raise AnswerUnreadable("the XML holds something that is not an answer with its name")
        if name in answers:
            raise AnswerUnreadable(f"the XML answers {shown(name)} twice")
        answers[name] = parts.get("FreeText", "")
    return answers


def _parsed(xml: str) -> Element:
    try:
        root: Element = ElementTree.fromstring(xml, forbid_dtd=True)
    except DefusedXmlException as problem:
        raise AnswerUnreadable(f"the XML declares what an answer never needs: {problem}") from None
    except (ParseError, ValueError) as problem:
        raise AnswerUnreadable(f"the answer is not XML: {shown(str(problem))}") from None
    if _local(root) != "QuestionFormAnswers":
        raise AnswerUnreadable(f"the XML is a {shown(_local(root))}, not a QuestionFormAnswers")
    return root


def _local(element: Element) -> str:
    return str(element.tag).rsplit("}", 1)[-1]


def read_answer(xml: str, item: Item) -> Answer:
    """The answer to the item's page, checked whole, or AnswerUnreadable with what is wrong."""
    fields = read_answers_xml(xml)
    if "answer" not in fields:
        raise AnswerUnreadable(f"there is no field 'answer' among {shown(sorted(fields))}")
    given = _json_object(fields["answer"])
    _refuse_another_page(given, item)
    candidates = {candidate.blind_key: candidate for candidate in item.candidates.all()}
    order = _order(given, candidates)
    return Answer(
        order=tuple(candidates[key].key for key in order),
        judgments=_judgments(given, item.study, [candidates[key] for key in order]),
        justification=_justification(given, item.study),
        comment=_text(given, "comment"),
        active_seconds=_seconds(given, "active_seconds"),
        pasted=_flag(given, "pasted"),
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise AnswerUnreadable(f"'answer' is not JSON: {shown(str(problem))}") from None
    if not isinstance(given, dict):
        raise AnswerUnreadable(f"'answer' is {shown(given)}, not a JSON object")
    return given


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _refuse_another_page(given: dict[str, Any], item: Item) -> None:
    version, answered = given.get("version"), given.get("item")
    if version != 1 or isinstance(version, bool):
        raise AnswerUnreadable(f"version is {shown(version)}; only 1 is known")
    if answered != str(item.pk):
        raise AnswerUnreadable(f"the answer is about item {shown(answered)}, not '{item.pk}'")


def _order(given: dict[str, Any], candidates: dict[str, Candidate]) -> list[str]:
    order = given.get("order")
    if not isinstance(order, list) or not all(isinstance(key, str) for key in order):
        raise AnswerUnreadable(f"order is {shown(order)}, not a list of candidates")
    if len(order) != len(candidates) or set(order) != set(candidates):
        raise AnswerUnreadable(
            f"order must name each of the item's {len(candidates)} candidates once; "
            f"it is {shown(order)}"
        )
    return order


def _judgments(given: dict[str, Any], study: Study, shown_: list[Candidate]) -> tuple[Judged, ...]:
    """One for each candidate and question, in the order they were shown."""
    rows = given.get("judgments")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnswerUnreadable(f"judgments is {shown(rows)}, not a list of objects")
    questions = judged_questions(study)
    by_pair = _by_pair(rows)
    pairs = [(place, each, asked) for place, each in enumerate(shown_) for asked in questions]
    judged = tuple(_judged(by_pair, study, *pair) for pair in pairs)
    if by_pair:
        raise AnswerUnreadable(f"a judgment of {shown(next(iter(by_pair)))} was not asked for")
    return judged


def _by_pair(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    by_pair: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        candidate, question = row.get("candidate"), row.get("question")
        if not isinstance(candidate, str) or not isinstance(question, str):
            raise AnswerUnreadable(f"a judgment lacks its candidate or question: {shown(row)}")
        if (candidate, question) in by_pair:
            raise AnswerUnreadable(f"{shown((candidate, question))} is judged twice")
        by_pair[candidate, question] = row
    return by_pair


def _judged(
    by_pair: dict[tuple[str, str], dict[str, Any]],
    study: Study,
    position: int,
    candidate: Candidate,
    question: Question,
) -> Judged:
    row = by_pair.pop((candidate.blind_key, question.name), None)
    if row is None:
        raise AnswerUnreadable(
            f"'{question.name}' of candidate '{candidate.blind_key}' is not judged"
        )
    value = _value(row.get("value"), question, study)
    return Judged(candidate, question, value, position, _seconds(row, "seconds"))


def _value(value: Any, question: Question, study: Study) -> float:
    low, high = scale_of(question, study)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AnswerUnreadable(f"'{question.name}' is {shown(value)}, not a number")
    if not low <= value <= high:  # NaN as well
        raise AnswerUnreadable(
            f"'{question.name}' is {shown(value)}, outside its scale from {low} to {high}"
        )
    counted = question.categories or study.kind == Study.Kind.ALTERNATIVES
    if counted and not float(value).is_integer():
        raise AnswerUnreadable(f"'{question.name}' is {shown(value)}, between two choices")
    return float(value)


def _justification(given: dict[str, Any], study: Study) -> str:
    text, least = _text(given, "justification"), study.justification_min_length
    if len(text.strip()) < least:
        raise AnswerUnreadable(
            f"the justification has {len(text.strip())} characters; the study asks for {least}"
        )
    return text


def _text(given: dict[str, Any], name: str) -> str:
    """The text under the name, less what no database can keep: NUL and lone surrogates."""
    text = given.get(name, "")
    if not isinstance(text, str):
        raise AnswerUnreadable(f"{name} is {shown(text)}, not a text")
    mended = text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
    return mended.decode("utf-16-le", "replace")


def _seconds(given: dict[str, Any], name: str) -> float | None:
    seconds = given.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise AnswerUnreadable(f"{name} is {shown(seconds)}, not a number")
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise AnswerUnreadable(f"{name} is {shown(seconds)}, no time anybody worked")
    return float(seconds)


def _flag(given: dict[str, Any], name: str) -> bool:
    flag = given.get(name, False)
    if not isinstance(flag, bool):
        raise AnswerUnreadable(f"{name} is {shown(flag)}, neither true nor false")
    return flag
