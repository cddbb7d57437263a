"""doccano's exports of classifications: a file for each annotator, or a zip of those.

JSON Lines of `id`, `text` (or `filename`) and `label`, a list; in CSV labels are joined by `#`.
Exports up to doccano 1.2 have `annotations` instead, each with its `user`.
https://doccano.github.io/doccano/tutorial/ (Export the dataset)
"""

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row
from annotation.readers.tables import kind_of
from annotation.readers.tool_exports.entries import (
    Answer,
    Entry,
    Export,
    inner,
    inner_list,
    item_key,
    named_texts,
    require_fields,
    texts,
)
from presentation.files import reason_of

QUESTION = "label"
LABELS = ("label", "cats")
MOST_BYTES = 512 * 1024 * 1024
# RuntimeError is what a file under a password comes to.
UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def read_doccano(export: Export) -> list[Entry]:
    if kind_of(export.path) != ".zip":
        return list(_file(export, export.path.name.split(".")[0]))
    with tempfile.TemporaryDirectory() as folder:
        entries: list[Entry] = []
        for path in _members(export.path, Path(folder)):
            one = Export(path, export.fields, export.faults, export.left_out)
            entries += _file(one, path.stem)
        return entries


def _members(path: Path, folder: Path) -> list[Path]:
    """The files of a zip, each named after an annotator, unpacked into a folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if sum(info.file_size for info in infos) > MOST_BYTES:
                raise ImportRefused(
                    path,
                    "what is in it is over 512 MiB; import its files singly.",
                    code="too_large",
                )
            return [_unpacked(archive, info, folder) for info in infos]
    except (*UNREADABLE, OSError, EOFError) as error:
        raise ImportRefused(
            path, f"it is not a zip that can be read: {reason_of(error)}.", code="not_zip"
        ) from None


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> Path:
    # The name alone: a path inside an archive may lead anywhere.
    target = folder / Path(info.filename).name
    with archive.open(info) as source, target.open("wb") as content:
        shutil.copyfileobj(source, content)
    return target


def _file(export: Export, annotator: str) -> Iterator[Entry]:
    for row in export.records():
        with export.faults.noting():
            yield from _example(export, row, annotator)


def _example(export: Export, row: Row, annotator: str) -> Iterator[Entry]:
    require_fields(row, named_texts(export.fields))
    text = row.text("text") if "text" in row.fields else row.text("filename")
    about = texts(row, export.fields, response=text)
    key = item_key(row, export.fields.item or ("id",))
    yield Entry(row=row, item=key, **about)
    labels = _labels(export, row, annotator)
    for user, values in labels.items():
        if not values:  # which may be one that nobody has looked at
            export.left_out.add("examples without a label")
            continue
        candidate = about["candidates"][0].key
        answer = Answer(QUESTION, "categories", values, QUESTION, candidate)
        yield Entry(row=row, item=key, annotator=user, answers=[answer], **about)


def _labels(export: Export, row: Row, annotator: str) -> dict[str, list[str]]:
    """The labels of each annotator."""
    if "annotations" in row.fields:
        return _labels_by_user(row)
    name = next((name for name in LABELS if name in row.fields), None)
    if name is None:
        if "entities" in row.fields or "labels" in row.fields:
            export.left_out.add("spans")
            return {}
        there = ", ".join(row.fields)
        raise row.refuse(f"there are no labels; there are {there}.", QUESTION, code="no_labels")
    value = row.fields[name]
    if isinstance(value, str):
        return {annotator: [one for one in value.split("#") if one]}
    values = inner_list(row, name)
    if any(isinstance(one, list | dict) for one in values):
        export.left_out.add("spans")
        return {}
    return {annotator: [_label(row, name, one) for one in values]}


def _label(row: Row, name: str, value: Any) -> str:
    if not isinstance(value, str | int) or value == "":
        raise row.refuse("expected a list of labels.", name, code="not_label")
    return str(value)


def _labels_by_user(row: Row) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for index, value in enumerate(inner_list(row, "annotations")):
        annotation = inner(row, value, f"annotations[{index}]")
        labels.setdefault(annotation.required("user"), []).append(annotation.required("label"))
    return labels
