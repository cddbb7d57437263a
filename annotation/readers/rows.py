"""One record of a file, which refuses itself with its own line, and blocks of consecutive ones.

A check of a block's column takes a tenth of the time that checks of its cells take.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import ReadingReport
from error_codes import CodedText
from presentation.row_files import from_cell

# Numbers up to here are exact, and have a next one.
MOST = 1e15
# Words that programs and people write for a missing value, besides an empty cell.
MISSING_WORDS = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "<NA>", "None", "null", "Null", "NULL", "NaN", "nan", "NAN", "-"}
)
MOST_SHEETS = 8
REPLACEMENT = "\ufffd"
SURROGATE = re.compile("[\ud800-\udfff]")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class TableSource:
    """What all rows of a table have in common.

    `wording` has the question of a column, if the file has a header row of them. `sheets` are all
    sheets of a workbook, of which `sheet` is read.
    """

    sheet: str = ""
    sheets: tuple[str, ...] = ()
    has_decimal_commas: bool = False
    wording: dict[str, str] = field(default_factory=dict)
    report: ReadingReport = field(default_factory=ReadingReport)

    def with_other_sheets(self, problem: str) -> str:
        others = [f"'{name}'" for name in self.sheets if name != self.sheet]
        if not others:
            return problem
        text = _("Sheet '{sheet}' was read; the others are {others}. Put the table first.")
        return f"{problem} {text.format(sheet=self.sheet, others=', '.join(others[:MOST_SHEETS]))}"

    def is_decimal_comma(self, text: str) -> bool:
        return self.has_decimal_commas and DECIMAL_COMMA.fullmatch(text) is not None

    def with_decimal_point(self, text: str) -> str:
        if not self.is_decimal_comma(text):
            return text
        self.report.note(
            CodedText(
                "Numbers with a decimal comma are read as decimals: 1,5 as 1.5.", "decimal_comma"
            )
        )
        return text.replace(",", ".")


@dataclass(slots=True)
class Row:
    """One record of a file, or an object inside it, which refuses itself with its own line.

    `record` names an element of a JSON array, of which several may be on one line. Not frozen: a
    file has a million of them, and a frozen one takes three times as long to make.
    """

    path: Path
    line: int
    fields: dict[str, Any]
    inside: str = ""
    is_csv: bool = False
    record: str = ""
    source: TableSource | None = None

    def child(self, fields: dict[str, Any], inside: str) -> Row:
        return Row(self.path, self.line, fields, inside, False, self.record, self.source)

    @property
    def place(self) -> str:
        """Where the row is in its file: "Line 3", "Record 2", "Row 5 of sheet 'Data'"."""
        return self.refuse("").place

    def refuse(self, problem: str, field: str | None = None, *, code: str = "") -> ImportRefused:
        return ImportRefused(
            self.path,
            problem,
            line=self.line,
            field=self.called(field) if field else self.inside or None,
            code=code,
            record=self.record,
            sheet=self.source.sheet if self.source else "",
        )

    def refuse_unless(
        self, condition: object, problem: str, field: str | None = None, *, code: str = ""
    ) -> None:
        if not condition:
            raise self.refuse(problem, field, code=code)

    def called(self, field: str) -> str:
        return f"{self.inside}.{field}" if self.inside else field

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if value is None:
            return ""
        # Most texts are plain, and every cell of a file comes here.
        if type(value) is str and value.isascii() and "\x00" not in value:
            return value
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise self.refuse(f"expected text, not {type(value).__name__}.", field, code="not_text")
        text = str(value)
        if (problem := unstorable(text)) is not None:
            raise self.refuse(problem, field)
        return text

    @property
    def is_simulated(self) -> bool:
        return str(self.fields.get("simulated", "")).strip().casefold() == "true"

    def required(self, field: str, *, longest: int = 200) -> str:
        """A field that must hold something, without the space around it."""
        text = self.optional(field, longest=longest)
        if not text:
            raise self.refuse("this field must not be empty.", field, code="empty")
        return text

    def optional(self, field: str, *, longest: int = 200) -> str:
        """A field that may be empty or absent, without the space around it.

        In a CSV file it is what a cell holds once a spreadsheet has taken it for text: our own
        exports write names so. Texts to be judged are read as they stand.
        """
        text = self.text(field).strip()
        text = from_cell(text) if self.is_csv else text
        if len(text) > longest:
            raise self.refuse(
                f"{len(text)} characters, where {longest} fit.", field, code="too_long"
            )
        return text

    def number(self, field: str) -> float:
        text = self.text(field).strip()
        try:
            point = self.source.with_decimal_point(text) if self.source else text
            value = float("" if "_" in text else point)
        except ValueError:
            raise self.refuse(f"'{text[:40]}' is not a number.", field, code="not_number") from None
        if not math.isfinite(value):
            raise self.refuse(f"'{text[:40]}' is not a finite number.", field, code="not_finite")
        if abs(value) > MOST:
            raise self.refuse(f"'{text[:40]}' is beyond {MOST:g}.", field, code="out_of_range")
        return value

    def number_or_nan(self, field: str) -> float:
        return self.number(field) if self.text(field).strip() else math.nan


def inner(row: Row, value: Any, name: str) -> Row:
    if not isinstance(value, dict):
        raise row.refuse("expected a JSON object in braces.", name, code="not_object")
    return row.child(value, row.called(name))


def inner_list(row: Row, name: str) -> list[Any]:
    value = row.fields.get(name)
    if not isinstance(value, list):
        raise row.refuse("expected a JSON list in brackets.", name, code="not_list")
    return value


def item_key(row: Row, names: Iterable[str]) -> str:
    names = tuple(names)
    key = "-".join(row.required(name) for name in names)
    if len(key) > 200:
        raise row.refuse(
            f"the item's name has {len(key)} characters, where 200 fit.", names[-1], code="too_long"
        )
    return key


def cell_text(value: Any) -> str:
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST:
        return str(int(value))
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def unstorable(text: str) -> CodedText | None:
    # Most texts are plain, and every cell of a file comes here.
    if text.isascii() and "\x00" not in text:
        return None
    if "\x00" in text:
        return CodedText("there is a NUL character in the text.", "nul")
    if SURROGATE.search(text):
        return CodedText("there is half a surrogate pair in the text.", "surrogate")
    return None


def storable(values: Any) -> Any:
    """JSON to display what cannot be imported: U+FFFD for what PostgreSQL refuses in it."""
    if isinstance(values, dict):
        return {storable(name): storable(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [storable(value) for value in values]
    if isinstance(values, str) and unstorable(values):
        return SURROGATE.sub(REPLACEMENT, values.replace("\x00", REPLACEMENT))
    return values


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
            n_characters += sum(len(text) for text in row.fields.values() if isinstance(text, str))
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
    try:
        return unstorable("".join(values)) is None
    except TypeError:
        return False
