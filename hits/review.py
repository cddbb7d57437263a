"""Decisions on submitted work: written down first, then sent; none is lost or sent twice."""

from __future__ import annotations

import re
from collections import Counter
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


def send_decisions(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> Counter[Assignment.Status]:
    """Send the decisions that were written down; return how many ended in which status."""
    ended: Counter[Assignment.Status] = Counter()
    waiting = list(Assignment.objects.of(batch).decided_but_unsent())
    for assignment in progress(waiting, len(waiting)):
        decision = Assignment.Decision(assignment.decision)
        try:
            _send(client, assignment, decision)
            status = OUTCOMES[decision]
        except MarketplaceRefused as refusal:
            if not refusal.says("InvalidAssignmentState"):
                raise
            status = _status_there(client, assignment)
        set_status(assignment=assignment, status=status)
        ended[status] += 1
    return ended


def _send(client: MTurkClient, assignment: Assignment, decision: Assignment.Decision) -> None:
    with translated_errors():
        send = client.approve_assignment if decision == APPROVE else client.reject_assignment
        send(AssignmentId=assignment.assignment_id, RequesterFeedback=assignment.feedback)


def _status_there(client: MTurkClient, assignment: Assignment) -> Assignment.Status:
    """What the marketplace says of an assignment it decided without us, or on an earlier try."""
    with translated_errors():
        answer = client.get_assignment(AssignmentId=assignment.assignment_id)
    return Assignment.Status(answer["Assignment"]["AssignmentStatus"])
