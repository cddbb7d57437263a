"""A write that is sent twice under one `Idempotency-Key` is done once.

The key is claimed, the write done and its answer stored in one transaction: who sends the same at
the same time waits for it. A refused write changed nothing, and so its key is free again. A stored
answer is given to nobody who would not get it now: access is checked before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import holder_of
from console.api.errors import Conflict, Unprocessable
from console.models import StoredAnswer
from encryption import UndecryptableSecret, decrypt, encrypt

if TYPE_CHECKING:
    from console.api.endpoint import Endpoint

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_FOR = timedelta(hours=24)
MOST_CHARACTERS = 255


def answer_once(
    endpoint: Endpoint, request: Request, write: Callable[[], Response], *, needs_key: bool = False
) -> Response:
    """The answer of a write, done in one transaction; under a key, done once."""
    key = request.headers.get(HEADER)
    if key is None:
        if needs_key:
            raise ValidationError({HEADER: ["This spends money: send a key of your own making."]})
        _read_body(request)
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


def _read_body(request: Request) -> None:
    """Before the transaction, which would otherwise last as long as a slow upload."""
    _body = request.data


def require_readable(key: str) -> None:
    """ValidationError for what is no key: 1 to 255 printable ASCII characters."""
    if not 0 < len(key) <= MOST_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise ValidationError({HEADER: ["Send 1 to 255 printable ASCII characters."]})


def fingerprint_of(request: Request) -> str:
    """Of the parameters: JSON whatever its spaces and the order of its names, files by content."""
    parts = [request.get_full_path(), _plain(request.data)]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def delete_old_answers() -> int:
    """Delete the answers whose time is over; return how many."""
    over = StoredAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    return over.delete()[0]


def _claim(request: Request, key: str, fingerprint: str) -> tuple[StoredAnswer, bool]:
    """The row of the key, and whether it is this request's; another's, once it is committed."""
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
    if row.fingerprint != fingerprint:
        raise Unprocessable(
            f"The {HEADER} was used with other parameters. Take a new key for a new request.",
            code="idempotency_key_reused",
        )
    if row.status != HTTPStatus.NO_CONTENT:
        _require_access(endpoint, row)
    headers = row.headers | {REPLAYED: "true"}
    try:
        body = json.loads(decrypt(row.body))
    except UndecryptableSecret:
        raise Conflict("It was done; its answer cannot be read any more.") from None
    return Response(body, status=row.status, headers=headers)


def _require_access(endpoint: Endpoint, row: StoredAnswer) -> None:
    """404 or 403 where a role has ended since, or a token's scopes are smaller."""
    endpoint.check_again(row.access.get("checks", []))
    if not set(row.access.get("visible", [])) <= _visible(endpoint):
        raise PermissionDenied(_("The answer holds what you may not see any more."))


def _visible(endpoint: Endpoint) -> set[str]:
    """What of workers and money an answer may hold."""
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
    """What was sent, as JSON may hold it."""
    if isinstance(data, QueryDict):
        return {name: [_plain(value) for value in values] for name, values in data.lists()}
    if isinstance(data, UploadedFile):
        digest = sha256()
        for chunk in data.chunks():
            digest.update(chunk)
        data.seek(0)
        return [data.name, digest.hexdigest()]
    return data
