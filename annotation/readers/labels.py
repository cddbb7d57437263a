"""A plain table of labels, whatever its columns are called: who labelled what, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from annotation.exceptions import FileRefused, ImportRefused
from annotation.readers.rows import Row
from annotation.readers.selection import LONGEST, Where, matching_rows, unit_names
from annotation.readers.tables import read_rows

Kind = Literal["text", "number", "amount"]


@dataclass(frozen=True)
class Columns:
    """Which columns of a file hold what, and which rows count; a cluster of None is not read.

    Several `item` columns together name the unit.
    """

    item: tuple[str, ...]
    annotator: str
    value: str
    cluster: str | None = None
    where: Where = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        named = [*self.item, self.annotator, self.value, self.cluster, *self.where]
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
        rows = matching_rows(read_rows(path, columns.named), columns.where)
        items = unit_names(rows, columns.item)
        if not repeats:
            _refuse_repeats(rows, items, columns)
        return LabelTable(
            items=items,
            annotators=_texts(rows, columns.annotator),
            values=_values(rows, columns.value, kind),
            clusters=None if columns.cluster is None else _clusters(rows, items, columns),
        )
    except ImportRefused as refused:
        raise FileRefused(
            refused.path,
            refused.problem,
            line=refused.line,
            field=refused.field,
            code=refused.code,
        ) from None


def _texts(rows: list[Row], column: str) -> list[str]:
    return [row.required(column, longest=LONGEST) for row in rows]


def _values(rows: list[Row], column: str, kind: Kind) -> list[str] | list[float]:
    if kind == "text":
        return [row.label(column, longest=LONGEST) for row in rows]
    values = [row.number(column) for row in rows]
    for row, value in zip(rows, values, strict=True):
        if kind == "amount" and value < 0:
            raise row.refuse(
                f"'{value:g}' is below zero, where a ratio scale begins.", column, code="below_zero"
            )
    return values


def _refuse_repeats(rows: list[Row], items: list[str], columns: Columns) -> None:
    lines: dict[tuple[str, str], int] = {}
    for row, item in zip(rows, items, strict=True):
        annotator = row.required(columns.annotator, longest=LONGEST)
        first = lines.setdefault((item, annotator), row.line)
        if first != row.line:
            raise row.refuse(
                f"annotator '{annotator}' labelled item '{item}' on line {first} already. "
                "If more columns distinguish the items, name each with --item; "
                "--where COLUMN=VALUE chooses rows.",
                code="repeated_label",
            )


def _clusters(rows: list[Row], items: list[str], columns: Columns) -> list[str]:
    """The cluster of each row, where every item lies in one only."""
    column = columns.cluster or ""
    first_rows: dict[str, Row] = {}
    clusters = _texts(rows, column)
    for row, item, cluster in zip(rows, items, clusters, strict=True):
        first = first_rows.setdefault(item, row)
        if first.optional(column, longest=LONGEST) != cluster:
            raise row.refuse(
                f"differs from line {first.line} of the same item.", column, code="differs"
            )
    return clusters
