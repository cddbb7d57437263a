"""A plain table of labels, whatever its columns are called: who labelled what, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annotation.exceptions import FileRefused, ImportRefused
from annotation.readers.tables import Row, read_rows

LONGEST = 1000
Kind = Literal["text", "number", "amount"]


@dataclass(frozen=True)
class Columns:
    """Which columns of a file hold what; one that is None is not read."""

    item: str
    annotator: str
    value: str
    cluster: str | None = None

    @property
    def named(self) -> list[str]:
        named = [self.item, self.annotator, self.value, self.cluster]
        return list(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class LabelTable:
    """The columns of a file, row by row; `values` are numbers where numbers were asked for."""

    items: Sequence[str]
    annotators: Sequence[str]
    values: Sequence[str] | Sequence[float]
    clusters: Sequence[str] | None


def read_labels(path: Path, columns: Columns, *, kind: Kind, repeats: bool = False) -> LabelTable:
    """The labels of a .csv, .tsv or .jsonl file, one for each item and annotator.

    Values are texts, numbers, or amounts: numbers from zero. With `repeats` an annotator may
    label an item again.
    """
    try:
        rows = read_rows(path, columns.named)
        if not repeats:
            _refuse_repeats(rows, columns)
        return LabelTable(
            items=_texts(rows, columns.item),
            annotators=_texts(rows, columns.annotator),
            values=_values(rows, columns.value, kind),
            clusters=None if columns.cluster is None else _clusters(rows, columns),
        )
    except ImportRefused as refused:
        raise FileRefused(
            refused.path, refused.problem, line=refused.line, field=refused.field
        ) from None


def _texts(rows: list[Row], column: str) -> list[str]:
    return [row.required(column, longest=LONGEST) for row in rows]


def _values(rows: list[Row], column: str, kind: Kind) -> list[str] | list[float]:
    if kind == "text":
        return _texts(rows, column)
    values = [row.number(column) for row in rows]
    for row, value in zip(rows, values, strict=True):
        if kind == "amount" and value < 0:
            raise row.refuse(f"'{value:g}' is below zero, where a ratio scale begins.", column)
    return values


def _refuse_repeats(rows: list[Row], columns: Columns) -> None:
    lines: dict[tuple[str, str], int] = {}
    for row in rows:
        item = row.required(columns.item, longest=LONGEST)
        annotator = row.required(columns.annotator, longest=LONGEST)
        first = lines.setdefault((item, annotator), row.line)
        if first != row.line:
            raise row.refuse(
                f"annotator '{annotator}' labelled item '{item}' on line {first} already."
            )


def _clusters(rows: list[Row], columns: Columns) -> list[str]:
    """The cluster of each row, where every item lies in one only."""
    column = columns.cluster or ""
    first_rows: dict[str, Row] = {}
    clusters = _texts(rows, column)
    for row, cluster in zip(rows, clusters, strict=True):
        first = first_rows.setdefault(row.required(columns.item, longest=LONGEST), row)
        if first.text(column).strip() != cluster:
            raise row.refuse(f"differs from line {first.line} of the same item.", column)
    return clusters
