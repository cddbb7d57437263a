"""Tables whose order, filter and page are in the address, so that a view can be shared."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

ROWS_A_PAGE = 50


def sort_key(request: HttpRequest, known: Sequence[str], default: str) -> str:
    """The column to sort by as the address names it, with a minus for descending."""
    asked = request.GET.get("sort", default)
    return asked if asked.removeprefix("-") in known else default


def sorted_rows(rows: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    """Rows in the order of a column; those without a value there come last either way."""
    name, is_descending = key.removeprefix("-"), key.startswith("-")
    filled = [row for row in rows if row[name] is not None]
    empty = [row for row in rows if row[name] is None]
    return [*sorted(filled, key=lambda row: row[name], reverse=is_descending), *empty]


def page_of(request: HttpRequest, rows: Any) -> Page[Any]:
    """The page of rows the address names; one that is not there is the nearest that is."""
    return Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page"))
