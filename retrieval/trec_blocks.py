"""Runs and qrels of a million lines: blocks of a file as columns, or None where a line is unusual.

Nothing is refused here: what this does not read as the format says, `trec_files` reads line by
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrieval.trec_layouts import Layout
from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE

if TYPE_CHECKING:
    import pyarrow as pa

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
    rank: Floats
    """Of a run; NaN where it is no whole number. Empty of qrels."""

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
    """The columns of lines that were read one by one."""
    import pyarrow as pa

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
    """All columns, or None where a line must be looked at by itself."""
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
    """The columns of a block whose every line has as many as the layout says."""
    # Loads an engine that pages without files do without.
    import pyarrow as pa
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
    codes = np.frombuffer(block, np.uint8)
    if (delimiter := _delimiter(codes)) is not None:
        return block, delimiter
    if b"\t" in block:
        return None
    text = b"\n".join(b" ".join(line.split()) for line in block.split(b"\n") if line.strip())
    return (text, " ") if text else None


def _delimiter(codes: NDArray[np.uint8]) -> str | None:
    """What stands once between any two columns and nowhere else: tabs, if there are any."""
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
    """Scores, grades or ranks that are written as the layout says; None where one is not."""
    import pyarrow as pa

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
    """The ranks of a block; NaN for all where one is no whole number."""
    import pyarrow as pa

    if column.type != pa.int64() or column.null_count:
        return np.full(len(column), np.nan)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _in_order(parts: Sequence[Any]) -> tuple[list[str], Integers]:
    """The names in the order of their bytes, and where among them each line's is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unified = pa.chunked_array(parts).unify_dictionaries()
    names = unified.chunk(0).dictionary
    order = pc.sort_indices(names).to_numpy()
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    codes = np.concatenate([part.indices.to_numpy() for part in unified.chunks])
    return names.take(pa.array(order)).to_pylist(), position[codes]
