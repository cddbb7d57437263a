"""Reports as files in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from presentation.documents import Document, Figure
from presentation.html import as_html
from presentation.latex import as_latex, table_latex
from presentation.markdown import as_markdown
from presentation.plain import as_json, records_csv, table_csv
from presentation.theme import Form, rendered, themed

Files = dict[str, bytes]


def picture(figure: Figure, form: Form) -> bytes:
    """A figure as a file of its own, in the light look."""
    return rendered(themed(figure.chart), form)


def html_files(document: Document) -> Files:
    return {"report.html": as_html(document).encode()}


def markdown_files(document: Document) -> Files:
    text = {"report.md": as_markdown(document).encode()}
    return text | _long_tables(document) | _pictures(document, "svg")


def latex_files(document: Document) -> Files:
    printed = (table for table in document.tables if table.is_printed)
    tables = {f"tables/{table.name}.tex": table_latex(table) for table in printed}
    texts = {"report.tex": as_latex(document), **tables}
    return {name: text.encode() for name, text in texts.items()} | (
        _long_tables(document) | _pictures(document, "pdf")
    )


def csv_files(document: Document) -> Files:
    records = {
        f"{kind}.csv": records_csv(list(rows)) for kind, rows in document.records.items() if rows
    }
    tables = {f"tables/{table.name}.csv": table_csv(table) for table in document.tables}
    answer = {"answer.txt": f"{document.answer}\n"} if document.answer else {}
    return {name: text.encode() for name, text in (answer | records | tables).items()}


def json_files(document: Document) -> Files:
    return {"report.json": as_json(document).encode()}


def _long_tables(document: Document) -> Files:
    """Those a paper only names, as CSV."""
    return {
        f"tables/{table.name}.csv": table_csv(table).encode()
        for table in document.tables
        if not table.is_printed
    }


def _pictures(document: Document, form: Form) -> Files:
    return {f"figures/{f.name}.{form}": picture(f, form) for f in document.figures}


FORMATS: dict[str, Callable[[Document], Files]] = {
    "html": html_files,
    "md": markdown_files,
    "latex": latex_files,
    "csv": csv_files,
    "json": json_files,
}


def make_folder(folder: Path) -> None:
    """Make a folder where there is none, and see that files can be written into it."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):
        pass


def write_files(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write the files into a folder, which is made where it is not there; return their paths."""
    paths = []
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        paths.append(path)
    return paths
