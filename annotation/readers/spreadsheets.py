"""Rows of spreadsheets: Excel's .xlsx by openpyxl, and OpenDocument's .ods.

A reader keeps a row until its end, and everything outside rows. A file may unpack to a thousand
times its size, so the memory that its XML takes is measured before it is read.
OpenDocument 1.3, part 3, section 9: https://docs.oasis-open.org/office/OpenDocument/v1.3/
"""

import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element
from xml.parsers.expat import ExpatError, ParserCreate

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused, require
from annotation.readers.headers import (
    LOOKED_AT,
    MOST_COLUMNS,
    Header,
    NumberedRecord,
    find_header,
    require_columns,
)
from annotation.readers.rows import OnFault, Row, TableSource, cell_text

# Of a sheet, as Excel has it. One that says it has a row further down would have all before it.
MOST_ROWS = 2**20
# Of repeated rows of an .ods file, in which one row may stand for a million.
MOST_REPEATED_CELLS = 10_000_000
# "#N/A" is a missing value, which the reader of the column decides on.
CELL_ERRORS = re.compile(r"#(REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!)|Err:\d+")
# Raised by openpyxl and the XML parser for files that no spreadsheet wrote.
DAMAGES = (
    *(KeyError, ValueError, TypeError, IndexError, AttributeError, SyntaxError, OSError, EOFError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OverflowError),
    *(AssertionError, DefusedXmlException),
)
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
CONTENT = "content.xml"


def sheet_rows(
    name: Path,
    content: Path,
    source: TableSource,
    columns: Sequence[str],
    on_fault: OnFault,
    *,
    is_ods: bool,
) -> Iterator[Row]:
    with _refusing_damage(name, is_ods):
        records = _ods_records(content, source.sheet) if is_ods else _excel_records(content, source)
        filled = _filled_records(name, records, source.sheet)
        first = list(islice(filled, LOOKED_AT))
        if not first:
            return
        header = find_header(name, first, source, is_sheet=True)
        try:
            require_columns(name, header.names, columns, header.line, source.sheet)
        except ImportRefused as refused:
            problem = source.with_other_sheets(refused.problem)
            raise ImportRefused(
                name, problem, line=header.line, sheet=source.sheet, code=refused.code
            ) from None
        for record in chain(first[header.n_records :], filled):
            if (row := _sheet_row(name, header, record, source, on_fault)) is not None:
                yield row


@contextmanager
def _refusing_damage(name: Path, is_ods: bool) -> Iterator[None]:
    try:
        yield
    except ImportRefused:
        raise
    except DAMAGES as error:
        problem = _("it is not an Excel file that can be read ({error}). Save it again as .xlsx.")
        if is_ods:
            problem = _("it is not an .ods file that can be read ({error}). Save it again.")
        raise ImportRefused(
            name,
            problem.format(error=type(error).__name__),
            code="not_ods" if is_ods else "not_excel",
        ) from None


def _filled_records(
    name: Path, records: Iterator[tuple[int, Sequence[Any]]], sheet: str
) -> Iterator[NumberedRecord]:
    for line, cells in records:
        if line > MOST_ROWS:
            raise ImportRefused(
                name,
                _("it has rows after row {n}, the last that Excel has.").format(n=f"{MOST_ROWS:,}"),
                line=line,
                sheet=sheet,
                code="too_many_rows",
            )
        end = len(cells)
        while end and cells[end - 1] in (None, ""):
            end -= 1
        if end:
            yield NumberedRecord(line, [cell_text(cell) for cell in cells[:end]])


def _sheet_row(
    name: Path, header: Header, record: NumberedRecord, source: TableSource, on_fault: OnFault
) -> Row | None:
    source.report.n_rows += 1
    cells, n = record.cells, len(header.names)
    if len(cells) > n:
        on_fault(
            ImportRefused(
                name,
                _("there is a cell in column {n}, which has no name in the header.").format(
                    n=len(cells)
                ),
                line=record.line,
                sheet=source.sheet,
                code="unnamed_column",
            )
        )
        return None
    cells = cells + [""] * (n - len(cells))
    row = Row(name, record.line, dict(zip(header.names, cells, strict=True)), "", False, "", source)
    for column, value in row.fields.items():
        if value[:1] in {"#", "E"} and CELL_ERRORS.fullmatch(value):
            on_fault(
                row.refuse(
                    _("the cell has the error {error}. Correct the formula.").format(error=value),
                    column,
                    code="cell_error",
                )
            )
            return None
    return row


@contextmanager
def _workbook(path: Path) -> Iterator[Any]:
    import openpyxl

    with path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            yield book
        finally:
            book.close()


def _excel_records(path: Path, source: TableSource) -> Iterator[tuple[int, Sequence[Any]]]:
    with _workbook(path) as book:
        sheet = book[source.sheet]
        # A sheet that says it is smaller than it is would be cut.
        sheet.reset_dimensions()
        yield from enumerate(sheet.iter_rows(values_only=True), start=1)


def sheet_names(name: Path, content: Path, *, is_ods: bool) -> tuple[str, ...]:
    """The names of the sheets that have cells; hidden sheets of Excel come last."""
    with _refusing_damage(name, is_ods):
        if is_ods:
            with _ods_content(content) as xml:
                tables = (each for each in iterparse(xml, events=("start", "end"), forbid_dtd=True))
                names = tuple(_ods_names(tables))
        else:
            with _workbook(content) as book:
                sheets = sorted(book.worksheets, key=lambda each: each.sheet_state != "visible")
                names = tuple(sheet.title for sheet in sheets)
    require(names, ImportRefused(name, _("it has no sheet with cells."), code="no_cells"))
    return names


@contextmanager
def _ods_content(path: Path) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(CONTENT) as xml:
        yield xml


def _ods_names(events: Iterator[tuple[str, Element]]) -> Iterator[str]:
    for event, element in events:
        if event == "start" and element.tag == f"{TABLE}table":
            yield element.get(f"{TABLE}name", "")
        elif event == "end" and element.tag != f"{TABLE}table":
            element.clear()


def _ods_records(path: Path, sheet: str) -> Iterator[tuple[int, Sequence[Any]]]:
    """Rows of a sheet with their numbers; empty rows, which may be a million, only count."""
    line, n_repeated, is_inside = 0, 0, False
    parents: list[Element] = []
    with _ods_content(path) as xml:
        for event, element in iterparse(xml, events=("start", "end"), forbid_dtd=True):
            if event == "start":
                parents.append(element)
                is_table = element.tag == f"{TABLE}table"
                is_inside = is_inside or (is_table and element.get(f"{TABLE}name", "") == sheet)
                continue
            parents.pop()
            if element.tag == f"{TABLE}table":
                if is_inside:
                    return
                element.clear()
            elif element.tag == f"{TABLE}table-row":
                n = max(int(element.get(f"{TABLE}number-rows-repeated", "1")), 1)
                cells = _ods_cells(element) if is_inside else []
                if cells:
                    n_repeated += (n - 1) * len(cells)
                    if n_repeated > MOST_REPEATED_CELLS:
                        raise ValueError("repeated rows")
                    for each in range(n):
                        yield line + each + 1, cells
                line += n if is_inside else 0
                # A row that is read takes no memory any more.
                parents[-1].remove(element)


def _ods_cells(row: Element) -> list[Any]:
    cells: list[Any] = []
    n_empty = 0
    for element in row:
        if element.tag not in {f"{TABLE}table-cell", f"{TABLE}covered-table-cell"}:
            continue
        n = max(int(element.get(f"{TABLE}number-columns-repeated", "1")), 1)
        value = _ods_value(element)
        if value in (None, ""):
            n_empty += n
            continue
        if len(cells) + n_empty + n > MOST_COLUMNS:
            raise ValueError("too many columns")
        cells += [None] * n_empty + [value] * n
        n_empty = 0
    return cells


def _ods_value(cell: Element) -> Any:
    kind = cell.get(f"{OFFICE}value-type", "")
    if kind in {"float", "percentage", "currency"}:
        return float(cell.get(f"{OFFICE}value", ""))
    if kind == "boolean":
        return cell.get(f"{OFFICE}boolean-value", "") == "true"
    if kind in {"date", "time"}:
        return cell.get(f"{OFFICE}{kind}-value", "")
    return "\n".join(_ods_text(each) for each in cell if each.tag == f"{TEXT}p")


def _ods_text(element: Element) -> str:
    signs = {f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
    parts = [element.text or ""]
    for each in element:
        if each.tag == f"{TEXT}s":
            parts.append(" " * min(int(each.get(f"{TEXT}c", "1")), 1000))
        elif each.tag.startswith(TEXT):
            parts.append(signs.get(each.tag) or _ods_text(each))
        parts.append(each.tail or "")
    return "".join(parts)


# A sheet of Excel has 16,384 columns; a cell with its text has three elements.
MOST_ROW_ELEMENTS = 200_000
MOST_ROW_BYTES = 32 * 1024**2
# The rows themselves, of which Excel has a million, styles, links and merged cells.
MOST_OTHER_ELEMENTS = 2_500_000
MOST_OTHER_BYTES = 128 * 1024**2
# Of the part with the texts of all cells of an Excel file; two for each text.
MOST_TEXTS_ELEMENTS = 10_000_000
READ_AT_ONCE = 64 * 1024
SEPARATOR = " "
# The parts that are read row by row begin with these.
SHEETS = {
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main worksheet",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0 document-content",
}
ROWS = {
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main row",
    "urn:oasis:names:tc:opendocument:xmlns:table:1.0 table-row",
}


class _Measure:
    def __init__(self, path: Path, most_others: int) -> None:
        self.path, self.most_others = path, most_others
        self.parser: Any = ParserCreate(namespace_separator=SEPARATOR)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.rows: Collection[str] = ()
        self.n_open = self.n_in_row = self.n_others = 0
        self.row_start = self.row_bytes = self.n_bytes = 0

    def feed(self, content: bytes) -> None:
        self.parser.Parse(content)
        self.n_bytes += len(content)
        in_row = self.n_bytes - self.row_start if self.n_open else 0
        others = self.n_bytes - self.row_bytes - in_row
        if in_row > MOST_ROW_BYTES or others > MOST_OTHER_BYTES:
            raise self._too_large()

    def _start(self, name: str, _attributes: Any) -> None:
        if self.n_open:
            self.n_in_row += 1
        else:
            self.n_others += 1
            if self.n_others == 1 and name in SHEETS:
                self.rows = ROWS
        if self.n_in_row > MOST_ROW_ELEMENTS or self.n_others > self.most_others:
            raise self._too_large()
        if name in self.rows:
            if not self.n_open:
                self.n_in_row, self.row_start = 0, self.parser.CurrentByteIndex
            self.n_open += 1

    def _end(self, name: str) -> None:
        if self.n_open and name in self.rows:
            self.n_open -= 1
            if not self.n_open:
                self.row_bytes += self.parser.CurrentByteIndex - self.row_start

    def _too_large(self) -> ImportRefused:
        return ImportRefused(
            self.path,
            _("a row, or the part outside rows, is too large to read. Save it as CSV."),
            code="row_too_large",
        )


def require_bearable_xml(path: Path, archive: zipfile.ZipFile, *, texts: Collection[str]) -> None:
    """Refuse a spreadsheet if one of its parts would fill the memory.

    `texts` names the parts with the texts of all cells. Damaged XML is left to the reader.
    """
    for member in archive.infolist():
        measure = _Measure(
            path, MOST_TEXTS_ELEMENTS if member.filename in texts else MOST_OTHER_ELEMENTS
        )
        try:
            with archive.open(member) as part:
                while content := part.read(READ_AT_ONCE):
                    measure.feed(content)
        except ExpatError:
            continue
