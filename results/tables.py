"""Tables of a result: which columns a record's rows have, and how pages and papers show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from error_codes import CodedText
from presentation import documents
from presentation.documents import Cell, Number, P
from presentation.libraries import pc, pq
from presentation.row_files import Kind, RowFile, row_parquet

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from results.models import Result

Row = Mapping[str, Any]
Record = Mapping[str, Any]
TableRows = Callable[[Record], Sequence[Row]]


@dataclass(frozen=True)
class Column:
    """A column; `name` of a row's value is the column's key in its table."""

    # May name settings of the result in braces.
    title: StrOrPromise
    # The title that it shares with its neighbors.
    group: StrOrPromise = field(default="", kw_only=True)
    # Whether the column is left out if no row has a value.
    hide_empty: bool = field(default=False, kw_only=True)
    # Whether the cell is empty in rows that do not have it.
    is_optional: bool = field(default=False, kw_only=True)
    is_number = True

    def cell(self, row: Row, name: str) -> Cell:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Column):
    labels: Mapping[str, StrOrPromise] = field(default_factory=dict)
    is_number = False

    def cell(self, row: Row, name: str) -> Cell:
        value = "" if row[name] is None else str(row[name])
        return str(self.labels.get(value, value))


@dataclass(frozen=True)
class YesNo(Column):
    is_number = False

    def cell(self, row: Row, name: str) -> Cell:
        return _("yes") if row[name] else _("no")


@dataclass(frozen=True)
class Count(Column):
    def cell(self, row: Row, name: str) -> Cell:
        value: int = row[name]
        return value


@dataclass(frozen=True)
class Value(Column):
    """A number without an interval; None is undefined. `best` of a row is whether it stands out."""

    digits: int = 3
    best: str = ""

    def cell(self, row: Row, name: str) -> Cell:
        return Number(row.get(name), self.digits, is_best=bool(row.get(self.best)))


@dataclass(frozen=True)
class Estimate(Column):
    """A number with its interval, or the reason why one of them is undefined.

    The limits are the row's `low` and `high`; or those of the value itself if it is a mapping of
    `value`, `ci_low`, `ci_high` and `reason`.
    """

    digits: int = 3
    low: str = "ci_low"
    high: str = "ci_high"
    reason: str = "reason"

    def cell(self, row: Row, name: str) -> Cell:
        if isinstance(row.get(name), Mapping):
            row, name = row[name], "value"
        reason = str(row.get(self.reason) or "")
        return Number(
            row.get(name),
            self.digits,
            row.get(self.low),
            row.get(self.high),
            reason=reason,
            no_interval=reason,
        )


@dataclass(frozen=True)
class PValue(Column):
    reason: str = ""

    def cell(self, row: Row, name: str) -> Cell:
        return P(row.get(name), reason=str(row.get(self.reason) or ""))


@dataclass(frozen=True)
class Table:
    """A table of a record.

    `rows` finds them in the record; by default they are the list under the table's name.
    `finding` says in a few words what the table shows; `note` explains its columns.
    """

    caption: StrOrPromise
    columns: Mapping[str, Column]
    finding: Callable[[Sequence[Row], Result], str] = lambda rows, result: f"{len(rows):,}"
    note: Callable[[Result], str] = lambda result: ""
    rows: TableRows | None = None

    def read_rows(self, name: str, record: Record) -> Sequence[Row]:
        found: Sequence[Row] = record.get(name, ()) if self.rows is None else self.rows(record)
        return found

    def show(self, name: str, rows: Sequence[Row], result: Result) -> documents.Table:
        shown = {
            key: one
            for key, one in self.columns.items()
            if not one.hide_empty or any(row.get(key) is not None for row in rows)
        }
        return documents.Table(
            name.replace("_", "-"),
            str(self.caption),
            tuple(
                documents.Column(
                    str(one.title).format_map(result.settings),
                    group=str(one.group),
                    is_number=one.is_number,
                )
                for one in shown.values()
            ),
            [
                tuple(
                    "" if one.is_optional and key not in row else one.cell(row, key)
                    for key, one in shown.items()
                )
                for row in rows
            ],
            note=self.note(result),
        )


def sentence(code: str, text: str, **values: object) -> CodedText:
    """A sentence of a result, with the code that tests and programs know it by."""
    return CodedText(text.format(**values), code=code)


# Rows of a part of a long table: what is decoded to read one of them. Stored tables rely on it.
ROWS_A_PART = 100_000
ROWS_A_BATCH = 2000


def pack_rows(
    name: str, columns: Mapping[str, Kind], rows: Iterable[Row]
) -> Iterator[tuple[str, bytes]]:
    """A table that grows without bound, as parts of a result: Parquet files of consecutive rows."""
    values = (tuple(row[column] for column in columns) for row in rows)
    for number in count():
        if not (some := list(islice(values, ROWS_A_PART))):
            return
        yield f"{name}-{number}", b"".join(row_parquet(RowFile(columns, some)))


def read_rows(result: Result, name: str, *, after: int = 0, **equal: Any) -> Iterator[Row]:
    """The rows of a long table after as many, with these values in some of its columns."""
    number, n_before = divmod(after, ROWS_A_PART)
    while part := result.parts.filter(name=f"{name}-{number}").first():
        table = pq.ParquetFile(BytesIO(part.content)).read().slice(n_before)
        for column, value in equal.items():
            table = table.filter(pc.equal(table[column], value))
        for batch in table.to_batches(ROWS_A_BATCH):
            yield from batch.to_pylist()
        number, n_before = number + 1, 0
