"""Runs and qrels: TREC's columns, MS MARCO's, BEIR's table, and JSON.

What trec_eval or a library would silently misread is refused, with file and line. A file is read
in blocks (`trec_blocks`); where anything in it is unusual, line by line, which says what and where.
"""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import isinf, isnan, nan
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from annotation.readers.drafts import ReadingReport, place_of_line
from error_codes import CodedText
from presentation.files import plain_file, reason_of
from presentation.numbers import count_of, group_values
from retrieval.exceptions import TrecFileFaults
from retrieval.trec_blocks import (
    BYTE_ORDER_MARK,
    Columns,
    Named,
    columns_of,
    contradicting,
    each_record,
    each_table_record,
    read_in_blocks,
)
from retrieval.trec_layouts import (
    LOOKED_AT,
    SIMULATED,
    TREC,
    UTF16,
    FileKind,
    Layout,
    find_layout,
    guess_kind,
    problem_of_text,
)
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE, LOWEST_GRADE, in_single_precision

ASSESSORS_HINT = (
    "If column 2 names assessors, merge their grades first (merge_assessors), or compare them "
    "(compare_qrels --assessors)."
)
INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
WHOLE = re.compile(r"([+-]?\d+)(\.0*)?", re.ASCII)
MARKED = re.compile(rf"\s*\S+\s+{SIMULATED}(?:-\S*)?\s".encode())
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.I)
BLOCK_BYTES = 32 * 1024**2
STARTS_LOOKED_AT = 64 * 1024
# The most bytes of an unpacked file: lists of a thousand documents for 300,000 topics.
MOST_BYTES = 16 * 1024**3
# In bytes.
LONGEST_LINE = 1024**2
TOO_LONG = CodedText(
    f"it is longer than {LONGEST_LINE // 1024**2} MiB, which no line of a run or of qrels is.",
    code="too_long",
)
MOST_FAULTS = 1000
LONGEST_QUOTED = 40


@dataclass(frozen=True)
class Run:
    """What a system retrieved: a score for each of a topic's documents.

    Attributes
    ----------
    path : Path
    tag : str
        The last column, where it is the same in every line; otherwise empty.
    topics, documents : list of str
        By name, in the order of their bytes.
    topic, document : ndarray of int, shape (n_lines,)
        Of each line, their positions in those lists.
    score : ndarray of float, shape (n_lines,)
    n_infinite : int
        Scores that are infinite in single precision, as trec_eval reads them: they sort well and
        are rarely meant.
    contradicting : ndarray of int, shape (n, 2)
        Lines whose rank is worse and whose score is greater than those of another line, and that
        other line.
    reading : ReadingReport
        What was read of the file, and what was left out.
    """

    path: Path
    tag: str
    topics: list[str]
    documents: list[str]
    topic: Integers
    document: Integers
    score: Floats
    n_infinite: int = 0
    contradicting: Integers = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    reading: ReadingReport = field(default_factory=ReadingReport)


@dataclass(frozen=True)
class RelevanceGrades:
    """Qrels: a grade for each of a topic's pooled documents; below 0, pooled and not judged.

    Topics and documents are by name, in the order of their bytes, and each line's positions in
    those lists.
    """

    path: Path
    topics: list[str]
    documents: list[str]
    topic: Integers
    document: Integers
    grade: Integers
    reading: ReadingReport = field(default_factory=ReadingReport)


def read_run(path: Path) -> Run:
    read, layout, reading = _read(path, "run")
    tag = next(iter(read.tags)) if len(read.tags) == 1 else ""
    # The first rank is the best.
    score = 0 - read.value if layout.value_column == "rank" else read.value
    columns = read.topics, read.documents, read.topic, read.document, score
    return Run(
        path,
        tag,
        *columns,
        n_infinite=int(np.isinf(in_single_precision(score)).sum()),
        contradicting=contradicting(read.topic, read.rank, score),
        reading=reading,
    )


def read_qrels(path: Path) -> RelevanceGrades:
    read, _layout, reading = _read(path, "qrels")
    return _as_grades(path, read, reading)


def has_simulated_mark(path: Path) -> bool:
    with _readable(path) as file:
        return any(MARKED.match(line) for line in file)


def _as_grades(path: Path, read: Columns, reading: ReadingReport) -> RelevanceGrades:
    columns = read.topics, read.documents, read.topic, read.document, read.value.astype(np.intp)
    return RelevanceGrades(path, *columns, reading)


def read_assessors(path: Path) -> dict[str, RelevanceGrades]:
    """Each assessor's qrels of a file that names the assessor in column 2 (qrels_jg).

    All have the report of the whole file.
    """
    with _readable(path) as file:
        lines = _lines_of(path, file, _layout(path, file, "qrels_jg"))
    graded = zip(lines.line_of_pair, lines.values, strict=True)
    rows = group_values(
        (assessor[0], (topic, document, int(grade)))
        for (topic, document, *assessor), grade in graded
    )
    if len(rows) < 2:
        name = _quoted(next(iter(rows)))
        raise TrecFileFaults.of_one(
            path, f"all lines have {name} in column 2, which names the assessor.", "one_assessor"
        )
    reading = lines.report()
    return {assessor: _grades_of(path, rows[assessor], reading) for assessor in sorted(rows)}


def _grades_of(
    path: Path, rows: Sequence[tuple[str, str, int]], reading: ReadingReport
) -> RelevanceGrades:
    topics, documents, grades = zip(*rows, strict=True)
    return _as_grades(path, columns_of(topics, documents, grades), reading)


def each_row(path: Path, kind: FileKind) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of data with their numbers, by column; JSON has no lines.

    Nothing of them is checked, and what is not UTF-8 is replaced.
    """
    with _readable(path) as file:
        layout = _layout(path, file, kind)
        for number, line in () if layout.is_json else _each_line(path, file):
            cells = layout.split(line)
            if cells and number != layout.header_line and not layout.is_comment(cells):
                texts = (cell.decode(errors="replace") for cell in cells)
                yield number, dict(zip(layout.columns, texts, strict=False))


def kind_of_file(path: Path) -> FileKind | None:
    with _readable(path) as file:
        return guess_kind(file.read(STARTS_LOOKED_AT))


def _read(path: Path, kind: FileKind) -> tuple[Columns, Layout, ReadingReport]:
    with _readable(path) as file:
        begin = file.tell()
        layout = _layout(path, file, kind)
        columns = None
        if not layout.is_json:
            columns = read_in_blocks(_blocks(path, file, layout), layout)
        if columns is not None:
            return columns, layout, _report(layout, len(columns.value))
        file.seek(begin)
        lines = _lines_of(path, file, layout)
    topics, documents = zip(*lines.line_of_pair, strict=True)
    columns = columns_of(topics, documents, lines.values, tags=lines.tags, ranks=lines.ranks)
    return columns, layout, lines.report()


def _layout(path: Path, file: IO[bytes], kind: FileKind) -> Layout:
    begin = file.tell()
    start = file.read(STARTS_LOOKED_AT)
    file.seek(begin)
    if problem := problem_of_text(start[:LOOKED_AT]):
        raise TrecFileFaults(path, [(None, problem)])
    return find_layout(start, kind)


def _report(layout: Layout, n_rows: int) -> ReadingReport:
    reading = ReadingReport(n_rows=n_rows)
    if layout.header_line:
        names = ", ".join(layout.columns)
        reading.note(
            CodedText(f"Line {layout.header_line} is a header: {names}.", code="header_row")
        )
    elif layout.value_column == "rank":
        reading.note(
            CodedText(
                "The file has ranks without scores, as of MS MARCO: the first rank is the best.",
                code="ranks_without_scores",
            )
        )
    elif not layout.is_json and layout.columns != TREC[layout.kind]:
        reading.note(
            CodedText(
                f"The columns are read as {', '.join(layout.columns)}.", code="columns_guessed"
            )
        )
    if not layout.value_column:
        reading.note(
            CodedText(
                "The file has pairs without grades, as of MS MARCO: each has the grade 1.",
                code="pairs_without_grades",
            )
        )
    return reading


def _unreadable(path: Path, error: Exception) -> TrecFileFaults:
    reason = getattr(error, "strerror", None) or reason_of(error)
    return TrecFileFaults(
        path, [(None, CodedText(f"it cannot be read: {reason}.", code="unreadable"))]
    )


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file as UTF-8, unpacked, after a byte order mark."""
    try:
        with ExitStack() as files:
            plain = files.enter_context(plain_file(path).open("rb"))
            is_compressed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            file: Any = gzip.GzipFile(fileobj=plain) if is_compressed else plain
            start = file.read(3)
            if start != BYTE_ORDER_MARK:
                file.seek(0)
            if start.startswith(UTF16):
                copy = files.enter_context(TemporaryFile())
                _copy_as_utf8(path, file, "utf-16", copy)
                file = copy
            yield file
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise _unreadable(path, error) from None


def _copy_as_utf8(path: Path, file: IO[bytes], encoding: str, copy: IO[bytes]) -> None:
    for text in codecs.iterdecode(iter(lambda: file.read(LONGEST_LINE), b""), encoding):
        _require_size(path, copy.tell())
        copy.write(text.encode())
    copy.seek(0)


def _require_size(path: Path, n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        size = f"{MOST_BYTES // 1024**3} GB"
        raise TrecFileFaults.of_one(
            path, f"it is larger than {size}. Split it by topic.", "too_large"
        )


def _blocks(path: Path, file: IO[bytes], layout: Layout) -> Iterator[bytes]:
    n_bytes, n_lines = 0, 0
    if layout.header_line == 1:
        n_lines, _header = 1, file.readline(LONGEST_LINE)
    while block := file.read(BLOCK_BYTES):
        block += file.readline(LONGEST_LINE + 1)
        if (start := _long_line(block)) is not None:
            raise TrecFileFaults(path, [(n_lines + block.count(b"\n", 0, start) + 1, TOO_LONG)])
        n_lines += block.count(b"\n")
        n_bytes += len(block)
        _require_size(path, n_bytes)
        yield block


def _long_line(block: bytes) -> int | None:
    start = 0
    while len(block) - start > LONGEST_LINE:
        end = block.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            return start
        start = end + 1
    return None


def _each_line(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            raise TrecFileFaults(path, [(number, TOO_LONG)])
        yield number, line


class _Lines:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        kind_of_file = "a run" if layout.kind == "run" else "qrels"
        columns = f"{len(layout.columns)} columns: {' '.join(layout.columns)}"
        self.form = f"A line of {kind_of_file} has {columns}."
        self.key = ("topic", "docno", *(["iteration"] if layout.kind == "qrels_jg" else []))
        self.line_of_pair: dict[tuple[str, ...], int] = {}
        self.values: list[float] = []
        self.tags: set[str] = set()
        self.iterations: set[str] = set()
        self.has_repeats = False
        self.ranks: list[float] = []
        self.comments = ReadingReport()
        self.table = ReadingReport()
        self.n_decimal = 0

    def report(self) -> ReadingReport:
        reading = _report(self.layout, len(self.values) + self.comments.n_rows)
        reading.left_out = self.comments.left_out | self.table.left_out
        reading.n_rows += sum(each.n for each in self.table.left_out.values())
        reading.notes += self.table.notes
        if self.n_decimal:
            text = (
                f"{count_of(self.n_decimal, 'grade')} with decimals, such as 1.0: read as whole "
                "numbers."
            )
            reading.note(CodedText(text, code="decimal_grades"))
        return reading

    def take(self, number: int, line: bytes) -> CodedText | None:
        cells = self.layout.split(line)
        if not cells or number == self.layout.header_line:
            return None
        if self.layout.is_comment(cells):
            self.comments.n_rows += 1
            reason = "the line begins with # and does not have all columns: a comment"
            self.comments.leave_out(CodedText(reason, "comment"), place_of_line(number))
            return None
        try:
            texts = [cell.decode() for cell in cells]
        except UnicodeDecodeError:
            return CodedText("it is not UTF-8. Save the file as UTF-8.", code="not_utf8")
        if len(texts) != len(self.layout.columns):
            return CodedText(f"it has {len(texts)} columns. {self.form}", code="columns")
        return self.take_named(number, dict(zip(self.layout.columns, texts, strict=True)))

    def take_named(self, number: int, named: Named) -> CodedText | None:
        names = named["topic"], named["docno"]
        if "\0" in "".join(named.values()):
            return CodedText("it holds a NUL character.", code="nul")
        if not all(names):
            return CodedText("its topic or its document is empty.", code="no_name")
        if any("\ud800" <= character <= "\udfff" for character in "".join(names)):
            return CodedText("a name has half of a pair of UTF-16.", code="not_utf8")
        if names[0].startswith(BYTE_ORDER_MARK.decode()):
            return CodedText(
                "a byte order mark is before its topic, as where files were joined. Remove it.",
                code="byte_order_mark",
            )
        problem, value = self._number(named)
        if problem is not None:
            return problem
        pair = tuple(named[column] for column in self.key)
        first = self.line_of_pair.setdefault(pair, number)
        if "iteration" in named:
            self.iterations.add(named["iteration"])
        if first != number:
            self.has_repeats = True
            topic, document, *assessor = map(_quoted, pair)
            by = f" by {assessor[0]}" if assessor else ""
            noun = "pair" if self.layout.is_json else "line"
            return CodedText(
                f"document {document} of topic {topic}{by} is in {noun} {first} already. "
                "Keep one of the two.",
                code="twice",
            )
        self.values.append(value)
        if self.layout.kind == "run":
            self.tags.add(named.get("tag", ""))
            rank = named.get("rank", "") if self.layout.value_column == "score" else ""
            self.ranks.append(float(rank) if INTEGER.fullmatch(rank) else nan)
        return None

    def _number(self, named: Named) -> tuple[CodedText | None, float]:
        if not self.layout.value_column:
            return None, 1
        text = named[self.layout.value_column]
        if self.layout.value_column == "grade":
            return self._grade(text)
        if self.layout.value_column == "rank":
            if not INTEGER.fullmatch(text):
                return CodedText(f"the rank {_quoted(text)} is not a whole number.", code="rank"), 0
            return None, int(text)
        if not NUMBER.fullmatch(text):
            point = " Write a decimal point, and no comma." if "," in text else ""
            return CodedText(f"the score {_quoted(text)} is not a number.{point}", code="score"), 0
        if isnan(score := float(text)):
            return CodedText(
                "the score is NaN, which has no place in an order.", code="score_nan"
            ), 0
        if isinf(score) and "inf" not in text.lower():
            return CodedText(
                f"the score {_quoted(text)} is beyond the range of 64-bit floats.",
                code="score_range",
            ), 0
        return None, score

    def _grade(self, text: str) -> tuple[CodedText | None, float]:
        parts = WHOLE.fullmatch(text)
        if not parts:
            point = " Write it without a comma." if "," in text else ""
            return CodedText(
                f"the grade {_quoted(text)} is not a whole number.{point}", code="grade"
            ), 0
        # one that is too long to be read as a number is too large to be a grade
        if len(parts[1]) > 20 or not LOWEST_GRADE <= int(parts[1]) <= HIGHEST_GRADE:
            limits = f"{LOWEST_GRADE} and {HIGHEST_GRADE}"
            return CodedText(
                f"the grade {_quoted(text)} is not between {limits}.", code="grade_range"
            ), 0
        self.n_decimal += bool(parts[2])
        return None, int(parts[1])


def _lines_of(path: Path, file: IO[bytes], layout: Layout) -> _Lines:
    lines = _Lines(layout)
    faults: list[tuple[int | None, CodedText]] = []
    if layout.is_json:
        records = (
            each_table_record(path, layout.kind, lines.table)
            if layout.is_table
            else each_record(path, file, layout.kind, lines.table)
        )
        for number, (place, named) in enumerate(records, 1):
            if (problem := lines.take_named(number, named)) is not None:
                faults.append((None, CodedText(f"{place}: {problem}", problem.code)))
                if len(faults) == MOST_FAULTS:
                    break
    else:
        for number, line in _each_line(path, file):
            if (problem := lines.take(number, line)) is not None:
                faults.append((number, problem))
                if len(faults) == MOST_FAULTS:
                    break
    if faults:
        names_assessors = layout.kind == "qrels" and lines.has_repeats and len(lines.iterations) > 1
        raise TrecFileFaults(path, faults, ASSESSORS_HINT if names_assessors else "")
    if not lines.values:
        raise TrecFileFaults.of_one(path, f"there is no line in it. {lines.form}", "no_lines")
    return lines


def _quoted(text: str) -> str:
    """A cell as a message may repeat it: its beginning, without characters nobody can read."""
    readable = "".join(one if one.isprintable() else "\ufffd" for one in text[:LONGEST_QUOTED])
    return readable + ("…" if len(text) > LONGEST_QUOTED else "")
