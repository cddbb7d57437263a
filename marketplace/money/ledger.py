"""Double-entry book-keeping. Every movement of money is a transaction whose
entries sum to zero, and every entry carries its account's balance after it.

    outside --deposit--> available --hold--> held --payment--> earnings, fees
                         available <--release-- held
                         available --bonus--> earnings, fees
    outside <--paid-- payouts <--payout-- earnings

The books are locked by whoever writes in them, after the HIT that money is moved for, until
the transaction ends. It may then move money several times, between accounts in any order, and
nobody waits for somebody who waits in turn.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum

from marketplace.exceptions import InsufficientFunds, InvalidAmount
from marketplace.models import (
    Assignment,
    Hit,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    Requester,
    WorkerAccount,
)
from marketplace.money.fees import CENT

NOTHING = Decimal("0.00")
LARGEST_DEPOSIT_USD = Decimal("1000000000")

AccountKind = LedgerAccount.Kind
Kind = LedgerTransaction.Kind


def deposit(*, requester: Requester, amount_usd: Decimal, at: datetime) -> LedgerTransaction:
    """Put a requester's money into the marketplace."""
    if not amount_usd.is_finite() or not NOTHING < amount_usd <= LARGEST_DEPOSIT_USD:
        raise InvalidAmount(
            f"A deposit is more than $0 and at most ${LARGEST_DEPOSIT_USD:,}, not {amount_usd}."
        )
    if amount_usd != amount_usd.quantize(CENT):
        raise InvalidAmount(f"A deposit is in whole cents, not {amount_usd}.")
    outside, available = outside_account(), available_account(requester)
    return _post(Kind.DEPOSIT, {outside: -amount_usd, available: amount_usd}, at=at)


def hold(*, hit: Hit, amount_usd: Decimal, at: datetime) -> None:
    """Make what is held for a HIT this amount, whatever it was."""
    more_usd = amount_usd - held_for(hit)
    if not more_usd:
        return
    kind = Kind.HOLD if more_usd > 0 else Kind.RELEASE
    available, held = _spendable_and_held(hit)
    _post(kind, {available: -more_usd, held: more_usd}, at=at, hit=hit)


def pay(*, assignment: Assignment, source: LedgerAccount, at: datetime) -> None:
    """Pay the worker's reward and the marketplace's fee from one of the requester's accounts."""
    hit = assignment.hit
    moves = {
        source: -assignment.price_usd,
        earnings_account(assignment.worker): assignment.reward_usd,
    }
    if assignment.fee_usd:
        moves[fees_account()] = assignment.fee_usd
    moves = {account: amount_usd for account, amount_usd in moves.items() if amount_usd}
    if moves:
        _post(Kind.PAYMENT, moves, at=at, hit=hit, assignment=assignment)


def pay_bonus(
    *, assignment: Assignment, amount_usd: Decimal, fee_usd: Decimal, at: datetime
) -> LedgerTransaction:
    """Pay a worker more than an assignment's reward, with the fee on it."""
    available = available_account(assignment.hit.requester)
    moves = {
        available: -(amount_usd + fee_usd),
        earnings_account(assignment.worker): amount_usd,
    }
    if fee_usd:
        moves[fees_account()] = fee_usd
    return _post(Kind.BONUS, moves, at=at, hit=assignment.hit, assignment=assignment)


def withdraw(*, worker: WorkerAccount, amount_usd: Decimal, at: datetime) -> None:
    """Take a worker's earnings, to be paid out."""
    moves = {earnings_account(worker): -amount_usd, payouts_account(): amount_usd}
    _post(Kind.PAYOUT, moves, at=at)


def pay_out(*, amount_usd: Decimal, at: datetime) -> None:
    """Note that money taken to be paid out has left the marketplace."""
    _post(Kind.PAYOUT, {payouts_account(): -amount_usd, outside_account(): amount_usd}, at=at)


def lock_books() -> None:
    """Let nobody else move money until the transaction ends. The account of the world outside
    stands for the books."""
    held = LedgerAccount.objects.select_for_update(no_key=True)
    held.get_or_create(kind=AccountKind.OUTSIDE, requester=None, worker=None)


def balance_of(account: LedgerAccount) -> Decimal:
    """What lies on an account."""
    last = LedgerEntry.objects.filter(account=account).order_by("-id").first()
    return last.balance_usd if last else NOTHING


def held_for(hit: Hit) -> Decimal:
    """What is held for one HIT."""
    entries = LedgerEntry.objects.filter(transaction__hit=hit, account__kind=AccountKind.HELD)
    total: Decimal | None = entries.aggregate(total=Sum("amount_usd"))["total"]
    return NOTHING if total is None else total.quantize(CENT)


def outside_account() -> LedgerAccount:
    """Where deposits come from."""
    return _account(AccountKind.OUTSIDE)


def fees_account() -> LedgerAccount:
    """What the marketplace has earned."""
    return _account(AccountKind.FEES)


def payouts_account() -> LedgerAccount:
    """What was taken from earnings and isn't paid out yet."""
    return _account(AccountKind.PAYOUTS)


def available_account(requester: Requester) -> LedgerAccount:
    """What a requester can still spend."""
    return _account(AccountKind.AVAILABLE, requester=requester)


def held_account(requester: Requester) -> LedgerAccount:
    """What a requester has promised for published work."""
    return _account(AccountKind.HELD, requester=requester)


def earnings_account(worker: WorkerAccount) -> LedgerAccount:
    """What a worker has earned."""
    return _account(AccountKind.EARNINGS, worker=worker)


def audit() -> list[str]:
    """What is wrong with the books, one sentence each; none where they balance."""
    return [*_audit_transactions(), *_audit_accounts()]


def _spendable_and_held(hit: Hit) -> tuple[LedgerAccount, LedgerAccount]:
    """Both of a requester's accounts at once, where there are both."""
    found = {
        account.kind: account
        for account in LedgerAccount.objects.filter(requester=hit.requester_id)
    }
    available, held = found.get(AccountKind.AVAILABLE), found.get(AccountKind.HELD)
    return available or available_account(hit.requester), held or held_account(hit.requester)


def _account(
    kind: LedgerAccount.Kind,
    *,
    requester: Requester | None = None,
    worker: WorkerAccount | None = None,
) -> LedgerAccount:
    known = LedgerAccount.objects.filter(kind=kind, requester=requester, worker=worker)
    account = known.first()
    return _open_account(kind, requester, worker) if account is None else account


@transaction.atomic
def _open_account(
    kind: LedgerAccount.Kind, requester: Requester | None, worker: WorkerAccount | None
) -> LedgerAccount:
    lock_books()
    account, _ = LedgerAccount.objects.get_or_create(kind=kind, requester=requester, worker=worker)
    return account


@transaction.atomic
def _post(
    kind: LedgerTransaction.Kind,
    moves: Mapping[LedgerAccount, Decimal],
    *,
    at: datetime,
    hit: Hit | None = None,
    assignment: Assignment | None = None,
) -> LedgerTransaction:
    if sum(moves.values()) != 0:
        raise ValueError(f"moves must sum to zero, got {sum(moves.values())}")
    lock_books()
    balances = {account: balance_of(account) + amount for account, amount in moves.items()}
    for account, balance_usd in balances.items():
        if balance_usd < 0 and account.kind != AccountKind.OUTSIDE:
            raise InsufficientFunds
    movement = LedgerTransaction.objects.create(
        kind=kind, created_at=at, hit=hit, assignment=assignment
    )
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            transaction=movement,
            account=account,
            amount_usd=moves[account],
            balance_usd=balance_usd,
        )
        for account, balance_usd in balances.items()
    )
    return movement


def _audit_transactions() -> list[str]:
    sums = LedgerTransaction.objects.annotate(total=Sum("entries__amount_usd"))
    return [
        f"Transaction {movement.pk} ({movement.kind}) sums to {movement.total or 0:.2f}, not zero."
        for movement in sums.iterator()
        if movement.total is None or movement.total.quantize(CENT) != 0
    ]


def _audit_accounts() -> list[str]:
    problems = []
    for account in LedgerAccount.objects.iterator():
        balance_usd = NOTHING
        for entry in account.entries.order_by("id").iterator():
            balance_usd += entry.amount_usd
            if entry.balance_usd != balance_usd:
                problems.append(
                    f"Entry {entry.pk} of {account} says {entry.balance_usd}, not {balance_usd}."
                )
        if balance_usd < 0 and account.kind != AccountKind.OUTSIDE:
            problems.append(f"{account} is overdrawn by {-balance_usd}.")
    return problems
