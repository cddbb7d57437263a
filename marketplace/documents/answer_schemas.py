"""What a requester's page says an answer must be: a JSON Schema that it carries in its HTML.

    <script type="application/schema+json" data-field="answer">{"type": "object"}</script>

The form field of that name must hold JSON that meets the schema. A page without one takes
whatever comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from marketplace.documents.json_schema import Budget, TooManySteps, check_schema, errors_of
from marketplace.exceptions import InvalidQuestion

# Attributes are bounded, so that many scripts without an end are not each read to the end.
SCRIPT = re.compile(r"<script\b([^>]{0,1000})>", re.IGNORECASE)
END = re.compile(r"</script[\s/>]", re.IGNORECASE)
SCHEMA_TYPE = "application/schema+json"
TYPE = re.compile(r"""\btype\s*=\s*["']?application/schema\+json\b""", re.IGNORECASE)
FIELD = re.compile(r"""\bdata-field\s*=\s*["']?([\w.-]{1,100})""", re.IGNORECASE)
LARGEST_SCHEMA = 30_000  # characters
LARGEST_ANSWER = 500_000


def answer_schemas(html: str) -> dict[str, Any]:
    """The schema of each field that has one, or InvalidQuestion with what is wrong with it."""
    scripts = [(attributes, text) for attributes, text in _scripts(html) if TYPE.search(attributes)]
    named = [(FIELD.search(attributes), text) for attributes, text in scripts]
    return {field[1]: _schema(text) for field, text in named if field}


def _scripts(html: str) -> Iterator[tuple[str, str]]:
    """The attributes and the text of each script that ends, read once from front to back."""
    position = 0
    while start := SCRIPT.search(html, position):
        end = END.search(html, start.end())
        if end is None:
            return
        yield start[1], html[start.end() : end.start()]
        position = end.end()


def answer_errors(html: str, fields: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What of these form fields the page's own schemas forbid; nothing without schemas."""
    values = dict(fields)
    budget = Budget()
    return [
        error
        for name, schema in answer_schemas(html).items()
        for error in _field_errors(name, values.get(name, []), schema, budget)
    ]


def _schema(text: str) -> Any:
    if len(text) > LARGEST_SCHEMA:
        raise InvalidQuestion(
            f"An answer's schema has more than {LARGEST_SCHEMA:,} characters.",
            code="schema_too_long",
        )
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidQuestion(
            f"An answer's schema is not JSON: {error}.", code="schema_not_json"
        ) from error
    check_schema(schema)
    return schema


def _field_errors(name: str, values: Sequence[str], schema: Any, budget: Budget) -> list[str]:
    if len(values) != 1:
        return [f"the field “{name}” is missing, or there twice"]
    if len(values[0]) > LARGEST_ANSWER:
        return [f"“{name}” has more than {LARGEST_ANSWER:,} characters"]
    try:
        return errors_of(json.loads(values[0], parse_constant=_refuse), schema, budget)
    except TooManySteps:
        return [f"“{name}” is too large to be checked"]
    except (ValueError, RecursionError):
        return [f"“{name}” is not JSON"]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
