"""Decisions on submitted work: written down first, then sent; none is lost or sent twice."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hits.collect import set_status
from hits.endpoints import translated_errors
from hits.exceptions import FeedbackUnfit, MarketplaceRefused
from hits.models import Assignment, AssignmentRecordQuerySet, Batch
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

APPROVE, REJECT = Assignment.Decision.APPROVE, Assignment.Decision.REJECT
OUTCOMES = {APPROVE: Assignment.Status.APPROVED, REJECT: Assignment.Status.REJECTED}
DECIDED_BEFORE = "decided before"
LONGEST_FEEDBACK = 1024
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def decide(
    *, assignments: AssignmentRecordQuerySet, decision: Assignment.Decision, feedback: str = ""
) -> int:
    """Write down one decision for those that have none; return how many that was."""
    if decision == REJECT and not feedback.strip():
        raise FeedbackUnfit("A rejection needs feedback: say to the worker what was wrong.")
    if len(feedback) > LONGEST_FEEDBACK or CONTROL_CHARACTERS.search(feedback):
        raise FeedbackUnfit(
            f"Feedback has at most {LONGEST_FEEDBACK} characters, and no control characters."
        )
    return assignments.undecided().update(decision=decision, feedback=feedback)


@dataclass(frozen=True)
class Decided:
    """What one run did: the decisions it sent. Those made without it are counted apart."""

    n_approved: int = 0
    n_rejected: int = 0
    n_decided_before: int = 0

    def __str__(self) -> str:
        counts = f"{self.n_approved} assignments approved"
        if self.n_rejected:
            counts += f", {self.n_rejected} rejected as was decided before"
        if self.n_decided_before:
            counts += f", {self.n_decided_before} had been decided on the marketplace already"
        return f"{counts}."


def send_decisions(*, batch: Batch, client: MTurkClient, progress: Progress = silently) -> Decided:
    """Send the decisions that were written down; return how many ended how."""
    counts: Counter[str] = Counter()
    waiting = list(Assignment.objects.of(batch).decided_but_unsent().values_list("pk", flat=True))
    for pk in progress(waiting, len(waiting)):
        # Another process may have sent it since.
        assignment = Assignment.objects.decided_but_unsent().filter(pk=pk).first()
        if assignment is not None:
            counts[_send_decision(client, assignment)] += 1
    return Decided(
        n_approved=counts[Assignment.Status.APPROVED],
        n_rejected=counts[Assignment.Status.REJECTED],
        n_decided_before=counts[DECIDED_BEFORE],
    )


def _send_decision(client: MTurkClient, assignment: Assignment) -> str:
    """The status that this run gave the assignment, or what happened to it instead."""
    decision = Assignment.Decision(assignment.decision)
    try:
        _send(client, assignment, decision)
    except MarketplaceRefused as refusal:
        if not refusal.says("InvalidAssignmentState"):
            raise
        status = _status_there(client, assignment)
        set_status(assignment=assignment, status=status)
        # After a lost answer boto3 tried again, and was refused because of its own success.
        is_ours = refusal.is_retried and status == OUTCOMES[decision]
        return status if is_ours else DECIDED_BEFORE
    set_status(assignment=assignment, status=OUTCOMES[decision])
    return OUTCOMES[decision]


def _send(client: MTurkClient, assignment: Assignment, decision: Assignment.Decision) -> None:
    with translated_errors():
        send = client.approve_assignment if decision == APPROVE else client.reject_assignment
        send(AssignmentId=assignment.assignment_id, RequesterFeedback=assignment.feedback)


def _status_there(client: MTurkClient, assignment: Assignment) -> Assignment.Status:
    """What the marketplace says of an assignment it decided without us, or on an earlier try."""
    with translated_errors():
        answer = client.get_assignment(AssignmentId=assignment.assignment_id)
    return Assignment.Status(answer["Assignment"]["AssignmentStatus"])
