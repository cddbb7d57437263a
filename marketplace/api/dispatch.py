"""The API's one door: authenticate, read, do, answer."""

import json
import logging
import uuid
from collections.abc import Sequence
from typing import Any, BinaryIO, NoReturn

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api import fault_injection, throttle
from marketplace.api import operations as _operations  # noqa: F401 - registers them
from marketplace.api.disconnection import disconnect
from marketplace.api.errors import describe, describe_fault
from marketplace.api.inputs import INPUTS
from marketplace.api.registry import OPERATIONS, Operation
from marketplace.api.shapes import read_request
from marketplace.api.sigv4 import ReceivedRequest, authenticate
from marketplace.exceptions import MarketplaceError, ProtocolError
from marketplace.models import AccessKey
from marketplace.people.key_secrets import (
    adopt_secret,
    find_active_key,
    note_use,
    secrets_of,
)

CONTENT_TYPE = "application/x-amz-json-1.1"
SERVICE_TARGET = "MTurkRequesterServiceV20170117"
UNKNOWN_OPERATION = "The operation is not one of this API's."

logger = logging.getLogger(__name__)


@csrf_exempt
@login_not_required
@require_POST
def requester_api(request: HttpRequest) -> HttpResponse:
    """One call of the Requester API.

    Access: whoever signs with an active access key; acts for its requester alone.
    """
    try:
        return _perform(request)
    except MarketplaceError as error:
        return _answer(*describe(error, now=timezone.now()))
    except Exception:
        logger.exception("The requester API failed at %s", request.headers.get("X-Amz-Target"))
        return _answer(*describe_fault(now=timezone.now()))


def _perform(request: HttpRequest) -> HttpResponse:
    body = _body(request)
    key = _authenticated_key(request, body)
    throttle.take_token(key, now=timezone.now())
    prefix, name = request.headers.get("X-Amz-Target", "").rpartition(".")[::2]
    if prefix != SERVICE_TARGET:
        raise ProtocolError("UnknownOperationException", UNKNOWN_OPERATION)
    function = _find_operation(name)
    parameters = read_request(INPUTS[name], _payload(body))
    fault_injection.before_operation(name)
    content = function(key.requester, parameters)
    return disconnect(request) if fault_injection.must_drop(name) else _answer(200, content)


def _body(request: HttpRequest) -> bytes:
    """What was sent, up to a limit. Of a body in chunks, whose length isn't announced, Django
    reads nothing; a server that says its input ends by itself has put the chunks together."""
    try:
        if request.META.get("CONTENT_LENGTH") or not request.META.get("wsgi.input_terminated"):
            return request.body
        return _read_bounded(request.META["wsgi.input"])
    except RequestDataTooBig as error:
        raise ProtocolError(
            "RequestEntityTooLargeException", "The request is too large.", status=413
        ) from error


def _read_bounded(stream: BinaryIO) -> bytes:
    largest = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    content = stream.read(largest + 1)
    if len(content) > largest:
        raise RequestDataTooBig
    return content


def _authenticated_key(request: HttpRequest, body: bytes) -> AccessKey:
    """The key that signed, with its requester. The wire's time is the machine's, wherever
    the marketplace's clock stands."""
    received = ReceivedRequest(
        method=request.method or "",
        path=request.path,
        query_string=request.META.get("QUERY_STRING", ""),
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
    )
    loaded_keys = {}

    def secrets_for(access_key_id: str) -> Sequence[str]:
        key = find_active_key(access_key_id)
        if key is None:
            return []
        loaded_keys[access_key_id] = key
        return secrets_of(key)

    now = timezone.now()
    access_key_id, secret = authenticate(received, secrets_for=secrets_for, now=now)
    key = loaded_keys[access_key_id]
    adopt_secret(key, secret)
    note_use(key, now=now)
    return key


def _find_operation(name: str) -> Operation:
    if name in OPERATIONS:
        return OPERATIONS[name]
    raise ProtocolError("UnknownOperationException", UNKNOWN_OPERATION)


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("SerializationException", "The body is not JSON.") from error
    if not isinstance(payload, dict):
        raise ProtocolError("SerializationException", "The body is not a JSON object.")
    return payload


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _answer(status: int, content: dict[str, Any]) -> HttpResponse:
    return HttpResponse(
        json.dumps(content),
        status=status,
        content_type=CONTENT_TYPE,
        headers={"x-amzn-RequestId": str(uuid.uuid4())},
    )
