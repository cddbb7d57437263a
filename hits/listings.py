"""What a marketplace lists, page by page, to an end that it cannot put off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import PaginationError
from django.utils.translation import gettext as _

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceFault

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

PAGE_SIZE = 100
# Pages in a row that may bring nothing new: a marketplace may leave out of a page what it filters.
MOST_EMPTY_PAGES = 10
# What boto3 raises of an answer whose values are not what the API says they are.
UNREADABLE = (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def listed(
    client: MTurkClient, operation: str, member: str, key: str = "", **arguments: Any
) -> Iterator[Mapping[str, Any]]:
    """Each thing that a list operation brings, once; `key` names what tells them apart, if
    anything does.

    MarketplaceFault where page after page brings nothing new, or what comes cannot be read.
    """
    paginator: Any = client.get_paginator(operation)  # type: ignore[call-overload]
    seen: set[str] = set()
    n_empty = 0
    pages = iter(paginator.paginate(**arguments, PaginationConfig={"PageSize": PAGE_SIZE}))
    while (page := _next_page(pages)) is not None:
        fresh = [each for each in page[member] if not key or each[key] not in seen]
        yield from fresh
        seen.update(each[key] for each in fresh if key)
        n_empty = 0 if fresh else n_empty + 1
        if n_empty > MOST_EMPTY_PAGES:
            raise MarketplaceFault(
                _(
                    "its answer to {operation} has no end: {n} pages in a row held nothing new"
                ).format(operation=operation, n=n_empty),
                code="endless",
            )


def _next_page(pages: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    try:
        with translated_errors():
            return next(pages, None)
    except PaginationError as error:
        raise MarketplaceFault(
            _("its list does not go on: {error}").format(error=error), code="broken_list"
        ) from error
    except UNREADABLE as error:
        raise MarketplaceFault(
            _("it sent a value that cannot be read: {error}").format(error=error), code="unreadable"
        ) from error
