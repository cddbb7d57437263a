import logging
import time
from collections.abc import Iterator
from decimal import Decimal

from django.db.models import Exists, F, OuterRef, Q, Sum, Value, Window
from django.db.models.functions import Coalesce, Lag, Round

from error_codes import CodedText
from marketplace import clock
from marketplace.models import (
    Assignment,
    Hit,
    LedgerAccount,
    LedgerAudit,
    LedgerEntry,
    LedgerTransaction,
    PaidBy,
    Payout,
    WorkerAccount,
)
from marketplace.money.amounts import CENT
from marketplace.money.ledger import REQUESTER_KINDS

PROBLEMS_STORED = 100
logger = logging.getLogger(__name__)


def audit() -> list[CodedText]:
    return [
        *_unbalanced_transactions(),
        *_unrecorded_deposits(),
        *_wrong_balances(),
        *_overdrawn_accounts(),
        *_paid_twice(),
    ]


def store_audit() -> LedgerAudit:
    started = time.perf_counter()
    problems = audit()
    if problems:
        logger.error("The ledger doesn't balance: %s", " ".join(problems[:3]))
    return LedgerAudit.objects.create(
        created_at=clock.now(),
        duration_seconds=time.perf_counter() - started,
        n_problems=len(problems),
        problems=problems[:PROBLEMS_STORED],
    )


def _unbalanced_transactions() -> Iterator[CodedText]:
    # Rounded because SQLite adds up in floating point.
    sums = LedgerTransaction.objects.annotate(total=Round(Sum("entries__amount_usd"), 2))
    for movement in sums.filter(Q(total=None) | ~Q(total=0)).order_by("pk"):
        total_usd = movement.total or Decimal(0)
        yield CodedText(
            f"Transaction {movement.pk} ({movement.kind}) sums to {total_usd:.2f}, not zero.",
            "unbalanced",
        )


def _unrecorded_deposits() -> Iterator[CodedText]:
    kinds = LedgerTransaction.Kind
    deposits = LedgerTransaction.objects.filter(kind=kinds.DEPOSIT, deposit=None)
    reversals = LedgerTransaction.objects.filter(kind=kinds.REVERSAL, reversed_deposit=None)
    for movement in [*deposits.order_by("pk"), *reversals.order_by("pk")]:
        yield CodedText(
            f"Transaction {movement.pk} ({movement.kind}) belongs to no recorded deposit.",
            "unrecorded_deposit",
        )


def _wrong_balances() -> Iterator[CodedText]:
    nothing = Value(Decimal("0.00"), output_field=LedgerEntry._meta.get_field("balance_usd"))
    before = Window(Lag("balance_usd"), partition_by=F("account"), order_by=F("id").asc())
    for entry in (
        LedgerEntry.objects.filter(account__kind__in=REQUESTER_KINDS)
        .annotate(expected_usd=Round(Coalesce(before, nothing) + F("amount_usd"), 2))
        .exclude(balance_usd=F("expected_usd"))
        .select_related("account")
    ):
        yield CodedText(
            f"Entry {entry.pk} of {entry.account} says {entry.balance_usd}, "
            f"not {entry.expected_usd:.2f}.",
            "wrong_balance",
        )


def _overdrawn_accounts() -> Iterator[CodedText]:
    for account in (
        LedgerAccount.objects.exclude(kind=LedgerAccount.Kind.OUTSIDE)
        .annotate(total=Round(Sum("entries__amount_usd"), 2))
        .filter(total__lt=0)
        .order_by("pk")
    ):
        yield CodedText(
            f"{account} is overdrawn by {-account.total:.2f}.",
            "overdrawn",
        )


def _paid_twice() -> Iterator[CodedText]:
    participants = WorkerAccount.objects.filter(paid_by=PaidBy.RECRUITER)
    for account in LedgerAccount.objects.filter(worker__in=participants).order_by("pk"):
        yield CodedText(
            f"The account {account.pk} ({account}) is of a participant whom a recruiter pays.",
            "participant_account",
        )
    earnings = LedgerAccount.objects.filter(kind=LedgerAccount.Kind.EARNINGS)
    for account in earnings.exclude(payee=F("worker__payee_id")).order_by("pk"):
        yield CodedText(
            f"The account {account.pk} ({account}) belongs to one worker and names another.",
            "wrong_payee",
        )
    for payout in Payout.objects.filter(worker__in=participants).order_by("pk"):
        yield CodedText(
            f"Payout {payout.pk} is to a participant whom a recruiter pays.",
            "participant_payout",
        )
    for movement in LedgerTransaction.objects.filter(assignment__paid_by=PaidBy.RECRUITER).order_by(
        "pk"
    ):
        yield CodedText(
            f"Transaction {movement.pk} ({movement.kind}) is for work that a recruiter pays for.",
            "participant_payment",
        )
    yield from _held_for_recruited()


def _held_for_recruited() -> Iterator[CodedText]:
    open_here = Assignment.objects.filter(
        hit=OuterRef("pk"), paid_by=PaidBy.LEDGER, status__in=["Accepted", "Submitted"]
    )
    held = Sum(
        "ledger_transactions__entries__amount_usd",
        filter=Q(ledger_transactions__entries__account__kind=LedgerAccount.Kind.HELD),
    )
    hits = Hit.objects.filter(hit_type__paid_by=PaidBy.RECRUITER).annotate(held=Round(held, 2))
    for public_id, held_usd in (
        hits.filter(~Exists(open_here), held__gt=0).order_by("pk").values_list("public_id", "held")
    ):
        yield CodedText(
            f"${held_usd:.2f} is held for HIT {public_id}, which a recruiter pays for.",
            "recruiter_hold",
        )


# Sums of the whole ledger, for monitors and operators.


def totals() -> tuple[dict[str, Decimal], Decimal, Decimal]:
    """Dollars by kind of account, all that was ever earned, and all that was paid out."""
    held: dict[str, Decimal] = dict(
        LedgerEntry.objects.order_by().values_list("account__kind").annotate(Sum("amount_usd"))
    )
    earned = LedgerEntry.objects.filter(
        account__kind=LedgerAccount.Kind.EARNINGS, amount_usd__gt=0
    ).aggregate(total=Sum("amount_usd"))["total"]
    return (
        {
            str(kind): _cents(held.get(kind))
            for kind in LedgerAccount.Kind
            if kind != LedgerAccount.Kind.OUTSIDE
        },
        _cents(earned),
        _cents(Payout.objects.exclude(paid_at=None).aggregate(total=Sum("amount_usd"))["total"]),
    )


def _cents(amount: Decimal | None) -> Decimal:
    # SQLite adds up in floating point.
    return (amount or Decimal(0)).quantize(CENT)
