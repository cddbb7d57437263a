"""Rows of CSV, TSV, JSON Lines and JSON files, each with the line it begins on.

A file may be compressed with gzip, if its name says so.
"""

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from annotation.exceptions import ImportRefused
from annotation.readers.bounded_lines import BoundedLines
from annotation.readers.json_rows import fit_row, json_array, json_object
from annotation.readers.rows import Row, unstorable
from presentation.files import reason_of

READ_AT_ONCE = 1 << 20
# A spreadsheet has 16,384.
MOST_COLUMNS = 16_384
# Of columns' names, in a message.
MOST_LISTED, LONGEST_LISTED = 50, 80
# What takes the fault of a row that is left out, where all faults of a file are wanted.
OnFault = Callable[[ImportRefused], None]
# A dialogue of 100,000 words is not a mistake; Python's own limit is 131,072 characters.
csv.field_size_limit(10_000_000)


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
        raise ImportRefused(path, "it holds no rows.", code="no_rows")


def read_array(path: Path, columns: Sequence[str] = ()) -> list[Row]:
    """All rows of a .json file that holds one array of objects with at least these fields."""
    rows = list(json_array(path, _content(path)))
    if not rows:
        raise ImportRefused(path, "it holds no rows.", code="no_rows")
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
        raise ImportRefused(path, "it is not a file that gzip can read.", code="not_gzip") from None
    except OSError as error:
        raise ImportRefused(
            path, f"it cannot be read: {error.strerror}.", code="unreadable"
        ) from None


@contextmanager
def _refusing_other_encodings(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        with _binary(path) as content:
            line = undecodable_line(content)
        raise ImportRefused(
            path, "this is not UTF-8 text; save it as UTF-8.", line=line, code="wrong_encoding"
        ) from None


def _require_file(path: Path) -> None:
    if not path.exists():
        raise ImportRefused(path, f"there is no such file at {path}.", code="no_file")
    if not path.is_file():
        raise ImportRefused(path, f"{path} is not a file.", code="not_file")


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


def undecodable_line(content: BinaryIO, encoding: str = "utf-8") -> int:
    """The line of the first byte that is none of an encoding in which ASCII is ASCII."""
    decoder = codecs.getincrementaldecoder(encoding)()
    n_lines, ends_in_return = 0, False
    while True:
        part = content.read(READ_AT_ONCE)
        try:
            decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            # What the decoder kept of the part before stands at the beginning of this one.
            part = error.object[: error.start]
            return n_lines + _ends(part, ends_in_return) + 1
        if not part:
            return n_lines + 1
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


def _csv(
    path: Path, lines: TextIO, columns: Sequence[str], on_fault: OnFault | None
) -> Iterator[Row]:
    delimiter = "\t" if kind_of(path) == ".tsv" else ","
    bounded = BoundedLines(path, lines)
    reader = csv.reader(bounded, strict=True, delimiter=delimiter)
    header: list[str] | None = None
    line = 1
    while (record := _next_record(reader, path, line)) is not None:
        bounded.begin_record(line=reader.line_num + 1)
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
        raise ImportRefused(
            path, f"this is not CSV: {reason_of(error)}.", line=line, code="not_csv"
        ) from None


def _header(path: Path, record: list[str], columns: Sequence[str]) -> list[str]:
    header = [name.strip() for name in record]
    for name in header:
        if (problem := unstorable(name)) is not None:
            raise ImportRefused(path, problem, line=1)
    if len(header) > MOST_COLUMNS:
        text = f"it has {len(header):,} columns, where {MOST_COLUMNS:,} are the most."
        raise ImportRefused(path, text, line=1, code="too_many_columns")
    counts = Counter(header)
    repeated = sorted(name or "(no name)" for name, n in counts.items() if n > 1)
    if repeated:
        raise ImportRefused(
            path, f"columns appear twice: {_listed(repeated)}.", line=1, code="repeated_columns"
        )
    missing = [name for name in columns if name not in counts]
    if missing:
        names = _listed(header) or "none"
        raise ImportRefused(
            path,
            f"columns are missing: {', '.join(missing)} (found: {names}).",
            line=1,
            code="missing_columns",
        )
    return header


def _listed(names: Sequence[str]) -> str:
    """Names of columns as a message may repeat them."""
    shown = [name if len(name) <= LONGEST_LISTED else f"{name[:LONGEST_LISTED]}…" for name in names]
    more = [f"and {len(names) - MOST_LISTED:,} more"] if len(names) > MOST_LISTED else []
    return ", ".join([*shown[:MOST_LISTED], *more])


def _csv_row(path: Path, line: int, header: list[str], record: list[str]) -> Row:
    if len(record) != len(header):
        raise ImportRefused(
            path,
            f"{len(record)} fields, where the header has {len(header)}.",
            line=line,
            code="field_count",
        )
    return Row(path, line, dict(zip(header, record, strict=True)), is_csv=True)


def _json_lines(
    path: Path, lines: TextIO, columns: Sequence[str], on_fault: OnFault | None
) -> Iterator[Row]:
    bounded = BoundedLines(path, lines)
    for line, text in enumerate(bounded, start=1):
        bounded.begin_record(line=line + 1)
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
