"""Decisions on submitted work: written down first, then sent; none is lost or sent twice."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from hits.costs import cost_of_assignment
from hits.endpoints import translated_errors
from hits.exceptions import FeedbackUnfit, MarketplaceRefused
from hits.foreign_records import assignment_status
from hits.limits import earning, run_time
from hits.models import MOST_PROBLEM, Assignment, AssignmentRecordQuerySet, Batch
from hits.submissions import set_status
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient


Decision, Status = Assignment.Decision, Assignment.Status
APPROVE, REJECT, OVERRIDE = Decision.APPROVE, Decision.REJECT, Decision.OVERRIDE
OUTCOMES = {APPROVE: Status.APPROVED, REJECT: Status.REJECTED, OVERRIDE: Status.APPROVED}
DECIDED_BEFORE, REFUSED, KNOWN = "decided before", "refused", "known"
LONGEST_FEEDBACK = 1024
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def decide(
    *,
    assignments: AssignmentRecordQuerySet,
    decision: Assignment.Decision,
    feedback: str = "",
    decided_by: AbstractBaseUser | None = None,
) -> int:
    """Write down one decision for those that have none; return how many that was."""
    validate_feedback(feedback, is_required=decision == REJECT)
    return assignments.undecided().update(
        decision=decision,
        feedback=feedback,
        decided_by=decided_by.pk if decided_by else None,
        decided_at=timezone.now(),
    )


def override(
    *,
    assignments: AssignmentRecordQuerySet,
    feedback: str = "",
    decided_by: AbstractBaseUser | None = None,
) -> int:
    """Decide that rejected assignments are approved all the same; return how many that was.

    Those submitted more than 30 days ago are left out: the marketplace refuses them.
    """
    validate_feedback(feedback)
    return assignments.overridable().update(
        decision=OVERRIDE,
        feedback=feedback,
        decision_problem="",
        decided_by=decided_by.pk if decided_by else None,
        decided_at=timezone.now(),
    )


def withdraw_refused(*, assignments: AssignmentRecordQuerySet) -> int:
    """Take back decisions that the marketplace refused, so that they can be made anew."""
    refused = assignments.refused().filter(status=Status.SUBMITTED)
    return refused.update(
        decision="", feedback="", decision_problem="", decided_by=None, decided_at=None
    )


def validate_feedback(feedback: str, *, is_required: bool = False) -> None:
    """FeedbackUnfit, where no marketplace takes it."""
    if is_required and not feedback.strip():
        raise FeedbackUnfit(
            _("A rejection needs feedback: say to the worker what was wrong."), code="no_feedback"
        )
    if len(feedback) > LONGEST_FEEDBACK or CONTROL_CHARACTERS.search(feedback):
        raise FeedbackUnfit(
            _("Feedback has at most {n} characters, and no control characters.").format(
                n=LONGEST_FEEDBACK
            ),
            code="feedback_characters",
        )


@dataclass(frozen=True)
class ReviewResult:
    """What one run sent, and the marketplace confirmed."""

    n_approved: int = 0
    n_rejected: int = 0
    n_overridden: int = 0
    n_decided_before: int = 0
    n_paid: int = 0
    paid_usd: Decimal = Decimal(0)
    n_messages: int = 0
    n_blocks: int = 0
    n_appeals_answered: int = 0
    n_refused: int = 0
    rewards_usd: Decimal = Decimal(0)
    """Of what was approved or overridden, with fees; `paid_usd` is of bonuses and parts."""

    def __add__(self, other: ReviewResult) -> ReviewResult:
        mine, theirs = asdict(self), asdict(other)
        return ReviewResult(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        """What was sent, in a sentence; what was not is left out."""
        overridden, paid, messages = self.n_overridden, self.n_paid, self.n_messages
        appeals, blocks, before = self.n_appeals_answered, self.n_blocks, self.n_decided_before
        parts = [
            (self.n_approved, _("{n:,} approved")),
            (self.n_rejected, _("{n:,} rejected")),
            (
                overridden,
                ngettext("{n:,} rejection overridden", "{n:,} rejections overridden", overridden),
            ),
            (paid, ngettext("{n:,} payment, ${usd:.2f}", "{n:,} payments, ${usd:.2f}", paid)),
            (messages, ngettext("{n:,} message", "{n:,} messages", messages)),
            (
                blocks,
                ngettext(
                    "{n:,} worker blocked or unblocked",
                    "{n:,} workers blocked or unblocked",
                    blocks,
                ),
            ),
            (
                appeals,
                ngettext("{n:,} appeal answered", "{n:,} appeals answered", appeals),
            ),
            (
                before,
                ngettext(
                    "{n:,} was decided on the marketplace already",
                    "{n:,} were decided on the marketplace already",
                    before,
                ),
            ),
            (self.n_refused, _("{n:,} refused by the marketplace")),
        ]
        phrases = [text.format(n=count, usd=self.paid_usd) for count, text in parts if count]
        return f"{', '.join(phrases)}." if phrases else _("Nothing was to be sent.")

    def record(self) -> dict[str, Any]:
        amounts = {
            "rewards_usd": self.rewards_usd,
            "paid_usd": self.paid_usd,
            "total_usd": self.rewards_usd + self.paid_usd,
        }
        return asdict(self) | {name: f"{usd:.2f}" for name, usd in amounts.items()}


@run_time()
def send_decisions(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> ReviewResult:
    """Send the decisions that were written down; return how many ended how.

    Processes that send at once each count the decisions that the marketplace took from them.
    """
    counts: Counter[str] = Counter()
    rewards_usd = Decimal(0)
    of_batch = Assignment.objects.of(batch)
    unsent = of_batch.decided_but_unsent() | of_batch.overridden_but_unsent()
    keys = list(unsent.order_by("pk").values_list("pk", flat=True))
    for pk in earning(progress)(keys, len(keys)):
        # Another process may have sent it since.
        assignment = unsent.filter(pk=pk).select_related("hit").first()
        if assignment is not None:
            outcome = _send_decision(client, assignment)
            counts[outcome] += 1
            if outcome in (APPROVE, OVERRIDE):
                size = assignment.hit.max_assignments or batch.max_assignments
                rewards_usd += cost_of_assignment(batch, size)
    return ReviewResult(
        n_approved=counts[APPROVE],
        n_rejected=counts[REJECT],
        n_overridden=counts[OVERRIDE],
        n_decided_before=counts[DECIDED_BEFORE],
        n_refused=counts[REFUSED],
        rewards_usd=rewards_usd,
    )


def _send_decision(client: MTurkClient, assignment: Assignment) -> str:
    decision = Decision(assignment.decision)
    try:
        _send(client, assignment, decision)
    except MarketplaceRefused as refusal:
        if not refusal.is_about_request:
            raise
        if not refusal.has_code("InvalidAssignmentState"):
            return _note_refusal(assignment, advice_on(refusal))
        return _reconcile(client, assignment, refusal)
    # The marketplace takes a decision once: it is this run's, whoever stored it first.
    set_status(assignment=assignment, status=OUTCOMES[decision])
    return decision


def _reconcile(client: MTurkClient, assignment: Assignment, refusal: MarketplaceRefused) -> str:
    """Take over what the marketplace says of an assignment that it will not have decided now."""
    decision, status = Decision(assignment.decision), _status_there(client, assignment)
    if decision == OVERRIDE and status == Status.REJECTED:
        return _note_refusal(assignment, advice_on(refusal))
    if status == Status.SUBMITTED:  # undecided there, and refused for another reason
        return _note_refusal(assignment, refusal.message)
    if not set_status(assignment=assignment, status=status):
        return KNOWN
    # After a lost answer boto3 tried again, and was refused because of its own success.
    is_ours = refusal.is_retried and status == OUTCOMES[decision]
    return decision if is_ours else DECIDED_BEFORE


def _send(client: MTurkClient, assignment: Assignment, decision: Assignment.Decision) -> None:
    arguments = {"AssignmentId": assignment.assignment_id, "RequesterFeedback": assignment.feedback}
    with translated_errors():
        if decision == REJECT:
            client.reject_assignment(**arguments)
        else:
            client.approve_assignment(**arguments, OverrideRejection=decision == OVERRIDE)


def _status_there(client: MTurkClient, assignment: Assignment) -> Assignment.Status:
    """What the marketplace says of an assignment it decided without us, or on an earlier try."""
    with translated_errors():
        answer = client.get_assignment(AssignmentId=assignment.assignment_id)
    return assignment_status(answer["Assignment"])


def _note_refusal(assignment: Assignment, problem: str) -> str:
    Assignment.objects.filter(pk=assignment.pk).update(decision_problem=problem[:MOST_PROBLEM])
    return REFUSED


def advice_on(refusal: MarketplaceRefused) -> str:
    if refusal.has_code("InsufficientFunds"):
        return _("The account has too little money. Add funds to it, then try again.")
    if refusal.has_code("InvalidAssignmentState"):
        return _("Too late: {message}").format(message=refusal.message)
    return refusal.message
