from collections.abc import Callable, Iterator, Sequence
from typing import Any

from presentation.documents import Document, Section, Table
from presentation.html import document_html
from presentation.latex import table_latex
from presentation.plain import table_csv, table_markdown
from presentation.row_files import CSV, JSON_LINES, PARQUET, Kind, RowFile, row_jsonl, row_parquet

Content = Iterator[str] | Iterator[bytes] | list[str]
KINDS: dict[type, Kind] = {int: "integer", float: "number"}


def list_rows(table: Table) -> RowFile:
    records = table.records()
    names = list(records[0]) if records else [one.full_title for one in table.columns]
    columns = {name: _find_kind([one[name] for one in records]) for name in names}
    rows = ([_fit(one[name], kind) for name, kind in columns.items()] for one in records)
    return RowFile(columns, rows)


def _find_kind(values: Sequence[Any]) -> Kind:
    found = {type(value) for value in values if value is not None}
    if found == {int, float}:
        return "number"
    return KINDS.get(next(iter(found)), "text") if len(found) == 1 else "text"


def _fit(value: Any, kind: Kind) -> Any:
    return str(value) if kind == "text" and value is not None else value


# The type of each form, and its writer.
TABLE_FORMS: dict[str, tuple[str, Callable[[Table], Content]]] = {
    "csv": (CSV, lambda table: [table_csv(table)]),
    "jsonl": (JSON_LINES, lambda table: row_jsonl(list_rows(table))),
    "parquet": (PARQUET, lambda table: row_parquet(list_rows(table))),
    "tex": ("application/x-tex", lambda table: [table_latex(table)]),
    "md": ("text/markdown; charset=utf-8", lambda table: [table_markdown(table)]),
    "html": (
        "text/html; charset=utf-8",
        lambda table: [document_html(Document(table.caption, [Section(table.caption, [table])]))],
    ),
}


def write_table(table: Table | None, form: str) -> tuple[str, Content] | None:
    if table is None or form not in TABLE_FORMS:
        return None
    content_type, write = TABLE_FORMS[form]
    return content_type, write(table)
