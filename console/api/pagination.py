"""Lists in pages: by position where there are few rows, by key where there may be a million."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

MOST_ROWS, USUAL_ROWS = 1000, 100


class Pages(LimitOffsetPagination):
    default_limit = USUAL_ROWS
    max_limit = MOST_ROWS


def page(request: Request, rows: Any, serializer: type[BaseSerializer[Any]]) -> Response:
    """The page that `limit` and `offset` name, with the count of all rows and the next address."""
    pages = Pages()
    items: list[Any] = pages.paginate_queryset(rows, request) or []
    context = {"request": request}
    return pages.get_paginated_response(serializer(items, many=True, context=context).data)


def stretch(
    request: Request, rows: QuerySet[Any], serializer: type[BaseSerializer[Any]]
) -> Response:
    """The rows after the key `after`, at most `limit`, with the address of the next stretch.

    They are not counted: an index finds the key, whatever stands before it.
    """
    limit = min(_natural(request.query_params.get("limit"), USUAL_ROWS) or 1, MOST_ROWS)
    after = _natural(request.query_params.get("after"), 0)
    # The keys alone first: what has to be sorted is then narrow.
    keys = list(rows.order_by("pk").filter(pk__gt=after).values_list("pk", flat=True)[: limit + 1])
    items = rows.filter(pk__in=keys[:limit]).order_by("pk")
    results = serializer(items, many=True, context={"request": request}).data
    next_address = None
    if len(keys) > limit:
        query = request.query_params.dict() | {"limit": limit, "after": keys[limit - 1]}
        next_address = request.build_absolute_uri(f"{request.path}?{urlencode(query)}")
    return Response({"next": next_address, "results": results})


def _natural(text: str | None, usual: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 19 else usual
