"""Checking AWS Signature Version 4.

Reference: AWS, "Create a signed AWS API request" (IAM user guide).
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from marketplace.exceptions import ProtocolError

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "mturk-requester"
ALLOWED_SKEW = timedelta(minutes=15)
MUST_BE_SIGNED = ("host", "x-amz-date", "x-amz-target")
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
    if authorization.service != SERVICE:
        raise _invalid(f"Credential should be scoped to correct service: '{SERVICE}'.")
    for name in MUST_BE_SIGNED:
        if name in request.headers and name not in authorization.signed_headers:
            raise _invalid(f"'{name}' must be a 'SignedHeader' in the AWS Authorization.")
    secret = secret_for(authorization.access_key_id)
    if secret is None or "x-amz-security-token" in request.headers:
        raise ProtocolError(
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        )
    expected = _signature(request, authorization, secret, signed_at)
    if not hmac.compare_digest(expected.encode(), authorization.signature.encode()):
        raise _invalid(
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method. "
            "Consult the service documentation for details."
        )


def _parse(header: str | None) -> Authorization:
    if not header:
        raise ProtocolError("MissingAuthenticationTokenException", "Missing Authentication Token")
    algorithm, _, rest = header.partition(" ")
    if algorithm != ALGORITHM:
        raise _incomplete(f"Unsupported AWS 'algorithm': '{algorithm[:32]}'.")
    pairs = (part.strip().partition("=") for part in rest.split(","))
    values = {name: value for name, _, value in pairs}
    for name in ("Credential", "Signature", "SignedHeaders"):
        if not values.get(name):
            raise _incomplete(f"Authorization header requires '{name}' parameter.")
    credential = values["Credential"].split("/")
    if len(credential) != 5 or credential[4] != "aws4_request":
        raise _incomplete("Credential must have exactly 5 slash-delimited elements.")
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
    if not text.startswith(authorization.date) or len(authorization.date) != 8:
        raise _invalid("Date in Credential scope does not match YYYYMMDD from 'X-Amz-Date'.")
    earliest, latest = now - ALLOWED_SKEW, now + ALLOWED_SKEW
    if signed_at < earliest:
        raise _invalid(
            f"Signature expired: {text} is now earlier than {_stamp(earliest)} "
            f"({_stamp(now)} - 15 min.)"
        )
    if signed_at > latest:
        raise _invalid(
            f"Signature not yet current: {text} is still later than {_stamp(latest)} "
            f"({_stamp(now)} + 15 min.)"
        )
    return signed_at


def _signature(
    request: ReceivedRequest, authorization: Authorization, secret: str, signed_at: datetime
) -> str:
    canonical = _canonical(request, authorization.signed_headers)
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join((ALGORITHM, _stamp(signed_at), authorization.scope, digest))
    key = f"AWS4{secret}".encode()
    for part in authorization.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def _canonical(request: ReceivedRequest, signed_headers: tuple[str, ...]) -> str:
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    encoded = sorted((quote(name, UNRESERVED), quote(value, UNRESERVED)) for name, value in pairs)
    # Encoded twice: once as it was on the wire, once more for the signature.
    path = quote(quote(request.path, "/" + UNRESERVED), "/" + UNRESERVED)
    headers = (
        f"{name}:{re.sub(' +', ' ', request.headers.get(name, '').strip())}\n"
        for name in signed_headers
    )
    return "\n".join(
        (
            request.method,
            path,
            "&".join(f"{name}={value}" for name, value in encoded),
            "".join(headers),
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
