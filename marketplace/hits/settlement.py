"""Approving and rejecting an assignment, whoever decides it: its requester, time, or a
review policy. The caller holds the lock on its HIT, and refreshes the HIT afterwards."""

from datetime import datetime

from marketplace.models import Appeal, Assignment, BonusPayment, LedgerAccount, PaidBy
from marketplace.money import ledger
from marketplace.notifications.events import announce
from marketplace.people.messages import send_message

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
    """Approve the assignment and, if it is paid here, move the money."""
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
