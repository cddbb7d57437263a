"""Runs and qrels in TREC's formats: white space between columns, `#` before comments.

What trec_eval or a library would silently misread is refused, with file and line. A file is read
in blocks of whole lines; where anything in it is unusual, line by line, which finds what and where.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import isnan
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from retrieval.exceptions import TrecFileFaults
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE, LOWEST_GRADE

FileKind = Literal["run", "qrels"]
RUN_COLUMNS = ("topic", "Q0", "docno", "rank", "score", "tag")
QREL_COLUMNS = ("topic", "iteration", "docno", "grade")
INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.I)
BLOCK_BYTES = 4 * 1024**2
MOST_BYTES = 16 * 1024**3
"""Of a file, unpacked: lists of a thousand documents for 300,000 topics."""
MOST_FAULTS = 1000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
        Scores that are infinite, which sort well and are rarely meant.
    """

    path: Path
    tag: str
    topics: list[str]
    documents: list[str]
    topic: Integers
    document: Integers
    score: Floats
    n_infinite: int = 0


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
    columns = _read(path, "run")
    topics, topic = _in_order(columns.topics)
    documents, document = _in_order(columns.documents)
    score = np.concatenate(columns.values)
    tag = next(iter(columns.tags)).decode() if len(columns.tags) == 1 else ""
    topic, document = topic[columns.topic], document[columns.document]
    return Run(path, tag, topics, documents, topic, document, score, int(np.isinf(score).sum()))


def read_qrels(path: Path) -> RelevanceGrades:
    """Qrels, plain or compressed with gzip, or TrecFileFaults, which name each line."""
    columns = _read(path, "qrels")
    topics, topic = _in_order(columns.topics)
    documents, document = _in_order(columns.documents)
    grade = np.concatenate(columns.values).astype(np.intp)
    topic, document = topic[columns.topic], document[columns.document]
    return RelevanceGrades(path, topics, documents, topic, document, grade)


def _numbering() -> dict[bytes, int]:
    """Names with their numbers: what is looked up for the first time has the next."""
    return defaultdict(count().__next__)


@dataclass
class _Columns:
    """What has been read: names with their numbers by order of appearance, and numbers by line."""

    topics: dict[bytes, int] = field(default_factory=_numbering)
    documents: dict[bytes, int] = field(default_factory=_numbering)
    tags: set[bytes] = field(default_factory=set)
    topic_blocks: list[Integers] = field(default_factory=list)
    document_blocks: list[Integers] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)

    @property
    def topic(self) -> Integers:
        return np.concatenate(self.topic_blocks)

    @property
    def document(self) -> Integers:
        return np.concatenate(self.document_blocks)

    def append(
        self, topics: Sequence[bytes], documents: Sequence[bytes], values: Floats, tags: set[bytes]
    ) -> None:
        self.topic_blocks.append(_numbers_of(topics, self.topics))
        self.document_blocks.append(_numbers_of(documents, self.documents))
        self.values.append(values)
        self.tags |= tags

    def has_a_pair_twice(self) -> bool:
        pairs = np.sort(self.topic * (len(self.documents) or 1) + self.document)
        return bool((pairs[1:] == pairs[:-1]).any())


def _read(path: Path, kind: FileKind) -> _Columns:
    try:
        with _opened(path) as file:
            columns = _read_in_blocks(path, file, kind)
        if columns is None:
            with _opened(path) as file:
                columns = _read_by_line(path, file, kind)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TrecFileFaults(path, [(None, f"it cannot be read: {reason}.")]) from None
    return columns


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, what gzip compressed unpacked, after a mark of their order."""
    with path.open("rb") as plain:
        is_compressed = plain.read(2) == b"\x1f\x8b"
        plain.seek(0)
        file: Any = gzip.GzipFile(fileobj=plain) if is_compressed else plain
        if file.read(3) != BYTE_ORDER_MARK:
            file.seek(0)
        yield file


def _read_in_blocks(path: Path, file: IO[bytes], kind: FileKind) -> _Columns | None:
    """All columns, or None where a line must be looked at by itself."""
    columns, n_bytes = _Columns(), 0
    append = _append_run if kind == "run" else _append_qrels
    while lines := file.readlines(BLOCK_BYTES):
        if (n_bytes := n_bytes + sum(map(len, lines))) > MOST_BYTES:
            size = f"{MOST_BYTES // 1024**3} GB"
            raise TrecFileFaults(path, [(None, f"it is larger than {size}. Split it by topic.")])
        if not _is_usual(b"".join(lines)) or not append(columns, lines):
            return None
    return None if not columns.values or columns.has_a_pair_twice() else columns


def _is_usual(block: bytes) -> bool:
    """Whether there is no comment, no NUL and nothing but UTF-8."""
    if block.startswith(b"#") or b"\n#" in block or b"\0" in block:
        return False
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _append_run(columns: _Columns, lines: list[bytes]) -> bool:
    """Add lines, or say that one is not as the format says."""
    topics: list[bytes] = []
    documents: list[bytes] = []
    scores: list[bytes] = []
    tags: set[bytes] = set()
    try:
        # A list of lists would have the garbage collector look at each of a million lines.
        for line in lines:
            topic, _, document, _, score, tag = line.split()
            topics.append(topic)
            documents.append(document)
            scores.append(score)
            tags.add(tag)
    except ValueError:
        return False
    if (values := _plain_numbers(scores, b"0123456789+-.eE")) is None:
        return False
    columns.append(topics, documents, values, tags)
    return True


def _append_qrels(columns: _Columns, lines: list[bytes]) -> bool:
    """Add lines, or say that one is not as the format says."""
    topics: list[bytes] = []
    documents: list[bytes] = []
    grades: list[bytes] = []
    try:
        for line in lines:
            topic, _, document, grade = line.split()
            topics.append(topic)
            documents.append(document)
            grades.append(grade)
    except ValueError:
        return False
    values = _plain_numbers(grades, b"0123456789+-")
    if values is None or (np.abs(values) > HIGHEST_GRADE).any():
        return False
    columns.append(topics, documents, values, set())
    return True


def _plain_numbers(texts: list[bytes], allowed: bytes) -> Floats | None:
    """Numbers written with these characters alone; None where one is not."""
    if b"".join(texts).translate(None, allowed):
        return None
    try:
        return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:
        return None


def _numbers_of(names: Sequence[bytes], numbering: dict[bytes, int]) -> Integers:
    return np.fromiter(map(numbering.__getitem__, names), dtype=np.intp, count=len(names))


def _read_by_line(path: Path, file: IO[bytes], kind: FileKind) -> _Columns:
    lines, faults = _Lines(kind), []
    for number, line in enumerate(file, 1):
        if (problem := lines.take(number, line)) is not None:
            faults.append((number, problem))
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        raise TrecFileFaults(path, faults)
    if not lines.values:
        raise TrecFileFaults(path, [(None, f"there is no line in it. {lines.form}")])
    topics, documents = ([pair[side].encode() for pair in lines.line_of_pair] for side in (0, 1))
    columns = _Columns()
    columns.append(topics, documents, np.array(lines.values, dtype=np.float64), lines.tags)
    return columns


class _Lines:
    """The lines of a file, read one by one; each that cannot be used gives its reason."""

    def __init__(self, kind: FileKind) -> None:
        self.columns = RUN_COLUMNS if kind == "run" else QREL_COLUMNS
        kind_of_file = "a run" if kind == "run" else "qrels"
        columns = f"{len(self.columns)} columns: {' '.join(self.columns)}"
        self.form = f"A line of {kind_of_file} has {columns}."
        self.line_of_pair: dict[tuple[str, str], int] = {}
        self.values: list[float] = []
        self.tags: set[bytes] = set()

    def take(self, number: int, line: bytes) -> str | None:
        """Keep a line's values, or say what is wrong with it."""
        try:
            cells = [cell.decode() for cell in line.split()]
        except UnicodeDecodeError:
            return "it is not UTF-8. Save the file as UTF-8."
        if not cells or cells[0].startswith("#"):
            return None
        if b"\0" in line:
            return "it holds a NUL character."
        if len(cells) != len(self.columns):
            return f"it has {len(cells)} columns. {self.form}"
        named = dict(zip(self.columns, cells, strict=True))
        problem, value = _number(named)
        if problem is not None:
            return problem
        pair = named["topic"], named["docno"]
        first = self.line_of_pair.setdefault(pair, number)
        if first != number:
            return (
                f"document {pair[1]} of topic {pair[0]} is in line {first} already. "
                "Keep one of the two."
            )
        self.values.append(value)
        self.tags |= {named["tag"].encode()} if "tag" in named else set()
        return None


def _number(named: dict[str, str]) -> tuple[str | None, float]:
    """What is wrong with a line's score or grade, and its value where nothing is."""
    if "grade" in named:
        text = named["grade"]
        if not INTEGER.fullmatch(text):
            return f"the grade {text} is not a whole number.", 0
        if not LOWEST_GRADE <= int(text) <= HIGHEST_GRADE:
            return f"the grade {text} is not between {LOWEST_GRADE} and {HIGHEST_GRADE}.", 0
        return None, int(text)
    text = named["score"]
    if not NUMBER.fullmatch(text):
        return f"the score {text} is not a number.", 0
    if isnan(score := float(text)):
        return "the score is NaN, which has no place in an order.", 0
    return None, score


def _in_order(numbered: dict[bytes, int]) -> tuple[list[str], Integers]:
    """The names in the order of their bytes, and where among them each number's name is."""
    names = sorted(numbered)
    position = np.empty(len(names), dtype=np.intp)
    position[[numbered[name] for name in names]] = np.arange(len(names))
    return [name.decode() for name in names], position
