"""Requesters' money coming in, by an operator's hand, and taken out again where it was a mistake.

All deposits are made here, and so stand in the audit log. Whoever sends a deposit twice gets the
first one back: it is the same by the token of the form it came from, or by its reference.
"""

from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import (
    DepositDoesNotExist,
    DepositSpent,
    DuplicateDeposit,
    InsufficientFunds,
    InvalidAmount,
    RequesterDoesNotExist,
)
from marketplace.models import Deposit, Requester
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
        available_usd = ledger.balance_of(ledger.available_account(requester))
        raise DepositSpent(deposit.amount_usd, available_usd) from error
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
    deposit = deposits.first()
    if deposit is None:
        raise DepositDoesNotExist(public_id)
    return deposit


def find_requester(public_id: str) -> Requester:
    requester = Requester.objects.filter(public_id=public_id).first()
    if requester is None:
        raise RequesterDoesNotExist(public_id)
    return requester


def _check_amount(amount_usd: Decimal) -> None:
    if not amount_usd.is_finite() or not CENT <= amount_usd <= LARGEST_AMOUNT_USD:
        refusal = _("A deposit is at least $%(least)s and at most $%(largest)s, not %(amount)s.")
        raise InvalidAmount(
            refusal % {"least": CENT, "largest": f"{LARGEST_AMOUNT_USD:,}", "amount": amount_usd},
            code="out_of_range",
        )
    if amount_usd != amount_usd.quantize(CENT):
        raise InvalidAmount(
            _("A deposit is in whole cents, not %(amount)s.") % {"amount": amount_usd},
            code="fraction_of_cent",
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
    earlier = own.standing().filter(reference=reference).first() if reference else None
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
