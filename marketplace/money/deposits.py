"""Requesters' money coming in, by an operator's hand."""

from decimal import Decimal

from django.db import transaction

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import RequesterDoesNotExist
from marketplace.models import Requester
from marketplace.money import ledger
from marketplace.users import User


@transaction.atomic
def deposit(
    *, requester: Requester, amount_usd: Decimal, reference: str = "", user: User | None = None
) -> None:
    """Put money into a requester's account, and write down who did and why."""
    ledger.deposit(requester=requester, amount_usd=amount_usd, at=clock.now())
    detail = {"amount_usd": f"{amount_usd:.2f}", "reference": reference}
    note(
        "requester.deposit",
        subject=requester.public_id,
        user=user,
        requester=requester,
        detail=detail,
    )


def find_requester(public_id: str) -> Requester:
    """The requester of this id."""
    requester = Requester.objects.filter(public_id=public_id).first()
    if requester is None:
        raise RequesterDoesNotExist(public_id)
    return requester
