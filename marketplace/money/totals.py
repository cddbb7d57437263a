"""Sums of the whole ledger, for monitors and operators."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from marketplace.models import LedgerAccount, LedgerEntry, Payout

Kind = LedgerAccount.Kind
CENTS = Decimal("0.01")


@dataclass(frozen=True)
class Totals:
    """What each kind of account holds, what workers ever earned, and what of it was paid out."""

    balances_usd: dict[str, Decimal]
    earned_usd: Decimal
    paid_out_usd: Decimal


def totals() -> Totals:
    """By three queries, of which one reads all entries."""
    sums = LedgerEntry.objects.order_by().values_list("account__kind")
    held: dict[str, Decimal] = dict(sums.annotate(Sum("amount_usd")))
    earnings = LedgerEntry.objects.filter(account__kind=Kind.EARNINGS, amount_usd__gt=0)
    earned = earnings.aggregate(total=Sum("amount_usd"))["total"]
    paid = Payout.objects.exclude(paid_at=None).aggregate(total=Sum("amount_usd"))["total"]
    balances = {str(kind): _cents(held.get(kind)) for kind in Kind if kind != Kind.OUTSIDE}
    return Totals(balances, _cents(earned), _cents(paid))


def _cents(amount: Decimal | None) -> Decimal:
    # SQLite adds up in floating point.
    return (amount or Decimal(0)).quantize(CENTS)
