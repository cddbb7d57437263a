"""What a file is: its kind, and of text the encoding and what separates the columns.

All of it is found, and all of it can be said otherwise by whoever knows better.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.archives import start_of
from annotation.readers.tables import READ_AT_ONCE
from error_codes import CodedText
from presentation.files import reason_of

CSV, EXCEL, JSON, JSON_LINES, PARQUET = "csv", "xlsx", "json", "jsonl", "parquet"
DELIMITERS = (",", ";", "\t", "|")
# Offered where the one that was found shows the wrong letters.
ENCODINGS = (
    *("utf-8", "utf-16", "windows-1252", "windows-1250", "windows-1251", "iso-8859-15"),
    *("mac-roman", "shift_jis", "gb18030", "big5", "euc-kr"),
)
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# How much of a text is looked at for what separates its columns.
LOOKED_AT = 256 * 1024
RECORDS_LOOKED_AT = 50
OTHERS = {
    b"\xd0\xcf\x11\xe0": CodedText(
        "this is an Excel file of before 2007 (.xls). Save it as .xlsx.", "old_excel"
    ),
    b"%PDF": CodedText("this is a PDF. Save the table in it as CSV or Excel.", "pdf"),
    b"<": CodedText("this is a web page or XML. Save the table in it as CSV or Excel.", "web_page"),
    b"SQLite format 3": CodedText("this is a database. Export the table as CSV.", "database"),
    b"7z\xbc\xaf": CodedText("this is a 7z archive. Make it a .zip.", "archive"),
    b"Rar!": CodedText("this is a RAR archive. Make it a .zip.", "archive"),
    b"BZh": CodedText("this is compressed with bzip2. Unpack it, or make it a .zip.", "archive"),
    b"\x89PNG": CodedText(
        "this is a picture. Put it into a zip with the table that names it.", "picture"
    ),
    b"\xff\xd8\xff": CodedText(
        "this is a picture. Put it into a zip with the table that names it.", "picture"
    ),
}


@dataclass(frozen=True)
class FileFormat:
    """How a file is read; `sheet` is of Excel, `table` the file in an archive.

    What is empty has still to be found.
    """

    kind: str = ""
    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""
    table: str = ""
    sheets: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> FileFormat:
        """What `plain` made of one."""
        lists = {name: tuple(values.get(name, ())) for name in ("sheets", "tables")}
        return cls(**{**values, **lists})

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def find_format(path: Path, chosen: FileFormat | None = None) -> FileFormat:
    """What a table is, where `chosen` does not say it already."""
    chosen = chosen or FileFormat()
    start = start_of(path)
    if not start:
        raise ImportRefused(path, "it is empty.", code="empty_file")
    if start.startswith(b"PAR1"):
        return replace(chosen, kind=PARQUET)
    if start.startswith(b"PK"):
        return replace(chosen, kind=EXCEL)
    for mark, problem in OTHERS.items():
        if start.lstrip().startswith(mark):
            raise ImportRefused(path, problem)
    encoding = chosen.encoding or _encoding(path)
    text = _beginning(path, encoding)
    kind = _text_kind(text)
    if kind != CSV:
        return replace(chosen, kind=kind, encoding=encoding)
    delimiter = chosen.delimiter or _delimiter(text)
    return replace(chosen, kind=CSV, encoding=encoding, delimiter=delimiter)


def _encoding(path: Path) -> str:
    with path.open("rb") as content:
        beginning = content.read(4096)
    for mark, name in MARKS.items():
        if beginning.startswith(mark):
            return name
    # Latin letters in UTF-16 leave every other byte empty.
    for name, empty in (("utf-16-le", beginning[1::2]), ("utf-16-be", beginning[::2])):
        if len(beginning) > 3 and empty.count(0) > 0.4 * len(empty):
            return name
    return "utf-8" if _decodes(path, "utf-8") or _is_mostly_utf8(path) else "windows-1252"


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as content:
        while True:
            part = content.read(READ_AT_ONCE)
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError:
                return False
            if not part:
                return True


def _is_mostly_utf8(path: Path) -> bool:
    """Whether most letters beyond ASCII are UTF-8, such as all but those of one pasted line:
    letters of another encoding hardly ever look like it."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    balance = 0
    with path.open("rb") as content:
        while True:
            part = content.read(READ_AT_ONCE)
            text = decoder.decode(part, final=not part)
            n_beyond = len(text) - len(text.encode("ascii", "ignore"))
            balance += n_beyond - 2 * text.count("\ufffd")
            if not part:
                return balance > 0


def text_encoding(encoding: str) -> str:
    """The codec that also takes the mark that some programs begin UTF-8 with."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _beginning(path: Path, encoding: str) -> str:
    with path.open("rb") as content:
        part = content.read(LOOKED_AT)
    try:
        decoder = codecs.getincrementaldecoder(text_encoding(encoding))(errors="replace")
        return decoder.decode(part)
    except UnicodeError as error:
        raise ImportRefused(
            path, f"it cannot be read as {encoding}: {reason_of(error)}.", code="wrong_encoding"
        ) from None


def _text_kind(text: str) -> str:
    start = text.lstrip()
    if start.startswith("["):
        return JSON
    if not start.startswith("{"):
        return CSV
    first = start.split("\n", 1)[0]
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        # An object over many lines; or one line of many that is none.
        return JSON_LINES if start.count("\n{") else JSON
    return JSON_LINES


def _delimiter(text: str) -> str:
    """The one that cuts the most records into the same number of columns."""
    return max(DELIMITERS, key=lambda delimiter: _evenness(text, delimiter))


def _evenness(text: str, delimiter: str) -> tuple[float, int]:
    widths: list[int] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if record:
                widths.append(len(record))
            if len(widths) == RECORDS_LOOKED_AT:
                break
    except csv.Error:
        pass
    if not widths or widths[0] < 2:
        return 0.0, 0
    return Counter(widths)[widths[0]] / len(widths), widths[0]
