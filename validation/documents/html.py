"""A report as one HTML file that needs nothing else: styles, pictures and data are in it."""

from __future__ import annotations

import re
from base64 import b64encode

import pandas as pd
from django.template.loader import render_to_string

from presentation.spreadsheets import frame_csv
from presentation.theme import rendered, themed
from validation.documents.documents import Document, Figure, Table

# Beyond so many rows a table opens on demand.
LONG = 40


def as_html(document: Document) -> str:
    """The whole document; it loads nothing from anywhere."""
    return render_to_string("validation/report.html", {"document": document, "longest": LONG})


def table_html(table: Table) -> str:
    """A table with its caption and notes, as page and file show it."""
    return render_to_string("validation/_table.html", {"table": table})


def inline_svg(figure: Figure) -> str:
    """A figure's picture, its ids made its own so that several can stand in one page."""
    svg = rendered(themed(figure.chart), "svg").decode()
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    own = re.sub(r'\bid="([^"]+)"', rf'id="{figure.name}-\1"', svg)
    own = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure.name}-\1)", own)
    return re.sub(r'href="#([^"]+)"', rf'href="#{figure.name}-\1"', own)


def data_address(figure: Figure) -> str:
    """The rows of a figure, as a file within the file."""
    csv = frame_csv(pd.DataFrame(list(figure.rows))).encode()
    return f"data:text/csv;charset=utf-8;base64,{b64encode(csv).decode()}"
