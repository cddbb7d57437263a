"""JSON Schemas as tables: a row a field, with what its value may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]
Link = Callable[[str], str]
LONGEST_ENUM = 12
LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "maxLength": "characters at most",
}


def cell(text: str) -> str:
    """A text in a table's cell: one line, its bars no borders, its list a sentence."""
    listed = re.sub(r"\s*^\* ", "; ", text, flags=re.MULTILINE).removeprefix("; ")
    return " ".join(listed.split()).replace("|", "\\|")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def reference_name(reference: str) -> str:
    return reference.rsplit("/", 1)[-1]


def field_rows(schema: Schema, link: Link) -> list[list[str]]:
    """Name, what it may be, whether it must be there, and what is said of it."""
    required = schema.get("required", ())
    return [
        [
            f"`{name}`",
            cell(type_text(field, link)),
            "yes" if name in required else "",
            cell(field.get("description", "")),
        ]
        for name, field in schema.get("properties", {}).items()
    ]


def type_text(schema: Schema, link: Link) -> str:
    """What a value may be, in a few words."""
    if "$ref" in schema:
        return link(reference_name(schema["$ref"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return _choices(schema["enum"])
    for several, joint in (("allOf", " and "), ("oneOf", " or "), ("anyOf", " or ")):
        if several in schema:
            return joint.join(type_text(each, link) for each in schema[several])
    if schema.get("type") == "array":
        return f"list of {type_text(schema.get('items', {}), link)}{_limits(schema)}"
    return _plain_type(schema) + _limits(schema)


def _choices(values: list[Any]) -> str:
    texts = [f"`{value}`" for value in values[:LONGEST_ENUM]]
    return ", ".join(texts) + (", …" if len(values) > LONGEST_ENUM else "")


def _plain_type(schema: Schema) -> str:
    kind = schema.get("type", "anything")
    name = " or ".join(kind) if isinstance(kind, list) else str(kind)
    form = schema.get("format")
    words = f"{name} ({form})" if form else name
    return f"{words} or null" if schema.get("nullable") else words


def _limits(schema: Schema) -> str:
    said = [
        f"{words} {_number(schema[key])}" if key in ("minimum", "maximum") else
        f"{_number(schema[key])} {words}"
        for key, words in LIMITS.items()
        if schema.get(key)
    ]  # fmt: skip
    return f"; {', '.join(said)}" if said else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"
