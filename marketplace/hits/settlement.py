"""A HIT's money: what is held for it, and what its assignments are paid.

The caller holds the lock on the HIT, and refreshes the HIT afterwards.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Max, Min, Q

from marketplace.exceptions import InvalidMaximumAssignmentsIncrease, InvalidParameter, require
from marketplace.models import (
    Appeal,
    Assignment,
    BonusPayment,
    Hit,
    LedgerAccount,
    PaidBy,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.money.amounts import CENT
from marketplace.notifications.events import announce
from marketplace.people.messages import send_message

# What a HIT's assignments add up to, in one question to the database.

Status = Assignment.Status


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    by_price: Counter[tuple[str, Decimal]] = field(default_factory=Counter)
    next_deadline: datetime | None = None
    next_auto_approval: datetime | None = None
    last_closed_at: datetime | None = None
    # Of one worker's, where it was asked for: the status of the one that isn't given up.
    own_status: str | None = None

    @property
    def accepted(self) -> int:
        return self.counts[Status.ACCEPTED]

    @property
    def submitted(self) -> int:
        return self.counts[Status.SUBMITTED]

    @property
    def taken(self) -> int:
        return self.counts.total() - sum(
            self.counts[status] for status in Assignment.GIVEN_UP_STATUSES
        )

    def add_accepted(self, assignment: Assignment) -> None:
        self.counts[Status.ACCEPTED] += 1
        self.by_price[Status.ACCEPTED, assignment.price_usd] += 1
        self.next_deadline = _earliest((self.next_deadline, assignment.deadline))


def count_assignments(hit: Hit, *, worker: WorkerAccount | None = None) -> Tally:
    # Call it under the HIT's lock.
    rows = Assignment.objects.on(hit).values("status", "reward_usd", "fee_usd").order_by()
    rows = rows.annotate(
        count=Count("pk"),
        deadline=Min("deadline"),
        auto_approval=Min("auto_approval_at"),
        closed=Max("closed_at"),
    )
    if worker is not None:
        rows = rows.annotate(own=Count("pk", filter=Q(worker=worker)))
    tally = Tally()
    for row in rows:
        status, price_usd = row["status"], row["reward_usd"] + row["fee_usd"]
        tally.counts[status] += row["count"]
        tally.by_price[status, price_usd] += row["count"]
        if status == Status.ACCEPTED:
            tally.next_deadline = _earliest((tally.next_deadline, row["deadline"]))
        if status == Status.SUBMITTED:
            tally.next_auto_approval = _earliest((tally.next_auto_approval, row["auto_approval"]))
        tally.last_closed_at = max(
            [at for at in (tally.last_closed_at, row["closed"]) if at], default=None
        )
        if row.get("own") and status not in Assignment.GIVEN_UP_STATUSES:
            tally.own_status = status
    return tally


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in times if at), default=None)


def hold_what_is_promised(hit: Hit, *, now: datetime, tally: Tally | None = None) -> None:
    """Hold what the HIT can still cost. An accepted assignment may become free again, so the
    higher of its own and today's price is held."""
    amount_usd = ledger.NOTHING
    if hit.status != Hit.Status.DISPOSED:
        amount_usd = _promised(hit, tally or count_assignments(hit), now=now)
    ledger.hold(hit=hit, amount_usd=amount_usd, at=now)


def hold_for_new(hit: Hit, *, now: datetime) -> None:
    ledger.hold_more(hit=hit, more_usd=_promised(hit, Tally(), now=now), at=now)


def _promised(hit: Hit, tally: Tally, *, now: datetime) -> Decimal:
    price_usd = hit.price_usd if hit.expiration > now else ledger.NOTHING
    total_usd = (hit.max_assignments - tally.taken) * price_usd
    for (status, promised_usd), count in tally.by_price.items():
        if status == Status.ACCEPTED:
            total_usd += max(promised_usd, price_usd) * count
        elif status == Status.SUBMITTED:
            total_usd += promised_usd * count
    return total_usd.quantize(CENT)


# Giving a HIT more assignments or more time. The caller holds the lock on the HIT, and refreshes it
# afterwards.

# From here on Amazon's fee is higher, so a HIT can't grow across it.
LARGE = 10
MOST_ASSIGNMENTS = 1_000_000_000


def add_assignments(hit: Hit, *, additional: int, now: datetime) -> None:
    total = hit.max_assignments + additional
    if hit.max_assignments < LARGE <= total:
        raise InvalidMaximumAssignmentsIncrease(
            "HITs created with fewer than 10 assignments cannot be extended to have 10 or more "
            "assignments."
        )
    require(
        total <= MOST_ASSIGNMENTS,
        InvalidParameter(f"A HIT has at most {MOST_ASSIGNMENTS} assignments."),
    )
    hit.save_values(max_assignments=total)
    hold_what_is_promised(hit, now=now)
    announce("HITExtended", hit=hit, at=now)


def put_off(hit: Hit, *, until: datetime, now: datetime) -> None:
    hit.save_values(expiration=until, expired_at=None)
    hold_what_is_promised(hit, now=now)
    announce("HITExtended", hit=hit, at=now)


def lengthen(hit: Hit, *, seconds: int, now: datetime) -> None:
    """Let the HIT live at least this long from now; 0 changes nothing."""
    until = now + timedelta(seconds=seconds)
    if seconds and until > hit.expiration:
        put_off(hit, until=until, now=now)


# How many HITs and assignments there are in each state, for monitors and operators.


def count_by_status(model: type[Hit] | type[Assignment]) -> dict[str, int]:
    counts = model.objects.order_by().values("status").annotate(n=Count("pk"))
    return dict.fromkeys(model.Status.values, 0) | {row["status"]: row["n"] for row in counts}


# What workers read of decisions about their work, in the transaction of the decision itself.

LONGEST_SUBJECT = 200


def report_rejection(assignment: Assignment) -> None:
    reason = assignment.requester_feedback or "The requester gave no reason."
    _send(
        assignment,
        subject=f"Rejected: {assignment.hit.hit_type.title}",
        text=f"Your work on {_name(assignment)} was rejected, and its reward of "
        f"${assignment.reward_usd:.2f} is not paid.\n\nReason: {reason}\n\n"
        "If you think that this is wrong, appeal on your dashboard, once and within 30 days of "
        "submitting the work.",
    )


def report_override(assignment: Assignment) -> None:
    feedback = assignment.requester_feedback
    reason = f"\n\nThe requester writes: {feedback}" if feedback else ""
    _send(
        assignment,
        subject=f"Approved after all: {assignment.hit.hit_type.title}",
        text=f"The rejection of your work on {_name(assignment)} was overridden: it is approved, "
        f"and its reward of ${assignment.reward_usd:.2f} is paid.{reason}",
    )


def report_appeal_answer(appeal: Appeal) -> None:
    assignment = appeal.assignment
    is_approved = assignment.status == Assignment.Status.APPROVED
    standing = "is approved now" if is_approved else "is rejected so far"
    _send(
        assignment,
        subject=f"Your appeal was answered: {assignment.hit.hit_type.title}",
        text=f"The requester answered your appeal about {_name(assignment)}, which {standing}."
        f"\n\nAnswer: {appeal.answer}",
    )


def report_bonus(payment: BonusPayment) -> None:
    assignment = payment.assignment
    _send(
        assignment,
        subject=f"Bonus of ${payment.amount_usd:.2f}: {assignment.hit.hit_type.title}",
        text=f"You were paid a bonus of ${payment.amount_usd:.2f} for {_name(assignment)}."
        f"\n\nReason: {payment.reason}",
    )


def _send(assignment: Assignment, *, subject: str, text: str) -> None:
    if assignment.paid_by == PaidBy.RECRUITER:
        return  # the recruiter informs its participants, and pays them
    requester = assignment.hit.requester
    subject = subject[:LONGEST_SUBJECT]
    send_message(requester=requester, worker=assignment.worker, subject=subject, text=text)


def _name(assignment: Assignment) -> str:
    hit = assignment.hit
    return f"“{hit.hit_type.title}” (HIT {hit.public_id}, receipt {assignment.receipt})"


def approve_and_pay(
    *, assignment: Assignment, source: LedgerAccount.Kind, at: datetime, feedback: str = ""
) -> None:
    if assignment.paid_by == PaidBy.LEDGER:
        ledger.pay(assignment=assignment, source=source, at=at)
    assignment.status = Assignment.Status.APPROVED
    assignment.approved_at = assignment.closed_at = at
    assignment.requester_feedback = feedback
    assignment.save(update_fields=["status", "approved_at", "closed_at", "requester_feedback"])
    announce("AssignmentApproved", hit=assignment.hit, assignment=assignment, at=at)


def reject(*, assignment: Assignment, at: datetime, feedback: str) -> None:
    """Reject the assignment and write to its worker; refreshing the HIT releases the hold."""
    assignment.status = Assignment.Status.REJECTED
    assignment.rejected_at = assignment.closed_at = at
    assignment.requester_feedback = feedback
    assignment.save(update_fields=["status", "rejected_at", "closed_at", "requester_feedback"])
    announce("AssignmentRejected", hit=assignment.hit, assignment=assignment, at=at)
    report_rejection(assignment)
