from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from error_codes import CodedText
from presentation.files import plain_file, reason_of, write_whole
from presentation.libraries import pa, pc, pq
from retrieval.exceptions import PoolFileFaults
from retrieval.text_lines import each_text_line
from stats.arguments import Integers

BLOCK_ROWS = 100_000
HASHED_AT_ONCE = 1 << 22
ENDINGS_OF_NAMES = (".ids", ".ids.txt", ".txt")
MOST_FAULTS = 1000
# The longest name of a document, in bytes.
LONGEST_NAME = 1000
# The most rows of a command's file; pages take fewer.
MOST_ROWS = 1_000_000_000
TOO_LONG = f"is too long a name: {LONGEST_NAME:,} bytes are the most."


@dataclass(frozen=True)
class Vectors:
    """A vector for each name; the array may be a file that is mapped into memory.

    Attributes
    ----------
    names : list of str
    array : ndarray of float, shape (n, dimensions)
    signature : str
        What they were read from, or made by.
    """

    names: list[str]
    array: NDArray[Any]
    signature: str = "array"

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or not self.array.shape[1]:
            raise ValueError(f"array must have rows and columns, not the shape {self.array.shape}")
        if self.array.dtype.kind != "f":
            raise ValueError(f"array must hold floats, not {self.array.dtype}")
        if len(self.names) != len(self.array):
            raise ValueError(
                f"names and array must have the same length: {len(self.names)} and "
                f"{len(self.array)}"
            )
        if len(set(self.names)) < len(self.names):
            raise ValueError("names must differ")

    def blocks(self, n_rows: int = BLOCK_ROWS) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for start in range(0, len(self.array), n_rows):
            block = np.ascontiguousarray(self.array[start : start + n_rows], dtype=np.float32)
            if (row := _first_infinite(block)) is not None:
                name = self.names[start + row]
                raise ValueError(
                    f"vectors must be finite in single precision; that of {name} "
                    f"(row {start + row + 1}) is not"
                )
            yield start, block

    def positions(self, names: Sequence[str]) -> Integers:
        rows = dict(zip(self.names, range(len(self.names)), strict=True))
        return np.array([rows.get(name, -1) for name in names], dtype=np.intp)


def read_vectors(path: Path, names: Path | None = None, *, most_rows: int = MOST_ROWS) -> Vectors:
    """Vectors of a .npy file and its file of names, a line each, or of a Parquet file.

    Without `names` they are looked for beside vectors.npy, as vectors.ids, vectors.ids.txt or
    vectors.txt. Of Parquet, the columns are the first of texts and the first of lists of numbers.
    More than `most_rows` are refused before their names are in memory.
    """
    try:
        with plain_file(path).open("rb") as file:
            start = file.read(6)
        if start.startswith(b"PAR1"):
            return _require_finite(path, _read_parquet(path, most_rows))
        if start == b"\x93NUMPY":
            return _require_finite(path, _read_npy(path, names or _names_beside(path), most_rows))
    except OSError as error:
        raise PoolFileFaults.of_one(
            path, f"it cannot be read: {error.strerror or error}.", "unreadable"
        ) from None
    raise PoolFileFaults.of_one(path, "it is neither a .npy file nor Parquet.", "not_vectors")


def _first_infinite(block: NDArray[np.float32]) -> int | None:
    rows = np.flatnonzero(~np.isfinite(block).all(axis=1))
    return int(rows[0]) if len(rows) else None


def _require_finite(path: Path, vectors: Vectors) -> Vectors:
    for start in range(0, len(vectors.array), BLOCK_ROWS):
        with np.errstate(over="ignore"):  # a double beyond single precision becomes infinite
            block = np.asarray(vectors.array[start : start + BLOCK_ROWS], dtype=np.float32)
        if (row := _first_infinite(block)) is not None:
            name = vectors.names[start + row]
            raise PoolFileFaults.of_one(
                path,
                f"the vector of {name} is not finite in single precision. Leave it out.",
                "not_finite",
                line=start + row + 1,
            )
    return vectors


def write_vectors(path: Path, vectors: Vectors) -> None:
    try:
        copy = np.lib.format.open_memmap(
            path, mode="w+", dtype=vectors.array.dtype, shape=vectors.array.shape
        )
    except OSError as error:
        raise PoolFileFaults(
            path, [(None, f"it cannot be written: {error.strerror or error}.")]
        ) from None
    for start in range(0, len(vectors.names), BLOCK_ROWS):
        copy[start : start + BLOCK_ROWS] = vectors.array[start : start + BLOCK_ROWS]
    copy.flush()
    write_whole(path.with_suffix(".ids"), (f"{name}\n" for name in vectors.names))


def _names_beside(path: Path) -> Path:
    for ending in ENDINGS_OF_NAMES:
        if (beside := path.with_suffix(ending)).is_file():
            return beside
    raise PoolFileFaults.of_one(
        path,
        f"there is no file of names beside it, such as {path.stem}.ids with a name a line.",
        "names_missing",
    )


def _read_npy(path: Path, names_path: Path, most_rows: int) -> Vectors:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    # the header is Python's syntax
    except (ValueError, OverflowError, TypeError, TokenError) as error:
        raise PoolFileFaults.of_one(
            path, f"numpy cannot read it: {reason_of(error)}.", "unreadable"
        ) from None
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind != "f":
        raise PoolFileFaults.of_one(
            path,
            f"it holds {array.dtype} of shape {array.shape}. Save a row of floats a document.",
            "not_floats",
        )
    if not len(array):
        raise PoolFileFaults.of_one(path, "it holds no rows.", "no_rows")
    _require_few_rows(path, len(array), most_rows)
    names, n_names = _read_names(names_path, len(array))
    if n_names != len(array):
        raise PoolFileFaults.of_one(
            path, f"it has {len(array):,} rows, and {names_path.name} {n_names:,} names.", "n_names"
        )
    return Vectors(names, array, f"embeddings|file:{path.name}|sha256:{file_digest(path)}")


def _read_names(path: Path, n_rows: int) -> tuple[list[str], int]:
    """The names of so many rows, and how many there are: those beyond them are only counted."""
    names, n_names = _Names(path), 0
    for line, text in each_text_line(path, PoolFileFaults):
        # A blank line is left out by the reader; here it is a row without a name.
        for _blank in range(n_names + 1, min(line, n_rows + 1)):
            names.take("")
        n_names = line
        if line <= n_rows:
            names.take(text.strip())
    return names.all(), n_names


def _require_few_rows(path: Path, n_rows: int, most: int) -> None:
    if n_rows > most:
        raise PoolFileFaults.of_one(
            path,
            f"it has {n_rows:,} vectors, where {most:,} are the most. Split it.",
            "too_many_vectors",
        )


class _Names:
    """Names of rows: those that no qrels can hold, and one given twice, are refused by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, int] = {}
        self._faults: list[tuple[int | None, str]] = []
        self._n = 0

    def take(self, name: str) -> None:
        self._n += 1
        if (problem := self._problem(name)) is None:
            return
        self._faults.append((self._n, problem))
        if len(self._faults) == MOST_FAULTS:
            raise PoolFileFaults(self._path, self._faults)

    def all(self) -> list[str]:
        if self._faults:
            raise PoolFileFaults(self._path, self._faults)
        return list(self._lines)

    def _problem(self, name: str) -> str | None:
        if len(name.split()) != 1:
            return (
                CodedText(f"'{name[:40]}' has white space in it.", code="white_space")
                if name
                else CodedText("there is no name.", code="no_name")
            )
        if "\0" in name:
            return CodedText("the name holds a NUL character.", code="nul")
        if len(name.encode()) > LONGEST_NAME:
            return CodedText(f"{name[:40]}… {TOO_LONG}", code="name_too_long")
        if (line_before := self._lines.setdefault(name, self._n)) != self._n:
            return CodedText(f"{name} is in line {line_before} already.", code="twice")
        return None


def _read_parquet(path: Path, most_rows: int) -> Vectors:
    """Copied into a temporary .npy file, a block at a time, so that rows can be mapped."""
    try:
        name_column, vector_column = _parquet_columns(path, pq.read_schema(path))
        # each name is in memory once before its length is known, however often it is repeated
        file = pq.ParquetFile(path, read_dictionary=[name_column])
        _require_few_rows(path, file.metadata.num_rows, most_rows)
        names, n = _Names(path), 0
        array: Any = None
        for batch in file.iter_batches(BLOCK_ROWS, columns=[name_column, vector_column]):
            rows = _matrix(path, batch.column(vector_column), n)
            if array is None:
                array = temporary_array(file.metadata.num_rows, rows.shape[1])
            if rows.shape[1] != array.shape[1]:
                raise PoolFileFaults(
                    path, [(n + 1, f"vectors have {array.shape[1]} and {rows.shape[1]} numbers.")]
                )
            array[n : n + len(rows)] = rows
            for name in _names_in(path, batch.column(name_column), n):
                names.take(name)
            n += len(rows)
    except pa.ArrowException as error:
        raise PoolFileFaults.of_one(
            path, f"it is not Parquet: {reason_of(error)}.", "not_parquet"
        ) from None
    if array is None:
        raise PoolFileFaults.of_one(path, "it holds no rows.", "no_rows")
    return Vectors(names.all(), array, f"embeddings|file:{path.name}|sha256:{file_digest(path)}")


def _names_in(path: Path, column: Any, n_before: int) -> list[str]:
    """The names of a batch, unless one is so long that many of it would fill the memory."""
    if isinstance(column, pa.DictionaryArray):
        long = pc.greater(pc.binary_length(column.dictionary), LONGEST_NAME).to_numpy(False)
        codes = column.indices.fill_null(0).to_numpy(False)
        if len(rows := np.flatnonzero(long[codes])):
            row, code = int(rows[0]), int(codes[rows[0]])
            name = column.dictionary[code].as_py()
            raise PoolFileFaults.of_one(
                path, f"{name[:40]}… {TOO_LONG}", "name_too_long", line=n_before + row + 1
            )
    return ["" if name is None else str(name) for name in column.to_pylist()]


def _parquet_columns(path: Path, schema: Any) -> tuple[str, str]:
    import pyarrow.types as kinds

    names = [
        each.name
        for each in schema
        if kinds.is_string(each.type)
        or kinds.is_integer(each.type)
        or kinds.is_large_string(each.type)
    ]
    lists = [
        each.name
        for each in schema
        if (
            kinds.is_list(each.type)
            or kinds.is_large_list(each.type)
            or kinds.is_fixed_size_list(each.type)
        )
        and (kinds.is_floating(each.type.value_type) or kinds.is_integer(each.type.value_type))
    ]
    if not names or not lists:
        raise PoolFileFaults.of_one(
            path, "it needs a column of names and one of lists of numbers.", "columns"
        )
    return names[0], lists[0]


def _matrix(path: Path, column: Any, n_before: int) -> NDArray[np.float32]:
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    odd: Integers = np.flatnonzero(~(lengths == lengths[:1]))
    if len(odd) or column.null_count:
        row = n_before + (int(odd[0]) if len(odd) else 0) + 1
        raise PoolFileFaults.of_one(
            path, "its vector has another length than the first.", "lengths_differ", line=row
        )
    if not lengths[0]:
        raise PoolFileFaults.of_one(path, "its vector is empty.", "empty", line=n_before + 1)
    values = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float32).reshape(len(lengths), -1)


def temporary_array(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Space on disk that the system takes back when the array is gone."""
    with TemporaryFile(prefix="vectors-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=(n_rows, n_columns))


def file_digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(HASHED_AT_ONCE):
            digest.update(part)
    return digest.hexdigest()[:16]
