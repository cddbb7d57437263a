"""Decorators of an endpoint's methods: what the schema says of them, and how a write is done.

`reads` one thing, `lists` a counted page, `stretches` a long table by keys, `writes` once.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import cache, wraps
from hashlib import sha256
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from accounts.roles import Permission
from console.api.endpoint import Endpoint, holder_of
from console.api.errors import Conflict, Unprocessable
from console.models import StoredAnswer
from encryption import UndecryptableSecret, decrypt, encrypt
from error_codes import require

Method = Callable[..., Response]
Shape = type[serializers.BaseSerializer[Any]] | serializers.BaseSerializer[Any] | None


class ErrorSerializer(serializers.Serializer[Any]):
    """What is wrong."""

    detail = serializers.CharField(help_text="In a sentence, for people.")
    code = serializers.CharField(help_text="In a word, for programs.")
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="By field, such as `items.0.name`; what is of no field under `errors`.",
    )


class PendingSerializer(serializers.Serializer[Any]):
    """Being computed in the background; ask again after `Retry-After` seconds."""

    detail = serializers.CharField()


def _errors(*statuses: HTTPStatus) -> dict[int | tuple[int, str], Any]:
    return {
        int(status): OpenApiResponse(ErrorSerializer, description=status.phrase)
        for status in statuses
    }


S = HTTPStatus
READ_ERRORS = _errors(
    *(S.BAD_REQUEST, S.UNAUTHORIZED, S.FORBIDDEN, S.NOT_FOUND, S.NOT_ACCEPTABLE),
    *(S.TOO_MANY_REQUESTS,),
)
WRITE_ERRORS = READ_ERRORS | _errors(
    *(S.CONFLICT, S.REQUEST_ENTITY_TOO_LARGE, S.UNSUPPORTED_MEDIA_TYPE, S.UNPROCESSABLE_ENTITY),
)
# Of what is computed first: not there yet, or it could not be.
PENDING = {
    int(S.ACCEPTED): OpenApiResponse(PendingSerializer, description="Being computed."),
    **_errors(S.CONFLICT),
}
NOTHING = {int(S.NO_CONTENT): OpenApiResponse(description="Done; there is nothing to say.")}


def reads(
    name: str, answer: Any, *, filters: Any = None, is_computed: bool = False
) -> Callable[[Method], Method]:
    """Say how the schema calls the operation, and what it answers and may be asked for."""
    return extend_schema(
        operation_id=name,
        parameters=[filters] if filters else [],
        responses={int(S.OK): answer} | (PENDING if is_computed else {}) | READ_ERRORS,
    )


def lists(name: str, row: Any, *, filters: Any = None) -> Callable[[Method], Method]:
    """A page of rows, counted (`console.api.operations.page`)."""
    return extend_schema(
        operation_id=name,
        parameters=[
            OpenApiParameter("limit", int, description="Rows of a page: 100, and at most 1000."),
            OpenApiParameter("offset", int, description="How many rows to leave out at the start."),
            *([filters] if filters else []),
        ],
        responses={int(S.OK): _page_of(row)} | READ_ERRORS,
    )


@cache
def _page_of(row: Any) -> Any:
    return inline_serializer(
        f"PageOf{_noun(row)}",
        {
            "count": serializers.IntegerField(),
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
        },
    )


def stretches(name: str, row: Any, *, filters: Any = None) -> Callable[[Method], Method]:
    """Rows of a long table, not counted (`console.api.operations.stretch`)."""
    fields = {"next": serializers.URLField(allow_null=True), "results": row(many=True)}
    return extend_schema(
        operation_id=name,
        parameters=[
            OpenApiParameter("limit", int, description="Rows of an answer: 100, and at most 1000."),
            OpenApiParameter("after", int, description="Only rows after the one of this key."),
            *([filters] if filters else []),
        ],
        responses={int(S.OK): inline_serializer(f"StretchOf{_noun(row)}", fields)} | READ_ERRORS,
    )


def writes(
    name: str,
    takes: Shape,
    answer: Any,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    spends: bool = False,
    or_nothing: bool = False,
) -> Callable[[Method], Method]:
    """A write: one transaction, done once under its Idempotency-Key, which what spends needs."""
    key = OpenApiParameter(
        HEADER,
        str,
        OpenApiParameter.HEADER,
        required=spends,
        description="The same request under the same key is done once, and answered alike, "
        "within 24 hours.",
    )

    def decorate(method: Method) -> Method:
        @wraps(method)
        def write(self: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
            return answer_once(
                self, request, lambda: method(self, request, *args, **kwargs), needs_key=spends
            )

        documented = extend_schema(
            operation_id=name,
            request=takes,
            parameters=[key],
            responses={int(status): answer} | (NOTHING if or_nothing else {}) | WRITE_ERRORS,
        )
        result: Method = documented(write)
        return result

    return decorate


def being_computed() -> Response:
    body = {"detail": "Being computed; ask again in a moment."}
    return Response(body, status=HTTPStatus.ACCEPTED, headers={"Retry-After": "2"})


def _noun(row: type[serializers.BaseSerializer[Any]]) -> str:
    return row.__name__.removesuffix("Serializer")


def say_what_is_refused(result: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    """Hook of the schema: an `…Input` takes no other fields than its own (`Input`)."""
    for name, schema in result["components"]["schemas"].items():
        if name.endswith("Input"):
            schema["additionalProperties"] = False
    return result


def of_this_version(endpoints: list[Any], **kwargs: Any) -> list[Any]:
    return [each for each in endpoints if each[0].startswith("/api/v1/")]


# What an integer may be at most in one database or the other.
OF_A_DATABASE = {32_767, 2_147_483_647, 9_223_372_036_854_775_807}
OF_A_DATABASE |= {-limit - 1 for limit in OF_A_DATABASE}


def without_database_limits(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Answers without limits that follow from the database in use: the schema is of neither."""
    bodies = {
        body["schema"].get("$ref", "").rpartition("/")[2]
        for operations in result["paths"].values()
        for operation in operations.values()
        for body in operation.get("requestBody", {}).get("content", {}).values()
    }
    for name, schema in result["components"]["schemas"].items():
        if name not in bodies:
            for field in schema.get("properties", {}).values():
                _drop_database_limits(field)
    return result


def _drop_database_limits(field: dict[str, Any]) -> None:
    if field.get("type") == "integer":
        for limit in ("minimum", "maximum"):
            if field.get(limit) in OF_A_DATABASE:
                del field[limit]
        field.pop("format", None)


MOST_ROWS, USUAL_ROWS = 1000, 100


class Pages(LimitOffsetPagination):
    default_limit = USUAL_ROWS
    max_limit = MOST_ROWS


def page(request: Request, rows: Any, serializer: type[BaseSerializer[Any]]) -> Response:
    """The page that `limit` and `offset` name, with the count of all rows and the next address."""
    pages = Pages()
    items: list[Any] = pages.paginate_queryset(rows, request) or []
    return pages.get_paginated_response(
        serializer(items, many=True, context={"request": request}).data
    )


def stretch(
    request: Request, rows: QuerySet[Any], serializer: type[BaseSerializer[Any]]
) -> Response:
    """The rows after the key `after`, at most `limit`, with the address of the next stretch.

    They are not counted: an index finds the key, whatever stands before it.
    """
    after, limit = stretch_bounds(request)
    # The keys alone first: what has to be sorted is then narrow.
    keys = list(rows.order_by("pk").filter(pk__gt=after).values_list("pk", flat=True)[: limit + 1])
    results = serializer(
        rows.filter(pk__in=keys[:limit]).order_by("pk"), many=True, context={"request": request}
    ).data
    return answer_stretch(request, results, limit, keys[limit - 1] if len(keys) > limit else None)


def stretch_bounds(request: Request) -> tuple[int, int]:
    """The key after which rows are asked for, and how many."""
    limit = min(_natural(request.query_params.get("limit"), USUAL_ROWS) or 1, MOST_ROWS)
    return _natural(request.query_params.get("after"), 0), limit


def answer_stretch(request: Request, rows: Any, limit: int, last: int | None) -> Response:
    """`last` is the key of the last row if others follow."""
    next_address = None
    if last is not None:
        query = request.query_params.dict() | {"limit": limit, "after": last}
        next_address = request.build_absolute_uri(f"{request.path}?{urlencode(query)}")
    return Response({"next": next_address, "results": rows})


def _natural(text: str | None, usual: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 19 else usual


HEADER = "Idempotency-Key"
KEPT_FOR = timedelta(hours=24)
MOST_CHARACTERS = 255


# A write that is sent twice under one key is done once. The key is claimed, the write done and its
# answer stored in one transaction: a second request at the same moment waits for it. A refused
# write changed nothing, so its key is free again. Access is checked before a stored answer is sent.


def answer_once(
    endpoint: Endpoint, request: Request, write: Callable[[], Response], *, needs_key: bool = False
) -> Response:
    key = request.headers.get(HEADER)
    if key is None:
        require(
            not needs_key,
            ValidationError({HEADER: ["This spends money: send a key of your own making."]}),
        )
        # Before the transaction, which would otherwise last as long as a slow upload.
        _body = request.data
        with transaction.atomic():
            return write()
    require_readable(key)
    fingerprint = fingerprint_of(request)
    with transaction.atomic():
        row, is_new = _claim(request, key, fingerprint)
        if not is_new:
            return _replay(endpoint, row, fingerprint)
        response = write()
        _store(endpoint, row, response)
        return response


def require_readable(key: str) -> None:
    """ValidationError for what is no key: 1 to 255 printable ASCII characters."""
    require(
        0 < len(key) <= MOST_CHARACTERS and (key.isascii() and key.isprintable()),
        ValidationError({HEADER: ["Send 1 to 255 printable ASCII characters."]}),
    )


def fingerprint_of(request: Request) -> str:
    """Of the parameters: JSON whatever its spaces and the order of its names, files by content."""
    return sha256(
        json.dumps([request.get_full_path(), _plain(request.data)], sort_keys=True).encode()
    ).hexdigest()


def delete_old_answers() -> int:
    return StoredAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()[0]


def _claim(request: Request, key: str, fingerprint: str) -> tuple[StoredAnswer, bool]:
    # The row of the key, and whether it is this request's; another's, once it is committed.
    address = f"{request.method} {request.path}"[:500]
    own = StoredAnswer.objects.filter(holder=holder_of(request), address=address, key=key)
    own.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    if row := own.first():
        return row, False
    try:
        with transaction.atomic():
            values = {"holder": holder_of(request), "address": address, "key": key}
            return StoredAnswer.objects.create(fingerprint=fingerprint, **values), True
    except IntegrityError:
        if row := own.first():
            return row, False
        raise Conflict("The same is being done at this moment; ask again.") from None


def _replay(endpoint: Endpoint, row: StoredAnswer, fingerprint: str) -> Response:
    require(
        row.fingerprint == fingerprint,
        Unprocessable(
            f"The {HEADER} was used with other parameters. Take a new key for a new request.",
            code="idempotency_key_reused",
        ),
    )
    if row.status != HTTPStatus.NO_CONTENT:
        _require_access(endpoint, row)
    headers = row.headers | {"Idempotency-Replayed": "true"}
    try:
        body = json.loads(decrypt(row.body))
    except UndecryptableSecret:
        raise Conflict("It was done; its answer cannot be read any more.") from None
    return Response(body, status=row.status, headers=headers)


def _require_access(endpoint: Endpoint, row: StoredAnswer) -> None:
    """404 or 403 where a role has ended since, or a token's scopes are smaller."""
    endpoint.check_again(row.access.get("checks", []))
    require(
        set(row.access.get("visible", [])) <= _visible(endpoint),
        PermissionDenied(_("The answer holds what you may not see any more.")),
    )


def _visible(endpoint: Endpoint) -> set[str]:
    permissions: frozenset[Permission] = getattr(endpoint.plain_request, "permissions", frozenset())
    return {str(each) for each in (Permission.VIEW_WORKERS, Permission.VIEW_MONEY)} & permissions


def _store(endpoint: Endpoint, row: StoredAnswer, response: Response) -> None:
    row.status = response.status_code
    # Answers may hold what is stored nowhere else, such as an invitation's link.
    row.body = encrypt(JSONRenderer().render(response.data).decode() or "null")
    row.headers = {name: response[name] for name in ("Location", "Retry-After") if name in response}
    row.access = {"checks": endpoint.checks, "visible": sorted(_visible(endpoint))}
    row.save(update_fields=["status", "body", "headers", "access"])


def _plain(data: Any) -> Any:
    if isinstance(data, QueryDict):
        return {name: [_plain(value) for value in values] for name, values in data.lists()}
    if isinstance(data, UploadedFile):
        digest = sha256()
        for chunk in data.chunks():
            digest.update(chunk)
        data.seek(0)
        return [data.name, digest.hexdigest()]
    return data
