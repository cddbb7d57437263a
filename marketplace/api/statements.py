"""What a requester's HITs came to, which the Requester API lacks: for reconciling with its ledger.

    POST /marketplace-api/v1/statement   {"annotation_prefix": "assay:1f0c:"}

It covers the HITs whose RequesterAnnotation begins so, and is signed like the Requester API.
"""

from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter
from marketplace.models import Assignment, Hit, LedgerAccount, LedgerEntry, Requester
from marketplace.models.money import LedgerTransaction

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
    """With which the RequesterAnnotation of the HITs begins that a request is about."""
    prefix = read_object(request).get("annotation_prefix")
    if not isinstance(prefix, str) or not 0 < len(prefix) <= LONGEST_PREFIX:
        raise InvalidParameter(
            f"'annotation_prefix' must be a text of 1 to {LONGEST_PREFIX} characters."
        )
    return prefix


def _money(hits: QuerySet[Hit]) -> dict[str, str]:
    """What workers earned, the fees on it, and what is still held."""
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
