"""Enrolment over HTTP, for what the Requester API lacks: requesters with a key, and workers.

    POST /marketplace-api/v1/requesters   {"name": "Vision lab", "test_funds_usd": "100"}
    POST /marketplace-api/v1/workers      {"username": "ada", "password": "..."}

Both are signed with the operator secret (`operator_signature`); docs/marketplace.md has it all.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter, MarketplaceError, NameTaken
from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.people.enrolment import create_worker, issue_access_key

# Requests that an operator's program signs with the operator secret.
#
# The signature is HMAC-SHA256, under MARKETPLACE_OPERATOR_SECRET, of the lines
#
#     method, path, timestamp, nonce, SHA-256 of the body
#
# and comes with the timestamp and the nonce in headers. A request is taken once, and only while its
# timestamp is near the server's own time; why it was refused is not said.

TIMESTAMP, NONCE, SIGNATURE = "X-Assay-Timestamp", "X-Assay-Nonce", "X-Assay-Signature"
# Clocks may differ by this much; a nonce is remembered for as long as its timestamp could pass.
WINDOW_SECONDS = 300
MAX_BODY_BYTES = 16 * 1024
NONCE_FORM = re.compile(r"[A-Za-z0-9_-]{16,64}")

View = Callable[[HttpRequest], HttpResponse]


def signature_of(
    *, secret: str, method: str, path: str, timestamp: str, nonce: str, body: bytes
) -> str:
    lines = [method, path, timestamp, nonce, hashlib.sha256(body).hexdigest()]
    return hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


def operator_signed(view: View) -> View:
    @csrf_exempt
    @login_not_required
    @require_POST
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if _declared_length(request) > MAX_BODY_BYTES:
            return JsonResponse({"error": "The body is too large."}, status=413)
        try:
            is_signed = len(request.body) <= MAX_BODY_BYTES and _is_signed(request)
        except RequestDataTooBig:
            return JsonResponse({"error": "The body is too large."}, status=413)
        if not is_signed:
            return JsonResponse({"error": "The operator's signature is not valid."}, status=401)
        try:
            return view(request)
        except MarketplaceError as error:
            status = 409 if isinstance(error, NameTaken) else 400
            return JsonResponse({"error": str(error), "code": error.code}, status=status)

    return guarded


def _declared_length(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return int(length) if length.isdecimal() else MAX_BODY_BYTES + 1


def _is_signed(request: HttpRequest) -> bool:
    timestamp, nonce = request.headers.get(TIMESTAMP, ""), request.headers.get(NONCE, "")
    if not (_is_now(timestamp) and NONCE_FORM.fullmatch(nonce)):
        return False
    expected = signature_of(
        secret=settings.MARKETPLACE_OPERATOR_SECRET,
        method=request.method or "",
        path=request.get_full_path(),
        timestamp=timestamp,
        nonce=nonce,
        body=request.body,
    )
    signature = request.headers.get(SIGNATURE, "")
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        return False
    # Last, so that nobody without the secret can use nonces up.
    return bool(cache.add(f"marketplace.operator-nonce.{nonce}", 1, 2 * WINDOW_SECONDS))


def _is_now(timestamp: str) -> bool:
    # By the machine's time, not the marketplace's.
    is_number = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12
    return is_number and abs(time.time() - int(timestamp)) <= WINDOW_SECONDS


@operator_signed
def requesters(request: HttpRequest) -> JsonResponse:
    """Issue a key to the requester of this name, who is enrolled first where unknown.

    Access: whoever holds the operator secret.
    """
    name, funds, display_name = _texts(request, "name", optional=("test_funds_usd", "display_name"))
    if funds is not None and not settings.MARKETPLACE_TEST_FUNDS:
        raise InvalidParameter("This marketplace has no test funds (MARKETPLACE_TEST_FUNDS).")
    deposit_usd = None if funds is None else parse_amount(funds)
    key = issue_access_key(name=name, display_name=display_name or "", deposit_usd=deposit_usd)
    balance_usd = ledger.balance_of(ledger.available_account(key.requester))
    content = {
        "requester": key.requester.name,
        "requester_id": key.requester.public_id,
        "access_key_id": key.access_key_id,
        "secret_access_key": key.secret_access_key,
        "balance_usd": str(balance_usd),
    }
    return JsonResponse(content, status=201)


@operator_signed
def workers(request: HttpRequest) -> JsonResponse:
    """Create a worker who can sign in to the worker site.

    Access: whoever holds the operator secret.
    """
    username, password = _texts(request, "username", "password")
    worker = create_worker(username=username, password=password)
    return JsonResponse({"username": username, "worker_id": worker.worker_id}, status=201)


def _texts(request: HttpRequest, *names: str, optional: Sequence[str] = ()) -> list[Any]:
    """These members of the body, a JSON object of texts without others."""
    body = read_object(request)
    if not all(isinstance(value, str) for value in body.values()):
        raise InvalidParameter("The body is not a JSON object of texts.")
    known = [*names, *optional]
    if unknown := sorted(set(body) - set(known)):
        raise InvalidParameter(f"The body has unknown members: {', '.join(unknown)}.")
    if missing := [name for name in names if name not in body]:
        raise InvalidParameter(f"The body lacks {', '.join(missing)}.")
    return [body.get(name) for name in known]
