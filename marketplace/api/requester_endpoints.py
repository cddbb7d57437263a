"""What a requester's HITs came to, which the Requester API lacks: for reconciling with its ledger.

    POST /marketplace-api/v1/statement   {"annotation_prefix": "assay:1f0c:"}

It covers the HITs whose RequesterAnnotation begins so, and is signed like the Requester API.
"""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter
from marketplace.hits.review import answer_appeal
from marketplace.hits.same_person import MOST_OTHERS, shared_devices, shared_traits
from marketplace.models import Appeal, Assignment, Hit, LedgerAccount, LedgerEntry, Requester
from marketplace.models.money import LedgerTransaction
from marketplace.people import access_keys

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
    sums = entries.aggregate(
        rewards_usd=Sum("amount_usd", filter=earned & payment),
        fees_usd=Sum("amount_usd", filter=fees & payment),
        bonuses_usd=Sum("amount_usd", filter=earned & bonus),
        bonus_fees_usd=Sum("amount_usd", filter=fees & bonus),
        held_usd=Sum("amount_usd", filter=Q(account__kind=AccountKind.HELD)),
    )
    return {name: f"{amount or NOTHING:.2f}" for name, amount in sums.items()}


def _assignments(hits: QuerySet[Hit]) -> dict[str, Any]:
    counts = Assignment.objects.filter(hit__in=hits).order_by().values("status")
    numbers = {row["status"]: row["n"] for row in counts.annotate(n=Count("pk"))}
    return {status.value.lower(): numbers.get(status.value, 0) for status in Assignment.Status}


# Worker accounts that submitted from one device, which the Requester API lacks.
#
#     POST /marketplace-api/v1/devices   {"annotation_prefix": "assay:1f0c:"}
#
# It covers the HITs whose RequesterAnnotation begins so, is signed like the Requester API, and says
# no more than how often: neither an address nor a hash of one.


@requester_signed
def devices(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shared a device with others, in how many of the submissions.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = shared_devices(requester, annotation_prefix(request))
    described = [
        {
            "worker_id": row.worker_id,
            "n_shared": row.n_shared,
            "n": row.n,
            "n_others": len(row.others),
            "others": list(row.others[:MOST_OTHERS]),
        }
        for row in rows
    ]
    return JsonResponse({"shared_devices": described})


@requester_signed
def traits(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shares a device, a payout or long texts with others, and with how many.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = shared_traits(requester, annotation_prefix(request))
    described = [
        asdict(row) | {"n_others": len(row.others), "others": list(row.others[:MOST_OTHERS])}
        for row in rows
    ]
    return JsonResponse({"shared_traits": described})


# Appeals of workers, which the Requester API lacks: reading and answering them.
#
#     POST /marketplace-api/v1/appeals          {}
#     POST /marketplace-api/v1/appeals/answer   {"assignment_id": "3...", "answer": "..."}
#
# Both are signed like the Requester API. An appeal is granted by ApproveAssignment with
# OverrideRejection; the answer is what the worker reads beside it.

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
    answered = answer_appeal(requester=requester, assignment_id=assignment_id, answer=text)
    return JsonResponse(_described(answered))


def _described(appeal: Appeal) -> dict[str, Any]:
    return {
        "assignment_id": appeal.assignment.public_id,
        "hit_id": appeal.assignment.hit.public_id,
        "worker_id": appeal.assignment.worker.worker_id,
        "reason": appeal.reason,
        "appealed_at": appeal.created_at.isoformat(),
        "answer": appeal.answer,
    }


# What a requester's webhooks are signed with, which the Requester API lacks.
#
#     POST /marketplace-api/v1/webhook-secret   {}
#     POST /marketplace-api/v1/webhook-secret   {"renew": true}
#
# It is signed like the Requester API.


@requester_signed
def webhook_secret(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The requester's secret, as Standard Webhooks writes it; a new one on demand.

    Access: whoever holds an access key; that of its requester alone.
    """
    renew = read_object(request).get("renew", False)
    if not isinstance(renew, bool):
        raise InvalidParameter("'renew' must be true, false or absent.")
    return JsonResponse({"secret": access_keys.webhook_secret(requester, renew=renew)})
