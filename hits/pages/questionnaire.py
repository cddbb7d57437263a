"""The form of a protocol: what was typed, as a document; and what changes its questions' order.

It is read leniently, as a draft is saved while it is typed: what is left empty is left out, and
`annotation/protocols/validation.py` says what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.fields import COMMON, KINDS
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from hits.pages.admission import (
    field_of_practice,
    field_of_test,
    number_of,
    practice_in,
    scores_of,
    tests_of,
)
from hits.pages.checks import check_field_of, checks_of, share_of

NUMBERS = ("minimum", "maximum")
WHOLE_NUMBERS = ("first", "least", "most", "least_length", "most_length")
BOXES = ("required", "show_number", "ties", "whole")
LINES = ("points", "categories")
OF_QUESTIONS = ("name", "kind", "wording", "title", "about", "level")
LABELS = ("low_label", "middle_label", "high_label", "yes_label", "no_label", "none_label")
MOST_QUESTIONS = 50
# Ends of the names of fields that hold a number.
NUMBER_FIELDS = (
    *(*NUMBERS, *WHOLE_NUMBERS, "when-below", "when-above", "seed", "share", "tolerance", "value"),
    *("_seconds", "_percent", "_hits", "_worker", "_per_item"),
    *("practice-reward_usd", "practice-attempts", "practice-most_workers"),
)

Data = Mapping[str, str]


def document_of(data: Data, before: ProtocolDocument) -> ProtocolDocument:
    """What the form says; what has no field in it stays as it was."""
    values = plain_document(before)
    values |= {name: data.get(name, "") for name in ("title", "language", "direction")}
    values["instructions"] = _text(data, "instructions")
    values["questions"] = [
        question_values(data, f"q{index}-") for index in range(_count(data, "n_questions"))
    ]
    values["examples"] = _examples(data)
    values["consent"] = _consent(data)
    values["comment"] = "comment" in data
    values["display"] = _boxes(data, "display", ("context", "reference", "condition")) | {
        "condition_label": data.get("display-condition_label", "").strip(),
        "candidates": data.get("display-candidates", before.display.candidates),
    }
    values["order"] = _group(data, "order", ("policy",), ("seed",))
    values["reason"] = _group(data, "reason", ("rule", "wording"), ("least_length",))
    values["time"] = _group(data, "time", (), ("estimate_seconds", "allowed_seconds"))
    values["qualifications"] = _qualifications(data, values.get("qualifications", {}))
    values["qualifications"] |= tests_of(data) | practice_in(data)
    values["completion"] = _completion(data, values.get("completion", {}))
    values |= checks_of(data, before)
    return read_document(values)


def question_values(data: Data, prefix: str) -> dict[str, Any]:
    """One question's fields, without the options of other kinds."""
    kind = data.get(f"{prefix}kind", "line")
    options = KINDS.get(kind, KINDS["line"])
    allowed = {*COMMON, *options.required, *options.optional}
    allowed |= set() if options.is_comparison else {"about"}
    values: dict[str, Any] = {}
    for name in (*OF_QUESTIONS, *LABELS, "tie_label", "unit"):
        values[name] = _text(data, f"{prefix}{name}")
    values |= {name: _number(data, f"{prefix}{name}") for name in NUMBERS}
    values |= {name: _integer(data, f"{prefix}{name}") for name in WHOLE_NUMBERS}
    values |= {name: f"{prefix}{name}" in data for name in BOXES}
    values |= {name: _answers(data, f"{prefix}{name}") for name in LINES}
    values["when"] = _condition(data, prefix)
    return {name: value for name, value in values.items() if name in allowed and value is not None}


def _condition(data: Data, prefix: str) -> dict[str, Any] | None:
    question = data.get(f"{prefix}when-question", "")
    if not question:
        return None
    limits = {name: _number(data, f"{prefix}when-{name}") for name in ("below", "above")}
    return {"question": question, "any_of": _lines(data, f"{prefix}when-any_of"), **limits}


def _examples(data: Data) -> list[dict[str, Any]]:
    examples = []
    for index in range(_count(data, "n_examples")):
        prefix = f"e{index}-"
        example: dict[str, Any] = {
            name: _text(data, f"{prefix}{name}")
            for name in ("verdict", "candidate", "context", "explanation")
        }
        example["scores"] = scores_of(data, f"{prefix}score-")
        if example["candidate"].strip():
            examples.append(example)
    return examples


def _consent(data: Data) -> dict[str, str] | None:
    consent = {name: _text(data, f"consent-{name}") for name in ("statement", "information")}
    return consent if any(each.strip() for each in consent.values()) else None


def _qualifications(data: Data, before: Mapping[str, Any]) -> dict[str, Any]:
    names = ("least_approval_percent", "least_approved_hits", "most_hits_per_worker")
    numbers = _group(data, "qualifications", (), (*names, "hold_after_hits"))
    lists = {
        name: _words(data, f"qualifications-{name}")
        for name in ("countries", "languages", "excluded_studies")
    }
    return {**before, **numbers, **lists}


def _completion(data: Data, before: Mapping[str, Any]) -> dict[str, Any]:
    share = share_of(
        data.get("completion-second_round_percent", ""), before.get("second_round_share", 0.0)
    )
    n_assignments = _integer(data, "completion-assignments_per_item") or 1
    return {
        **before,
        "assignments_per_item": n_assignments,
        "second_round_share": share,
    }


def _group(
    data: Data, name: str, texts: tuple[str, ...], numbers: tuple[str, ...]
) -> dict[str, Any]:
    values: dict[str, Any] = {each: _text(data, f"{name}-{each}").strip() for each in texts}
    read = {each: _integer(data, f"{name}-{each}") for each in numbers}
    return values | {each: value for each, value in read.items() if value is not None}


def _boxes(data: Data, name: str, boxes: tuple[str, ...]) -> dict[str, Any]:
    return {each: f"{name}-{each}" in data for each in boxes}


def _text(data: Data, name: str) -> str:
    """A browser sends line ends of its own."""
    return data.get(name, "").replace("\r\n", "\n")


def _answers(data: Data, name: str) -> list[str]:
    """A label per line. Empty lines stay, since each may be meant as an answer: a fault says so."""
    text = _text(data, name)
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text.strip() else []


def _lines(data: Data, name: str) -> list[str]:
    return [line.strip() for line in _text(data, name).split("\n") if line.strip()]


def _words(data: Data, name: str) -> list[str]:
    return _text(data, name).replace(",", " ").split()


def _number(data: Data, name: str) -> float | None:
    return number_of(data.get(name, ""))


def _integer(data: Data, name: str) -> int | None:
    number = _number(data, name)
    return None if number is None else int(number)


def unread_numbers(data: Data) -> list[str]:
    """Fields that hold something else where a number belongs."""
    return [
        name
        for name, text in data.items()
        if (name.endswith(NUMBER_FIELDS) or "-score-" in name)
        and text.strip()
        and number_of(text) is None
    ]


def _count(data: Data, name: str) -> int:
    return max(0, min(_integer(data, name) or 0, MOST_QUESTIONS))


# What the buttons of the form do to the questions.


def change_questions(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    """The document after an action such as `up:1`, and the question that it is about."""
    name, _colon, number = action.partition(":")
    index = int(number) if number.isdecimal() else len(document.questions)
    questions = list(document.questions)
    if name == "add" or index >= len(questions):
        name, index = "add", len(questions)
    match name:
        case "add":
            added = ProtocolQuestion(_free_name("question", questions), kind="line", wording="")
            questions.append(added)
        case "up" | "down":
            question = questions.pop(index)
            index = max(index - 1, 0) if name == "up" else min(index + 1, len(questions))
            questions.insert(index, question)
        case "copy":
            copied = questions[index]
            index += 1
            questions.insert(index, replace(copied, name=_free_name(copied.name, questions)))
        case "remove":
            del questions[index]
            index = max(index - 1, 0)
    return replace(document, questions=tuple(questions[:MOST_QUESTIONS])), index


def _free_name(name: str, questions: list[ProtocolQuestion]) -> str:
    taken = {each.name for each in questions}
    number = len(questions) + 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def field_of(path: tuple[str | int, ...]) -> str:
    match path:
        case ("questions", int(index), "when", *rest):
            return f"q{index}-when-{rest[0] if rest else 'question'}"
        case ("questions", int(index), *rest):
            return f"q{index}-{rest[0] if rest else 'wording'}"
        case ("checks", *_rest):
            return check_field_of(path)
        case ("qualifications", "practice", *_rest):
            return field_of_practice(path)
        case ("qualifications", "tests", *_rest):
            return field_of_test(path)
        case ("examples", int(index), "scores", name):
            return f"e{index}-score-{name}"
        case ("examples", int(index), *rest):
            return f"e{index}-{rest[0] if rest else 'candidate'}"
        case (str(group), str(name), *_rest):
            return f"{group}-{name}"
        case (str(name), *_rest):
            return "add-question" if name == "questions" else name
    return "title"
