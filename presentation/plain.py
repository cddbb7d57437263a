"""A report for programs: its records as JSON, and as CSV a file a kind."""

import json
from collections.abc import Mapping
from typing import Any

from presentation.documents import Document, Table
from presentation.spreadsheets import frame_csv


def document_json(document: Document) -> str:
    """What the report is about, every record, and the tables as they are shown."""
    tables = {
        table.name: {"caption": table.caption, "rows": table.records()} for table in document.tables
    }
    head = {"title": document.title, "answer": document.answer}
    content = {**head, **document.about, **document.records, "tables": tables}
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)


def records_csv(records: list[Mapping[str, Any]]) -> str:
    """A row a record; what a record holds several of is JSON in one cell."""
    import pandas as pd

    rows = [{name: _cell(value) for name, value in record.items()} for record in records]
    return frame_csv(pd.DataFrame(rows))


def table_csv(table: Table) -> str:
    """A table as it is shown, its numbers with full precision."""
    return records_csv(list(table.records()))


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value
