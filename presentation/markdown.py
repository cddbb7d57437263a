"""A report as Markdown, with its pictures beside it."""

from __future__ import annotations

import re

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

# What Markdown, or the HTML that it may hold, would take for its own.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def document_markdown(document: Document, pictures: str = "figures") -> str:
    """The whole document; figures are looked for in the folder `pictures`."""
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
    """Fenced by more backticks than follow one another within."""
    runs = re.findall("`+", part.text)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    return "\n".join([f"{escape_markdown(part.caption)}:", "", fence, *part.lines, fence])


def table_markdown(table: Table) -> str:
    """A pipe table; where columns share a title, it stands before each of theirs."""
    titles = [column.full_title for column in table.columns]
    rules = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [[_cell(table, cell) for cell in row] for row in table.rows]
    lines = [_line([escape_markdown(title) for title in titles]), _line(rules), *map(_line, rows)]
    note = table.full_note
    footer = f"\n\n{escape_markdown(note)}" if note else ""
    return f"**{escape_markdown(table.caption)}**\n\n" + "\n".join(lines) + footer


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(table: Table, cell: Cell) -> str:
    text = escape_markdown(cell_text(cell))
    if letter := table.letter(cell):
        text += f" ({letter})"
    return f"**{text}**" if isinstance(cell, Number | P) and cell.is_best else text


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
