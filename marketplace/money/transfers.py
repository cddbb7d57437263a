"""Money that enters and leaves the marketplace, by an operator's hand: deposits and payouts.

All deposits are made here, and so are in the audit log. Sending a deposit twice returns the first
one: it is the same by its form's token, or by its reference.

A batch of payouts takes every worker's earnings out of the ledger's reach and is exported as CSV.
Once the operator's bank has paid, the same file (or the bank's copy of it, with at least the
columns payout_id and amount_usd) marks the payouts as paid. Reading a file twice changes nothing,
and a file that doesn't agree with the ledger changes nothing at all.
"""

import csv
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TextIO

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Round
from django.utils.translation import gettext as _

from csv_cells import to_cell
from encryption import decrypt, encrypt, reencrypt_column, seal
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import (
    DepositDoesNotExist,
    DepositSpent,
    DuplicateDeposit,
    InsufficientFunds,
    InvalidAmount,
    InvalidPayoutFile,
    RequesterDoesNotExist,
    first_or_raise,
    require,
)
from marketplace.models import (
    Deposit,
    LedgerAccount,
    Payout,
    PayoutBatch,
    PayoutMethod,
    Requester,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.money.amounts import CENT, LARGEST_AMOUNT_USD
from marketplace.users import User


@transaction.atomic
def deposit(
    *,
    requester: Requester,
    amount_usd: Decimal,
    reference: str = "",
    form_token: str | None = None,
    user: User | None = None,
) -> tuple[Deposit, bool]:
    """Deposit money, with an audit entry. Return the deposit and whether it is new."""
    _check_amount(amount_usd)
    reference = reference.strip()
    ledger.lock_accounts(requester)  # whoever sends the same at this moment waits here
    earlier = _find_repetition(requester, amount_usd, reference, form_token)
    if earlier is not None:
        return earlier, False
    now = clock.now()
    new = Deposit.objects.create(
        requester=requester,
        amount_usd=amount_usd,
        reference=reference,
        form_token=form_token,
        transaction=ledger.deposit(requester=requester, amount_usd=amount_usd, at=now),
        created_at=now,
    )
    note(
        "requester.deposit",
        subject=requester.public_id,
        user=user,
        requester=requester,
        detail={"amount_usd": f"{amount_usd:.2f}", "reference": reference},
    )
    return new, True


@transaction.atomic
def reverse_deposit(*, deposit: Deposit, reason: str, user: User | None = None) -> bool:
    """Reverse a deposit once, if the money is still available. Return whether this call did it."""
    requester = deposit.requester
    ledger.lock_accounts(requester)
    deposit.refresh_from_db()
    if deposit.reversal_id is not None:
        return False
    now = clock.now()
    try:
        deposit.reversal = ledger.reverse_deposit(
            requester=requester, amount_usd=deposit.amount_usd, at=now
        )
    except InsufficientFunds as error:
        raise DepositSpent(
            deposit.amount_usd, ledger.balance_of(ledger.available_account(requester))
        ) from error
    deposit.save(update_fields=["reversal"])
    note(
        "requester.reverse_deposit",
        subject=requester.public_id,
        user=user,
        requester=requester,
        detail={
            "deposit": deposit.public_id,
            "amount_usd": f"{deposit.amount_usd:.2f}",
            "reference": deposit.reference,
            "reason": reason.strip(),
        },
    )
    return True


def find_deposit(public_id: str, *, requester: Requester | None = None) -> Deposit:
    deposits = Deposit.objects.select_related("requester").filter(public_id=public_id)
    if requester is not None:
        deposits = deposits.filter(requester=requester)
    return first_or_raise(deposits, DepositDoesNotExist(public_id))


def find_requester(public_id: str) -> Requester:
    return first_or_raise(
        Requester.objects.filter(public_id=public_id), RequesterDoesNotExist(public_id)
    )


def _check_amount(amount_usd: Decimal) -> None:
    require(
        amount_usd.is_finite() and CENT <= amount_usd <= LARGEST_AMOUNT_USD,
        InvalidAmount(
            _("A deposit is at least $%(least)s and at most $%(largest)s, not %(amount)s.")
            % {"least": CENT, "largest": f"{LARGEST_AMOUNT_USD:,}", "amount": amount_usd},
            code="out_of_range",
        ),
    )
    require(
        amount_usd == amount_usd.quantize(CENT),
        InvalidAmount(
            _("A deposit is in whole cents, not %(amount)s.") % {"amount": amount_usd},
            code="fraction_of_cent",
        ),
    )


def _find_repetition(
    requester: Requester, amount_usd: Decimal, reference: str, form_token: str | None
) -> Deposit | None:
    """The deposit already made with these values. Raises DuplicateDeposit if only some of them
    agree."""
    own = Deposit.objects.filter(requester=requester)
    earlier = own.filter(form_token=form_token).first() if form_token else None
    if earlier is not None:
        if (earlier.amount_usd, earlier.reference) != (amount_usd, reference):
            raise DuplicateDeposit(
                _(
                    "This form has made a deposit of $%(amount)s already. Open the page anew for "
                    "another."
                )
                % {"amount": f"{earlier.amount_usd:,}"},
                code="form_used",
            )
        return earlier
    earlier = own.filter(reversal=None, reference=reference).first() if reference else None
    if earlier is not None and (form_token or earlier.amount_usd != amount_usd):
        raise DuplicateDeposit(
            _(
                "There is a deposit with the reference %(reference)s already: $%(amount)s, of "
                "%(day)s. Nothing was put in."
            )
            % {
                "reference": repr(reference),
                "amount": f"{earlier.amount_usd:,}",
                "day": f"{earlier.created_at:%Y-%m-%d}",
            },
            code="reference_used",
        )
    return earlier


# How workers want to be paid: one of the operator's methods, with details encrypted at rest.

PURPOSE = "payout details"


def choose_method(*, worker: WorkerAccount, method: str, details: str) -> PayoutMethod:
    chosen, _ = PayoutMethod.objects.update_or_create(
        worker=worker,
        defaults={
            "method": method,
            "encrypted_details": encrypt(details.strip()),
            "details_seal": seal_of(details),
            "changed_at": clock.now(),
        },
    )
    return chosen


def details_of(method: PayoutMethod) -> str:
    return decrypt(method.encrypted_details)


def seal_of(details: str) -> str:
    # The same details have the same seal, however they are spaced and punctuated.
    plain = "".join(filter(str.isalnum, details.casefold()))
    return seal(plain, purpose=PURPOSE) if plain else ""


def next_payout_date(now: datetime) -> date | None:
    day = settings.MARKETPLACE_PAYOUT_DAY
    if not day:
        return None
    today = now.date()
    if today.day <= day:
        return today.replace(day=day)
    left = monthrange(today.year, today.month)[1] - today.day
    return date.fromordinal(today.toordinal() + left + day)


def reencrypt_details() -> int:
    return reencrypt_column(PayoutMethod.objects.all(), "encrypted_details", _seal_again)


def _seal_again(method: PayoutMethod) -> list[str]:
    method.details_seal = seal_of(details_of(method))
    return ["details_seal"]


COLUMNS = (
    "payout_id",
    "batch_id",
    "worker_id",
    "username",
    "amount_usd",
    "made_at",
    "paid_at",
    "method",
    "details",
)


@transaction.atomic
def make_batch(*, user: User | None = None, minimum_usd: Decimal = CENT) -> PayoutBatch | None:
    now = clock.now()
    ledger.lock_payouts()
    due = [
        (account.worker, account.total_usd.quantize(CENT))
        for account in LedgerAccount.objects.filter(kind=LedgerAccount.Kind.EARNINGS)
        .annotate(total_usd=Round(Sum("entries__amount_usd"), 2))
        .filter(total_usd__gte=max(minimum_usd, CENT))
        .select_related("worker")
        .order_by("pk")
    ]
    if not due:
        return None
    batch = PayoutBatch.objects.create(created_at=now, created_by=user)
    for worker, amount_usd in due:
        if worker is not None:
            ledger.withdraw(worker=worker, amount_usd=amount_usd, at=now)
            Payout.objects.create(batch=batch, worker=worker, amount_usd=amount_usd)
    note("payouts.make", subject=str(batch.pk), user=user, detail=_facts(batch))
    return batch


def earned_and_not_taken() -> Decimal:
    total = LedgerAccount.objects.filter(kind=LedgerAccount.Kind.EARNINGS).aggregate(
        total=Sum("entries__amount_usd")
    )["total"]
    return ledger.NOTHING if total is None else Decimal(total).quantize(CENT)


def export(batches: Iterable[PayoutBatch]) -> Iterator[tuple[str, ...]]:
    yield COLUMNS
    for payout in (
        Payout.objects.filter(batch__in=list(batches))
        .select_related("batch", "worker__user", "worker__payout_method")
        .order_by("pk")
    ):
        yield (
            str(payout.pk),
            str(payout.batch_id),
            payout.worker.worker_id,
            to_cell(payout.worker.user.get_username()),
            f"{payout.amount_usd:.2f}",
            payout.batch.created_at.isoformat(timespec="seconds"),
            payout.paid_at.isoformat(timespec="seconds") if payout.paid_at else "",
            *_method(payout),
        )


def _method(payout: Payout) -> tuple[str, str]:
    method: PayoutMethod | None = getattr(payout.worker, "payout_method", None)
    if method is None or payout.paid_at is not None:
        return "", ""
    return to_cell(method.method), to_cell(details_of(method))


def note_export(batch: PayoutBatch, *, user: User | None = None) -> None:
    if PayoutBatch.objects.filter(pk=batch.pk, exported_at=None).update(exported_at=clock.now()):
        note("payouts.export", subject=str(batch.pk), user=user, detail=_facts(batch))


@transaction.atomic
def mark_paid(payouts: Iterable[Payout], *, user: User | None = None) -> int:
    now = clock.now()
    unpaid = list(
        Payout.objects.select_for_update(no_key=True, of=("self",))
        .filter(pk__in=[payout.pk for payout in payouts], paid_at=None)
        .order_by("pk")
    )
    for payout in unpaid:
        ledger.pay_out(amount_usd=payout.amount_usd, at=now)
        payout.save_values(paid_at=now)
        note(
            "payout.paid",
            subject=str(payout.pk),
            user=user,
            detail={"worker": payout.worker.worker_id, "amount_usd": str(payout.amount_usd)},
        )
    for batch in PayoutBatch.objects.filter(payouts__in=unpaid, paid_at=None).distinct():
        if not batch.payouts.filter(paid_at=None).exists():
            batch.save_values(paid_at=now)
    return len(unpaid)


def read_paid(file: TextIO) -> list[Payout]:
    reader = csv.DictReader(file)
    missing = {"payout_id", "amount_usd"} - set(reader.fieldnames or [])
    require(
        not missing,
        InvalidPayoutFile(
            f"The file has no column {' and no column '.join(sorted(missing))}.",
            code="missing_column",
        ),
    )
    return [_payout(row, reader.line_num) for row in reader]


def _payout(row: dict[str, str], line: int) -> Payout:
    key, amount = (row["payout_id"] or "").strip(), (row["amount_usd"] or "").strip()
    payout = Payout.objects.filter(pk=key).first() if key.isdecimal() and len(key) < 19 else None
    if payout is None:
        raise InvalidPayoutFile(
            f"Line {line}: there is no payout {key!r}. Nothing was marked.", code="unknown_payout"
        )
    if amount != f"{payout.amount_usd:.2f}":
        raise InvalidPayoutFile(
            f"Line {line}: payout {key} is of {payout.amount_usd:.2f}, not {amount!r}. "
            "Nothing was marked.",
            code="wrong_amount",
        )
    return payout


def _facts(batch: PayoutBatch) -> dict[str, str]:
    total = batch.payouts.aggregate(total=Sum("amount_usd"))["total"] or Decimal(0)
    return {"payouts": str(batch.payouts.count()), "total_usd": f"{total:.2f}"}
