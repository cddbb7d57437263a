"""Objects of JSON as rows, each with the line it begins on."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row, unstorable
from error_codes import CodedText

DEEPEST = 20
SPACE = re.compile("[ \\t\\r\\n]*")


def json_array(path: Path, content: str) -> Iterator[Row]:
    """The objects of an array one by one, so that each knows its line."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    position = _next_character(content, 0)
    if content[position : position + 1] != "[":
        raise ImportRefused(
            path, "expected a JSON array of objects, in brackets.", line=1, code="not_array"
        )
    line, counted = 1, 0
    before, position = "[", _next_character(content, position + 1)
    while before != "]" and not (before == "[" and content[position : position + 1] == "]"):
        line, counted = line + content.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(content, position)
        except (RecursionError, ValueError) as error:
            raise _not_json(path, error, line, begins=1) from None
        if not isinstance(value, dict):
            raise ImportRefused(
                path, "expected a JSON object in braces.", line=line, code="not_object"
            )
        yield Row(path, line, value)
        position = _next_character(content, position)
        before = content[position : position + 1]
        if before not in {",", "]"}:
            raise ImportRefused(
                path, "expected a comma or a bracket here.", line=line, code="not_json"
            )
        position = _next_character(content, position + 1)


def _next_character(content: str, position: int) -> int:
    """Where the next character is that is not a space."""
    space = SPACE.match(content, position)
    return space.end() if space else position


def json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (RecursionError, ValueError) as error:
        raise _not_json(path, error, line, begins=line) from None
    if not isinstance(value, dict):
        raise ImportRefused(path, "expected a JSON object in braces.", line=line, code="not_object")
    return value


def _not_json(
    path: Path, error: RecursionError | ValueError, line: int, *, begins: int
) -> ImportRefused:
    """Where a text that begins on a line of the file is not JSON, or else in which record."""
    if isinstance(error, json.JSONDecodeError):
        problem = f"this is not JSON: {error.msg}, column {error.colno}."
        return ImportRefused(path, problem, line=begins + error.lineno - 1, code="not_json")
    is_deep = isinstance(error, RecursionError)
    reason = "it is nested too deeply" if is_deep else str(error)
    code = "too_deep" if is_deep else "not_json"
    return ImportRefused(path, f"this is not JSON: {reason}.", line=line, code=code)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _unfit(value: Any, depth: int = 0) -> CodedText | None:
    """Why a JSON value cannot be kept, looking at all that is inside it."""
    if isinstance(value, str):
        return unstorable(value)
    if not isinstance(value, dict | list):
        return None
    if depth == DEEPEST:
        return CodedText(f"nested more than {DEEPEST} deep.", "too_deep")
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    return next((why for part in inside if (why := _unfit(part, depth + 1))), None)


def fit_row(row: Row, columns: Sequence[str]) -> Row:
    """The row, if it has these fields and nothing in it is beyond keeping."""
    for name, value in row.fields.items():
        if (problem := _unfit(name) or _unfit(value)) is not None:
            raise row.refuse(problem, name)
    for name in columns:
        if name not in row.fields:
            raise row.refuse("this field is missing.", name, code="missing_field")
    return row
