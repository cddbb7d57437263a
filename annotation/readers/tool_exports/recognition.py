import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy

from annotation.exceptions import ImportRefused
from annotation.readers.archives import is_excel, member_names
from annotation.readers.drafts import ReadingReport
from annotation.readers.formats import FileFormat
from annotation.readers.json_rows import LABELS_BY_ANNOTATOR
from annotation.readers.mapping import NAMES, Use, plain_name
from annotation.readers.pooled_batch import has_pools
from annotation.readers.rows import OnFault, Row
from annotation.readers.tables import opened_table, read_object
from annotation.readers.tool_exports import flat_records, spans, surveys, task_records
from annotation.readers.tool_exports.argilla import SUGGESTION, USERS
from annotation.readers.tool_exports.entries import Entry, Export, FieldNames
from annotation.readers.tool_exports.label_studio import ROW_COLUMNS, ROW_DETAILS
from annotation.readers.tool_exports.mturk import ANSWER, COLUMNS
from annotation.readers.tool_exports.potato import (
    BETWEEN,
    OUTPUT,
    OUTPUT_FILE,
    STATE,
    STATE_FILE,
)
from annotation.readers.tool_exports.spans import is_annotation_file, is_tsv

LABEL_STUDIO, ARGILLA, DOCCANO, POTATO, MTURK, POOLS, TABLE = (
    *("label-studio", "argilla", "doccano", "potato"),
    *("mturk", "mturk-pools", "csv"),
)
RECORDS_LOOKED_AT = 50
SHOWN_CHARACTERS = 120
MOST_FIELDS = 500
OF_DOCCANO = ({"id", "text", "label"}, {"id", "filename", "label"}, {"id", "text", "cats"})


class LabelUse(TextChoices):
    ITEM = "item", gettext_lazy("Item")
    ANNOTATOR = "annotator", gettext_lazy("Annotator")
    SYSTEM = "system", gettext_lazy("System")
    CANDIDATE = "candidate", gettext_lazy("Name of the candidate")
    CONTEXT = "context", gettext_lazy("Context")
    RESPONSE = "response", gettext_lazy("Response")
    REFERENCE = "reference", gettext_lazy("Reference")
    CONDITION = "condition", gettext_lazy("Condition")
    ROUND = "round", gettext_lazy("Round")
    QUESTION = "question", gettext_lazy("Question")
    VALUE = "value", gettext_lazy("Answer")


SEVERAL = (LabelUse.ITEM, LabelUse.VALUE)
# What only a plain table has to be asked for: the tools have it where they always have it.
OF_TABLES = (LabelUse.ANNOTATOR, LabelUse.ROUND, LabelUse.QUESTION)
SHOWN = tuple(use for use in LabelUse if use not in (*OF_TABLES, LabelUse.VALUE))
LIKELY: dict[LabelUse, tuple[str, ...]] = {
    LabelUse.ANNOTATOR: (
        *("annotator", "annotator_id", "rater", "rater_id", "worker", "worker_id", "workerid"),
        *("coder", "judge", "participant", "participant_id", "user", "user_id", "evaluator"),
    ),
    LabelUse.QUESTION: ("question", "criterion", "aspect", "dimension", "attribute"),
    LabelUse.VALUE: (
        *("value", "label", "rating", "score", "judgment", "judgement", "annotation", "answer"),
        *("grade", "vote"),
    ),
    LabelUse.ROUND: ("round", "pass", "session"),
    LabelUse.ITEM: tuple(name for name in NAMES[Use.ITEM] if name != "id"),
    LabelUse.SYSTEM: NAMES[Use.SYSTEM],
    LabelUse.CONTEXT: tuple(name for name in NAMES[Use.CONTEXT] if name != "question"),
    LabelUse.RESPONSE: tuple(name for name in NAMES[Use.RESPONSE] if name != "answer"),
    LabelUse.REFERENCE: NAMES[Use.REFERENCE],
    LabelUse.CONDITION: NAMES[Use.CONDITION],
}


def uses_of(tool: str) -> tuple[LabelUse, ...]:
    if tool == TABLE:
        return tuple(LabelUse)
    if tool in REGISTRY:
        return tuple(LabelUse(use) for use in REGISTRY[tool].uses)
    if tool == POOLS:
        return ()
    return (*SHOWN, LabelUse.VALUE) if tool in (MTURK, LABEL_STUDIO) else SHOWN


def field_names(uses: Mapping[str, str], tool: str) -> FieldNames:
    def of(use: LabelUse) -> tuple[str, ...]:
        known = use in uses_of(tool)
        return tuple(name for name, each in uses.items() if each == use and known)

    single = {use.value: next(iter(of(use)), "") for use in LabelUse if use not in SEVERAL}
    return FieldNames(item=of(LabelUse.ITEM), values=of(LabelUse.VALUE), **single)


@dataclass(frozen=True)
class OpenExport:
    """An export that is open: its rows, or none for files that are no tables, such as zips.

    `path` has the name of the table, `file` is the file that was sent.
    """

    path: Path
    tool: str
    rows: list[Row] | None
    form: FileFormat
    report: ReadingReport
    file: Path


@contextmanager
def opened_export(
    path: Path,
    tool: str,
    chosen: FileFormat,
    note: OnFault,
    *,
    most_bytes: int,
    report: ReadingReport | None = None,
) -> Iterator[OpenExport]:
    of_files = _tool_of_files(path)
    if of_files and tool in ("", of_files):
        yield OpenExport(path, of_files, None, FileFormat(), report or ReadingReport(), file=path)
        return
    with opened_table(path, chosen, most_bytes=most_bytes, report=report) as table:
        try:
            rows = list(table.records(on_fault=note))
        except ImportRefused as refused:
            # The state of one annotator of Potato is one object.
            if refused.code != "not_objects" or recognized([read_object(path)]) != POTATO:
                raise
            rows = [read_object(path)]
            table.report.n_rows += 1
        tool = tool or recognized(rows)
        yield OpenExport(table.path, tool, rows, table.form, table.report, file=path)


def _tool_of_files(path: Path) -> str:
    """The tool whose export is no table. In a zip, Potato's and INCEpTION's files have names of
    their own, and doccano's are nothing but records."""
    if is_tsv(path):
        return INCEPTION
    if not zipfile.is_zipfile(path) or is_excel(path):
        return ""
    names = member_names(path)
    if any(name.name == STATE_FILE or name.stem == OUTPUT_FILE for name in names):
        return POTATO
    if any(map(is_annotation_file, names)):
        return INCEPTION
    is_of_records = names and all(name.suffix.lower() in (".jsonl", ".csv") for name in names)
    return DOCCANO if is_of_records else ""


def recognized(rows: Sequence[Row]) -> str:
    fields = rows[0].fields if rows else {}
    names = set(fields)
    if has_pools(list(names)):
        return POOLS
    is_named = any(plain_name(name) in LIKELY[LabelUse.ANNOTATOR] for name in names)
    if rows and (tool := recognized_tool(rows[0], has_annotators=is_named)):
        return tool
    if {"data", "annotations"} <= names or set(ROW_COLUMNS) <= names:
        return LABEL_STUDIO
    if STATE in names or OUTPUT in names or _is_of_potato(names):
        return POTATO
    if {"fields", "responses"} <= names or _is_of_argilla(names):
        return ARGILLA
    if set(COLUMNS) <= names:
        return MTURK
    by_user = isinstance(fields.get("annotations"), list) and "id" in names
    if (
        by_user
        or {"doc_id", "labels", "username"} <= names
        or (any(shape <= names for shape in OF_DOCCANO) and not is_named)
    ):
        return DOCCANO
    return TABLE


def _is_of_potato(names: set[str]) -> bool:
    has_labels = "labels" in names or any(BETWEEN in name for name in names)
    return "instance_id" in names and bool({"user", "user_id"} & names) and has_labels


def _is_of_argilla(names: set[str]) -> bool:
    of_questions = any(name.endswith((USERS, SUGGESTION)) for name in names)
    return of_questions or {"annotation", "annotation_agent"} <= names


def profile_fields(export: OpenExport) -> dict[str, str]:
    first: dict[str, str] = {}
    for row in (export.rows or ())[:RECORDS_LOOKED_AT]:
        for name, value in _fields_of(row.fields, export.tool):
            if len(first) < MOST_FIELDS:
                text = value if isinstance(value, str | int | float) else ""
                first[name] = first.get(name) or str(text)[:SHOWN_CHARACTERS]
    return first


def _fields_of(fields: Mapping[str, Any], tool: str) -> Iterable[tuple[str, Any]]:
    if tool == LABEL_STUDIO and "data" in fields:
        return _items_of(fields.get("data"))
    if tool == LABEL_STUDIO:
        return [each for each in fields.items() if each[0] not in ROW_DETAILS]
    if tool == ARGILLA and "fields" in fields:
        return [*_items_of(fields.get("fields")), *_items_of(fields.get("metadata"))]
    if tool == ARGILLA:
        return [each for each in fields.items() if not isinstance(each[1], list | dict)]
    if tool == POTATO:
        return [each for each in fields.items() if each[0] in ("id", "displayed_text")]
    if tool == MTURK:
        return [each for each in fields.items() if each[0].startswith(("Input.", ANSWER))]
    if tool == POOLS:
        return ()
    if tool == DOCCANO:
        return [each for each in fields.items() if not isinstance(each[1], list | dict)]
    return fields.items()


def _items_of(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def guess_uses(first: Mapping[str, str], tool: str) -> dict[str, str]:
    """What each field is by its name and its first value; what a tool always has in one place is
    not guessed."""
    if tool in REGISTRY:
        return {}
    columns = [name for name in first if tool != MTURK or name.startswith("Input.")]
    plain = {name: plain_name(name) for name in columns}
    uses: dict[str, str] = {}
    for use, names in LIKELY.items():
        column = next((c for n in names for c in columns if plain[c] == n and c not in uses), None)
        if column is not None and use in uses_of(tool) and use != LabelUse.VALUE:
            uses[column] = use.value
    if tool == TABLE:
        uses |= dict.fromkeys(_values(first, plain, uses), LabelUse.VALUE.value)
    elif LabelUse.SYSTEM not in uses.values():
        # The tool's own number of a record; where records are of systems, several are an item.
        uses = {name: use for name, use in uses.items() if use != LabelUse.ITEM}
    return {name: uses[name] for name in first if name in uses}


def _values(
    first: Mapping[str, str], plain: Mapping[str, str], uses: Mapping[str, str]
) -> list[str]:
    rest = [name for name in first if name not in uses]
    numbers = [name for name in rest if first[name].replace(".", "", 1).isdigit()]
    if numbers and LabelUse.QUESTION not in uses.values():
        return numbers
    return [c for n in LIKELY[LabelUse.VALUE] for c in rest if plain[c] == n][:1]


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
        task_records.read_prolific,
        (*task_records.PROLIFIC, *surveys.LAYOUTS["prolific"].has),
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
        name: Tool(
            partial(flat_records.read_feedback, tool=name), layout.has, ("annotator", *TEXTS)
        )
        for name, layout in flat_records.LAYOUTS.items()
    },
    "prodigy": Tool(task_records.read_prodigy, task_records.PRODIGY, ("annotator", *TEXTS)),
    INCEPTION: Tool(spans.read_inception, spans.SHAPES),
    "pearmut": Tool(task_records.read_pearmut, task_records.PEARMUT),
    ALT_TEST: Tool(flat_records.read_alt_test),
}


def pattern_example(tool: str) -> str:
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
