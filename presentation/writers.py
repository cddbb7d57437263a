"""Documents and tables as HTML, JSON, Markdown and CSV.

The HTML is one file that needs nothing else: styles, pictures and data are in it. For programs,
records are JSON, and as CSV one file per kind.
"""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from presentation.documents import (
    Cell,
    Document,
    Figure,
    Number,
    P,
    Part,
    Section,
    Table,
    Verbatim,
    printed_text,
)
from presentation.latex import document_latex, table_latex
from presentation.libraries import pd
from presentation.row_files import (
    CSV,
    JSON_LINES,
    PARQUET,
    Kind,
    RowFile,
    frame_csv,
    row_jsonl,
    row_parquet,
)
from presentation.theme import LIGHT_TOKENS, Form, rendered, themed


def document_json(document: Document) -> str:
    tables = {
        table.name: {"caption": table.caption, "rows": table.records()} for table in document.tables
    }
    head = {"title": document.title, "answer": document.answer}
    content = {**head, **document.about, **document.records, "tables": tables}
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)


def records_csv(records: list[Mapping[str, Any]]) -> str:
    rows = [{name: _cell(value) for name, value in record.items()} for record in records]
    return frame_csv(pd.DataFrame(rows))


def table_csv(table: Table) -> str:
    return records_csv(list(table.records()))


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


# What Markdown, or the HTML that it may hold, would take for its own.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def document_markdown(document: Document, pictures: str = "figures") -> str:
    lines = [f"# {escape_markdown(document.title)}", ""]
    if document.answer:
        lines += [f"**{escape_markdown(document.answer)}**", ""]
    for section in document.sections:
        lines += [f"## {escape_markdown(section.title)}", ""]
        for part in section.parts:
            lines += [_part(part, pictures), ""]
    return "\n".join(lines)


def _part(part: Part, pictures: str) -> str:
    if isinstance(part, Table):
        return table_markdown(part) if part.is_printed else escape_markdown(part.file_note)
    if isinstance(part, Figure):
        words, caption = escape_markdown(part.words), escape_markdown(part.caption)
        return f"![{words}]({pictures}/{part.name}.svg)\n\n*{caption}.* {words}"
    return _verbatim(part) if isinstance(part, Verbatim) else escape_markdown(part)


def _verbatim(part: Verbatim) -> str:
    # Fenced by more backticks than follow one another within.
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", part.text))])
    return "\n".join([f"{escape_markdown(part.caption)}:", "", fence, *part.lines, fence])


def table_markdown(table: Table) -> str:
    titles = [column.full_title for column in table.columns]
    rules = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [[_markdown_cell(table, cell) for cell in row] for row in table.rows]
    lines = [_line([escape_markdown(title) for title in titles]), _line(rules), *map(_line, rows)]
    note = table.full_note
    footer = f"\n\n{escape_markdown(note)}" if note else ""
    return f"**{escape_markdown(table.caption)}**\n\n" + "\n".join(lines) + footer


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(table: Table, cell: Cell) -> str:
    text = escape_markdown(printed_text(cell))
    if letter := table.letter(cell):
        text += f" ({letter})"
    return f"**{text}**" if isinstance(cell, Number | P) and cell.is_best else text


def escape_markdown(text: str) -> str:
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


# `{% load reports %}` (settings.TEMPLATES).
register = template.Library()
# Beyond so many rows a table opens on demand.
LONG = 40
# Where a picture's marks are. A hundredth of a pixel is not seen.
PLACES = re.compile(r'\s(?:d|transform|[xy][12]?|c[xy]|r|width|height|points)="[^"]*"')
LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


def document_html(document: Document) -> str:
    """The whole document; it loads nothing from anywhere.

    A table that a paper only names is a compressed file within the file, and signatures are in
    their own table alone: written out at every number they made up most of the page.
    """
    context = {"document": document, "longest": LONG, "has_appendix": True}
    return render_to_string("presentation/report.html", context)


@register.simple_tag
def light_tokens() -> SafeString:
    """The variables of pages for a file that is light and needs no other file."""
    return mark_safe(re.sub(r"/\*.*?\*/", "", LIGHT_TOKENS, flags=re.DOTALL))


@register.filter
def inline_svg(figure: Figure) -> SafeString:
    """A figure's picture, its ids made its own so that several can stand in one page."""
    svg = rendered(themed(figure.chart), "svg").decode()
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    # The page says in words what a picture shows, and hides its marks from screen readers.
    svg = re.sub(r'\s(?:aria-[a-z]+|role)="[^"]*"', "", svg)
    svg = PLACES.sub(
        lambda place: LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", place[0]), svg
    )
    own = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    own = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure.name}-\1)", own)
    # The engine that draws the picture escapes its texts.
    return mark_safe(re.sub(r'href="#([^"]+)"', rf'href="#{figure.name}-\1"', own))


@register.filter
def table_address(table: Table) -> str:
    content = gzip.compress(table_csv(table).encode(), mtime=0)
    return f"data:application/gzip;base64,{b64encode(content).decode()}"


@register.filter
def data_address(figure: Figure) -> str:
    csv = frame_csv(pd.DataFrame(list(figure.rows))).encode()
    return f"data:text/csv;charset=utf-8;base64,{b64encode(csv).decode()}"


Files = dict[str, bytes]


def _markdown_files(document: Document) -> Files:
    files = _long_tables(document) | _pictures(document, "svg")
    return {"report.md": document_markdown(document).encode()} | files


def _latex_files(document: Document) -> Files:
    printed = (table for table in document.tables if table.is_printed)
    tables = {f"tables/{table.name}.tex": table_latex(table) for table in printed}
    texts = {"report.tex": document_latex(document), **tables}
    return {name: text.encode() for name, text in texts.items()} | (
        _long_tables(document) | _pictures(document, "pdf")
    )


def _csv_files(document: Document) -> Files:
    records = {
        f"{kind}.csv": records_csv(list(rows)) for kind, rows in document.records.items() if rows
    }
    tables = {f"tables/{table.name}.csv": table_csv(table) for table in document.tables}
    answer = {"answer.txt": f"{document.answer}\n"} if document.answer else {}
    return {name: text.encode() for name, text in (answer | records | tables).items()}


def _long_tables(document: Document) -> Files:
    return {
        f"tables/{table.name}.csv": table_csv(table).encode()
        for table in document.tables
        if not table.is_printed
    }


def _pictures(document: Document, form: Form) -> Files:
    return {f"figures/{f.name}.{form}": rendered(themed(f.chart), form) for f in document.figures}


FORMATS: dict[str, Callable[[Document], Files]] = {
    "html": lambda document: {"report.html": document_html(document).encode()},
    "md": _markdown_files,
    "latex": _latex_files,
    "csv": _csv_files,
    "json": lambda document: {"report.json": document_json(document).encode()},
}


def make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass


def write_files(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    paths = []
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path)
    return paths


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
