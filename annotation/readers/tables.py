"""Rows of CSV, TSV, JSON Lines and JSON files, each with the line it begins on.

A file may be compressed with gzip, if its name says so.
"""

import codecs
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from annotation.exceptions import ImportRefused
from presentation.spreadsheets import from_cell

# Numbers up to here are exact, and have a next one.
MOST = 1e15
DEEPEST = 20
READ_AT_ONCE = 1 << 20
# What takes the fault of a row that is left out, where all faults of a file are wanted.
OnFault = Callable[[ImportRefused], None]
# A dialogue of 100,000 words is not a mistake; Python's own limit is 131,072 characters.
csv.field_size_limit(10_000_000)
SURROGATE = re.compile("[\ud800-\udfff]")
SPACE = re.compile("[ \\t\\r\\n]*")


@dataclass(slots=True)
class Row:
    """One record of a file, or an object inside it, which refuses itself with its own line.

    Not frozen: a file has a million of them, and a frozen one takes three times as long to make.
    """

    path: Path
    line: int
    fields: dict[str, Any]
    inside: str = ""
    is_csv: bool = False

    def refuse(self, problem: str, field: str | None = None) -> ImportRefused:
        """The error to raise for what this row holds."""
        label = self.called(field) if field else self.inside or None
        return ImportRefused(self.path, problem, line=self.line, field=label)

    def called(self, field: str) -> str:
        """The field's name in the whole file."""
        return f"{self.inside}.{field}" if self.inside else field

    def text(self, field: str) -> str:
        """A field as text; absent is empty."""
        value = self.fields.get(field)
        if value is None:
            return ""
        if type(value) is str and not value:
            return value
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise self.refuse(f"expected text, not {type(value).__name__}.", field)
        text = str(value)
        if (problem := unstorable(text)) is not None:
            raise self.refuse(problem, field)
        return text

    def required(self, field: str, *, longest: int = 200) -> str:
        """A field that must hold something, without the space around it."""
        text = self.optional(field, longest=longest)
        if not text:
            raise self.refuse("this field must not be empty.", field)
        return text

    def optional(self, field: str, *, longest: int = 200) -> str:
        """A field that may be empty or absent, without the space around it.

        In a CSV file it is what a cell holds once a spreadsheet has taken it for text: our own
        exports write names so. Texts to be judged are read as they stand.
        """
        text = self.text(field).strip()
        text = from_cell(text) if self.is_csv else text
        if len(text) > longest:
            raise self.refuse(f"{len(text)} characters, where {longest} fit.", field)
        return text

    def number(self, field: str) -> float:
        """A field as a finite number."""
        text = self.text(field).strip()
        try:
            value = float("" if "_" in text else text)
        except ValueError:
            raise self.refuse(f"'{text[:40]}' is not a number.", field) from None
        if not math.isfinite(value):
            raise self.refuse(f"'{text[:40]}' is not a finite number.", field)
        if abs(value) > MOST:
            raise self.refuse(f"'{text[:40]}' is beyond {MOST:g}.", field)
        return value

    def number_or_nan(self, field: str) -> float:
        """A field as a finite number, or NaN where it is empty: a value that is missing."""
        return self.number(field) if self.text(field).strip() else math.nan


def read_rows(path: Path, columns: Sequence[str] = ()) -> list[Row]:
    """All rows of a .csv, .tsv or .jsonl file that has at least these columns."""
    return list(each_row(path, columns))


def each_row(
    path: Path, columns: Sequence[str] = (), *, on_fault: OnFault | None = None
) -> Iterator[Row]:
    """The rows of such a file as they are read, so that none but the last is in memory.

    With `on_fault` a row that cannot be read is its to take, and the next ones follow.
    """
    reader = _json_lines if kind_of(path) in {".jsonl", ".ndjson"} else _csv
    is_empty = True
    with _opened(path) as lines, _refusing_other_encodings(path):
        for row in reader(path, lines, columns, on_fault):
            is_empty = False
            yield row
    if is_empty:
        raise ImportRefused(path, "it holds no rows.")


def read_array(path: Path, columns: Sequence[str] = ()) -> list[Row]:
    """All rows of a .json file that holds one array of objects with at least these fields."""
    rows = list(json_array(path, _content(path)))
    if not rows:
        raise ImportRefused(path, "it holds no rows.")
    return [fit_row(row, columns) for row in rows]


def read_object(path: Path, columns: Sequence[str] = ()) -> Row:
    """The one object with at least these fields that a .json file holds, as a row."""
    return fit_row(Row(path, 1, json_object(path, 1, _content(path))), columns)


def kind_of(path: Path) -> str:
    """The ending of a file's name that says what is in it, in lower case: ".csv"."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """What the system says of a file, as refusals."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ImportRefused(path, "it is not a file that gzip can read.") from None
    except OSError as error:
        raise ImportRefused(path, f"it cannot be read: {error.strerror}.") from None


@contextmanager
def _refusing_other_encodings(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        line = _undecodable_line(path)
        raise ImportRefused(path, "this is not UTF-8 text; save it as UTF-8.", line=line) from None


def _require_file(path: Path) -> None:
    if not path.exists():
        raise ImportRefused(path, f"there is no such file at {path}.")
    if not path.is_file():
        raise ImportRefused(path, f"{path} is not a file.")


def _binary(path: Path) -> BinaryIO:
    is_compressed = path.suffix.lower() == ".gz"
    return cast(BinaryIO, gzip.open(path)) if is_compressed else path.open("rb")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file's text, without the mark that some programs begin UTF-8 with."""
    with _refusing(path):
        _require_file(path)
        # Ends of lines as they are: the readers say what ends a line.
        with io.TextIOWrapper(_binary(path), encoding="utf-8-sig", newline="") as lines:
            yield lines


def _undecodable_line(path: Path) -> int:
    """The line of the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_lines, ends_in_return = 0, False
    with _binary(path) as content:
        while True:
            part = content.read(READ_AT_ONCE)
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                # What the decoder kept of the part before stands at the beginning of this one.
                part = error.object[: error.start]
                return n_lines + _ends(part, ends_in_return) + 1
            n_lines += _ends(part, ends_in_return)
            ends_in_return = part.endswith(b"\r")


def _ends(part: bytes, after_return: bool) -> int:
    """How many lines end in a part; a line feed after a return ended with that."""
    n = part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
    return n - (after_return and part.startswith(b"\n"))


def _content(path: Path) -> str:
    """The file's text, all at once."""
    with _opened(path) as lines, _refusing_other_encodings(path):
        return lines.read()


def unstorable(text: str) -> str | None:
    """Why no database keeps this text, if none does."""
    # Most texts are plain, and every cell of a file comes here.
    if text.isascii() and "\x00" not in text:
        return None
    if "\x00" in text:
        return "there is a NUL character in the text."
    if SURROGATE.search(text):
        return "there is half a surrogate pair in the text."
    return None


def _csv(
    path: Path, lines: TextIO, columns: Sequence[str], on_fault: OnFault | None
) -> Iterator[Row]:
    delimiter = "\t" if kind_of(path) == ".tsv" else ","
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    header: list[str] | None = None
    line = 1
    while (record := _next_record(reader, path, line)) is not None:
        if header is None:
            header = _header(path, record, columns)
        elif record:
            with _taking_faults(on_fault):
                yield _csv_row(path, line, header, record)
        line = reader.line_num + 1


def _next_record(reader: Any, path: Path, line: int) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise ImportRefused(path, f"this is not CSV: {error}.", line=line) from None


def _header(path: Path, record: list[str], columns: Sequence[str]) -> list[str]:
    header = [name.strip() for name in record]
    for name in header:
        if (problem := unstorable(name)) is not None:
            raise ImportRefused(path, problem, line=1)
    repeated = sorted({name or "(no name)" for name in header if header.count(name) > 1})
    if repeated:
        raise ImportRefused(path, f"columns appear twice: {', '.join(repeated)}.", line=1)
    missing = [name for name in columns if name not in header]
    if missing:
        names = ", ".join(header) or "none"
        raise ImportRefused(
            path, f"columns are missing: {', '.join(missing)} (found: {names}).", line=1
        )
    return header


def _csv_row(path: Path, line: int, header: list[str], record: list[str]) -> Row:
    if len(record) != len(header):
        raise ImportRefused(
            path, f"{len(record)} fields, where the header has {len(header)}.", line=line
        )
    return Row(path, line, dict(zip(header, record, strict=True)), is_csv=True)


def _json_lines(
    path: Path, lines: TextIO, columns: Sequence[str], on_fault: OnFault | None
) -> Iterator[Row]:
    for line, text in enumerate(lines, start=1):
        if text.strip():
            with _taking_faults(on_fault):
                yield fit_row(Row(path, line, json_object(path, line, text.rstrip())), columns)


@contextmanager
def _taking_faults(on_fault: OnFault | None) -> Iterator[None]:
    try:
        yield
    except ImportRefused as fault:
        if on_fault is None:
            raise
        on_fault(fault)


def fit_row(row: Row, columns: Sequence[str]) -> Row:
    """The row, if it has these fields and nothing in it is beyond keeping."""
    for name, value in row.fields.items():
        if (problem := _unfit(name) or _unfit(value)) is not None:
            raise row.refuse(problem, name)
    for name in columns:
        if name not in row.fields:
            raise row.refuse("this field is missing.", name)
    return row


def json_array(path: Path, content: str) -> Iterator[Row]:
    """The objects of an array one by one, so that each knows its line."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    position = _next_character(content, 0)
    if content[position : position + 1] != "[":
        raise ImportRefused(path, "expected a JSON array of objects, in brackets.", line=1)
    line, counted = 1, 0
    before, position = "[", _next_character(content, position + 1)
    while before != "]" and not (before == "[" and content[position : position + 1] == "]"):
        line, counted = line + content.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(content, position)
        except (RecursionError, ValueError) as error:
            raise _not_json(path, error, line, begins=1) from None
        if not isinstance(value, dict):
            raise ImportRefused(path, "expected a JSON object in braces.", line=line)
        yield Row(path, line, value)
        position = _next_character(content, position)
        before = content[position : position + 1]
        if before not in {",", "]"}:
            raise ImportRefused(path, "expected a comma or a bracket here.", line=line)
        position = _next_character(content, position + 1)


def _next_character(content: str, position: int) -> int:
    """Where the next character is that is not a space."""
    space = SPACE.match(content, position)
    return space.end() if space else position


def json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (RecursionError, ValueError) as error:
        raise _not_json(path, error, line, begins=line) from None
    if not isinstance(value, dict):
        raise ImportRefused(path, "expected a JSON object in braces.", line=line)
    return value


def _not_json(
    path: Path, error: RecursionError | ValueError, line: int, *, begins: int
) -> ImportRefused:
    """Where a text that begins on a line of the file is not JSON, or else in which record."""
    if isinstance(error, json.JSONDecodeError):
        problem = f"this is not JSON: {error.msg}, column {error.colno}."
        return ImportRefused(path, problem, line=begins + error.lineno - 1)
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ImportRefused(path, f"this is not JSON: {reason}.", line=line)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _unfit(value: Any, depth: int = 0) -> str | None:
    """Why a JSON value cannot be kept, looking at all that is inside it."""
    if isinstance(value, str):
        return unstorable(value)
    if not isinstance(value, dict | list):
        return None
    if depth == DEEPEST:
        return f"nested more than {DEEPEST} deep."
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    return next((why for part in inside if (why := _unfit(part, depth + 1))), None)
