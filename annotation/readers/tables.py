"""Tables in files of any format: opened once, and read row by row or by column.

A file may be compressed with gzip or be in a zip. The format, the encoding, the delimiter, the
sheet and the header rows are found; what is guessed or skipped is in the report.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.archives import temporary_folder, unpacked
from annotation.readers.delimited import TextTable
from annotation.readers.drafts import Faults, ReadingReport
from annotation.readers.formats import CSV, EXCEL, JSON, JSON_LINES, ODS, FileFormat, find_format
from annotation.readers.headers import MOST_COLUMNS, refuse_columns
from annotation.readers.json_rows import (
    fit_row,
    flatten_row,
    json_array,
    json_lines,
    json_object,
    json_page,
)
from annotation.readers.parquet import parquet_rows
from annotation.readers.pictures import NoPictures, PictureSource
from annotation.readers.rows import OnFault, Row, RowBlock, TableSource, gather_rows
from annotation.readers.spreadsheets import sheet_names, sheet_rows
from annotation.readers.text_files import copy_as_utf8, refuse_encoding, text_encoding
from error_codes import CodedText, require
from presentation.files import plain_file

# Of an upload.
MOST_UNPACKED_BYTES = 1024**3
MOST_BYTES_OF_COMMANDS = 64 * 1024**3
MOST_MAPPED_COLUMNS = 500
DELIMITER_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class OpenTable:
    """A table that can be read, with the pictures next to it.

    `path` names the file in errors; `content` is a copy of it if it was unpacked or is not UTF-8.
    """

    path: Path
    content: Path
    form: FileFormat
    pictures: PictureSource
    source: TableSource
    most_bytes: int = MOST_UNPACKED_BYTES

    @property
    def has_pictures(self) -> bool:
        return not isinstance(self.pictures, NoPictures)

    @property
    def report(self) -> ReadingReport:
        return self.source.report

    def start_report(self) -> None:
        self.source.report = ReadingReport(notes=list(self.report.notes))

    def records(
        self, columns: Sequence[str] = (), on_fault: OnFault | None = None
    ) -> Iterator[Row]:
        """The rows with at least these columns, one at a time; JSON values are nested.

        `on_fault` gets the fault of each row that is left out. Without it, the first fault is
        raised, and names how many rows have the same.
        """
        faults = Faults()
        is_empty = True
        for row in self._records(columns, self._leaving_out(on_fault or faults.add)):
            if faults.n:
                continue
            is_empty = False
            yield row
        if (fault := faults.error()) is not None:
            raise fault
        if is_empty:
            self._refuse_empty()

    def _leaving_out(self, on_fault: OnFault) -> OnFault:
        report = self.report

        def leave_out(fault: ImportRefused) -> None:
            report.leave_out(CodedText(fault.problem, fault.code), fault.place)
            on_fault(fault)

        return leave_out

    def _refuse_empty(self) -> None:
        require(
            any(code != "blank_row" for code in self.report.left_out),
            ImportRefused(self.path, _("it has no rows."), code="no_rows"),
        )

    def _records(self, columns: Sequence[str], leave_out: OnFault) -> Iterator[Row]:
        kind = self.form.kind
        if kind == CSV:
            return self._text_table().rows(columns, leave_out)
        if kind in {EXCEL, ODS}:
            return sheet_rows(
                self.path, self.content, self.source, columns, leave_out, is_ods=kind == ODS
            )
        if kind in {JSON, JSON_LINES}:
            return _fit_rows(self._json_records(leave_out), columns, leave_out)
        rows = parquet_rows(self.path, self.content, self.source, most_bytes=self.most_bytes)
        return _fit_rows(rows, columns, leave_out)

    def _text_table(self) -> TextTable:
        return TextTable(self.path, self.content, self.form.delimiter or ",", self.source)

    def _json_records(self, leave_out: OnFault) -> Iterator[Row]:
        line = 0
        try:
            with self._opened_text() as lines:
                for row in self._json_reader(lines)(self.path, lines, self.source, leave_out):
                    line = row.line
                    yield row
        except UnicodeError:
            raise refuse_encoding(self.content, self.path, "utf-8", line + 1) from None

    def _json_reader(self, lines: TextIO) -> Callable[..., Iterator[Row]]:
        if self.form.kind == JSON_LINES:
            return json_lines
        is_array = lines.read(1024).lstrip()[:1] != "{"
        lines.seek(0)
        return json_array if is_array else json_page

    def _opened_text(self) -> TextIO:
        return self.content.open(encoding=text_encoding("utf-8"), newline="")

    def rows(self, faults: Faults) -> Iterator[Row]:
        for block in self.blocks(faults):
            yield from block.rows()

    def blocks(self, faults: Faults) -> Iterator[RowBlock]:
        """The rows with flat cells for the pages. A fault is added after the rows before it, and
        the one that ends the file is the last."""
        pending: list[ImportRefused] = []
        try:
            if self.form.kind == CSV:
                yield from self._text_blocks(faults)
            else:
                yield from gather_rows(self._flat_rows(pending.append), pending, faults.add)
        except ImportRefused as refused:
            faults.add(refused)

    def _text_blocks(self, faults: Faults) -> Iterator[RowBlock]:
        is_empty = True
        for block in self._text_table().blocks((), self._leaving_out(faults.add)):
            if (n := len(block.columns)) > MOST_MAPPED_COLUMNS:
                raise refuse_columns(self.path, n, MOST_MAPPED_COLUMNS)
            is_empty = False
            yield block
        if is_empty:
            self._refuse_empty()

    def _flat_rows(self, on_fault: OnFault) -> Iterator[Row]:
        names: set[str] = set()
        for record in self.records(on_fault=on_fault):
            names.update(record.fields)
            try:
                flat = list(flatten_row(record)) if self.is_nested else [record]
            except ImportRefused as fault:
                self._leaving_out(on_fault)(fault)
                continue
            if len(record.fields) > MOST_MAPPED_COLUMNS:
                raise refuse_columns(self.path, len(record.fields), MOST_MAPPED_COLUMNS)
            if len(names) > MOST_COLUMNS:
                raise refuse_columns(self.path, len(names), MOST_COLUMNS)
            self.report.n_rows += len(flat) - 1
            yield from flat

    @property
    def is_nested(self) -> bool:
        return self.form.kind not in {CSV, EXCEL, ODS}

    def text_columns(self, names: Sequence[str]) -> tuple[np.ndarray, dict[str, Any]] | None:
        return self._text_table().columns(names) if self.form.kind == CSV else None


def _fit_rows(rows: Iterator[Row], columns: Sequence[str], leave_out: OnFault) -> Iterator[Row]:
    for row in rows:
        try:
            fit_row(row, columns)
        except ImportRefused as fault:
            leave_out(fault)
        else:
            yield row


@contextmanager
def opened_table(
    path: Path,
    chosen: FileFormat | None = None,
    *,
    pictures: PictureSource | None = None,
    most_bytes: int = MOST_UNPACKED_BYTES,
    report: ReadingReport | None = None,
) -> Iterator[OpenTable]:
    chosen = chosen or FileFormat()
    source = TableSource(report=ReadingReport() if report is None else report)
    with (
        unpacked(path, most_bytes=most_bytes, table=chosen.table) as inside,
        temporary_folder() as folder,
    ):
        name = path / inside.table if inside.table else path
        with _renaming(inside.path, name):
            form = find_format(inside.path, replace(chosen, kind=""), name=inside.path.name)
        if form.kind in {EXCEL, ODS}:
            sheets = sheet_names(name, inside.path, is_ods=form.kind == ODS)
            form = replace(
                form, sheets=sheets, sheet=form.sheet if form.sheet in sheets else sheets[0]
            )
        form = replace(form, table=inside.table, tables=inside.tables)
        source.sheet, source.sheets = form.sheet, form.sheets
        source.has_decimal_commas = form.kind in {EXCEL, ODS} or (
            form.kind == CSV and form.delimiter != ","
        )
        _note_guesses(name, form, chosen, source.report)
        content = inside.path
        if form.encoding not in {"", "utf-8"}:
            content = copy_as_utf8(content, name, form.encoding, folder)
        is_alone = isinstance(inside.pictures, NoPictures)
        with_pictures = (pictures or inside.pictures) if is_alone else inside.pictures
        yield OpenTable(name, content, form, with_pictures, source, most_bytes)


@contextmanager
def _renaming(content: Path, name: Path) -> Iterator[None]:
    try:
        yield
    except ImportRefused as refused:
        if refused.path != content:
            raise
        raise ImportRefused(name, refused.problem, line=refused.line, code=refused.code) from None


def _note_guesses(name: Path, form: FileFormat, chosen: FileFormat, report: ReadingReport) -> None:
    if form.encoding not in {"", "utf-8", chosen.encoding}:
        text = _("The file is read as {encoding} text. If letters are wrong, save it as UTF-8.")
        report.note(CodedText(text.format(encoding=form.encoding), "encoding_guessed"))
    expected = {",", chosen.delimiter, "\t" if kind_of(name) in (".tsv", ".tab") else ","}
    if form.kind == CSV and form.delimiter not in expected:
        text = _("Columns are separated by {delimiter}.")
        report.note(
            CodedText(
                text.format(delimiter=DELIMITER_NAMES.get(form.delimiter, form.delimiter)),
                "delimiter_guessed",
            )
        )
    if len(form.sheets) > 1:
        first = _("Sheet '{sheet}' is read, the first of {n}.")
        text = _("Sheet '{sheet}' of {n} is read.") if chosen.sheet else first
        report.note(CodedText(text.format(sheet=form.sheet, n=len(form.sheets)), "other_sheets"))
    if len(form.tables) > 1:
        text = _("'{table}' of {n} tables in the archive is read.")
        report.note(CodedText(text.format(table=form.table, n=len(form.tables)), "other_tables"))


@contextmanager
def opened_for_command(path: Path, report: ReadingReport | None) -> Iterator[OpenTable]:
    """The table in a file on this machine, which may be larger than an upload."""
    _require_file(path)
    with opened_table(path, most_bytes=MOST_BYTES_OF_COMMANDS, report=report) as table:
        yield table


def read_rows(
    path: Path, columns: Sequence[str] = (), *, report: ReadingReport | None = None
) -> list[Row]:
    return list(each_row(path, columns, report=report))


def each_row(
    path: Path,
    columns: Sequence[str] = (),
    *,
    on_fault: OnFault | None = None,
    report: ReadingReport | None = None,
) -> Iterator[Row]:
    with opened_for_command(path, report) as table:
        yield from table.records(columns, on_fault)


def read_object(path: Path, columns: Sequence[str] = ()) -> Row:
    with opened_for_command(path, None) as table, table._opened_text() as lines:
        try:
            fields = json_object(table.path, 1, lines.read())
        except UnicodeError:
            raise refuse_encoding(table.content, table.path, "utf-8", 1) from None
    return fit_row(Row(table.path, 1, fields), columns)


def kind_of(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _require_file(path: Path) -> None:
    try:
        require(
            path.exists(), ImportRefused(path, f"there is no such file at {path}.", code="no_file")
        )
        if not path.is_file() and not path.is_dir():
            plain_file(path)
    except OSError as error:
        raise ImportRefused(
            path, f"it cannot be read: {error.strerror}.", code="unreadable"
        ) from None
    require(path.is_file(), ImportRefused(path, f"{path} is not a file.", code="not_file"))
