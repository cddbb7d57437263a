"""Consecutive rows of a table, whose columns are checked at once.

A check of a column takes a tenth of the time that checks of its cells take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row, unstorable
from presentation.spreadsheets import from_cell

ROWS_AT_ONCE = 500
# Of which the first row is not counted: a row of any length is a block.
CHARACTERS_AT_ONCE = 4 * 1024**2

# Gets the fault of a row that is left out; rows after it are read.
OnFault = Callable[[ImportRefused], None]


@dataclass(frozen=True, slots=True)
class RowBlock:
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int]
    row: Callable[[int], Row]
    is_csv: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self) -> Iterator[Row]:
        return map(self.row, range(len(self)))


def gather_rows(
    rows: Iterable[Row], pending: list[ImportRefused], on_fault: OnFault
) -> Iterator[RowBlock]:
    """Rows as blocks.

    Reading the rows puts faults into `pending`; each is passed on after the rows before it.
    """
    block: list[Row] = []
    n_characters = 0
    failure = None
    try:
        for row in rows:
            n_characters += sum(map(len, filter(_is_text, row.fields.values())))
            if block and (
                pending
                or len(block) == ROWS_AT_ONCE
                or n_characters > CHARACTERS_AT_ONCE
                or row.fields.keys() != block[0].fields.keys()
            ):
                yield _block(block)
                block, n_characters = [], 0
            while pending:
                on_fault(pending.pop(0))
            block.append(row)
    except ImportRefused as refused:
        failure = refused
    if block:
        yield _block(block)
    for fault in pending:
        on_fault(fault)
    if failure is not None:
        raise failure


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _block(rows: list[Row]) -> RowBlock:
    return RowBlock(
        columns={name: [row.fields[name] for row in rows] for name in rows[0].fields},
        lines=[row.line for row in rows],
        row=rows.__getitem__,
        is_csv=rows[0].is_csv,
    )


class CheckedCells:
    """The texts of a block by column; `faults` has what is wrong, with the number of its row."""

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        self.faults: list[tuple[int, ImportRefused, str]] = []

    def note(self, n: int, refused: ImportRefused, value: str = "") -> None:
        self.faults.append((n, refused, value))

    def texts(self, column: str | None) -> Sequence[str]:
        """The cells as they stand; "" without a column, and for a cell that cannot be stored."""
        values = None if column is None else self._block.columns.get(column)
        if values is None:
            return [""] * len(self._block)
        if _are_storable(values):
            return values
        return [self._cell(n, column or "", Row.text) for n in range(len(self._block))]

    def names(
        self, column: str | None, *, longest: int = 200, is_required: bool = False
    ) -> Sequence[str]:
        """Like `Row.required` or `Row.optional` of each row."""
        n_rows = len(self._block)
        if column is None:
            return [""] * n_rows
        check = Row.required if is_required else Row.optional

        def read(row: Row, name: str) -> str:
            return check(row, name, longest=longest)

        values = self._block.columns.get(column, [""] * n_rows)
        if not _are_storable(values):
            return [self._cell(n, column, read) for n in range(n_rows)]
        names = [value.strip() for value in values]
        if self._block.is_csv:
            names = list(map(from_cell, names))
        if max(map(len, names)) > longest or (is_required and not all(names)):
            for n, name in enumerate(names):
                if len(name) > longest or (is_required and not name):
                    names[n] = self._cell(n, column, read)
        return names

    def _cell(self, n: int, column: str, read: Callable[[Row, str], str]) -> str:
        row = self._block.row(n)
        try:
            return read(row, column)
        except ImportRefused as refused:
            self.note(n, refused, str(row.fields.get(column) or ""))
            return ""


def _are_storable(values: Sequence[Any]) -> bool:
    """Whether all are texts that any database keeps."""
    try:
        return unstorable("".join(values)) is None
    except TypeError:
        return False
