"""Who sends a request: the requester whose access key signed it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api.sigv4 import ReceivedRequest, authenticate
from marketplace.exceptions import MarketplaceError, ProtocolError
from marketplace.models import AccessKey, RateBucket, Requester
from marketplace.people.access_keys import find_active_key, is_owners, note_use, secret_of

# Rate limits: each access key has a bucket of tokens, a call takes one, and time fills it.
#
# MARKETPLACE_REQUESTS_PER_SECOND says how fast (0 for no limit), MARKETPLACE_REQUEST_BURST how many
# calls may come at once. The wire's time is the machine's.

THROTTLED = "ThrottlingException"


def take_token(access_key: AccessKey, *, now: datetime) -> None:
    """Count a call. Raises AWS's throttling error after too many."""
    rate = float(getattr(settings, "MARKETPLACE_REQUESTS_PER_SECOND", 0))
    if rate:
        _take_token(access_key, rate, now=now)


@transaction.atomic
def _take_token(access_key: AccessKey, rate: float, *, now: datetime) -> None:
    burst = max(1.0, float(getattr(settings, "MARKETPLACE_REQUEST_BURST", 0) or 2 * rate))
    bucket, _ = RateBucket.objects.select_for_update().get_or_create(
        access_key=access_key, defaults={"tokens": burst, "filled_at": now}
    )
    seconds = max(0.0, (now - bucket.filled_at).total_seconds())
    tokens = min(burst, bucket.tokens + seconds * rate)
    if tokens < 1:
        raise throttled()
    bucket.tokens, bucket.filled_at = tokens - 1, now
    bucket.save(update_fields=["tokens", "filled_at"])


def throttled() -> ProtocolError:
    return ProtocolError(THROTTLED, "Rate exceeded")


# Names that requests are signed for, besides the one a request is sent to.
#
# Programs written for Mechanical Turk sign `POST /` at Amazon's host. What leads them here
# (`manage.py mturk_bridge`) calls the API under the marketplace's own name and says in a header for
# which name the request was signed. The header is no proof of anything: the signature is, made for
# that very name with a key that this marketplace issued and no other accepts. So it opens nothing
# that the signed request itself does not (docs/adr/0021-requests-signed-for-amazons-names.md).

AMAZON_HOSTS = (
    "mturk-requester.us-east-1.amazonaws.com",
    "mturk-requester-sandbox.us-east-1.amazonaws.com",
)
SIGNED_HOST = "X-Assay-Signed-Host"
SIGNED_PATH = "/"


def amazon_host_of(headers: Mapping[str, str]) -> str | None:
    """The Amazon host that the request says it was signed for, or None."""
    host = headers.get(SIGNED_HOST)
    if host is not None and host not in AMAZON_HOSTS:
        names = " or ".join(AMAZON_HOSTS)
        raise ProtocolError("InvalidSignatureException", f"{SIGNED_HOST} must be {names}.")
    return host


# Where a view finds the key that its request was signed with.
SIGNING_KEY = "assay.signing_key"
RequesterView = Callable[[HttpRequest, Requester], HttpResponse]


def is_owners_request(request: HttpRequest) -> bool:
    """Whether a signed request may read who participants are at their recruiter."""
    return is_owners(request.META[SIGNING_KEY])


def requester_signed(view: RequesterView) -> Callable[[HttpRequest], HttpResponse]:
    """A POST next to the Requester API, signed in the same way."""

    @csrf_exempt
    @login_not_required
    @require_POST
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        try:
            key = authenticated_key(request, read_body(request))
            take_token(key, now=timezone.now())
            request.META[SIGNING_KEY] = key
            return view(request, key.requester)
        except ProtocolError as error:
            status = 429 if error.code == THROTTLED else 403
            return JsonResponse({"error": str(error), "code": error.code}, status=status)
        except MarketplaceError as error:
            return JsonResponse({"error": str(error), "code": error.code}, status=400)

    return guarded


def read_body(request: HttpRequest) -> bytes:
    # Django reads nothing of a chunked body, whose length is not announced. A server that sets
    # wsgi.input_terminated has joined the chunks.
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
    """The key that signed, with its requester. `signed_host`: the other host for whose `/` a
    program signed."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    received = ReceivedRequest(
        method=request.method or "",
        path=SIGNED_PATH if signed_host else request.path,
        query_string=request.META.get("QUERY_STRING", ""),
        headers=headers | {"host": signed_host} if signed_host else headers,
        body=body,
    )
    found: list[AccessKey] = []

    def secret_for(access_key_id: str) -> str | None:
        if (key := find_active_key(access_key_id)) is None:
            return None
        found.append(key)
        return secret_of(key)

    now = timezone.now()
    authenticate(received, secret_for=secret_for, now=now)
    note_use(found[0], now=now)
    return found[0]
