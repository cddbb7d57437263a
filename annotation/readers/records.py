"""The records of a table of any kind as rows of named cells, one at a time.

What is wrong with one record is noted, and the next one is read; what makes the rest of the file
unreadable is raised.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.bounded_lines import BoundedLines
from annotation.readers.formats import (
    CSV,
    EXCEL,
    JSON,
    JSON_LINES,
    FileFormat,
    text_encoding,
)
from annotation.readers.json_rows import fit_row, json_array, json_object
from annotation.readers.rows import Row
from annotation.readers.tables import undecodable_line
from presentation.files import reason_of

Refuse = Callable[[ImportRefused], None]
# An array has to be in memory to be read; lines have not.
MOST_ARRAY_BYTES = 64 * 1024 * 1024
MOST_COLUMNS = 500
# Of a sheet, as Excel has it. One that says it has a row further down would have all before it.
MOST_ROWS = 2**20
SPEAKERS, WORDS = ("role", "speaker", "from", "author"), ("content", "text", "value", "utterance")
ERRORS_OF_CELLS = re.compile(r"#(REF!|N/A|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!)")


def each_record(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    """The rows of a table; `note` is given what is wrong with a record that is left out."""
    readers = {CSV: _csv_records, EXCEL: _excel_records, JSON: _array, JSON_LINES: _lines}
    is_empty = True
    for row in readers.get(form.kind, _parquet_records)(path, form, note):
        is_empty = False
        yield row
    if is_empty:
        raise ImportRefused(path, _("it holds no rows."), code="no_rows")


def _csv_records(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    with path.open(encoding=text_encoding(form.encoding), newline="") as lines:
        bounded = BoundedLines(path, lines)
        reader = csv.reader(bounded, strict=True, delimiter=form.delimiter or ",")
        header: list[str] | None = None
        line = 1
        while (record := _next_record(reader, path, form, line)) is not None:
            bounded.begin_record(line=reader.line_num + 1)
            if header is None:
                header = _header(path, record) if any(record) else None
            elif any(record) and (values := _fitted(path, line, header, record, note)):
                yield Row(path, line, dict(zip(header, values, strict=True)), is_csv=True)
            line = reader.line_num + 1


def _next_record(reader: Any, path: Path, form: FileFormat, line: int) -> list[str] | None:
    try:
        record: list[str] | None = next(reader, None)
    except csv.Error as error:
        problem = _("this is not CSV: {error}. Is a quotation mark missing?").format(
            error=reason_of(error)
        )
        raise ImportRefused(path, problem, line=line, code="not_csv") from None
    except UnicodeError:
        problem = _(
            "this is not {encoding} text; read it in another encoding, or save it as UTF-8."
        )
        problem = problem.format(encoding=form.encoding)
        raise ImportRefused(
            path, problem, line=_undecodable(path, form, line), code="wrong_encoding"
        ) from None
    return record


def _undecodable(path: Path, form: FileFormat, line: int) -> int:
    """The line that is none of the encoding; a reader, which reads ahead, stands at `line`."""
    if form.encoding.startswith("utf-16"):
        return line
    with path.open("rb") as content:
        return undecodable_line(content, form.encoding)


def _header(path: Path, record: Sequence[object], line: int = 1) -> list[str]:
    """The names of the columns; one without a name is called by its number."""
    names = [
        _text(cell).strip() or _("Column {n}").format(n=n) for n, cell in enumerate(record, start=1)
    ]
    if len(names) > MOST_COLUMNS:
        problem = _("it has {n} columns; {most} fit.").format(n=len(names), most=MOST_COLUMNS)
        raise ImportRefused(path, problem, line=line, code="too_many_columns")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        problem = _("columns appear twice: {names}. Give each a name of its own.")
        raise ImportRefused(
            path, problem.format(names=", ".join(repeated)), line=line, code="repeated_columns"
        )
    return names


def _fitted(
    path: Path, line: int, header: list[str], record: list[str], note: Refuse
) -> list[str] | None:
    """The cells of a record, of which empty ones may stand past the header's end."""
    n = len(header)
    if len(record) > n and not any(record[n:]):
        record = record[:n]
    if len(record) == n:
        return record
    problem = _("{n} fields, where the header has {n_columns}.")
    note(
        ImportRefused(
            path, problem.format(n=len(record), n_columns=n), line=line, code="field_count"
        )
    )
    return None


def _excel_records(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    header: list[str] | None = None
    with _workbook(path) as book:
        sheet = book[form.sheet] if form.sheet in book.sheetnames else book.worksheets[0]
        # A sheet that says it is smaller than it is would be cut.
        sheet.reset_dimensions()
        for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            if line > MOST_ROWS:
                problem = _("it has rows after row {n}, the last that Excel has.")
                raise ImportRefused(
                    path, problem.format(n=f"{MOST_ROWS:,}"), line=line, code="too_many_rows"
                )
            record = _without_empty_end(cells)
            if not record:
                continue
            if header is None:
                header = _header(path, record, line)
                continue
            if len(record) > len(header):
                problem = _("there is a cell in column {n}, which has no name in the first row.")
                note(
                    ImportRefused(
                        path, problem.format(n=len(record)), line=line, code="unnamed_column"
                    )
                )
                continue
            record += [None] * (len(header) - len(record))
            values = [_text(cell) for cell in record]
            row = Row(path, line, dict(zip(header, values, strict=True)))
            for name, value in row.fields.items():
                if ERRORS_OF_CELLS.fullmatch(value):
                    note(
                        row.refuse(
                            _("the cell holds the error {error}.").format(error=value),
                            name,
                            code="cell_error",
                        )
                    )
            yield row


class _workbook:  # noqa: N801
    """An Excel file, closed at the end; ImportRefused where it is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        import openpyxl

        self._file = self._path.open("rb")
        try:
            self._book = openpyxl.load_workbook(self._file, read_only=True, data_only=True)
        except (KeyError, ValueError, TypeError, OSError, zipfile.BadZipFile, SyntaxError) as error:
            self._file.close()
            problem = _(
                "it is not an Excel file that can be read ({error}). Save it anew as .xlsx."
            )
            raise ImportRefused(
                self._path, problem.format(error=type(error).__name__), code="not_excel"
            ) from None
        if not self._book.worksheets:
            self.__exit__()
            raise ImportRefused(self._path, _("it holds no sheet with cells."), code="no_cells")
        return self._book

    def __exit__(self, *of_error: object) -> None:
        self._book.close()
        self._file.close()


def sheets_of(path: Path) -> tuple[str, ...]:
    """The names of an Excel file's sheets."""
    with _workbook(path) as book:
        return tuple(sheet.title for sheet in book.worksheets)


def _without_empty_end(cells: Sequence[Any]) -> list[Any]:
    record = list(cells)
    while record and record[-1] in (None, ""):
        record.pop()
    return record


def _lines(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    with path.open(encoding=text_encoding(form.encoding), newline="") as lines:
        bounded = BoundedLines(path, lines)
        for line in count(1):
            try:
                text = next(bounded, None)
                if text is None:
                    return
                bounded.begin_record(line=line + 1)
                if text.strip():
                    record = fit_row(Row(path, line, json_object(path, line, text.rstrip())), ())
                    yield from _flattened(record)
            except ImportRefused as refused:
                if bounded.is_refused:
                    raise
                note(refused)
            except UnicodeError:
                problem = _("this is not {encoding} text; save it as UTF-8.")
                problem = problem.format(encoding=form.encoding)
                raise ImportRefused(
                    path, problem, line=_undecodable(path, form, line), code="wrong_encoding"
                ) from None


def _array(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    """A JSON array of objects, or an object that holds one such array."""
    if path.stat().st_size > MOST_ARRAY_BYTES:
        n = MOST_ARRAY_BYTES // 1024**2
        problem = _("a JSON array of more than {n} MiB; save it as JSON Lines, an object a line.")
        raise ImportRefused(path, problem.format(n=n), code="too_large")
    try:
        content = path.read_text(encoding=text_encoding(form.encoding))
    except UnicodeError:
        problem = _("this is not {encoding} text; save it as UTF-8.").format(encoding=form.encoding)
        raise ImportRefused(path, problem, code="wrong_encoding") from None
    for row in _objects(path, content):
        try:
            yield from _flattened(fit_row(row, ()))
        except ImportRefused as refused:
            note(refused)


def _objects(path: Path, content: str) -> Iterator[Row]:
    if content.lstrip().startswith("["):
        yield from json_array(path, content)
        return
    fields = json_object(path, 1, content)
    arrays = [value for value in fields.values() if _is_records(value)]
    if len(arrays) != 1:
        problem = _("expected an array of objects, or one object that holds one such array.")
        raise ImportRefused(path, problem, line=1, code="not_objects")
    for n, value in enumerate(arrays[0], start=1):
        yield Row(path, n, value)


def _parquet_records(path: Path, form: FileFormat, note: Refuse) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as table:
            line = count(1)
            for batch in table.iter_batches(batch_size=1000):
                for fields in batch.to_pylist():
                    try:
                        yield from _flattened(fit_row(Row(path, next(line), _plain(fields)), ()))
                    except ImportRefused as refused:
                        note(refused)
    except (ArrowException, OSError) as error:
        problem = _("it is not a Parquet file that can be read: {error}.")
        raise ImportRefused(
            path, problem.format(error=reason_of(error)[:200]), code="not_parquet"
        ) from None


def _plain(value: Any) -> Any:
    """What Parquet holds as JSON would: times as text, bytes not at all."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return ""
    return value if isinstance(value, str | int | float | bool | None) else _text(value)


def _flattened(row: Row) -> Iterator[Row]:
    """The cells of an object: those of objects inside it by dotted names, lists of texts and turns
    as lines; a list of objects makes a row of each."""
    cells: dict[str, Any] = {}
    pools: list[tuple[str, list[dict[str, Any]]]] = []
    _gather(row.fields, "", cells, pools)
    if len(cells) > MOST_COLUMNS:
        raise row.refuse(
            _("it has more than {n} fields.").format(n=MOST_COLUMNS), code="too_many_columns"
        )
    for name, pool in pools[1:]:
        cells[name] = json.dumps(pool, ensure_ascii=False)
    if not pools:
        yield Row(row.path, row.line, cells)
        return
    name, pool = pools[0]
    for entry in pool:
        inside: dict[str, Any] = {}
        further: list[tuple[str, list[dict[str, Any]]]] = []
        _gather(entry, f"{name}.", inside, further)
        inside |= {label: json.dumps(each, ensure_ascii=False) for label, each in further}
        yield Row(row.path, row.line, cells | inside)


def _gather(
    fields: Mapping[str, Any],
    prefix: str,
    cells: dict[str, Any],
    pools: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _gather(value, f"{name}.", cells, pools)
        elif _is_records(value) and not _is_dialogue(value):
            pools.append((name, value))
        elif isinstance(value, list):
            cells[name] = "\n".join(_turn(each) for each in value)
        else:
            cells[name] = _text(value)


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _is_dialogue(turns: list[dict[str, Any]]) -> bool:
    return all(
        any(name in turn for name in SPEAKERS) and any(name in turn for name in WORDS)
        for turn in turns
    )


def _turn(turn: Any) -> str:
    if not isinstance(turn, dict):
        return turn if isinstance(turn, str) else json.dumps(turn, ensure_ascii=False)
    who = next((turn[name] for name in SPEAKERS if name in turn), "")
    words = next((turn[name] for name in WORDS if name in turn), "")
    return f"{_text(who).capitalize()}: {_text(words)}"


def _text(value: Any) -> str:
    """A cell as a spreadsheet shows it: whole numbers without a point, times as ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
