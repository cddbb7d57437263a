"""Label Studio's exports: JSON, with `data` and `annotations` per task, JSON-MIN and CSV.

https://labelstud.io/guide/task_format.html and https://labelstud.io/guide/export.html
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from annotation.exceptions import ImportRefused
from annotation.readers.json_rows import fit_row
from annotation.readers.rows import Row, inner, inner_list, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    Kind,
    iso_time,
    named_texts,
    number_of,
    parse_json,
    placed,
    require_fields,
    short_name,
    show_candidates,
    sole_text,
    texts,
)
from error_codes import CodedText

T = TypeVar("T")
NOT_THE_EXPORT = (
    "expected a task with 'data' and 'annotations', as Label Studio exports it as JSON, or a row "
    "with 'id', 'annotation_id' and 'annotator', as in its JSON-MIN and CSV."
)
# Of JSON-MIN and CSV: one row per annotation.
ROW_COLUMNS = ("id", "annotation_id", "annotator")
ROW_DETAILS = (*ROW_COLUMNS, "created_at", "updated_at", "lead_time")
SPANS = CodedText("spans, boxes and other regions are not read yet", "spans")
PER_REGION = CodedText("answers about one region of a text or picture are not read yet", "region")
RELATIONS = CodedText("relations between regions are not read yet", "relations")
UNREAD = CodedText("answers of this type are not read", "unread")
SKIPPED = CodedText("the annotator skipped the task", "skipped")
DRAFTS = CodedText("drafts are not submitted", "drafts")
EMPTY = CodedText("the annotation has no answer", "empty_annotation")
UNNAMED = CodedText(
    "Annotations without an account ('completed_by') are numbered in each task: number 1 of one "
    "task and number 1 of another need not be the same person.",
    "unnamed_annotators",
)
# What only the value of an answer about a region has.
REGION = frozenset({"start", "end", "startOffset", "x", "y", "points", "vertices", "ranges", "rle"})
# The type of a control by the key of its value.
KINDS = {
    "choices": "choices",
    "taxonomy": "taxonomy",
    "rating": "rating",
    "number": "number",
    "text": "textarea",
    "selected": "pairwise",
    "ranker": "ranker",
}
SIDES = ("left", "right")


def read_label_studio(export: Export) -> list[Entry]:
    records = list(export.records())
    rows = [row for row in records if row.fields.keys() >= set(ROW_COLUMNS)]
    tasks = [row for row in records if not row.fields.keys() >= set(ROW_COLUMNS)]
    entries = list(export.read_each(partial(_task, export), tasks))
    questions = {
        name: any(_is_per_region(row, name) for row in rows)
        for name in _question_columns(export, rows)
    }
    return entries + list(export.read_each(partial(_annotated_row, export, questions), rows))


def _task(export: Export, row: Row) -> Iterator[Entry]:
    if "data" not in row.fields or "annotations" not in row.fields:
        raise row.refuse(NOT_THE_EXPORT, code="not_export")
    data = inner(row, row.fields["data"], "data")
    require_fields(data, named_texts(export.fields))
    about = texts(data, export.fields, response=sole_text(data.fields, export.fields))
    key = item_key(data, export.fields.item) if export.fields.item else row.required("id")
    yield Entry(row=row, item=key, **about)
    export.leave_out(DRAFTS, row, _number_in(row, "drafts"))
    export.leave_out(
        CodedText("predictions are a program's", "predictions"), row, _number_in(row, "predictions")
    )
    for index, value in enumerate(inner_list(row, "annotations")):
        with export.faults.noting():
            annotation = inner(row, value, f"annotations[{index}]")
            if annotation.fields.get("was_cancelled"):
                export.leave_out(SKIPPED, annotation, max(1, _number_in(annotation, "result")))
                continue
            yield _annotation(export, annotation, key, index, about)


def _number_in(row: Row, name: str) -> int:
    value = row.fields.get(name)
    return len(value) if isinstance(value, list) else 0


def _annotation(export: Export, row: Row, key: str, index: int, about: dict[str, Any]) -> Entry:
    entry = Entry(
        row=row,
        item=key,
        annotator=_annotator(export, row, index),
        submitted_at=_known(export, iso_time, row, "created_at"),
        seconds=_known(export, number_of, row, "lead_time"),
        **about,
    )
    results = inner_list(row, "result")
    if not results:
        export.leave_out(EMPTY, row)
    for number, value in enumerate(results):
        with export.faults.noting():
            _add_result(export, entry, inner(row, value, f"result[{number}]"))
    return entry


def _annotator(export: Export, row: Row, index: int) -> str:
    if row.fields.get("completed_by") in (None, "", {}):
        export.report.note(UNNAMED)
        return f"unnamed-{index + 1}"
    return _user(row, "completed_by")


def _known(export: Export, read: Callable[[Row, str], T], row: Row, name: str) -> T | None:
    try:
        return read(row, name)
    except ImportRefused:
        export.leave_out(CodedText("the time cannot be read", "unread_time"), row, detail=name)
        return None


def _user(row: Row, name: str) -> str:
    if not isinstance(row.fields[name], dict):
        return row.required(name, longest=254)
    user = inner(row, row.fields[name], name)
    return user.required("id" if user.fields.get("id") is not None else "email", longest=254)


def _add_result(export: Export, entry: Entry, result: Row) -> None:
    kind = result.required("type")
    if kind == "relation":
        export.leave_out(RELATIONS, result)
        return
    question = result.required("from_name", longest=LONGEST_QUESTION)
    value = inner(result, result.fields.get("value"), "value")
    names = [name.strip() for name in result.text("to_name").split(",")]
    _add_answer(export, entry, question, kind, value, names)


def _add_answer(
    export: Export, entry: Entry, question: str, kind: str, value: Row, names: Sequence[str] = ()
) -> None:
    if export.is_unwanted(question, value):
        return
    is_region = bool(REGION & value.fields.keys())
    if kind not in KINDS.values():
        export.leave_out(SPANS if is_region else UNREAD, value, detail=kind[:40])
    elif is_region:
        export.leave_out(PER_REGION, value)
    elif kind == "pairwise":
        _add_preference(entry, question, value, names)
    elif kind == "ranker":
        _add_ranking(entry, question, value)
    elif kind in ("rating", "number"):
        _add_number(export, entry, question, kind, value)
    elif kind == "textarea":
        written = "\n".join(_strings(value, "text", may_be_empty=True))
        entry.add(question, "written", written, value.called("text"))
    else:
        labels = _strings(value, kind) if kind == "choices" else _paths(value)
        entry.add(question, "categories", list(dict.fromkeys(labels)), value.called(kind))


def _add_number(export: Export, entry: Entry, question: str, kind: str, value: Row) -> None:
    if value.fields.get(kind) is None:
        export.report.note_missing("")
    else:
        points: Kind = "points" if kind == "rating" else "number"
        entry.add(question, points, value.number(kind), value.called(kind))


def _strings(value: Row, name: str, *, may_be_empty: bool = False) -> list[str]:
    strings = value.fields.get(name)
    strings = [strings] if isinstance(strings, str) else strings
    if not isinstance(strings, list) or not all(
        isinstance(one, str) and (one or may_be_empty) for one in strings
    ):
        raise value.refuse("expected a list of texts.", name, code="not_texts")
    return strings


def _paths(value: Row) -> list[str]:
    paths = value.fields.get("taxonomy")
    if not isinstance(paths, list) or not all(
        isinstance(path, list) and path and all(isinstance(one, str) and one for one in path)
        for path in paths
    ):
        raise value.refuse("expected a list of lists of texts.", "taxonomy", code="not_texts")
    return [" / ".join(path) for path in paths]


def _add_preference(entry: Entry, question: str, value: Row, names: Sequence[str]) -> None:
    selected = value.required("selected")
    value.refuse_unless(selected in SIDES, "expected left or right.", "selected", code="not_side")
    pair = names if len(set(names)) == 2 and all(names) and len(names) == 2 else SIDES
    show_candidates(entry, pair)
    for name, side in zip(pair, SIDES, strict=True):
        entry.add(question, "placed", float(selected == side), value.called("selected"), name)


def _add_ranking(entry: Entry, question: str, value: Row) -> None:
    lists = inner(value, value.fields.get("ranker"), "ranker")
    value.refuse_unless(
        len(lists.fields) == 1,
        "expected one list in order; things in several buckets are not read. Leave the "
        f"question out with --leave-out {question}.",
        "ranker",
        code="several_buckets",
    )
    [name] = lists.fields
    order = list(dict.fromkeys(_strings(lists, name)))
    show_candidates(entry, order)
    for key, share in placed({key: float(n) for n, key in enumerate(order)}).items():
        entry.add(question, "placed", share, value.called("ranker"), key)


def _question_columns(export: Export, rows: Sequence[Row]) -> list[str]:
    """The fields of rows of JSON-MIN or CSV that are answers.

    JSON-MIN has them between a task's `id`, which follows its data, and the annotator. In CSV,
    whose columns are sorted, answers are what differs between annotations of one task, or is
    written as the value of a control.
    """
    if export.fields.values or not rows:
        return list(export.fields.values)
    fields = list(dict.fromkeys(name for row in rows for name in row.fields))
    others = {*ROW_DETAILS, *named_texts(export.fields)}
    columns = [name for name in fields if name not in others and not name.startswith("_data_")]
    if rows[0].is_csv or fields.index("id") == 0:
        found = _varying(rows, columns)
    else:
        after = fields[fields.index("id") :]
        found = [name for name in columns if name in after and not name.endswith("_transcript")]
    if not found:
        raise rows[0].refuse(
            "which fields are answers cannot be told, since none differs between the annotators of "
            f"a task. Name them with --value; there are {', '.join(columns) or 'none'}.",
            code="no_value",
        )
    rest = [name for name in columns if name not in found]
    text = f"Read as answers: {', '.join(found)}. Not read as answers: {', '.join(rest) or 'none'}."
    export.report.note(CodedText(f"{text} --value names others.", "answer_columns"))
    return found


def _varying(rows: Iterable[Row], columns: Sequence[str]) -> list[str]:
    first: dict[str, Row] = {}
    found = set()
    for row in rows:
        other = first.setdefault(str(row.fields.get("id")), row)
        for name in columns:
            if row.fields.get(name) != other.fields.get(name) or _controls(row, name):
                found.add(name)
    return [name for name in columns if name in found]


def _parsed(row: Row, name: str) -> Any:
    value = row.fields.get(name)
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    return parse_json(value, value)


def _controls(row: Row, name: str) -> list[Row]:
    value = _parsed(row, name)
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) and (KINDS.keys() | REGION) & one.keys() for one in values):
        return []
    return [fit_row(row.child(one, row.called(name)), ()) for one in values]


def _is_per_region(row: Row, name: str) -> bool:
    """Whether a field has texts of several results, whose regions the format leaves out."""
    value = _parsed(row, name)
    return isinstance(value, list) and any(isinstance(one, str) for one in value)


def _kind(control: Row) -> str:
    is_region = bool(REGION & control.fields.keys())
    keys = (key for key in KINDS if key in control.fields)
    found = (k for k in keys if not (is_region and isinstance(control.fields[k], str)))
    return KINDS.get(next(found, ""), "labels")


def _annotated_row(export: Export, questions: Mapping[str, bool], row: Row) -> Iterator[Entry]:
    """An annotation of JSON-MIN or CSV; a task without one has no annotator. `questions` says of
    each whether it is about regions."""
    require_fields(row, named_texts(export.fields))
    rest = {
        name: value for name, value in row.fields.items() if name not in (*ROW_DETAILS, *questions)
    }
    about = texts(row, export.fields, response=sole_text(rest, export.fields))
    key = item_key(row, export.fields.item or ("id",))
    if row.fields["annotation_id"] in (None, ""):
        yield Entry(row=row, item=key, **about)
        return
    entry = Entry(
        row=row,
        item=key,
        annotator=_row_annotator(export, row, key),
        submitted_at=_known(export, iso_time, row, "created_at"),
        seconds=_known(export, number_of, row, "lead_time"),
        **about,
    )
    for name, is_per_region in questions.items():
        with export.faults.noting():
            _add_field(export, entry, row, name, is_per_region=is_per_region)
    yield entry


def _row_annotator(export: Export, row: Row, task: str) -> str:
    if isinstance(row.fields["annotator"], dict):
        return _user(row, "annotator")
    if name := row.optional("annotator", longest=254):
        return name
    export.report.note(UNNAMED)
    return f"unnamed-{export.count(task)}"


def _add_field(export: Export, entry: Entry, row: Row, name: str, *, is_per_region: bool) -> None:
    question = short_name(row, name)
    value = _parsed(row, name)
    if controls := _controls(row, name):
        for control in controls:
            _add_answer(export, entry, question, _kind(control), control)
    elif export.is_unwanted(question, row):
        return
    elif value in (None, "", []):
        export.report.note_missing("")
    elif is_per_region:
        export.leave_out(PER_REGION, row, len(value) if isinstance(value, list) else 1)
    else:
        entry.add(question, "categories", [row.required(name)], row.called(name))
