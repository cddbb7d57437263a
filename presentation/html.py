"""A report as one HTML file that needs nothing else: styles, pictures and data are in it."""

import gzip
import re
from base64 import b64encode

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from presentation.documents import Document, Figure, Table
from presentation.libraries import pd
from presentation.plain import table_csv
from presentation.spreadsheets import frame_csv
from presentation.theme import rendered, themed

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
