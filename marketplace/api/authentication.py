"""Who sends a request: the requester whose access key signed it."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api import throttle
from marketplace.api.signed_hosts import SIGNED_PATH
from marketplace.api.sigv4 import ReceivedRequest, authenticate
from marketplace.exceptions import MarketplaceError, ProtocolError
from marketplace.models import AccessKey, Requester
from marketplace.people.access_keys import is_owners
from marketplace.people.key_secrets import (
    adopt_secret,
    find_active_key,
    note_use,
    secrets_of,
)

# Where a view finds the key that its request was signed with.
SIGNING_KEY = "assay.signing_key"
RequesterView = Callable[[HttpRequest, Requester], HttpResponse]


def is_owners_request(request: HttpRequest) -> bool:
    """Whether a signed request may read who participants are at their recruiter."""
    return is_owners(request.META[SIGNING_KEY])


def requester_signed(view: RequesterView) -> Callable[[HttpRequest], HttpResponse]:
    """A POST beside the Requester API, signed in the same way with a requester's access key."""

    @csrf_exempt
    @login_not_required
    @require_POST
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        try:
            key = authenticated_key(request, read_body(request))
            throttle.take_token(key, now=timezone.now())
            request.META[SIGNING_KEY] = key
            return view(request, key.requester)
        except ProtocolError as error:
            status = 429 if error.code == throttle.THROTTLED else 403
            return JsonResponse({"error": str(error), "code": error.code}, status=status)
        except MarketplaceError as error:
            return JsonResponse({"error": str(error), "code": error.code}, status=400)

    return guarded


def read_body(request: HttpRequest) -> bytes:
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


def authenticated_key(
    request: HttpRequest, body: bytes, *, signed_host: str | None = None
) -> AccessKey:
    """The key that signed, with its requester. The wire's time is the machine's, wherever
    the marketplace's clock stands. Where a program signed for `/` at another host than this one,
    `signed_host` names it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    received = ReceivedRequest(
        method=request.method or "",
        path=SIGNED_PATH if signed_host else request.path,
        query_string=request.META.get("QUERY_STRING", ""),
        headers=headers | {"host": signed_host} if signed_host else headers,
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
