"""How much memory the XML of a spreadsheet takes: measured before it is read.

A reader keeps a row until its end, and everything outside rows. A file may unpack to a thousand
times its size, so without limits a megabyte could fill a machine's memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused

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
    """Counts the elements and bytes of each row, and those outside rows."""

    def __init__(self, path: Path, most_others: int) -> None:
        self.path, self.most_others = path, most_others
        self.parser: Any = ParserCreate(namespace_separator=SEPARATOR)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.rows: Collection[str] = ()
        self.n_open = self.n_in_row = self.n_others = 0
        self.row_start = self.row_bytes = self.n_bytes = 0

    def feed(self, content: bytes) -> None:
        """Count a part of the text; ExpatError if it is not XML."""
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
        problem = _("a row, or the part outside rows, is too large to read. Save it as CSV.")
        return ImportRefused(self.path, problem, code="row_too_large")


def require_bearable_xml(path: Path, archive: zipfile.ZipFile, *, texts: Collection[str]) -> None:
    """Refuse a spreadsheet if one of its parts would fill the memory.

    `texts` names the parts with the texts of all cells. Damaged XML is left to the reader.
    """
    for member in archive.infolist():
        is_texts = member.filename in texts
        measure = _Measure(path, MOST_TEXTS_ELEMENTS if is_texts else MOST_OTHER_ELEMENTS)
        try:
            with archive.open(member) as part:
                while content := part.read(READ_AT_ONCE):
                    measure.feed(content)
        except ExpatError:
            continue
