"""Rows as files of three forms: CSV for spreadsheets, JSON Lines, and Parquet with its types.

Each is written while its rows come in, a group of them at a time, so that a file of millions
begins at once and is never in memory whole.

A spreadsheet opens the CSV without taking a text for a formula, and it reads back exactly: a text
that would begin a formula gets one apostrophe before it, as one types in a spreadsheet (csv_cells).
Numbers stay as they are, with their signs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from textwrap import indent
from typing import Any, Literal

import csv_cells
from presentation.libraries import pa, pd, pq

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
ROWS_A_PART = 500


def to_cell(text: str) -> str:
    return text if _is_number(text) else csv_cells.to_cell(text)


def from_cell(cell: str) -> str:
    # Most cells have no apostrophe, and every cell of a file comes here.
    if "'" not in cell:
        return cell
    return cell if _is_number(cell[1:]) else csv_cells.from_cell(cell)


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def csv_parts(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A CSV file in parts, while its rows come in; None is an empty cell."""
    buffer = io.StringIO()
    write = csv.writer(buffer, lineterminator="\n").writerow
    # Python before 3.13 leaves a carriage return without quotes, which then ends the row.
    write_quoted = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow
    write([to_cell(name) for name in columns])
    for number, row in enumerate(rows, start=1):
        cells = [_cell(value) for value in row]
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (write_quoted if has_return else write)(cells)
        if number % ROWS_A_PART == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def frame_csv(frame: pd.DataFrame) -> str:
    texts = {
        str(name): column.map(_cell)
        for name, column in frame.items()
        if column.dtype.kind not in "biufc"
    }
    named = {name: to_cell(str(name)) for name in frame.columns}
    return str(frame.assign(**texts).rename(columns=named).to_csv(index=False, lineterminator="\n"))


def _cell(value: Any) -> Any:
    return to_cell(value) if isinstance(value, str) else value


Kind = Literal["text", "integer", "number", "boolean", "time"]
# Rows of a Parquet row group: what is in memory at once.
GROUP_SIZE = 20_000
CSV, JSON_LINES = "text/csv; charset=utf-8", "application/jsonl; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class RowFile:
    """Named columns with what they hold, and the rows, which are gone through once.

    None is a value that is not there, in every form.
    """

    columns: Mapping[str, Kind]
    rows: Iterable[Sequence[Any]]


def row_csv(file: RowFile) -> Iterator[str]:
    # Times are in ISO 8601.
    return csv_parts(list(file.columns), _plain_rows(file))


def row_jsonl(file: RowFile) -> Iterator[str]:
    names = list(file.columns)
    for row in _plain_rows(file):
        record = dict(zip(names, row, strict=True))
        yield f"{json.dumps(record, ensure_ascii=False, allow_nan=False)}\n"


def row_parquet(file: RowFile) -> Iterator[bytes]:
    """Parquet of typed columns, which may all be null; times are in UTC, to the microsecond."""
    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in file.columns.items()])
    sink = PartBuffer()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        # The file's first bytes, so that a download begins while the first group is read.
        yield from sink.drain()
        rows = iter(file.rows)
        while group := list(islice(rows, GROUP_SIZE)):
            writer.write_table(_group(group, schema))
            yield from sink.drain()
    yield from sink.drain()


FORMS: dict[str, tuple[str, Callable[[RowFile], Iterator[str] | Iterator[bytes]]]] = {
    "csv": (CSV, row_csv),
    "jsonl": (JSON_LINES, row_jsonl),
    "parquet": (PARQUET, row_parquet),
}


def _plain_rows(file: RowFile) -> Iterable[Sequence[Any]]:
    if "time" not in file.columns.values():
        return file.rows
    return (
        tuple(value.isoformat() if isinstance(value, datetime) else value for value in row)
        for row in file.rows
    )


def _group(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    arrays = [
        pa.array(
            [value.astimezone(UTC) if isinstance(value, datetime) else value for value in column],
            type=field.type,
        )
        for field, column in zip(schema, zip(*rows, strict=True), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


class PartBuffer:
    """What a writer writes, in parts, until they are drained; it cannot be gone back in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, part: Any) -> int:
        content = bytes(part)
        self._parts.append(content)
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True

    def drain(self) -> Iterator[bytes]:
        parts, self._parts = self._parts, []
        yield from (part for part in parts if part)


def json_chunks(
    record: Mapping[str, Any], name: str, chunks: Iterable[Iterable[Mapping[str, Any]]]
) -> Iterator[str]:
    """A JSON object that ends with a list of this name, as `json.dumps(..., indent=1)` has it."""
    yield json.dumps(record, indent=1).removesuffix("\n}").removesuffix("}")
    yield f',\n "{name}": [' if record else f'\n "{name}": ['
    between = "\n"
    for rows in chunks:
        for row in rows:
            yield between + indent(json.dumps(row, indent=1), "  ")
            between = ",\n"
    yield "]\n}" if between == "\n" else "\n ]\n}"
