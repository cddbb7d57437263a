"""A report as one HTML file that needs nothing else: styles, pictures and data are in it."""

from __future__ import annotations

import re
from base64 import b64encode
from html import escape

import pandas as pd

from presentation.spreadsheets import frame_csv
from presentation.theme import rendered, themed
from validation.documents.documents import (
    Cell,
    Document,
    Figure,
    Number,
    P,
    Section,
    Table,
    cell_text,
    letter_of,
    note_of,
)

# Beyond so many rows a table opens on demand.
LONG = 40
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  color: #1d2329; background: #ffffff; max-width: 1080px; margin: 0 auto; padding: 24px; }
h1 { font-size: 28px; line-height: 1.25; } h2 { font-size: 20px; margin: 32px 0 8px; }
p { max-width: 80ch; } a { color: #0b6e99; }
.scroll { overflow-x: auto; margin: 16px 0 4px; }
table { border-collapse: collapse; font-size: 13px; }
caption, figcaption, .note, .links { font-size: 13px; color: #5a6570; text-align: left; }
caption { font-weight: 600; color: #1d2329; padding-bottom: 4px; }
th, td { padding: 4px 12px 4px 0; text-align: left; vertical-align: top; }
thead tr:last-child th { border-bottom: 1px solid #5a6570; }
thead tr:first-child > * { border-top: 2px solid #1d2329; }
th.group { text-align: center; border-bottom: 1px solid #dfe3e8; }
tbody tr:last-child td { border-bottom: 2px solid #1d2329; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.code { font-family: ui-monospace, "Liberation Mono", monospace; overflow-wrap: anywhere; }
figure { margin: 24px 0; } figure svg { max-width: 100%; height: auto; }
/* Where the reader's font is wider than the one a picture was laid out in. */
figure svg { overflow: visible; padding: 0 24px; } sup { line-height: 0; }
figcaption b { color: #1d2329; } summary { cursor: pointer; color: #0b6e99; }
@media print { details > * { display: block; } .links { display: none; } }
"""


def as_html(document: Document) -> str:
    """The whole document; it loads nothing from anywhere."""
    body = "\n".join(_section(number, section) for number, section in _numbered(document))
    links = "".join(
        f'<li><a href="#section-{number}">{escape(section.title)}</a></li>'
        for number, section in _numbered(document)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{escape(document.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(document.title)}</h1>
<ul aria-label="Sections">{links}</ul>
{body}
</body>
</html>
"""


def _numbered(document: Document) -> list[tuple[int, Section]]:
    return list(enumerate(document.sections, start=1))


def _section(number: int, section: Section) -> str:
    parts = "\n".join(_part(part) for part in section.parts)
    return f'<section id="section-{number}">\n<h2>{escape(section.title)}</h2>\n{parts}\n</section>'


def _part(part: str | Table | Figure) -> str:
    if isinstance(part, Table):
        return table_html(part)
    return _figure(part) if isinstance(part, Figure) else f"<p>{escape(part)}</p>"


def table_html(table: Table, longest: int = LONG) -> str:
    """A table with its caption and notes; one of more rows opens on demand, by its caption."""
    rows = "\n".join(
        f"<tr>{''.join(_cell(table, row, at) for at in range(len(row)))}</tr>" for row in table.rows
    )
    note = note_of(table)
    told = f'\n<p class="note help">{escape(note)}</p>' if note else ""
    caption = escape(table.caption)
    is_folded = len(table.rows) > longest
    heading = "" if is_folded else f"<caption>{caption}</caption>\n"
    drawn = (
        f'<div class="scroll" id="{escape(table.name)}" role="region" tabindex="0" '
        f'aria-label="{caption}"><table>\n{heading}'
        f"<thead>{_head(table)}</thead>\n<tbody>{rows}</tbody>\n</table></div>{told}"
    )
    if not is_folded:
        return drawn
    count = f"{len(table.rows):,} row{'s' if len(table.rows) > 1 else ''}"
    return f"<details><summary>{caption} ({count})</summary>\n{drawn}\n</details>"


def _head(table: Table) -> str:
    groups = "".join(
        f'<th class="group" scope="colgroup" colspan="{size}">{escape(title)}</th>'
        if title
        else f'<td colspan="{size}"></td>'
        for title, size in table.groups
    )
    titles = "".join(
        f'<th scope="col"{_class(column.is_number)}>{escape(column.title)}</th>'
        for column in table.columns
    )
    return (f"<tr>{groups}</tr>" if groups else "") + f"<tr>{titles}</tr>"


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(table: Table, row: tuple[Cell, ...], at: int) -> str:
    cell = row[at]
    text = escape(cell_text(cell))
    if letter := letter_of(table, cell):
        text += f"<sup>{letter}</sup>"
    signature = ""
    if isinstance(cell, Number | P):
        text = f"<b>{text}</b>" if cell.is_best else text
        signature = f' title="{escape(cell.signature)}"' if cell.signature else ""
    column = table.columns[at]
    kind = ' class="code"' if column.is_code else _class(column.is_number)
    return f"<td{kind}{signature}>{text}</td>"


def _figure(figure: Figure) -> str:
    words = escape(figure.words)
    return (
        f'<figure id="{escape(figure.name)}">\n'
        f'<div role="img" aria-label="{words}">{inline_svg(figure)}</div>\n'
        f"<figcaption><b>{escape(figure.caption)}.</b> {words}</figcaption>\n{_data(figure)}"
        "</figure>"
    )


def inline_svg(figure: Figure) -> str:
    """A figure's picture, its ids made its own so that several can stand in one page."""
    svg = rendered(themed(figure.chart), "svg").decode()
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    own = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    own = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure.name}-\1)", own)
    return re.sub(r'href="#([^"]+)"', rf'href="#{figure.name}-\1"', own)


def _data(figure: Figure) -> str:
    """The rows of a figure, as a file within the file."""
    if not figure.rows:
        return ""
    csv = frame_csv(pd.DataFrame(list(figure.rows))).encode()
    link = f"data:text/csv;charset=utf-8;base64,{b64encode(csv).decode()}"
    name = escape(f"{figure.name}.csv")
    return f'<p class="links"><a download="{name}" href="{link}">Download data (CSV)</a></p>\n'
