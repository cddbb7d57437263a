"""Label Studio's JSON export: tasks with `data` and `annotations`, each with `result`.

https://labelstud.io/guide/task_format.html
"""

from collections.abc import Iterator
from typing import Any

from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Answer,
    Entry,
    Export,
    inner,
    inner_list,
    iso_time,
    item_key,
    named_texts,
    number_of,
    require_fields,
    texts,
)

NOT_THE_EXPORT = (
    "expected a task with 'data' and 'annotations'. Export from Label Studio as JSON; what it "
    "exports as JSON-MIN or CSV is imported with --from csv."
)


def read_label_studio(export: Export) -> list[Entry]:
    entries: list[Entry] = []
    for row in export.records():
        with export.faults.noting():
            entries += _task(export, row)
    return entries


def _task(export: Export, row: Row) -> Iterator[Entry]:
    if "data" not in row.fields or "annotations" not in row.fields:
        raise row.refuse(NOT_THE_EXPORT, code="not_export")
    data = inner(row, row.fields["data"], "data")
    require_fields(data, named_texts(export.fields))
    # A task that shows one text shows what is judged.
    displayed = [value for value in data.fields.values() if isinstance(value, str)]
    about = texts(data, export.fields, response=displayed[0] if len(displayed) == 1 else "")
    key = item_key(data, export.fields.item) if export.fields.item else row.required("id")
    yield Entry(row=row, item=key, **about)
    for index, value in enumerate(inner_list(row, "annotations")):
        with export.faults.noting():
            annotation = inner(row, value, f"annotations[{index}]")
            if annotation.fields.get("was_cancelled"):
                export.left_out.add("skipped tasks")
                continue
            yield _annotation(export, annotation, key, about)


def _annotation(export: Export, row: Row, key: str, about: dict[str, Any]) -> Entry:
    entry = Entry(
        row=row,
        item=key,
        annotator=_annotator(row),
        submitted_at=iso_time(row, "created_at"),
        seconds=number_of(row, "lead_time"),
        **about,
    )
    for index, value in enumerate(inner_list(row, "result")):
        with export.faults.noting():
            _add_result(export, entry, inner(row, value, f"result[{index}]"))
    return entry


def _annotator(row: Row) -> str:
    """A user's number, or the user as an object."""
    value = row.fields.get("completed_by")
    if not isinstance(value, dict):
        return row.required("completed_by", longest=254)
    user = inner(row, value, "completed_by")
    return user.required("id" if user.fields.get("id") is not None else "email", longest=254)


def _add_result(export: Export, entry: Entry, result: Row) -> None:
    kind = result.required("type")
    if kind not in ("choices", "rating", "number", "textarea", "pairwise"):
        export.left_out.add(f"results of the type '{kind}'")
        return
    question = result.required("from_name", longest=LONGEST_QUESTION)
    value = inner(result, result.fields.get("value"), "value")
    if kind == "pairwise":
        _add_preference(entry, result, question, value)
        return
    candidate = entry.candidates[0].key
    if kind == "choices":
        answer = Answer(
            question, "categories", _strings(value, "choices"), value.called("choices"), candidate
        )
    elif kind == "textarea":
        text = "\n".join(_strings(value, "text", may_be_empty=True))
        answer = Answer(question, "written", text, value.called("text"), candidate)
    else:
        number = value.number(kind)
        is_points = kind == "rating"
        answer = Answer(
            question, "points" if is_points else "number", number, value.called(kind), candidate
        )
    entry.answers.append(answer)


def _strings(value: Row, name: str, *, may_be_empty: bool = False) -> list[str]:
    """A list of texts; one text alone stands for a list of it."""
    strings = value.fields.get(name)
    strings = [strings] if isinstance(strings, str) else strings
    if not isinstance(strings, list) or not all(
        isinstance(one, str) and (one or may_be_empty) for one in strings
    ):
        raise value.refuse("expected a list of texts.", name, code="not_texts")
    return strings


def _add_preference(entry: Entry, result: Row, question: str, value: Row) -> None:
    """Two things on the page of which one was selected, named by `to_name`."""
    pair = [name.strip() for name in result.required("to_name").split(",")]
    selected = value.required("selected")
    if len(pair) != 2 or selected not in ("left", "right"):
        raise value.refuse(
            "expected left or right, of two names in to_name.", "selected", code="not_side"
        )
    entry.candidates = tuple(CandidateDraft(key=name, system=name) for name in pair)
    for name, side in zip(pair, ("left", "right"), strict=True):
        is_better = float(selected == side)
        entry.answers.append(Answer(question, "placed", is_better, value.called("selected"), name))
