"""Double-entry book-keeping. Every movement of money is a transaction whose entries sum to
zero. On a requester's accounts an entry carries the balance after it.

    outside --deposit--> available --hold--> held --payment--> earnings, fees
                         available <--release-- held
                         available --bonus--> earnings, fees
            outside <--reversal-- available
    outside <--paid-- payouts <--payout-- earnings

Locks are taken in this order, and held until the transaction ends: the HIT that money is moved
for; its requester's accounts; where earnings are paid out, the payouts account. What several
requesters pay into (earnings, fees, the world outside) is not locked and has no running balance:
there money only comes in, or goes out under the lock on payouts, so that requesters never wait
for each other (docs/adr/0009-locks-by-requester.md).

Whom a recruiter pays is paid nothing here: such work is refused below, the database refuses an
account of earnings for such a worker and a hold for such a HIT, and the audit looks for both.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import OuterRef, Subquery, Sum

from marketplace.exceptions import InsufficientFunds, PaidByRecruiter, require
from marketplace.models import (
    Assignment,
    Hit,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    PaidBy,
    Requester,
    WorkerAccount,
)
from marketplace.money.amounts import CENT

NOTHING = Decimal("0.00")

AccountKind = LedgerAccount.Kind
Kind = LedgerTransaction.Kind
REQUESTER_KINDS = (AccountKind.AVAILABLE, AccountKind.HELD)


@transaction.atomic
def deposit(*, requester: Requester, amount_usd: Decimal, at: datetime) -> LedgerTransaction:
    available = lock_accounts(requester)[AccountKind.AVAILABLE]
    moves = {shared_account(AccountKind.OUTSIDE): -amount_usd, available: amount_usd}
    return _post(Kind.DEPOSIT, moves, at=at)


@transaction.atomic
def reverse_deposit(
    *, requester: Requester, amount_usd: Decimal, at: datetime
) -> LedgerTransaction:
    available = lock_accounts(requester)[AccountKind.AVAILABLE]
    moves = {available: -amount_usd, shared_account(AccountKind.OUTSIDE): amount_usd}
    return _post(Kind.REVERSAL, moves, at=at)


@transaction.atomic
def hold(*, hit: Hit, amount_usd: Decimal, at: datetime) -> None:
    hold_more(hit=hit, more_usd=amount_usd - held_for(hit), at=at)


def hold_more(*, hit: Hit, more_usd: Decimal, at: datetime) -> None:
    """Hold more, or less, for a HIT in the caller's transaction."""
    if not more_usd:
        return
    kind = Kind.HOLD if more_usd > 0 else Kind.RELEASE
    if kind == Kind.HOLD and hit.hit_type.paid_by == PaidBy.RECRUITER:
        raise PaidByRecruiter
    accounts = lock_accounts(hit.requester)
    available, held = accounts[AccountKind.AVAILABLE], accounts[AccountKind.HELD]
    _post(kind, {available: -more_usd, held: more_usd}, at=at, hit=hit)


@transaction.atomic
def pay(*, assignment: Assignment, source: LedgerAccount.Kind, at: datetime) -> None:
    """Pay the reward and the fee from one of the requester's accounts. To pay several workers in
    one transaction, go in the order of their ids."""
    _require_paid_here(assignment)
    hit = assignment.hit
    moves = {
        lock_accounts(hit.requester)[source]: -assignment.price_usd,
        earnings_account(assignment.worker): assignment.reward_usd,
    }
    if assignment.fee_usd:
        moves[shared_account(AccountKind.FEES)] = assignment.fee_usd
    moves = {account: amount_usd for account, amount_usd in moves.items() if amount_usd}
    if moves:
        _post(Kind.PAYMENT, moves, at=at, hit=hit, assignment=assignment)


@transaction.atomic
def pay_bonus(
    *, assignment: Assignment, amount_usd: Decimal, fee_usd: Decimal, at: datetime
) -> LedgerTransaction:
    _require_paid_here(assignment)
    moves = {
        lock_accounts(assignment.hit.requester)[AccountKind.AVAILABLE]: -(amount_usd + fee_usd),
        earnings_account(assignment.worker): amount_usd,
    }
    if fee_usd:
        moves[shared_account(AccountKind.FEES)] = fee_usd
    return _post(Kind.BONUS, moves, at=at, hit=assignment.hit, assignment=assignment)


@transaction.atomic
def withdraw(*, worker: WorkerAccount, amount_usd: Decimal, at: datetime) -> None:
    lock_payouts()
    moves = {earnings_account(worker): -amount_usd, shared_account(AccountKind.PAYOUTS): amount_usd}
    _post(Kind.PAYOUT, moves, at=at)


@transaction.atomic
def pay_out(*, amount_usd: Decimal, at: datetime) -> None:
    lock_payouts()
    _post(
        Kind.PAYOUT,
        {
            shared_account(AccountKind.PAYOUTS): -amount_usd,
            shared_account(AccountKind.OUTSIDE): amount_usd,
        },
        at=at,
    )


def lock_accounts(requester: Requester) -> dict[str, LedgerAccount]:
    """Lock the requester's accounts until the transaction ends; return them by kind. Always both,
    in the order of their ids."""
    rows = LedgerAccount.objects.filter(requester=requester).order_by("pk")
    accounts = {account.kind: account for account in rows.select_for_update(no_key=True)}
    if len(accounts) < len(REQUESTER_KINDS):
        _open_accounts(requester)
        accounts = {account.kind: account for account in rows.select_for_update(no_key=True)}
    return accounts


def lock_payouts() -> None:
    """Lock the taking and paying of earnings until the transaction ends."""
    LedgerAccount.objects.select_for_update(no_key=True).get_or_create(
        kind=AccountKind.PAYOUTS, requester=None, worker=None
    )


def balance_of(account: LedgerAccount) -> Decimal:
    if account.kind not in REQUESTER_KINDS:
        total: Decimal | None = account.entries.aggregate(total=Sum("amount_usd"))["total"]
        return NOTHING if total is None else total.quantize(CENT)
    last = LedgerEntry.objects.filter(account=account).order_by("-id").first()
    return NOTHING if last is None or last.balance_usd is None else last.balance_usd


def _balances_of(accounts: Sequence[LedgerAccount]) -> dict[LedgerAccount, Decimal]:
    own = [account.pk for account in accounts if account.kind in REQUESTER_KINDS]
    last = LedgerEntry.objects.filter(account=OuterRef("pk")).order_by("-id")
    known = dict(
        LedgerAccount.objects.filter(pk__in=own)
        .order_by()
        .values_list("pk", Subquery(last.values("balance_usd")[:1]))
    )
    return {
        account: (known[account.pk] or NOTHING) if account.pk in known else balance_of(account)
        for account in accounts
    }


def held_for(hit: Hit) -> Decimal:
    total: Decimal | None = LedgerEntry.objects.filter(
        transaction__hit=hit, account__kind=AccountKind.HELD
    ).aggregate(total=Sum("amount_usd"))["total"]
    return NOTHING if total is None else total.quantize(CENT)


def shared_account(kind: LedgerAccount.Kind) -> LedgerAccount:
    return _account(kind)


def available_account(requester: Requester) -> LedgerAccount:
    return _account(AccountKind.AVAILABLE, requester=requester)


def held_account(requester: Requester) -> LedgerAccount:
    return _account(AccountKind.HELD, requester=requester)


def earnings_account(worker: WorkerAccount) -> LedgerAccount:
    """A worker's earnings. The account is opened with the worker's, before anybody pays; a
    recruiter's participant has none."""
    require(worker.paid_by != PaidBy.RECRUITER, PaidByRecruiter())
    return _account(AccountKind.EARNINGS, worker=worker)


def _require_paid_here(assignment: Assignment) -> None:
    require(
        PaidBy.RECRUITER not in (assignment.paid_by, assignment.worker.paid_by), PaidByRecruiter()
    )


def _account(
    kind: LedgerAccount.Kind,
    *,
    requester: Requester | None = None,
    worker: WorkerAccount | None = None,
) -> LedgerAccount:
    known = LedgerAccount.objects.filter(kind=kind, requester=requester, worker=worker)
    account = known.first()
    if account is None:
        if requester is not None:
            _open_accounts(requester)
        account, _ = known.get_or_create(
            kind=kind, requester=requester, worker=worker, defaults={"payee": worker}
        )
    return account


def _open_accounts(requester: Requester) -> None:
    # Always in this order, so that two transactions never wait for each other.
    for kind in (AccountKind.OUTSIDE, AccountKind.FEES, AccountKind.PAYOUTS):
        LedgerAccount.objects.get_or_create(kind=kind, requester=None, worker=None)
    for kind in REQUESTER_KINDS:
        LedgerAccount.objects.get_or_create(kind=kind, requester=requester, worker=None)


def _post(
    kind: LedgerTransaction.Kind,
    moves: Mapping[LedgerAccount, Decimal],
    *,
    at: datetime,
    hit: Hit | None = None,
    assignment: Assignment | None = None,
) -> LedgerTransaction:
    """Write one movement in the caller's transaction. The caller has locked each account that
    money is taken from, and each requester's account."""
    require(
        sum(moves.values()) == 0, ValueError(f"moves must sum to zero, got {sum(moves.values())}")
    )
    before = _balances_of(
        [
            account
            for account, amount_usd in moves.items()
            if account.kind in REQUESTER_KINDS or amount_usd < 0
        ]
    )
    balances = {account: balance_usd + moves[account] for account, balance_usd in before.items()}
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
            amount_usd=amount_usd,
            balance_usd=balances[account] if account.kind in REQUESTER_KINDS else None,
        )
        for account, amount_usd in moves.items()
    )
    return movement
