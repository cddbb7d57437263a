"""Rows of Parquet files, a few at a time.

A kilobyte of Parquet may stand for a billion equal rows or long texts: what its texts would take
when written out is limited, and as many rows are made at once as the longest text allows.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused, require
from annotation.readers.headers import listed_names
from annotation.readers.rows import Row, TableSource, cell_text
from presentation.files import reason_of
from presentation.libraries import pa, pc, pq

ROWS_AT_ONCE = 1000
BYTES_AT_ONCE = 32 * 1024**2


def parquet_rows(
    path: Path, content: Path, source: TableSource, *, most_bytes: int
) -> Iterator[Row]:
    """The rows of a file; `path` names it in errors, `most_bytes` is for its cells as text."""
    n = n_bytes = 0
    with _refusing_damage(path):
        with pq.ParquetFile(content) as table:
            schema, metadata = table.schema_arrow, table.metadata
        _require_usable(path, schema.names, metadata, most_bytes)
        texts = [field.name for field in schema if _is_text(field.type)]
        with pq.ParquetFile(content, metadata=metadata, read_dictionary=texts) as table:
            for batch in table.iter_batches(batch_size=_rows_of_lists(metadata)):
                for part in _parts(batch):
                    if (n_bytes := n_bytes + part.nbytes) > most_bytes:
                        raise _too_large(path, most_bytes)
                    for fields in part.to_pylist():
                        n += 1
                        source.report.n_rows += 1
                        yield Row(path, n, _plain(fields), record=f"{n:,}", source=source)


@contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, ImportRefused):
            raise
        raise ImportRefused(
            path,
            _("it is not a Parquet file that can be read: {error}.").format(
                error=reason_of(error)[:200]
            ),
            code="not_parquet",
        ) from None


def _require_usable(
    path: Path, names: list[str], metadata: "pq.FileMetaData", most_bytes: int
) -> None:
    repeated = sorted(name for name, n in Counter(names).items() if n > 1)
    require(
        not repeated,
        ImportRefused(
            path,
            _("columns appear twice: {names}. Give each a name of its own.").format(
                names=listed_names(repeated)
            ),
            code="repeated_columns",
        ),
    )
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    # A cell and what separates it from the next have at least one byte as text.
    n_cells = metadata.num_rows * metadata.num_columns
    require(
        max(n_cells, sum(group.total_byte_size for group in groups)) <= most_bytes,
        _too_large(path, most_bytes),
    )


def _too_large(path: Path, most_bytes: int) -> ImportRefused:
    return ImportRefused(
        path, f"unpacked it has more than {most_bytes // 1024**2:,} MiB.", code="unpacked_too_large"
    )


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _rows_of_lists(metadata: "pq.FileMetaData") -> int:
    """How many rows with texts inside lists or objects, which are not read as dictionaries, take
    little memory."""
    longest = 0
    for n in range(metadata.num_row_groups):
        group = metadata.row_group(n)
        columns = (group.column(each) for each in range(metadata.num_columns))
        inside = [each for each in columns if "." in each.path_in_schema]
        longest = max(longest, *(each.total_uncompressed_size for each in inside), 0)
    return max(min(ROWS_AT_ONCE, 2 * BYTES_AT_ONCE // max(longest, 1)), 1)


def _parts(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    """Parts of a batch that take little memory once each row has its own copy of its texts."""
    longest = 1
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray) and _is_text(column.type.value_type):
            longest += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    step = max(BYTES_AT_ONCE // longest, 1)
    for start in range(0, len(batch), step):
        yield pa.RecordBatch.from_arrays(
            [
                column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
                for column in batch.slice(start, step).columns
            ],
            names=batch.schema.names,
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return ""
    return value if isinstance(value, str | int | float | bool | None) else cell_text(value)
