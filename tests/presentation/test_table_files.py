import io
import json

import pyarrow.parquet as pq

from presentation.documents import Column, Number, Table
from presentation.writers import TABLE_FORMS, write_table

TABLE = Table(
    "means",
    "Means",
    [Column("run", is_number=False), Column("mean"), Column("topics"), Column("rank")],
    [("bm25", Number(0.123456, 2, 0.1, 0.2), 30, 1), ("dense", Number(None, reason="no"), 0, "–")],
)
LOWER = "mean, lower limit"


def parquet_of(table):
    return pq.read_table(io.BytesIO(b"".join(write_table(table, "parquet")[1])))


def test_files_for_programs_have_full_precision_and_a_type_for_each_column():
    rows = [json.loads(line) for line in write_table(TABLE, "jsonl")[1]]
    assert rows[0]["mean"] == 0.123456
    assert rows[0][LOWER] == 0.1
    assert rows[1]["mean"] is None
    table = parquet_of(TABLE)
    assert table.to_pylist() == rows
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["run"], types["mean"], types["topics"]) == ("string", "double", "int64")
    assert rows[0]["rank"] == "1", "a column of numbers and texts is of texts"


def test_a_table_without_rows_has_its_columns_in_every_form():
    empty = Table(TABLE.name, TABLE.caption, TABLE.columns, [])
    assert parquet_of(empty).column_names == ["run", "mean", "topics", "rank"]
    for form in TABLE_FORMS:
        assert write_table(empty, form) is not None
    assert write_table(TABLE, "pdf") is None
    assert write_table(None, "csv") is None
