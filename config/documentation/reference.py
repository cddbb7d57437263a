"""The pages of the site that are made of the code they describe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from annotation.protocols.templates import FOLDER, read_text, template_names
from config.documentation.api_pages import api_pages
from config.documentation.command_pages import command_pages
from config.documentation.schema_tables import cell, field_rows, table
from metrics.scorers.registry import Description, available


def reference_pages(root: Path) -> dict[str, str]:
    """Each page's Markdown by where the site has it."""
    return {
        **command_pages(root),
        **api_pages(root),
        PROTOCOL_PATH: protocol_page(root),
        METRICS_PATH: metrics_page(),
        "adr/index.md": decisions_page(root),
    }


DECISIONS_INTRODUCTION = """# Decisions

What took thought, a page each: context, decision, consequences.

"""


def decisions_page(root: Path) -> str:
    lines = []
    for path in sorted((root / "docs" / "adr").glob("[0-9]*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        number, _, name = title.partition(". ")
        lines.append(f"- {number}: [{name}]({path.name})")
    return DECISIONS_INTRODUCTION + "\n".join(lines) + "\n"


METRICS_PATH = "reference/metrics.md"
METRICS_INTRODUCTION = """# Metrics, their licences and sizes

Made of the registry in `metrics/scorers/registry.py`, as `python manage.py metrics` lists it.
[The metrics](../metrics.md) says what each computes, and [judges](../judges.md) how language
models are asked. A model that is not installed is fetched only where `download=True` says so, or
read from a folder; its licence is for you to keep.

"""


def metrics_page() -> str:
    metrics = available()
    rows = [
        [f"[`{m.name}`](#{m.name.lower()})", cell(m.summary), cell(m.licence), m.size or "none"]
        for m in metrics
    ]
    overview = table(["name", "what it is", "licence", "model on disk"], rows)
    return "\n".join(
        [METRICS_INTRODUCTION + overview, *(line for m in metrics for line in _metric_section(m))]
    )


def _metric_section(metric: Description) -> Iterator[str]:
    yield f"## {metric.name}\n"
    yield f"{metric.summary}.\n"
    lower = ", ".join(f"`{name}`" for name in metric.outputs if name in metric.lower_is_better)
    needs = ", ".join(sorted(metric.needs)) or "the response only"
    yield f"- gives {', '.join(f'`{name}`' for name in metric.outputs)}"
    yield f"- lower is better of {lower or 'none'}"
    yield f"- needs {needs}"
    if metric.requires:
        yield f"- takes {metric.requires}"
    yield f"- licence: {metric.licence}"
    yield f"- parameters: {', '.join(_metric_parameters(metric)) or 'none'}\n"


def _metric_parameters(metric: Description) -> Iterator[str]:
    for name, default in metric.parameters.items():
        yield f"`{name}={default}`" if default is not None else f"`{name}`"


PROTOCOL_PATH = "reference/protocol.md"
PROTOCOL_INTRODUCTION = """# Protocol schema

A protocol is one document in YAML or JSON. This page is made of
[protocol.schema.json](../protocol.schema.json), which editors can check files against;
[Protocols](../protocol.md) explains what its parts are for. `python manage.py validate_protocol
FILE` says what is wrong in one, by line and field.

"""
HEAD = ["field", "value", "required", "meaning"]


def protocol_page(root: Path) -> str:
    schema = json.loads((root / "docs" / "protocol.schema.json").read_text("utf-8"))
    parts = [PROTOCOL_INTRODUCTION, "## The document\n", table(HEAD, field_rows(schema, _link))]
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
    parts = [
        "## Templates\n",
        "To begin with: by name in `--protocol`, or on a new study's page.\n",
    ]
    for name in template_names():
        text = read_text(FOLDER / f"{name}.yaml").rstrip()
        lines = ["```yaml", *text.split("\n"), "```"]
        parts += [f'??? example "{name}"\n', *(f"    {line}".rstrip() for line in lines), ""]
    return "\n".join(parts)
