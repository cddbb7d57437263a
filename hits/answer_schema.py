"""What an answer to a page must be, as JSON Schema, which the page carries to the marketplace.

It says what the page's own script enforces (docs/protocol.md has the answer): a marketplace that
checks it refuses at submission what would be unreadable when it is collected.
"""

from __future__ import annotations

import json
from typing import Any

from django.utils.safestring import SafeString, mark_safe

Schema = dict[str, Any]
LONGEST_TEXT = 20_000
MOST_SPELLED_OUT = 16


def schema_script(task: dict[str, Any]) -> SafeString:
    """The element that carries the schema; `<` is escaped, as `json_script` does it."""
    text = json.dumps(answer_schema(task), separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04X}")
    return mark_safe(f'<script type="application/schema+json" data-field="answer">{text}</script>')


def answer_schema(task: dict[str, Any]) -> Schema:
    """The schema of the answer to the page with this task."""
    keys = task["candidates"]
    reason = task["reason"]
    least = reason["least_length"] if reason["rule"] == "page" else 0
    properties: Schema = {
        "version": {"const": 1},
        "item": {"const": task["item"]},
        "order": {
            "type": "array", "items": {"enum": keys}, "uniqueItems": True,
            "minItems": len(keys), "maxItems": len(keys),
        },
        "judgments": _judgments_schema(task),
        "justification": {"type": "string", "minLength": least, "maxLength": LONGEST_TEXT},
        "comment": {"type": "string", "maxLength": LONGEST_TEXT},
    }  # fmt: skip
    required = ["version", "item", "order", "judgments"] + (["justification"] if least else [])
    if task["consent"]:
        properties["consent"] = {
            "type": "object", "required": ["text", "at"],
            "properties": {"text": {"const": task["consent"]}, "at": {"type": "string"}},
        }  # fmt: skip
        required.append("consent")
    if reason["rule"] == "choice" and reason["least_length"]:
        text = {"type": "string", "minLength": reason["least_length"]}
        properties["reasons"] = {
            "type": "array",
            "items": {"required": ["candidate", "text"], "properties": {"text": text}},
        }
    return {"type": "object", "required": required, "properties": properties}


def _judgments_schema(task: dict[str, Any]) -> Schema:
    """Each row as its question has it; of every question that always appears one for each
    candidate, which is spelled out where that takes little room, and else counted."""
    rows = [_row_schema(question, task["candidates"]) for question in task["questions"]]
    needed = [
        {"contains": {"required": ["value"], "properties": {
            "question": {"const": question["name"]}, "candidate": {"const": key},
            "value": {"not": {"const": None}},
        }}, "maxContains": 1}
        for question in task["questions"]
        if question.get("required", True) and "when" not in question
        for key in (task["candidates"] if _is_of_candidate(question) else [None])
    ]  # fmt: skip
    needs = {"allOf": needed} if len(needed) <= MOST_SPELLED_OUT else {"minItems": len(needed)}
    return {"type": "array", "items": {"anyOf": rows}, **needs}


def _is_of_candidate(question: dict[str, Any]) -> bool:
    return bool(question.get("about", "candidate") == "candidate")


def _row_schema(question: dict[str, Any], keys: list[str]) -> Schema:
    properties = {
        "question": {"const": question["name"]},
        "candidate": {"enum": keys} if _is_of_candidate(question) else {"const": None},
        "value": {"anyOf": [{"const": None}, _value_schema(question, keys)]},
    }
    return {"type": "object", "required": ["candidate", "question"], "properties": properties}


def _value_schema(question: dict[str, Any], keys: list[str]) -> Schema:
    kind = question["kind"]
    if kind in ("short_text", "long_text"):
        most = question["most_length"] or LONGEST_TEXT
        return {"type": "string", "minLength": question["least_length"], "maxLength": most}
    if kind == "categories":
        return {
            "type": "array", "uniqueItems": True, "items": {"enum": list(range(question["n"]))},
            "minItems": question["least"], "maxItems": question["most"],
        }  # fmt: skip
    if kind == "preference":
        return {"enum": [*keys, "tie"] if question["ties"] else keys}
    if kind == "best_worst":
        ends = {"best": {"enum": keys}, "worst": {"enum": keys}}
        return {"type": "object", "required": ["best", "worst"], "properties": ends}
    if kind == "ranking":
        group = {"type": "array", "items": {"enum": keys}, "minItems": 1}
        group |= {} if question["ties"] else {"maxItems": 1}
        return {"type": "array", "items": group, "minItems": 1, "maxItems": len(keys)}
    is_whole = (kind != "number" and kind != "line") or question.get("whole")
    bounds = {"minimum": question["min"], "maximum": question["max"]}
    return {"type": "integer" if is_whole else "number"} | bounds
