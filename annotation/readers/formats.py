"""The format of a file: its kind and, of text, the encoding and the delimiter.

Each is detected, unless the user chooses it.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.archives import is_open_document, start_of
from annotation.readers.json_rows import is_page
from annotation.readers.text_files import find_encoding, text_encoding
from error_codes import CodedText, require
from presentation.files import reason_of

CSV, EXCEL, ODS, JSON, JSON_LINES, PARQUET = "csv", "xlsx", "ods", "json", "jsonl", "parquet"
DELIMITERS = (",", ";", "\t", "|")
# Bytes of a text from which the delimiter is detected.
LOOKED_AT = 256 * 1024
RECORDS_LOOKED_AT = 50
# The first line by which Excel knows the delimiter.
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t|]*\r?\n', re.IGNORECASE)
# The beginning of a JSON array or object, unlike a CSV header with a bracket.
JSON_START = re.compile(r'\s*(\[\s*([\[{"\]\d-]|true|false|null|$)|\{\s*(["}]|$))')
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
        return cls(
            **{**values, **{name: tuple(values.get(name, ())) for name in ("sheets", "tables")}}
        )

    @property
    def plain(self) -> dict[str, Any]:
        return asdict(self)


def find_format(path: Path, chosen: FileFormat | None = None, *, name: str = "") -> FileFormat:
    chosen = chosen or FileFormat()
    start = start_of(path)
    require(start, ImportRefused(path, "it is empty.", code="empty_file"))
    if start.startswith(b"PAR1"):
        return replace(chosen, kind=PARQUET)
    if start.startswith(b"PK"):
        return replace(chosen, kind=ODS if is_open_document(path) else EXCEL)
    for mark, problem in OTHERS.items():
        if start.lstrip().startswith(mark):
            raise ImportRefused(path, problem)
    encoding = chosen.encoding or find_encoding(path)
    text = _beginning(path, encoding)
    ending = Path(name or path.name).suffix.lower()
    kind = _text_kind(text, ending)
    if kind != CSV:
        return replace(chosen, kind=kind, encoding=encoding)
    return replace(
        chosen, kind=CSV, encoding=encoding, delimiter=chosen.delimiter or _delimiter(text, ending)
    )


def _beginning(path: Path, encoding: str) -> str:
    with path.open("rb") as content:
        part = content.read(LOOKED_AT)
    try:
        return codecs.getincrementaldecoder(text_encoding(encoding))(errors="replace").decode(part)
    except UnicodeError as error:
        raise ImportRefused(
            path, f"it cannot be read as {encoding}: {reason_of(error)}.", code="wrong_encoding"
        ) from None


def _text_kind(text: str, ending: str) -> str:
    start = text.lstrip()
    if ending in {".jsonl", ".ndjson"}:
        return JSON if start.startswith("[") else JSON_LINES
    if ending != ".json" and not JSON_START.match(start):
        return CSV
    if not start.startswith("{"):
        return JSON
    first = start.split("\n", 1)[0]
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        # An object over many lines; or one line of many that is none.
        return JSON_LINES if start.count("\n{") else JSON
    return JSON if not start[len(first) :].strip() and is_page(fields) else JSON_LINES


def _delimiter(text: str, ending: str) -> str:
    if (line := SEPARATOR_LINE.match(text)) and line[1] in DELIMITERS:
        return line[1]
    usual = "\t" if ending in {".tsv", ".tab"} else ","
    # The first of equals.
    order = [usual, *(each for each in DELIMITERS if each != usual)]
    return max(order, key=lambda delimiter: _evenness(text, delimiter))


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
