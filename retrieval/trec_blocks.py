"""Runs and qrels of a million lines: blocks of a file as columns, or None where a line is unusual.

Nothing is refused here: what this does not read as the format says, `trec_files` reads line by
line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats, Integers
from stats.ranking.judged_lists import HIGHEST_GRADE

if TYPE_CHECKING:
    import pyarrow as pa

BlockKind = Literal["run", "qrels"]
NAMES = {
    "run": ("topic", "Q0", "docno", "rank", "value", "tag"),
    "qrels": ("topic", "iteration", "docno", "value"),
}
NUMBERS = {"run": b"0123456789+-.eE", "qrels": b"0123456789-"}
SPACE, TAB, LINE_END, HASH = b" \t\n#"
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


def read_in_blocks(blocks: Iterable[bytes], kind: BlockKind) -> Columns | None:
    """All columns, or None where a line must be looked at by itself."""
    topics: list[Any] = []
    documents: list[Any] = []
    values: list[Floats] = []
    ranks: list[Floats] = [np.empty(0)]
    tags: set[str] = set()
    for block in blocks:
        table = _table(block, kind)
        numbers = None if table is None else _numbers(table["value"].chunks, kind)
        if table is None or numbers is None:
            return None
        topics += table["topic"].chunks
        documents += table["docno"].chunks
        values.append(numbers)
        if kind == "run":
            ranks.append(_ranks(table["rank"]))
            tags |= {tag for part in table["tag"].chunks for tag in part.dictionary.to_pylist()}
    if not values:
        return None
    (names, topic), (titles, document) = _in_order(topics), _in_order(documents)
    value, rank = np.concatenate(values), np.concatenate(ranks)
    columns = Columns(names, titles, topic, document, value, frozenset(tags), rank)
    return None if columns.has_a_pair_twice() else columns


def _table(block: bytes, kind: BlockKind) -> pa.Table | None:
    """The columns of a block whose every line has as many as the format says."""
    # Loads an engine that pages without files do without.
    import pyarrow as pa
    from pyarrow import csv

    if (single := _single_spaced(block)) is None:
        return None
    text, delimiter = single
    coded = pa.dictionary(pa.int32(), pa.string())
    types = {"topic": coded, "docno": coded, "value": pa.string(), "tag": coded}
    wanted = [name for name in NAMES[kind] if name in (*types, "rank")]

    def read(type_of_rank: pa.DataType) -> pa.Table:
        return csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(
                column_names=NAMES[kind], use_threads=False, block_size=len(text) + 1
            ),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, quote_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                include_columns=wanted,
                column_types=types | {"rank": type_of_rank},
                strings_can_be_null=False,
            ),
        )

    # Nothing is ordered by ranks, which may be anything.
    for type_of_rank in (pa.int64(), pa.string()):
        try:
            return read(type_of_rank)
        except pa.ArrowInvalid:
            continue
    return None


def _single_spaced(block: bytes) -> tuple[bytes, str] | None:
    """The lines with one space, or one tab, between columns; None where one is unusual.

    Unusual are comments, NUL, byte order marks and what is not UTF-8.
    """
    if b"\0" in block or BYTE_ORDER_MARK in block or not _is_utf8(block):
        return None
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    codes = np.frombuffer(block, np.uint8)
    if b"#" in block and _begins_a_line(codes, HASH):
        return None
    if (delimiter := _delimiter(codes)) is not None:
        return block, delimiter
    lines = (b" ".join(line.split()) for line in block.split(b"\n"))
    text = b"\n".join(line for line in lines if line)
    return (text, " ") if text and not _begins_a_line(np.frombuffer(text, np.uint8), HASH) else None


def _delimiter(codes: NDArray[np.uint8]) -> str | None:
    """What stands once between any two columns and nowhere else."""
    is_white = codes <= SPACE
    if is_white[0] or (is_white[1:] & is_white[:-1]).any():
        return None
    others = codes[is_white]
    others = others[others != LINE_END]
    for code in (SPACE, TAB):
        if (others == code).all():
            return chr(code)
    return None


def _begins_a_line(codes: NDArray[np.uint8], code: int) -> bool:
    after = codes[1:][codes[:-1] == LINE_END]
    return bool(codes[0] == code or (after == code).any())


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(parts: Sequence[Any], kind: BlockKind) -> Floats | None:
    """Scores or grades that are written as the format says; None where one is not."""
    import pyarrow as pa

    columns = []
    for part in parts:
        if bytes(part.buffers()[2]).translate(None, NUMBERS[kind]):
            return None
        try:
            numbers = part.cast(pa.float64() if kind == "run" else pa.int64())
        except pa.ArrowInvalid:
            return None
        columns.append(numbers.to_numpy(zero_copy_only=False).astype(np.float64))
    values = np.concatenate(columns)
    is_grade = kind == "run" or bool((np.abs(values) <= HIGHEST_GRADE).all())
    return values if is_grade else None


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
