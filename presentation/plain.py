"""A report for programs: its records as JSON, and as CSV a file a kind."""

import json
import re
from collections.abc import Mapping
from typing import Any

from presentation.documents import (
    Cell,
    Document,
    Figure,
    Number,
    P,
    Part,
    Table,
    Verbatim,
    cell_text,
)
from presentation.libraries import pd
from presentation.spreadsheets import frame_csv


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
    text = escape_markdown(cell_text(cell))
    if letter := table.letter(cell):
        text += f" ({letter})"
    return f"**{text}**" if isinstance(cell, Number | P) and cell.is_best else text


def escape_markdown(text: str) -> str:
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
