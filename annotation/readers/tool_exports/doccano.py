"""doccano's exports of classifications: a file for each annotator, or a zip of those.

Since doccano 1.3 a record has `id`, `text` (`data`, `filename`) and `label`, a list; in CSV labels
are joined by `#`. Before, a record had `annotations`, each with its `user` and the number of its
label, and CSV a row per label; in 2018 `doc_id`, `labels` and `username`.
https://doccano.github.io/doccano/tutorial/ (Export the dataset)
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from annotation.readers.archives import unpacked_members
from annotation.readers.rows import Row
from annotation.readers.tables import kind_of
from annotation.readers.tool_exports.entries import (
    Entry,
    Export,
    Kind,
    inner,
    inner_list,
    item_key,
    named_texts,
    require_fields,
    texts,
)
from error_codes import CodedText

QUESTION = "label"
LABELS = ("label", "cats", "labels")
TEXTS = ("text", "data", "filename", "image", "url")
USERS = ("username", "user")
# Between the labels of a cell.
BETWEEN = "#"
# The file of a project whose annotators share their labels.
MERGED = "all"
SPANS = CodedText("spans, boxes and other regions are not read yet", "spans")
RELATIONS = CodedText("relations between spans are not read yet", "relations")
COMMENTS = CodedText("comments are not read", "comments")
UNLABELED = CodedText("the example has no label, or nobody has looked at it", "unlabeled")
REGIONS = {
    "entities": SPANS,
    "spans": SPANS,
    "bbox": SPANS,
    "segmentation": SPANS,
    "relations": RELATIONS,
    "Comments": COMMENTS,
    "comments": COMMENTS,
}
LABEL_NUMBERS = CodedText(
    "This export has the numbers of labels, which doccano before 1.3 wrote, without their names: "
    "each number is a category.",
    "label_numbers",
)
MERGED_LABELS = CodedText(
    "The file 'all' has the labels of a project whose annotators share them: it is read as one "
    "annotator's.",
    "merged_labels",
)


def read_doccano(export: Export) -> list[Entry]:
    if kind_of(export.path) != ".zip":
        return list(_file(export, export.path.name.split(".")[0]))
    entries: list[Entry] = []
    with unpacked_members(export.path) as members:
        for member in members:
            entries += _file(replace(export, path=member.path), member.name.stem)
    return entries


def _file(export: Export, annotator: str) -> Iterator[Entry]:
    if annotator == MERGED:
        export.report.note(MERGED_LABELS)
    return export.read_each(partial(_example, export, annotator, {}))


def _example(
    export: Export, annotator: str, answered: dict[tuple[str, str], Entry], row: Row
) -> Iterator[Entry]:
    require_fields(row, named_texts(export.fields))
    shown = next((name for name in TEXTS if name in row.fields), TEXTS[0])
    about = texts(row, export.fields, response=row.text(shown))
    own = "doc_id" if "doc_id" in row.fields else "id"
    key = item_key(row, export.fields.item or (own,))
    yield Entry(row=row, item=key, **about)
    for name, reason in REGIONS.items():
        value = row.fields.get(name)
        parts = value if isinstance(value, list) else [value] if value else []
        export.leave_out(reason, row, len(parts))
    for user, kind, value in _labels(export, row, annotator):
        if export.is_unwanted(QUESTION, row):
            continue
        entry = answered.get((key, user))
        if entry is not None and row.is_csv and USERS[1] in row.fields:
            # Tables of doccano before 1.3 have a row for each label.
            entry.records.append(id(row))
            entry.answers[0].value += [one for one in value if one not in entry.answers[0].value]
            continue
        entry = Entry(row=row, item=key, annotator=user, **about)
        entry.add(QUESTION, kind, value, row.called(QUESTION))
        answered.setdefault((key, user), entry)
        yield entry


def _labels(export: Export, row: Row, annotator: str) -> Iterator[tuple[str, Kind, Any]]:
    """Who labeled the example, and how."""
    if "annotations" in row.fields:
        yield from _labels_by_user(export, row)
        return
    name = next((name for name in LABELS if name in row.fields), None)
    if name is None:
        if not REGIONS.keys() & row.fields.keys():
            there = ", ".join(row.fields)
            problem = f"there are no labels; there are {there}."
            raise row.refuse(problem, QUESTION, code="no_labels")
        return
    who = next((name for name in USERS if name in row.fields), None)
    user = row.required(who, longest=254) if who else annotator
    if row.is_csv and row.text("start_offset").strip():
        export.leave_out(SPANS, row)
        return
    value = row.fields[name]
    if isinstance(value, str):
        labels = [one for one in value.split(BETWEEN) if one]
    else:
        values = inner_list(row, name)
        spans = [one for one in values if isinstance(one, list | dict)]
        export.leave_out(SPANS, row, len(spans))
        if spans:
            return
        labels = [_label(row, name, one) for one in values]
    if labels:
        yield user, "categories", list(dict.fromkeys(labels))
    else:  # which may be one that nobody has looked at
        export.leave_out(UNLABELED, row)


def _label(row: Row, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise row.refuse("expected a list of labels.", name, code="not_label")
    return str(value)


def _labels_by_user(export: Export, row: Row) -> Iterator[tuple[str, Kind, Any]]:
    labels: dict[str, list[str]] = {}
    written: dict[str, list[str]] = {}
    annotations = inner_list(row, "annotations")
    if not annotations:
        export.leave_out(UNLABELED, row)
    for index, value in enumerate(annotations):
        annotation = inner(row, value, f"annotations[{index}]")
        user = annotation.required("user", longest=254)
        if annotation.fields.get("start_offset") is not None:
            export.leave_out(SPANS, annotation)
        elif "label" not in annotation.fields and "text" in annotation.fields:
            written.setdefault(user, []).append(annotation.text("text"))
        else:
            label = annotation.fields.get("label")
            if isinstance(label, int) and not isinstance(label, bool):
                export.report.note(LABEL_NUMBERS)
            labels.setdefault(user, []).append(annotation.required("label"))
    for user, names in labels.items():
        yield user, "categories", list(dict.fromkeys(names))
    for user, lines in written.items():
        yield user, "written", "\n".join(lines)
