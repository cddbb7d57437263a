"""The files that a set of labels is offered as; apps that read labels register others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from annotation.exports import label_set_rows, labels_csv, labels_json
from annotation.models import LabelSet, Study
from console.registrations import load_registrations
from presentation.row_files import JSON_LINES, PARQUET, row_jsonl, row_parquet


@dataclass(frozen=True)
class LabelFile:
    """A form of the file: its type, its content, the word for it in the file's name, and of which
    studies it is offered."""

    content_type: str
    write: Callable[[LabelSet], Iterator[str] | Iterator[bytes]]
    word: str = "labels"
    is_offered: Callable[[Study], bool] = lambda study: True


_files = {
    "csv": LabelFile("text/csv; charset=utf-8", labels_csv),
    "json": LabelFile("application/json", labels_json),
    "jsonl": LabelFile(JSON_LINES, lambda labels: row_jsonl(label_set_rows(labels))),
    "parquet": LabelFile(PARQUET, lambda labels: row_parquet(label_set_rows(labels))),
}


def register_label_file(form: str, file: LabelFile) -> None:
    _files[form] = file


def label_file(form: str) -> LabelFile | None:
    """The file of that form; None if there is no such form."""
    load_registrations()
    return _files.get(form)
