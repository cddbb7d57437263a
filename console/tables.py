"""Tables whose order, filter and page are in the address, so that a view can be shared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest

ROWS_A_PAGE = 50


def sort_key(request: HttpRequest, columns: Sequence[str], default: str) -> str:
    key = request.GET.get("sort", default)
    return key if key.removeprefix("-") in columns else default


def search_words(request: HttpRequest) -> str:
    """What the reader searches for; a character that no text of the database has is left out."""
    return request.GET.get("q", "").replace("\0", "").strip()


def page_of(request: HttpRequest, rows: Any) -> Page[Any]:
    return Paginator(rows, ROWS_A_PAGE).get_page(request.GET.get("page"))


@dataclass(frozen=True)
class Stretch:
    """The rows between two keys, with the keys that lead to those before and after them.

    The next stretch begins at a key, which an index finds; the number of a page would make the
    database go through every row before it.
    """

    rows: list[Any]
    n_rows: int
    before: int | None
    after: int | None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


def stretch_of(request: HttpRequest, rows: QuerySet[Any], key: str) -> Stretch:
    """The rows in the order of a column, after or before the one whose key the address names."""
    before, after = (_key(request.GET.get(name, "")) for name in ("before", "after"))
    name, is_descending = key.removeprefix("-"), key.startswith("-")
    is_backward = before is not None
    minus, minus_pk = ("-" if is_descending != is_backward else ""), ("-" if is_backward else "")
    there = rows
    if (start := before if is_backward else after) is not None:
        there = rows.filter(
            _beyond(rows, name, start, "lt" if minus else "gt", "lt" if minus_pk else "gt")
        )
    rows_and_next = list(there.order_by(f"{minus}{name}", f"{minus_pk}pk")[: ROWS_A_PAGE + 1])
    has_more, page = len(rows_and_next) > ROWS_A_PAGE, rows_and_next[:ROWS_A_PAGE]
    page = page[::-1] if is_backward else page
    return Stretch(
        rows=page,
        n_rows=rows.count(),
        before=page[0].pk if page and (has_more if is_backward else after is not None) else None,
        after=page[-1].pk if page and (is_backward or has_more) else None,
    )


def _beyond(rows: QuerySet[Any], name: str, start: int, order: str, key_order: str) -> Q:
    """The rows that come after the one of that key; all of them where it is there no more.

    Rows of the same value are in the order of their keys, whichever way the column goes.
    """
    value = rows.filter(pk=start).order_by().values_list(name, flat=True).first()
    if value is None:
        return Q()
    return Q(**{f"{name}__{order}": value}) | Q(**{name: value, f"pk__{key_order}": start})


def _key(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None
