"""Who sends a request: the requester whose access key signed it with AWS Signature Version 4.

Reference: AWS, "Create a signed AWS API request" (IAM user guide).
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import BinaryIO
from urllib.parse import parse_qsl, quote

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from encryption import decrypt
from marketplace.exceptions import MarketplaceError, ProtocolError, require
from marketplace.models import AccessKey, RateBucket, Requester
from marketplace.people.enrolment import find_active_key, is_owners, note_use

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "mturk-requester"
ALLOWED_SKEW = timedelta(minutes=15)
UNRESERVED = "-_.~"


@dataclass(frozen=True)
class ReceivedRequest:
    # Header names are in lower case, the path is decoded.
    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Authorization:
    access_key_id: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


def authenticate(
    request: ReceivedRequest, *, secret_for: Callable[[str], str | None], now: datetime
) -> None:
    """Refuse a request whose access key did not sign it. `secret_for` returns an active key's
    secret, else None."""
    authorization = _parse(request.headers.get("authorization"))
    signed_at = _check_date(request, authorization, now=now)
    require(
        authorization.service == SERVICE,
        _invalid(f"Credential should be scoped to correct service: '{SERVICE}'."),
    )
    for name in ("host", "x-amz-date", "x-amz-target"):
        require(
            name not in request.headers or name in authorization.signed_headers,
            _invalid(f"'{name}' must be a 'SignedHeader' in the AWS Authorization."),
        )
    secret = secret_for(authorization.access_key_id)
    if secret is None or "x-amz-security-token" in request.headers:
        raise ProtocolError(
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        )
    require(
        hmac.compare_digest(
            _signature(request, authorization, secret, signed_at).encode(),
            authorization.signature.encode(),
        ),
        _invalid(
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method. "
            "Consult the service documentation for details."
        ),
    )


def _parse(header: str | None) -> Authorization:
    if not header:
        raise ProtocolError("MissingAuthenticationTokenException", "Missing Authentication Token")
    algorithm, _, rest = header.partition(" ")
    require(
        algorithm == ALGORITHM, _incomplete(f"Unsupported AWS 'algorithm': '{algorithm[:32]}'.")
    )
    pairs = (part.strip().partition("=") for part in rest.split(","))
    values = {name: value for name, _, value in pairs}
    for name in ("Credential", "Signature", "SignedHeaders"):
        require(values.get(name), _incomplete(f"Authorization header requires '{name}' parameter."))
    credential = values["Credential"].split("/")
    require(
        len(credential) == 5 and credential[4] == "aws4_request",
        _incomplete("Credential must have exactly 5 slash-delimited elements."),
    )
    access_key_id, date, region, service = credential[:4]
    signed_headers = tuple(values["SignedHeaders"].lower().split(";"))
    return Authorization(access_key_id, date, region, service, signed_headers, values["Signature"])


def _check_date(
    request: ReceivedRequest, authorization: Authorization, *, now: datetime
) -> datetime:
    text = request.headers.get("x-amz-date", "")
    signed_at = _parse_timestamp(text)
    if signed_at is None:
        raise _incomplete(
            "Authorization header requires existence of an 'X-Amz-Date' header of the "
            "form YYYYMMDD'T'HHMMSS'Z'."
        )
    require(
        text.startswith(authorization.date) and len(authorization.date) == 8,
        _invalid("Date in Credential scope does not match YYYYMMDD from 'X-Amz-Date'."),
    )
    earliest, latest = now - ALLOWED_SKEW, now + ALLOWED_SKEW
    require(
        signed_at >= earliest,
        _invalid(
            f"Signature expired: {text} is now earlier than {_stamp(earliest)} "
            f"({_stamp(now)} - 15 min.)"
        ),
    )
    require(
        signed_at <= latest,
        _invalid(
            f"Signature not yet current: {text} is still later than {_stamp(latest)} "
            f"({_stamp(now)} + 15 min.)"
        ),
    )
    return signed_at


def _signature(
    request: ReceivedRequest, authorization: Authorization, secret: str, signed_at: datetime
) -> str:
    digest = hashlib.sha256(_canonical(request, authorization.signed_headers).encode()).hexdigest()
    to_sign = "\n".join((ALGORITHM, _stamp(signed_at), authorization.scope, digest))
    key = f"AWS4{secret}".encode()
    for part in authorization.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def _canonical(request: ReceivedRequest, signed_headers: tuple[str, ...]) -> str:
    encoded = sorted(
        (quote(name, UNRESERVED), quote(value, UNRESERVED))
        for name, value in parse_qsl(request.query_string, keep_blank_values=True)
    )
    # Encoded twice: once as it was on the wire, once more for the signature.
    return "\n".join(
        (
            request.method,
            quote(quote(request.path, "/" + UNRESERVED), "/" + UNRESERVED),
            "&".join(f"{name}={value}" for name, value in encoded),
            "".join(
                f"{name}:{re.sub(' +', ' ', request.headers.get(name, '').strip())}\n"
                for name in signed_headers
            ),
            ";".join(signed_headers),
            hashlib.sha256(request.body).hexdigest(),
        )
    )


def _parse_timestamp(text: str) -> datetime | None:
    if not re.fullmatch(r"[0-9]{8}T[0-9]{6}Z", text):
        return None
    try:
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _invalid(message: str) -> ProtocolError:
    return ProtocolError("InvalidSignatureException", message)


def _incomplete(message: str) -> ProtocolError:
    return ProtocolError("IncompleteSignatureException", message)


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
    tokens = min(burst, bucket.tokens + max(0.0, (now - bucket.filled_at).total_seconds()) * rate)
    require(tokens >= 1, throttled())
    bucket.save_values(tokens=tokens - 1, filled_at=now)


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
    host = headers.get(SIGNED_HOST)
    if host is not None and host not in AMAZON_HOSTS:
        names = " or ".join(AMAZON_HOSTS)
        raise ProtocolError("InvalidSignatureException", f"{SIGNED_HOST} must be {names}.")
    return host


# Where a view finds the key that its request was signed with.
SIGNING_KEY = "assay.signing_key"


def is_owners_request(request: HttpRequest) -> bool:
    return is_owners(request.META[SIGNING_KEY])


def requester_signed(
    view: Callable[[HttpRequest, Requester], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
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
            return JsonResponse(
                {"error": str(error), "code": error.code},
                status=429 if error.code == THROTTLED else 403,
            )
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
        return decrypt(key.encrypted_secret)

    now = timezone.now()
    authenticate(received, secret_for=secret_for, now=now)
    note_use(found[0], now=now)
    return found[0]
