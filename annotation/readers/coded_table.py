"""The cells of a plain table by column, each distinct text handled once.

A million rows of labels have a few hundred distinct annotators and a few categories. Commands
that compute from a file therefore read columns; `Row` is for records that are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import MOST_PLACES, ReadingReport
from annotation.readers.headers import MOST_COLUMNS, refuse_columns
from annotation.readers.rows import Row, TableSource, unstorable
from annotation.readers.tables import OpenTable, opened_for_command
from error_codes import CodedText, require
from presentation.row_files import from_cell

LONGEST = 1000
MOST_LISTED = 20
# Cells of records of JSON that have different fields.
MOST_ABSENT = 100_000_000


@dataclass(frozen=True)
class CodedTable:
    """The columns of a file as they stand there.

    `rows` numbers the file's rows from 0: after a conversion several rows of the table come from
    one row of the file. `lines` is the line of each of the file's rows.
    """

    path: Path
    columns: Mapping[str, Words]
    rows: Integers
    lines: Sequence[int] | NDArray[Any]
    # The name of each record of JSON, of which several may be on one line.
    records: Sequence[str] = ()
    is_csv: bool = False
    source: TableSource = field(default_factory=TableSource)
    # The path in a record of a column that a conversion made.
    inside: Mapping[str, str] = field(default_factory=dict)
    # The columns that a conversion made of several: of their names, and of their cells.
    spread: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, names: Iterable[str]) -> CodedTable:
        return replace(self, columns={name: self.columns[name] for name in names})

    def keep(self, mask: Mask) -> CodedTable:
        if mask.all():
            return self
        return replace(
            self,
            columns={name: column.rows(mask).compact() for name, column in self.columns.items()},
            rows=self.rows[mask],
        )

    def place(self, row: int) -> str:
        return self._place(int(self.rows[row]))

    def _place(self, file_row: int) -> str:
        place = self._file_row(file_row).place
        return f"{place[:1].lower()}{place[1:]}"

    def _file_row(self, file_row: int) -> Row:
        record = self.records[file_row] if self.records else ""
        return Row(self.path, int(self.lines[file_row]), {}, record=record, source=self.source)

    def places(self, mask: Mask) -> list[str]:
        rows = dict.fromkeys(self.rows[np.flatnonzero(mask)].tolist())
        return [self._place(row) for row in islice(rows, MOST_PLACES)]

    def refuse(
        self, problem: str, column: str | None, mask: Mask, *, code: str = ""
    ) -> ImportRefused:
        first, n = int(np.argmax(mask)), int(mask.sum())
        coded = problem.code if isinstance(problem, CodedText) else ""
        if n > 1:
            more = ", ".join(self.places(mask)[1:])
            dots = ", …" if n > MOST_PLACES else ""
            problem = f"{problem} {n - 1:,} more such rows: {more}{dots}."
        row = self._file_row(int(self.rows[first]))
        return row.refuse(problem, self._name_in_file(column, first), code=code or coded)

    def _name_in_file(self, column: str | None, row: int) -> str | None:
        if column is None:
            return None
        if self.spread and column == self.spread[1]:
            names = self.columns[self.spread[0]]
            return str(names.words[names.codes[row]])
        return self.inside.get(column, column)

    def require(self, columns: Iterable[str]) -> None:
        missing = [name for name in columns if name not in self.columns]
        if missing:
            names = list(self.columns)
            listed = ", ".join(name[:80] for name in names[:MOST_LISTED])
            more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
            raise ImportRefused(
                self.path,
                self.source.with_other_sheets(
                    f"columns are missing: {', '.join(missing)} (found: {listed or 'none'}{more})."
                ),
                line=1,
                sheet=self.source.sheet,
                code="missing_columns",
            )

    def words(self, column: str, *, longest: int = LONGEST, is_stripped: bool = True) -> Words:
        """A column as texts without the space around them; an absent value is empty."""
        raw = self.columns[column]
        words = [
            self._word(value, is_stripped) if type(value) is str else _text(value) or ""
            for value in raw.words
        ]
        if any(type(value) is not str and _text(value) is None for value in raw.words):
            wrong = raw.mask(lambda value: _text(value) is None)
            kind = type(raw.words[raw.codes[int(np.argmax(wrong))]]).__name__
            raise self.refuse(f"expected text, not {kind}.", column, wrong, code="not_text")
        return self._fitting(column, merged_words(raw.codes, words), longest)

    def _word(self, text: str, is_stripped: bool) -> str:
        text = text.strip() if is_stripped else text
        return from_cell(text) if self.is_csv and text.startswith("'") else text

    def _fitting(self, column: str, words: Words, longest: int) -> Words:
        for text in words.words:
            problem: str | None = unstorable(text)
            if problem is None and len(text) > longest:
                problem = CodedText(f"{len(text)} characters, where {longest} fit.", "too_long")
            if problem is not None:
                wrong = words.mask(lambda word, bad=text: word == bad)  # type: ignore[misc]
                raise self.refuse(problem, column, wrong)
        return words


def _text(value: Any) -> str | None:
    if value is None:
        return ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return None


def read_table(
    path: Path, names: Sequence[str] = (), *, report: ReadingReport | None = None
) -> CodedTable:
    """The columns of a table: only those with these names, if it has them all."""
    with opened_for_command(path, report) as table:
        if table.is_nested:
            return _nested_table(table)
        try:
            return _flat_table(table, names)
        except ImportRefused as refused:
            if refused.code != "missing_columns":
                raise
            return _flat_table(table, ())


def _flat_table(table: OpenTable, names: Sequence[str]) -> CodedTable:
    read = table.text_columns(names)
    if read is not None and (fast := _arrow_table(table, *read)) is not None:
        return fast
    lines: list[int] = []
    codes: dict[str, list[int]] = {}
    texts: dict[str, dict[str, int]] = {}
    is_csv = False
    for row in table.records(names):
        for name in names or row.fields:
            known = texts.setdefault(name, {})
            if name not in codes:
                codes[name] = [known.setdefault("", 0)] * len(lines) if lines else []
            codes[name].append(known.setdefault(row.text(name), len(known)))
        lines.append(row.line)
        is_csv = row.is_csv
        for name, column in codes.items():
            if len(column) < len(lines):
                column.append(texts[name].setdefault("", len(texts[name])))
    columns = {
        name: Words(np.array(column, np.intp), list(texts[name])) for name, column in codes.items()
    }
    return _table_of(table, columns, lines, is_csv=is_csv)


def _arrow_table(
    table: OpenTable, lines: NDArray[Any], arrays: dict[str, Any]
) -> CodedTable | None:
    """None if a row is empty in all of these columns: it may be a blank row."""
    n = len(lines)
    require(n != 0, ImportRefused(table.path, _("it has no rows."), code="no_rows"))
    columns = {}
    for name in list(arrays):
        chunks = arrays.pop(name).chunks
        codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in chunks]
        # Codes of several columns are multiplied, which 32 bits would not hold.
        columns[name] = Words(
            np.concatenate(codes).astype(np.intp), chunks[0].dictionary.to_pylist()
        )
    is_blank = np.ones(n, bool)
    for column in columns.values():
        is_blank &= column.codes == (column.words.index("") if "" in column.words else -1)
    if is_blank.any():
        return None
    table.report.n_rows += n
    return _table_of(table, columns, lines, is_csv=True)


def _table_of(
    table: OpenTable,
    columns: Mapping[str, Words],
    lines: Sequence[int] | NDArray[Any],
    *,
    is_csv: bool,
) -> CodedTable:
    return CodedTable(
        table.path, columns, np.arange(len(lines)), lines, is_csv=is_csv, source=table.source
    )


def _sparse(numbers: list[int], values: list[Any], n: int) -> Words:
    column = coded(values)
    if len(numbers) == n:
        return column
    words = column.words if "" in column.words else [*column.words, ""]
    codes = np.full(n, words.index(""), dtype=np.intp)
    codes[numbers] = column.codes
    return Words(codes, words)


def _nested_table(table: OpenTable) -> CodedTable:
    columns: dict[str, tuple[list[int], list[Any]]] = {}
    lines: list[int] = []
    records: list[str] = []
    texts: dict[str, str] = {}
    n_cells = 0
    for row in table.records():
        for name, value in row.fields.items():
            numbers, values = columns.setdefault(name, ([], []))
            numbers.append(len(lines))
            # One copy of equal texts, of which a file of Parquet may have gigabytes.
            values.append(texts.setdefault(value, value) if type(value) is str else value)
        lines.append(row.line)
        records.append(row.record)
        n_cells += len(row.fields)
        if len(columns) > MOST_COLUMNS:
            raise refuse_columns(table.path, len(columns), MOST_COLUMNS, line=row.line)
        if len(lines) * len(columns) - n_cells > MOST_ABSENT:
            raise row.refuse(
                f"the records have {len(columns):,} fields, of which each lacks most.",
                code="too_many_columns",
            )
    return CodedTable(
        table.path,
        {name: _sparse(*column, len(lines)) for name, column in columns.items()},
        np.arange(len(lines)),
        lines,
        records,
        source=table.source,
    )


Mask = NDArray[np.bool_]
Integers = NDArray[np.intp]
Objects = NDArray[np.object_]


@dataclass(frozen=True)
class Words:
    """A column as its distinct values and, of each row, which of them it has.

    In a table these are the cells as they stand in the file; lists and objects of JSON, which
    cannot be compared, are all distinct.
    """

    codes: Integers
    words: list[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def to_list(self) -> list[Any]:
        return list(self.take(self.words))

    def take(self, values: Sequence[Any]) -> Objects:
        of_words = np.empty(len(values), dtype=object)
        of_words[:] = values
        return of_words[self.codes]

    def rows(self, chosen: Mask | Integers) -> Words:
        return Words(self.codes[chosen], self.words)

    def compact(self) -> Words:
        is_used = np.bincount(self.codes, minlength=len(self.words)) > 0
        if is_used.all():
            return self
        codes = np.cumsum(is_used) - 1
        return Words(codes[self.codes], [self.words[at] for at in np.flatnonzero(is_used).tolist()])

    def mask(self, is_chosen: Callable[[Any], bool]) -> Mask:
        chosen = np.fromiter(map(is_chosen, self.words), dtype=np.bool_, count=len(self.words))
        return chosen[self.codes] if len(self.words) else np.zeros(len(self.codes), np.bool_)


def coded(values: Iterable[Any]) -> Words:
    number: dict[Any, int] = {}
    words: list[Any] = []
    codes: list[int] = []
    for value in values:
        # 1, 1.0 and true are equal and not the same; lists and objects have no hash.
        key: Any = value if type(value) is str else (type(value), value)
        if isinstance(value, list | dict):
            key = len(words), None
        code = number.setdefault(key, len(words))
        if code == len(words):
            words.append(value)
        codes.append(code)
    return Words(np.array(codes, dtype=np.intp), words)


def number_in_order(codes: Integers) -> tuple[Integers, Integers]:
    """Codes numbered from 0 in the order in which they come, and the first row of each."""
    _distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order))
    return number[inverse], first[order]


def merged_words(codes: Integers, words: Sequence[str]) -> Words:
    if len({*words}) == len(words):
        return Words(codes, list(words))
    merged = coded(words)
    return Words(merged.codes[codes], merged.words)


def stacked(columns: Sequence[Words]) -> Words:
    words: list[Any] = []
    parts = []
    for column in columns:
        union = coded([*words, *column.words])
        words = union.words
        parts.append(union.codes[len(union.codes) - len(column.words) :][column.codes])
    return Words(np.stack(parts, axis=1).ravel(), words)
