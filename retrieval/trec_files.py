"""Runs and qrels in TREC's formats: white space between columns, `#` before comments.

What trec_eval or a library would silently misread is refused, with file and line. A file is read
in blocks (`trec_blocks`); where anything in it is unusual, line by line, which says what and where.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from error_codes import CodedText
from presentation.files import plain_file, reason_of
from retrieval.exceptions import TrecFileFaults
from retrieval.exports.marks import SIMULATED
from retrieval.file_kinds import LOOKED_AT, problem_of_text
from retrieval.run_ranks import contradicting
from retrieval.trec_blocks import BYTE_ORDER_MARK, BlockKind, Columns, columns_of, read_in_blocks
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE, LOWEST_GRADE, in_single_precision

FileKind = Literal["run", "qrels", "qrels_jg"]
RUN_COLUMNS = ("topic", "Q0", "docno", "rank", "score", "tag")
ASSESSORS_HINT = (
    "If column 2 names assessors, merge their grades first (merge_assessors), or compare them "
    "(compare_qrels --assessors)."
)
QREL_COLUMNS = ("topic", "iteration", "docno", "grade")
INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
MARKED = re.compile(rf"\s*[^\s#]\S*\s+{SIMULATED}(?:-\S*)?\s".encode())
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.I)
BLOCK_BYTES = 32 * 1024**2
MOST_BYTES = 16 * 1024**3
"""Of a file, unpacked: lists of a thousand documents for 300,000 topics."""
LONGEST_LINE = 1024**2
"""In bytes: six columns, of which names are the longest."""
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


def read_run(path: Path) -> Run:
    """A run, plain or compressed with gzip, or TrecFileFaults, which name each line."""
    read = _read(path, "run")
    tag = next(iter(read.tags)) if len(read.tags) == 1 else ""
    columns = read.topics, read.documents, read.topic, read.document, read.value
    return Run(
        path,
        tag,
        *columns,
        n_infinite=int(np.isinf(in_single_precision(read.value)).sum()),
        contradicting=contradicting(read.topic, read.rank, read.value),
    )


def read_qrels(path: Path) -> RelevanceGrades:
    """Qrels, plain or compressed with gzip, or TrecFileFaults, which name each line."""
    return _as_grades(path, _read(path, "qrels"))


def has_simulated_mark(path: Path) -> bool:
    """Whether any line of qrels that can be read has the mark of simulated answers."""
    with _opened(path) as file:
        return any(MARKED.match(line) for line in file)


def _as_grades(path: Path, read: Columns) -> RelevanceGrades:
    grade = read.value.astype(np.intp)
    return RelevanceGrades(path, read.topics, read.documents, read.topic, read.document, grade)


def read_assessors(path: Path) -> dict[str, RelevanceGrades]:
    """Each assessor's qrels of a file that names the assessor in column 2 (qrels_jg)."""
    try:
        _require_text(path)
        with _opened(path) as file:
            lines = _lines_of(path, file, "qrels_jg")
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    rows: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for (topic, document, *assessor), grade in zip(lines.line_of_pair, lines.values, strict=True):
        rows[assessor[0]].append((topic, document, int(grade)))
    if len(rows) < 2:
        name = _quoted(next(iter(rows)))
        problem = CodedText(
            f"all lines have {name} in column 2, which names the assessor.", code="one_assessor"
        )
        raise TrecFileFaults(path, [(None, problem)])
    return {assessor: _grades_of(path, rows[assessor]) for assessor in sorted(rows)}


def _grades_of(path: Path, rows: Sequence[tuple[str, str, int]]) -> RelevanceGrades:
    topics, documents, grades = zip(*rows, strict=True)
    return _as_grades(path, columns_of(topics, documents, grades))


def each_line(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file with their numbers, as cells; comments and empty lines are left out.

    Nothing of them is checked, and what is not UTF-8 is replaced.
    """
    try:
        with _opened(path) as file:
            for number, line in _each_line(path, file):
                cells = [cell.decode(errors="replace") for cell in line.split()]
                if cells and not cells[0].startswith("#"):
                    yield number, cells
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def _read(path: Path, kind: BlockKind) -> Columns:
    try:
        _require_text(path)
        with _opened(path) as file:
            columns = read_in_blocks(_blocks(path, file), kind)
        if columns is None:
            with _opened(path) as file:
                lines = _lines_of(path, file, kind)
                topics, documents = zip(*lines.line_of_pair, strict=True)
                columns = columns_of(
                    topics, documents, lines.values, tags=lines.tags, ranks=lines.ranks
                )
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    return columns


def _unreadable(path: Path, error: Exception) -> TrecFileFaults:
    reason = getattr(error, "strerror", None) or reason_of(error)
    return TrecFileFaults(
        path, [(None, CodedText(f"it cannot be read: {reason}.", code="unreadable"))]
    )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, what gzip compressed unpacked, after a mark of their order."""
    with plain_file(path).open("rb") as plain:
        is_compressed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        file: Any = gzip.GzipFile(fileobj=plain) if is_compressed else plain
        if file.read(3) != BYTE_ORDER_MARK:
            file.seek(0)
        yield file


def _require_text(path: Path) -> None:
    """Refuse a picture or a workbook in one sentence, before each of its lines is."""
    with _opened(path) as file:
        problem = problem_of_text(file.read(LOOKED_AT))
    if problem:
        raise TrecFileFaults(path, [(None, problem)])


def _blocks(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """The file's bytes in blocks of whole lines, none of which is too long."""
    n_bytes, n_lines = 0, 0
    while block := file.read(BLOCK_BYTES):
        block += file.readline(LONGEST_LINE + 1)
        if (start := _long_line(block)) is not None:
            line = n_lines + block.count(b"\n", 0, start) + 1
            raise TrecFileFaults(path, [(line, TOO_LONG)])
        n_lines += block.count(b"\n")
        if (n_bytes := n_bytes + len(block)) > MOST_BYTES:
            size = f"{MOST_BYTES // 1024**3} GB"
            raise TrecFileFaults(
                path,
                [
                    (
                        None,
                        CodedText(
                            f"it is larger than {size}. Split it by topic.", code="too_large"
                        ),
                    )
                ],
            )
        yield block


def _long_line(block: bytes) -> int | None:
    """Where the first line begins that is too long; looked for from the last end within reach."""
    start = 0
    while len(block) - start > LONGEST_LINE:
        end = block.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            return start
        start = end + 1
    return None


def _each_line(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, none longer than what is read of it at once."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            raise TrecFileFaults(path, [(number, TOO_LONG)])
        yield number, line


def _lines_of(path: Path, file: IO[bytes], kind: FileKind) -> _Lines:
    """The lines of a file that can be used, or TrecFileFaults, which name each that cannot."""
    lines, faults = _Lines(kind), []
    for number, line in _each_line(path, file):
        if (problem := lines.take(number, line)) is not None:
            faults.append((number, problem))
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        names_assessors = kind == "qrels" and lines.has_repeats and len(lines.iterations) > 1
        raise TrecFileFaults(path, faults, ASSESSORS_HINT if names_assessors else "")
    if not lines.values:
        raise TrecFileFaults(
            path, [(None, CodedText(f"there is no line in it. {lines.form}", code="no_lines"))]
        )
    return lines


class _Lines:
    """The lines of a file, read one by one; each that cannot be used gives its reason."""

    def __init__(self, kind: FileKind) -> None:
        self.columns = RUN_COLUMNS if kind == "run" else QREL_COLUMNS
        kind_of_file = "a run" if kind == "run" else "qrels"
        columns = f"{len(self.columns)} columns: {' '.join(self.columns)}"
        self.form = f"A line of {kind_of_file} has {columns}."
        self.key = ("topic", "docno", *(["iteration"] if kind == "qrels_jg" else []))
        self.line_of_pair: dict[tuple[str, ...], int] = {}
        self.values: list[float] = []
        self.tags: set[str] = set()
        self.iterations: set[str] = set()
        self.has_repeats = False
        self.ranks: list[float] = []

    def take(self, number: int, line: bytes) -> str | None:
        """Keep a line's values, or say what is wrong with it."""
        try:
            cells = [cell.decode() for cell in line.split()]
        except UnicodeDecodeError:
            return CodedText("it is not UTF-8. Save the file as UTF-8.", code="not_utf8")
        if not cells or cells[0].startswith("#"):
            return None
        if b"\0" in line:
            return CodedText("it holds a NUL character.", code="nul")
        if cells[0].startswith(BYTE_ORDER_MARK.decode()):
            return CodedText(
                "a byte order mark is before its topic, as where files were joined. Remove it.",
                code="byte_order_mark",
            )
        if len(cells) != len(self.columns):
            return CodedText(f"it has {len(cells)} columns. {self.form}", code="columns")
        named = dict(zip(self.columns, cells, strict=True))
        problem, value = _number(named)
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
            return CodedText(
                f"document {document} of topic {topic}{by} is in line {first} already. "
                "Keep one of the two.",
                code="twice",
            )
        self.values.append(value)
        if "tag" in named:
            self.tags.add(named["tag"])
            self.ranks.append(float(named["rank"]) if INTEGER.fullmatch(named["rank"]) else nan)
        return None


def _number(named: dict[str, str]) -> tuple[str | None, float]:
    """What is wrong with a line's score or grade, and its value where nothing is."""
    if "grade" in named:
        text = named["grade"]
        if WHOLE.fullmatch(text) and not INTEGER.fullmatch(text):
            # too long to be read as a number, and too large to be a grade
            return _out_of_range(text), 0
        if not INTEGER.fullmatch(text):
            return CodedText(f"the grade {_quoted(text)} is not a whole number.", code="grade"), 0
        if not LOWEST_GRADE <= int(text) <= HIGHEST_GRADE:
            return _out_of_range(text), 0
        return None, int(text)
    text = named["score"]
    if not NUMBER.fullmatch(text):
        return CodedText(f"the score {_quoted(text)} is not a number.", code="score"), 0
    if isnan(score := float(text)):
        return CodedText("the score is NaN, which has no place in an order.", code="score_nan"), 0
    return None, score


def _out_of_range(text: str) -> str:
    return CodedText(
        f"the grade {_quoted(text)} is not between {LOWEST_GRADE} and {HIGHEST_GRADE}.",
        code="grade_range",
    )


def _quoted(text: str) -> str:
    """A cell as a message may repeat it: its beginning, without characters nobody can read."""
    readable = "".join(one if one.isprintable() else "\ufffd" for one in text[:LONGEST_QUOTED])
    return readable + ("…" if len(text) > LONGEST_QUOTED else "")
