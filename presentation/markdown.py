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
    beside,
    cell_text,
    letter_of,
    note_of,
)

# What Markdown, or the HTML that it may hold, would take for its own.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def as_markdown(document: Document, pictures: str = "figures") -> str:
    """The whole document; figures are looked for in the folder `pictures`."""
    lines = [f"# {escaped(document.title)}", ""]
    if document.answer:
        lines += [f"**{escaped(document.answer)}**", ""]
    for section in document.sections:
        lines += [f"## {escaped(section.title)}", ""]
        for part in section.parts:
            lines += [_part(part, pictures), ""]
    return "\n".join(lines)


def _part(part: Part, pictures: str) -> str:
    if isinstance(part, Table):
        return table_markdown(part) if part.is_printed else escaped(beside(part))
    if isinstance(part, Figure):
        words = escaped(part.words)
        return f"![{words}]({pictures}/{part.name}.svg)\n\n*{escaped(part.caption)}.* {words}"
    return _verbatim(part) if isinstance(part, Verbatim) else escaped(part)


def _verbatim(part: Verbatim) -> str:
    """Fenced by more backticks than follow one another within."""
    runs = re.findall("`+", part.text)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    return "\n".join([f"{escaped(part.caption)}:", "", fence, *part.lines, fence])


def table_markdown(table: Table) -> str:
    """A pipe table; where columns share a title, it stands before each of theirs."""
    titles = [f"{c.group}: {c.title}" if c.group else c.title for c in table.columns]
    rules = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [[_cell(table, cell) for cell in row] for row in table.rows]
    lines = [_line([escaped(title) for title in titles]), _line(rules), *map(_line, rows)]
    note = note_of(table)
    footer = f"\n\n{escaped(note)}" if note else ""
    return f"**{escaped(table.caption)}**\n\n" + "\n".join(lines) + footer


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(table: Table, cell: Cell) -> str:
    text = escaped(cell_text(cell))
    if letter := letter_of(table, cell):
        text += f" ({letter})"
    return f"**{text}**" if isinstance(cell, Number | P) and cell.is_best else text


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
