"""Endpoints that the Requester API lacks, of requesters and of the operator's programs.

Signed like the Requester API:

    POST /marketplace-api/v1/statement        {"annotation_prefix": "assay:1f0c:"}
    POST /marketplace-api/v1/devices          {"annotation_prefix": "assay:1f0c:"}
    POST /marketplace-api/v1/shared-traits    {"annotation_prefix": "assay:1f0c:"}
    POST /marketplace-api/v1/appeals          {}
    POST /marketplace-api/v1/appeals/answer   {"assignment_id": "3...", "answer": "..."}
    POST /marketplace-api/v1/messages         {"after": 17}
    POST /marketplace-api/v1/webhook-secret   {"renew": true}

Signed with the operator secret (`operator_signature`; docs/marketplace.md has it all):

    POST /marketplace-api/v1/requesters       {"name": "Vision lab", "test_funds_usd": "100"}
    POST /marketplace-api/v1/workers          {"username": "ada", "password": "..."}
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.core.exceptions import RequestDataTooBig
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api.authentication import requester_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter, MarketplaceError, NameTaken, require
from marketplace.hits.review import answer_appeal
from marketplace.hits.same_person import (
    shared_devices,
    shared_traits,
)
from marketplace.models import (
    Appeal,
    Assignment,
    Hit,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    Requester,
    WorkerMessage,
)
from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.people import enrolment
from marketplace.people.enrolment import create_worker, issue_access_key

NOTHING = Decimal("0.00")
LONGEST_PREFIX = 255
Kind, AccountKind = LedgerTransaction.Kind, LedgerAccount.Kind


@requester_signed
def statement(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Sums of money, and of assignments by their status, in US dollars and cents.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    hits = Hit.objects.of(requester).filter(
        requester_annotation__startswith=annotation_prefix(request)
    )
    return JsonResponse(_money(hits) | {"assignments": _assignments(hits)})


def annotation_prefix(request: HttpRequest) -> str:
    prefix = read_object(request).get("annotation_prefix")
    if not isinstance(prefix, str) or not 0 < len(prefix) <= LONGEST_PREFIX:
        raise InvalidParameter(
            f"'annotation_prefix' must be a text of 1 to {LONGEST_PREFIX} characters."
        )
    return prefix


def _money(hits: QuerySet[Hit]) -> dict[str, str]:
    entries = LedgerEntry.objects.filter(transaction__hit__in=hits)
    earned, fees = Q(account__kind=AccountKind.EARNINGS), Q(account__kind=AccountKind.FEES)
    payment, bonus = Q(transaction__kind=Kind.PAYMENT), Q(transaction__kind=Kind.BONUS)
    return {
        name: f"{amount or NOTHING:.2f}"
        for name, amount in entries.aggregate(
            rewards_usd=Sum("amount_usd", filter=earned & payment),
            fees_usd=Sum("amount_usd", filter=fees & payment),
            bonuses_usd=Sum("amount_usd", filter=earned & bonus),
            bonus_fees_usd=Sum("amount_usd", filter=fees & bonus),
            held_usd=Sum("amount_usd", filter=Q(account__kind=AccountKind.HELD)),
        ).items()
    }


def _assignments(hits: QuerySet[Hit]) -> dict[str, Any]:
    counts = Assignment.objects.filter(hit__in=hits).order_by().values("status")
    numbers = {row["status"]: row["n"] for row in counts.annotate(n=Count("pk"))}
    return {status.value.lower(): numbers.get(status.value, 0) for status in Assignment.Status}


# Worker accounts that share a device or other traits. Only counts are given out: neither an
# address nor a hash of one.


@requester_signed
def devices(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shared a device with others, in how many of the submissions.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = shared_devices(requester, annotation_prefix(request))
    return JsonResponse(
        {"shared_devices": [{name: row[name] for name in row if name != "trait"} for row in rows]}
    )


@requester_signed
def traits(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shares a device, a payout or long texts with others, and with how many.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    return JsonResponse({"shared_traits": shared_traits(requester, annotation_prefix(request))})


# An appeal is granted by ApproveAssignment with OverrideRejection; the worker reads the answer.

MOST_APPEALS = 1000


@requester_signed
def appeals(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The newest appeals, answered ones too.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = Appeal.objects.filter(assignment__hit__requester=requester).order_by("-pk")
    rows = rows.select_related("assignment__worker", "assignment__hit")[:MOST_APPEALS]
    return JsonResponse({"appeals": [_described(one) for one in rows]})


@requester_signed
def answer(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Answer an appeal, once.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    body = read_object(request)
    assignment_id, text = body.get("assignment_id"), body.get("answer")
    if not isinstance(assignment_id, str) or not isinstance(text, str):
        raise InvalidParameter("'assignment_id' and 'answer' must be texts.")
    return JsonResponse(
        _described(answer_appeal(requester=requester, assignment_id=assignment_id, answer=text))
    )


def _described(appeal: Appeal) -> dict[str, Any]:
    return {
        "assignment_id": appeal.assignment.public_id,
        "hit_id": appeal.assignment.hit.public_id,
        "worker_id": appeal.assignment.worker.worker_id,
        "reason": appeal.reason,
        "appealed_at": appeal.created_at.isoformat(),
        "answer": appeal.answer,
    }


# Workers' messages; NotifyWorkers answers them.

MOST_MESSAGES = 100


@requester_signed
def messages(request: HttpRequest, requester: Requester) -> JsonResponse:
    """What workers wrote after the message with this number, the oldest first.

    Access: whoever holds an access key; those to its requester alone.
    """
    after = read_object(request).get("after", 0)
    require(
        type(after) is int and 0 <= after < 2**63,
        InvalidParameter("'after' must be the number of a message."),
    )
    accepted = Assignment.objects.filter(
        hit=OuterRef("hit"), worker=OuterRef("worker"), accepted_at__lte=OuterRef("created_at")
    )
    rows = (
        WorkerMessage.objects.filter(requester=requester, is_from_worker=True, pk__gt=after)
        .exclude(hit=None)
        .select_related("worker", "hit")
        .annotate(is_accepted=Exists(accepted))
        .order_by("pk")
    )
    return JsonResponse(
        {
            "messages": [
                {
                    "number": one.pk,
                    "hit_id": one.hit and one.hit.public_id,
                    "worker_id": one.worker.worker_id,
                    "text": one.text,
                    "sent_at": one.created_at.isoformat(),
                    # Else they asked from a preview or from the list.
                    "is_accepted": one.is_accepted,
                }
                for one in rows[:MOST_MESSAGES]
            ]
        }
    )


@requester_signed
def webhook_secret(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The requester's secret, as Standard Webhooks writes it; a new one on demand.

    Access: whoever holds an access key; that of its requester alone.
    """
    renew = read_object(request).get("renew", False)
    require(isinstance(renew, bool), InvalidParameter("'renew' must be true, false or absent."))
    return JsonResponse({"secret": enrolment.webhook_secret(requester, renew=renew)})


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
            return JsonResponse(
                {"error": str(error), "code": error.code},
                status=409 if isinstance(error, NameTaken) else 400,
            )

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
    if not hmac.compare_digest(expected.encode(), request.headers.get(SIGNATURE, "").encode()):
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
    require(
        funds is None or settings.MARKETPLACE_TEST_FUNDS,
        InvalidParameter("This marketplace has no test funds (MARKETPLACE_TEST_FUNDS)."),
    )
    key = issue_access_key(
        name=name,
        display_name=display_name or "",
        deposit_usd=None if funds is None else parse_amount(funds),
    )
    return JsonResponse(
        {
            "requester": key.requester.name,
            "requester_id": key.requester.public_id,
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret_access_key,
            "balance_usd": str(ledger.balance_of(ledger.available_account(key.requester))),
        },
        status=201,
    )


@operator_signed
def workers(request: HttpRequest) -> JsonResponse:
    """Create a worker who can sign in to the worker site.

    Access: whoever holds the operator secret.
    """
    username, password = _texts(request, "username", "password")
    worker = create_worker(username=username, password=password)
    return JsonResponse({"username": username, "worker_id": worker.worker_id}, status=201)


def _texts(request: HttpRequest, *names: str, optional: Sequence[str] = ()) -> list[Any]:
    body = read_object(request)
    if not all(isinstance(value, str) for value in body.values()):
        raise InvalidParameter("The body is not a JSON object of texts.")
    known = [*names, *optional]
    if unknown := sorted(set(body) - set(known)):
        raise InvalidParameter(f"The body has unknown members: {', '.join(unknown)}.")
    if missing := [name for name in names if name not in body]:
        raise InvalidParameter(f"The body lacks {', '.join(missing)}.")
    return [body.get(name) for name in known]
