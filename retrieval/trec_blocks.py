"""Runs and qrels of a million lines: blocks of a file as columns, or None where a line is unusual.

Nothing is refused here: what this does not read as the format says, `trec_files` reads line by
line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from annotation.exceptions import ImportRefused
from annotation.readers import tables
from annotation.readers.drafts import ReadingReport
from error_codes import CodedText
from presentation.libraries import pa, pc
from retrieval.exceptions import TrecFileFaults
from retrieval.trec_layouts import FileKind, Layout, column_name
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE

NUMBERS = {"score": b"0123456789+-.eE", "grade": b"0123456789-", "rank": b"0123456789"}
SPACE, TAB, LINE_END = b" \t\n"
# What may be a comment: a line that begins with # and a gap. Space before it is of the same line:
# a million blank lines would each be looked through from every line before them.
COMMENT = re.compile(rb"(?:^|\n)[^\S\n]*#+\s")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Columns:
    """What has been read: names in the order of their bytes, and each line's positions in them."""

    topics: list[str]
    documents: list[str]
    topic: Integers
    document: Integers
    value: Floats
    tags: frozenset[str]
    # Ranks of a run, NaN if they are not whole numbers; empty for qrels.
    rank: Floats

    def has_a_pair_twice(self) -> bool:
        pairs = np.sort(self.topic * (len(self.documents) or 1) + self.document)
        return bool((pairs[1:] == pairs[:-1]).any())


def columns_of(
    topics: Sequence[str],
    documents: Sequence[str],
    values: Sequence[float],
    *,
    tags: Iterable[str] = (),
    ranks: Sequence[float] = (),
) -> Columns:
    (names, topic), (titles, document) = (
        _in_order([pa.array(column, pa.string()).dictionary_encode()])
        for column in (topics, documents)
    )
    return Columns(
        names,
        titles,
        topic,
        document,
        np.array(values, float),
        frozenset(tags),
        np.array(ranks, float),
    )


def read_in_blocks(blocks: Iterable[bytes], layout: Layout) -> Columns | None:
    topics: list[Any] = []
    documents: list[Any] = []
    values: list[Floats] = []
    ranks: list[Floats] = [np.empty(0)]
    tags: set[str] = set()
    for block in blocks:
        table = _table(block, layout)
        numbers = None if table is None else _numbers(table, layout)
        if table is None or numbers is None:
            return None
        topics += table["topic"].chunks
        documents += table["docno"].chunks
        values.append(numbers)
        if layout.kind == "run":
            has_ranks = layout.value_column == "score" and "rank" in layout.columns
            ranks.append(_ranks(table["rank"]) if has_ranks else np.full(len(table), np.nan))
        if "tag" in layout.columns:
            tags |= {tag for part in table["tag"].chunks for tag in part.dictionary.to_pylist()}
    if not values:
        return None
    (names, topic), (titles, document) = _in_order(topics), _in_order(documents)
    value, rank = np.concatenate(values), np.concatenate(ranks)
    columns = Columns(names, titles, topic, document, value, frozenset(tags), rank)
    return None if columns.has_a_pair_twice() else columns


def _table(block: bytes, layout: Layout) -> pa.Table | None:
    # Loads an engine that pages without files do without.
    from pyarrow import csv

    if (single := _single_spaced(block)) is None:
        return None
    text, delimiter = single
    coded = pa.dictionary(pa.int32(), pa.string())
    types = {"topic": coded, "docno": coded, "tag": coded}
    if layout.value_column:
        types[layout.value_column] = pa.string()
    wanted = [name for name in layout.columns if name in (*types, "rank")]

    def read(type_of_rank: pa.DataType) -> pa.Table:
        return csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(
                column_names=layout.columns, use_threads=False, block_size=len(text) + 1
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, quote_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types={"rank": type_of_rank} | types,
                strings_can_be_null=False,
            ),
        )

    # Nothing is ordered by ranks if there are scores: they may be anything.
    for type_of_rank in (pa.int64(), pa.string()):
        try:
            return read(type_of_rank)
        except pa.ArrowInvalid:
            continue
    return None


def _single_spaced(block: bytes) -> tuple[bytes, str] | None:
    """The lines with one space, or one tab, between columns; None where one is unusual.

    Unusual are comments, NUL, byte order marks, tabs next to spaces, and what is not UTF-8.
    """
    if b"\0" in block or BYTE_ORDER_MARK in block or not _is_utf8(block):
        return None
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if b"#" in block and COMMENT.search(block):
        return None
    if (delimiter := _delimiter(np.frombuffer(block, np.uint8))) is not None:
        return block, delimiter
    if b"\t" in block:
        return None
    text = b"\n".join(b" ".join(line.split()) for line in block.split(b"\n") if line.strip())
    return (text, " ") if text else None


def _delimiter(codes: NDArray[np.uint8]) -> str | None:
    is_white = codes <= SPACE
    if is_white[0] or (is_white[1:] & is_white[:-1]).any():
        return None
    others = codes[is_white]
    others = others[others != LINE_END]
    is_tab = others == TAB
    if not (is_tab | (others == SPACE)).all():
        return None
    return "\t" if is_tab.any() else " "


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(table: pa.Table, layout: Layout) -> Floats | None:
    name = layout.value_column
    if not name:
        return np.ones(len(table))
    columns = []
    for part in table[name].chunks:
        if bytes(part.buffers()[2]).translate(None, NUMBERS[name]):
            return None
        try:
            numbers = part.cast(pa.float64() if name == "score" else pa.int64())
        except pa.ArrowInvalid:
            return None
        columns.append(numbers.to_numpy(zero_copy_only=False).astype(np.float64))
    values = np.concatenate(columns)
    highest = HIGHEST_GRADE if name == "grade" else np.finfo(float).max
    return values if bool((np.abs(values) <= highest).all()) else None


def _ranks(column: Any) -> Floats:
    if column.type != pa.int64() or column.null_count:
        return np.full(len(column), np.nan)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _in_order(parts: Sequence[Any]) -> tuple[list[str], Integers]:
    unified = pa.chunked_array(parts).unify_dictionaries()
    names = unified.chunk(0).dictionary
    order = pc.sort_indices(names).to_numpy()
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    codes = np.concatenate([part.indices.to_numpy() for part in unified.chunks])
    return names.take(pa.array(order)).to_pylist(), position[codes]


def contradicting(topic: Integers, rank: Floats, score: Floats) -> Integers:
    """Lines that have a worse rank and a greater score than the one before them by rank.

    Ranks that are no numbers are NaN, and contradict nothing.

    Returns
    -------
    ndarray of int, shape (n, 2)
        The positions of each such line and of the one that it contradicts, in the file's order.
    """
    # Most files are in order already; of equal ranks the greatest score is first.
    order = None if _is_in_order(topic, rank) else np.lexsort((-score, rank, topic))
    if order is not None:
        topic, rank, score = topic[order], rank[order], score[order]
    is_worse = (topic[1:] == topic[:-1]) & (rank[1:] > rank[:-1]) & (score[1:] > score[:-1])
    at = np.flatnonzero(is_worse)
    pairs = np.column_stack((at + 1, at)) if order is None else order[np.column_stack((at + 1, at))]
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


def _is_in_order(topic: Integers, rank: Floats) -> bool:
    is_same = topic[1:] == topic[:-1]
    if int((~is_same).sum()) + 1 != int(topic.max(initial=0)) + 1:
        return False
    return bool((rank[1:] > rank[:-1])[is_same].all())


# The most JSON that is read as a whole: its objects take ten times as much memory.
MOST_BYTES = 128 * 1024**2
Named = dict[str, str]
NO_DOCUMENTS = CodedText("the topic has no documents", "no_documents")


class Pairs(list[tuple[str, Any]]):
    """The names and values of an object; of a dictionary, those that are there twice are lost."""


def each_record(
    path: Path, file: IO[bytes], kind: FileKind, report: ReadingReport
) -> Iterator[tuple[str, Named]]:
    """Where each record is, and its topic, docno and value as texts.

    The report counts topics without documents.
    """
    first = file.readline(MOST_BYTES + 1)
    try:
        value = _loaded(first)
        is_lines = not any(isinstance(each, Pairs) for _name, each in value)
    except (ValueError, TypeError, RecursionError):
        is_lines = False
    if is_lines and isinstance(value, Pairs) and value:
        yield from _each_line(path, file, first, kind)
        return
    content = first + file.read(MOST_BYTES + 1 - len(first))
    if len(content) > MOST_BYTES:
        size = MOST_BYTES // 1024**2
        raise TrecFileFaults.of_one(
            path,
            f"it is JSON of more than {size} MiB. Save it as lines with TREC's columns.",
            "too_large",
        )
    value = _parsed(path, content, None)
    if isinstance(value, Pairs):
        for topic, documents in value:
            if not isinstance(documents, Pairs):
                problem = 'its value is not an object of documents, such as {"d1": 1}.'
                raise TrecFileFaults.of_one(path, f"topic {topic[:40]}: {problem}", "not_object")
            if not documents:
                report.leave_out(NO_DOCUMENTS, f"topic {topic[:40]}")
            for document, each in documents:
                named = {"topic": topic, "docno": document, _value_column(kind): _text(each)}
                yield f"topic {topic[:40]}, document {document[:40]}", named
    else:
        for number, record in enumerate(value, 1):
            yield f"record {number}", _named(path, None, record, kind)


def each_table_record(
    path: Path, kind: FileKind, report: ReadingReport
) -> Iterator[tuple[str, Named]]:
    try:
        for row in tables.each_row(path, report=report):
            fields = Pairs((name, row.text(name).strip()) for name in row.fields)
            yield row.place.lower(), _named(path, row.line, fields, kind)
    except ImportRefused as refused:
        raise TrecFileFaults.of_one(
            path, refused.problem, refused.code, line=refused.line
        ) from None


def _each_line(
    path: Path, file: IO[bytes], first: bytes, kind: FileKind
) -> Iterator[tuple[str, Named]]:
    number, line = 1, first
    while line:
        if line.strip():
            yield f"line {number}", _named(path, number, _parsed(path, line, number), kind)
        number, line = number + 1, file.readline(MOST_BYTES + 1)


def _parsed(path: Path, content: bytes, line: int | None) -> Any:
    try:
        return _loaded(content)
    except RecursionError:
        problem = CodedText("it is JSON that is nested too deeply.", "too_deep")
    except json.JSONDecodeError as error:
        line = error.lineno if line is None else line
        problem = CodedText(f"it is not JSON: {error.msg}, column {error.colno}.", "not_json")
    except ValueError as error:
        problem = CodedText(f"it is not JSON: {error}.", "not_json")
    raise TrecFileFaults(path, [(line, problem)]) from None


def _loaded(content: bytes) -> Any:
    # Numbers stay as they are written: 1e400 is no infinite score.
    return json.loads(
        content, object_pairs_hook=Pairs, parse_float=str, parse_int=str, parse_constant=str
    )


def _named(path: Path, line: int | None, record: Any, kind: FileKind) -> Named:
    if isinstance(record, Pairs):
        named = {
            column: _text(value)
            for name, value in record
            if value is not None and (column := column_name(name))
        }
        if kind != "run" and "grade" not in named and "score" in named:
            named["grade"] = named.pop("score")
        if {"topic", "docno", _value_column(kind)} <= named.keys():
            return named
    problem = (
        "a record has a topic (query_id), a document (doc_id) and a "
        f"{'score' if kind == 'run' else 'grade (relevance)'}."
    )
    raise TrecFileFaults.of_one(path, problem, "fields", line=line)


def _value_column(kind: FileKind) -> str:
    return "score" if kind == "run" else "grade"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
