from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from presentation.documents import Document
from presentation.html import document_html
from presentation.latex import document_latex, table_latex
from presentation.plain import document_json, document_markdown, records_csv, table_csv
from presentation.theme import Form, rendered, themed

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
