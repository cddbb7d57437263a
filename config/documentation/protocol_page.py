"""The protocol's reference, of docs/protocol.schema.json: a section a part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotation.protocols.templates import FOLDER, read_text, template_names
from config.documentation.schema_tables import field_rows, table

PATH = "reference/protocol.md"
INTRODUCTION = """# Protocol schema

A protocol is one document in YAML or JSON. This page is made of
[protocol.schema.json](../protocol.schema.json), which editors can check files against;
[Protocols](../protocol.md) explains what its parts are for. `python manage.py validate_protocol
FILE` says what is wrong in one, by line and field.

"""
HEAD = ["field", "value", "required", "meaning"]


def protocol_page(root: Path) -> str:
    schema = json.loads((root / "docs" / "protocol.schema.json").read_text("utf-8"))
    parts = [INTRODUCTION, "## The document\n", table(HEAD, field_rows(schema, _link))]
    for name, part in schema["$defs"].items():
        parts += [f"## {_title(name)}\n", f"{part.get('description', '')}\n", _fields(part)]
    return "\n".join([*parts, _templates()])


def _fields(part: Mapping[str, Any]) -> str:
    return table(HEAD, field_rows(part, _link))


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _link(name: str) -> str:
    return f"[{name.replace('_', ' ')}](#{name.replace('_', '-')})"


def _templates() -> str:
    """Each template whole, folded."""
    parts = [
        "## Templates\n",
        "To begin with: by name in `--protocol`, or on a new study's page.\n",
    ]
    for name in template_names():
        text = read_text(FOLDER / f"{name}.yaml").rstrip()
        lines = ["```yaml", *text.split("\n"), "```"]
        parts += [f'??? example "{name}"\n', *(f"    {line}".rstrip() for line in lines), ""]
    return "\n".join(parts)
