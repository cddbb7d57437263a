"""Tools whose exports are recognized by the names of their fields, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from annotation.readers.json_rows import LABELS_BY_ANNOTATOR
from annotation.readers.rows import Row
from annotation.readers.tool_exports import (
    alt_test,
    feedback,
    inception,
    pearmut,
    prodigy,
    prolific,
    surveys,
)
from annotation.readers.tool_exports.entries import Entry, Export

ALT_TEST, FORMS, INCEPTION = "alt-test", "google-forms", "inception"
TEXTS = ("item", "system", "candidate", "context", "response", "reference", "condition")


@dataclass(frozen=True)
class Tool:
    """How an export is read, the names of its fields, and the uses that people may give to fields.

    `pattern` is an example of how columns name their question and item, for tables of surveys.
    """

    read: Callable[[Export], list[Entry]]
    has: tuple[frozenset[str], ...] = ()
    uses: tuple[str, ...] = ()
    pattern: str = ""


REGISTRY: dict[str, Tool] = {
    "prolific": Tool(
        prolific.read_prolific,
        (*prolific.SHAPES, *surveys.LAYOUTS["prolific"].has),
        ("annotator", *TEXTS, "value"),
    ),
    **{
        name: Tool(
            partial(surveys.read_survey, tool=name),
            layout.has,
            ("annotator", *TEXTS, "value"),
            layout.example or "{question}_{item}",
        )
        for name, layout in surveys.LAYOUTS.items()
        if name != "prolific"
    },
    **{
        name: Tool(partial(feedback.read_feedback, tool=name), layout.has, ("annotator", *TEXTS))
        for name, layout in feedback.LAYOUTS.items()
    },
    "prodigy": Tool(prodigy.read_prodigy, prodigy.SHAPES, ("annotator", *TEXTS)),
    INCEPTION: Tool(inception.read_inception, inception.SHAPES),
    "pearmut": Tool(pearmut.read_pearmut, pearmut.SHAPES),
    ALT_TEST: Tool(alt_test.read_alt_test),
}


def pattern_example(tool: str) -> str:
    """How columns of a tool may name their question and item, or "" if they do not."""
    return REGISTRY[tool].pattern if tool in REGISTRY else ""


def recognized_tool(row: Row, *, has_annotators: bool) -> str:
    """The tool of this registry whose export has such a record, or "".

    `has_annotators` says that a field has the name of an annotator's in a plain table.
    """
    notes = row.source.report.notes if row.source else ()
    if any(note.code == LABELS_BY_ANNOTATOR for note in notes):
        return ALT_TEST
    names = set(row.fields)
    for name, tool in REGISTRY.items():
        if any(shape <= names for shape in tool.has):
            # Only the first field of Google Forms always has the same name.
            is_table = name == FORMS and (
                has_annotators or next(iter(row.fields)) not in tool.has[0]
            )
            return "" if is_table else name
    return ""
