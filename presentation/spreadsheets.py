"""CSV that a spreadsheet opens without taking a text for a formula, and that reads back exactly.

A text that would begin a formula gets one apostrophe before it, as one types in a spreadsheet
(csv_cells). Numbers stay as they are, with their signs.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import csv_cells
from presentation.libraries import pd

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
    table = frame.assign(**texts).rename(columns=named)
    return str(table.to_csv(index=False, lineterminator="\n"))


def _cell(value: Any) -> Any:
    return to_cell(value) if isinstance(value, str) else value
