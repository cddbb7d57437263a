"""Plain files of examples and of scores.

A file of scores is written batch by batch. What a killed process left of it is read again: a
line that was cut short is dropped, and so is a score of a text that has changed since. One
process writes a file at a time: two would each replace it by what they know.
"""

import csv
import fcntl
import io
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TextIO

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import place_of_line
from annotation.readers.policies import Reading, note_look_alikes
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from error_codes import CodedText
from metrics.exceptions import FileUnfit, get_code
from metrics.scorers.scorer import Example
from presentation.files import plain_file
from presentation.spreadsheets import from_cell, to_cell

REPEATED = CodedText("another response of the same system counts", "repeated_response")
NEEDED = ("item", "system", "response")


@dataclass(frozen=True)
class ScoreRow:
    """A line of a file of scores; `input` is the digest of the texts that were scored."""

    item: str
    system: str
    metric: str
    value: float
    signature: str
    reason: str
    input: str

    def texts(self) -> list[str]:
        value = "" if math.isnan(self.value) else repr(self.value)
        return [to_cell(text) for text in (vars(self) | {"value": value}).values()]


COLUMNS = [field.name for field in fields(ScoreRow)]


def read_examples(path: Path, reading: Reading | None = None) -> list[Example]:
    reading = reading or Reading()
    try:
        return _examples(read_rows(path, NEEDED, report=reading.report), reading)
    except ImportRefused as refused:
        raise FileUnfit(
            path,
            refused.problem,
            line=refused.line,
            field=refused.field,
            code=get_code(refused),
        ) from refused


def _examples(rows: list[Row], reading: Reading) -> list[Example]:
    repeats = reading.repeats("refuse")
    examples: dict[tuple[str, str], tuple[int, Example]] = {}
    for row in rows:
        example = _example(row)
        key = (example.item, example.system)
        if key in examples:
            line = examples[key][0]
            if repeats == "refuse":
                problem = f"item '{key[0]}' has a response of '{key[1]}' on line {line} already."
                raise row.refuse(problem, "system", code="repeated_response")
            reading.report.leave_out(
                REPEATED, place_of_line(row.line if repeats == "first" else line)
            )
        if key not in examples or repeats == "last":
            examples[key] = (row.line, example)
    for what, at in (("items", 0), ("systems", 1)):
        names = list(dict.fromkeys(key[at] for key in examples))
        note_look_alikes(reading.report, names, what=what, code=f"look_alike_{what}")
    return [example for _line, example in examples.values()]


def _example(row: Row) -> Example:
    return Example(
        item=row.required("item"),
        system=row.required("system"),
        response=row.text("response"),
        context=row.text("context") or None,
        reference=row.text("reference") or None,
        condition=row.text("condition") or None,
    )


def read_scores(path: Path) -> list[ScoreRow]:
    if not path.exists():
        return []
    try:
        content = plain_file(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FileUnfit(path, f"it cannot be read: {error.strerror}.", code="unreadable") from None
    if not content:
        return []
    records = list(csv.reader(io.StringIO(content, newline="")))
    if records[0] != COLUMNS:
        message = "it is there and no file of scores; name another --output."
        raise FileUnfit(path, message, line=1, code="not_scores")
    complete = records[1:] if content.endswith("\n") else records[1:-1]
    return [row for record in complete if (row := _score(record)) is not None]


def _score(record: list[str]) -> ScoreRow | None:
    if len(record) != len(COLUMNS):
        return None
    cells = dict(zip(COLUMNS, map(from_cell, record), strict=True))
    try:
        value = float(cells.pop("value") or "nan")
    except ValueError:
        return None
    return ScoreRow(value=value, **cells)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other processes from scoring into a file; the lock goes with the process that has it."""
    beside = path.parent / f".{path.name}.lock"
    with _refusing(path):
        lock = beside.open("w")
    with lock:
        if not _is_locked(lock, beside):
            raise FileUnfit(
                path, "another process is scoring into it; wait until it is done.", code="busy"
            )
        try:
            yield
        finally:
            beside.unlink(missing_ok=True)


def _is_locked(lock: TextIO, path: Path) -> bool:
    """Lock a file, unless another process has it or has just taken it away."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def write_scores_file(path: Path, rows: Iterable[ScoreRow]) -> None:
    """Replace a file of scores in one step: a reader sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _refusing(path), beside.open("w", encoding="utf-8", newline="") as file:
            _write(file, [COLUMNS, *(row.texts() for row in rows)])
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def append_scores(path: Path, rows: Iterable[ScoreRow]) -> None:
    with _refusing(path), path.open("a", encoding="utf-8", newline="") as file:
        _write(file, (row.texts() for row in rows))


def _write(file: TextIO, records: Iterable[list[str]]) -> None:
    lines = io.StringIO(newline="")
    csv.writer(lines, lineterminator="\n").writerows(records)
    file.write(lines.getvalue())
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileUnfit(
            path, f"it cannot be written: {error.strerror}.", code="unwritable"
        ) from None
