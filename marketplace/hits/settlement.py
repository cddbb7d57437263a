"""Approving and rejecting an assignment, whoever decides it: its requester, time, or a
review policy. The caller holds the lock on its HIT, and refreshes the HIT afterwards."""

from datetime import datetime

from marketplace.hits.worker_messages import report_rejection
from marketplace.models import Assignment, LedgerAccount, PaidBy
from marketplace.money import ledger
from marketplace.notifications.events import announce


def approve_and_pay(
    *, assignment: Assignment, source: LedgerAccount.Kind, at: datetime, feedback: str = ""
) -> None:
    """Mark the assignment approved and move the money, where it is paid here."""
    if assignment.paid_by == PaidBy.LEDGER:
        ledger.pay(assignment=assignment, source=source, at=at)
    assignment.status = Assignment.Status.APPROVED
    assignment.approved_at = assignment.closed_at = at
    assignment.requester_feedback = feedback
    assignment.save(update_fields=["status", "approved_at", "closed_at", "requester_feedback"])
    announce("AssignmentApproved", hit=assignment.hit, assignment=assignment, at=at)


def reject(*, assignment: Assignment, at: datetime, feedback: str) -> None:
    """Mark the assignment rejected, and write to its worker; refreshing the HIT releases what
    was held for it."""
    assignment.status = Assignment.Status.REJECTED
    assignment.rejected_at = assignment.closed_at = at
    assignment.requester_feedback = feedback
    assignment.save(update_fields=["status", "rejected_at", "closed_at", "requester_feedback"])
    announce("AssignmentRejected", hit=assignment.hit, assignment=assignment, at=at)
    report_rejection(assignment)
