"""Decisions and payments: written down first, then sent; none is lost or sent twice."""

import hashlib
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from hits.calls import amount_usd, assignment_status, listed
from hits.collect import set_status
from hits.costs import CENT, SCHEDULES, cost_of_assignment
from hits.endpoints import MTurkClient, translated_errors
from hits.exceptions import FeedbackUnfit, MarketplaceRefused, PaymentRefused, require
from hits.limits import earning, run_time
from hits.models import (
    MOST_PROBLEM,
    PART,
    Assignment,
    AssignmentRecordQuerySet,
    Batch,
    DeliveryState,
    Payment,
)
from hits.participants import plain_reason, require_unrequested
from presentation.progress import Progress, silently

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
    """Record one decision for the assignments that have none; return how many."""
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
    """Record that rejected assignments are approved all the same; return how many. The
    marketplace refuses this for those submitted more than 30 days ago, so they are left out."""
    validate_feedback(feedback)
    return assignments.overridable().update(
        decision=OVERRIDE,
        feedback=feedback,
        decision_problem="",
        decided_by=decided_by.pk if decided_by else None,
        decided_at=timezone.now(),
    )


def withdraw_refused(*, assignments: AssignmentRecordQuerySet) -> int:
    return (
        assignments.refused()
        .filter(status=Status.SUBMITTED)
        .update(decision="", feedback="", decision_problem="", decided_by=None, decided_at=None)
    )


def validate_feedback(feedback: str, *, is_required: bool = False) -> None:
    require(
        not is_required or feedback.strip(),
        FeedbackUnfit(
            _("A rejection needs feedback: tell the annotator what was wrong."), code="no_feedback"
        ),
    )
    require(
        len(feedback) <= LONGEST_FEEDBACK and not CONTROL_CHARACTERS.search(feedback),
        FeedbackUnfit(
            _("Feedback has at most {n} characters, and no control characters.").format(
                n=LONGEST_FEEDBACK
            ),
            code="feedback_characters",
        ),
    )


@dataclass(frozen=True)
class ReviewResult:
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
    # Of what was approved or overridden, with fees; `paid_usd` is of bonuses and parts.
    rewards_usd: Decimal = Decimal(0)

    def __add__(self, other: Self) -> Self:
        theirs = asdict(other)
        return replace(self, **{name: each + theirs[name] for name, each in vars(self).items()})

    def __str__(self) -> str:
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
                    "{n:,} annotator blocked or unblocked",
                    "{n:,} annotators blocked or unblocked",
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
    # Processes that send at once each count the decisions that the marketplace took from them.
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
                rewards_usd += cost_of_assignment(
                    batch, assignment.hit.max_assignments or batch.max_assignments
                )
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


LARGEST_USD = Decimal("10000.00")
LONGEST_REASON = 4096
CONFIRMED = DeliveryState.CONFIRMED


def bonus_purpose(reason: str) -> str:
    return f"bonus:{hashlib.sha256(plain_reason(reason).encode()).hexdigest()[:24]}"


def validate_bonus(amount_usd: Decimal, reason: str) -> None:
    require(
        CENT <= amount_usd <= LARGEST_USD and amount_usd == amount_usd.quantize(CENT),
        PaymentRefused(
            _("A payment is from $0.01 to ${most:,}, in whole cents.").format(most=LARGEST_USD),
            code="amount",
        ),
    )
    require(
        reason.strip(),
        PaymentRefused(_("A payment needs a reason, which the annotator reads."), code="no_reason"),
    )
    require(
        len(reason) <= LONGEST_REASON and not CONTROL_CHARACTERS.search(reason),
        PaymentRefused(
            _("A reason has at most {n} characters, and no control characters.").format(
                n=LONGEST_REASON
            ),
            code="reason_characters",
        ),
    )


def validate_part(assignment: Assignment, amount_usd: Decimal, reason: str) -> None:
    validate_bonus(amount_usd, reason)
    reward_usd = assignment.hit.batch.reward_usd
    require(
        amount_usd < reward_usd,
        PaymentRefused(
            _("A part is less than the reward of ${reward}. To pay all of it, approve.").format(
                reward=reward_usd
            ),
            code="part_too_large",
        ),
    )


def bonus_fee_usd(assignment: Assignment, amount_usd: Decimal) -> Decimal:
    return SCHEDULES[assignment.hit.batch.connection.fees].bonus_fee_usd(amount_usd)


@transaction.atomic
def request_payment(
    *,
    assignment: Assignment,
    purpose: str,
    amount_usd: Decimal,
    reason: str,
    requested_by: AbstractBaseUser | None = None,
) -> Payment | None:
    """Return None if the same payment was requested before. One that the marketplace refused is
    requested again: no money was sent."""
    if purpose == PART:
        validate_part(assignment, amount_usd, reason)
    else:
        validate_bonus(amount_usd, reason)
        require_unrequested(assignment, reason)
    fields = {
        "amount_usd": amount_usd,
        "fee_usd": bonus_fee_usd(assignment, amount_usd),
        "reason": reason.strip(),
        "requested_by_id": requested_by.pk if requested_by else None,
    }
    payment, is_new = Payment.objects.get_or_create(
        assignment=assignment, purpose=purpose, defaults=fields
    )
    if is_new:
        return payment
    is_again = Payment.objects.filter(pk=payment.pk, state=REFUSED).update(
        **fields, state=DeliveryState.INTENDED, problem=""
    )
    return Payment.objects.get(pk=payment.pk) if is_again else None


@run_time()
def send_payments(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> ReviewResult:
    """Pay what was written down for a batch. A part of a reward waits until the rejection is
    confirmed. Processes that send at once pay once, and each reports its own payments."""
    unsent = Payment.objects.unsent().filter(assignment__hit__batch=batch)
    counts: Counter[str] = Counter()
    paid_usd = Decimal(0)
    keys = list(unsent.values_list("pk", flat=True))
    for pk in earning(progress)(keys, len(keys)):
        payment = unsent.filter(pk=pk).select_related("assignment__worker").first()
        if payment is not None:
            outcome = _send_payment(client, payment)
            counts[outcome] += 1
            paid_usd += payment.amount_usd + payment.fee_usd if outcome == CONFIRMED else 0
    return ReviewResult(n_paid=counts[CONFIRMED], paid_usd=paid_usd, n_refused=counts[REFUSED])


def _send_payment(client: MTurkClient, payment: Payment) -> str:
    if payment.purpose == PART and payment.assignment.status != Assignment.Status.REJECTED:
        return _settle_part(payment)
    is_first = _is_first_attempt(payment)
    if not Payment.objects.unsent().filter(pk=payment.pk).exists():
        return ""  # its worker took the answer back meanwhile, or it was settled
    if not is_first and _is_paid_there(client, payment):
        return _confirm(payment)
    try:
        _send_bonus(client, payment)
    except MarketplaceRefused as refusal:
        if not refusal.is_about_request:
            raise
        # Of its own success, after a lost answer or another process's, it may be refused too.
        if refusal.has_code("DuplicateRequest") or _is_paid_there(client, payment):
            return _confirm(payment)
        return _refuse(payment, advice_on(refusal))
    return _confirm(payment)


def _is_first_attempt(payment: Payment) -> bool:
    # An earlier attempt may have paid without an answer.
    return bool(
        Payment.objects.filter(pk=payment.pk, first_sent_at=None).update(
            first_sent_at=timezone.now()
        )
    )


def _send_bonus(client: MTurkClient, payment: Payment) -> None:
    with translated_errors():
        client.send_bonus(
            WorkerId=payment.assignment.worker.worker_id,
            AssignmentId=payment.assignment.assignment_id,
            BonusAmount=f"{payment.amount_usd:.2f}",
            Reason=payment.reason,
            UniqueRequestToken=payment.unique_request_token,
        )


def _is_paid_there(client: MTurkClient, payment: Payment) -> bool:
    n_known = (
        Payment.objects.filter(
            assignment=payment.assignment_id,
            amount_usd=payment.amount_usd,
            reason=payment.reason,
            state=CONFIRMED,
        )
        .exclude(pk=payment.pk)
        .count()
    )
    n_there = sum(
        amount_usd(bonus["BonusAmount"], "BonusAmount") == payment.amount_usd
        and plain_reason(bonus["Reason"]) == plain_reason(payment.reason)
        for bonus in listed(
            client,
            "list_bonus_payments",
            "BonusPayments",
            AssignmentId=payment.assignment.assignment_id,
        )
    )
    return n_there > n_known


def _settle_part(payment: Payment) -> str:
    # A part is only for rejected work: what was approved meanwhile has its whole reward.
    if payment.assignment.status == Assignment.Status.SUBMITTED:
        return DeliveryState.INTENDED
    return _refuse(payment, _("The assignment was approved: its whole reward is paid."))


def _confirm(payment: Payment) -> str:
    is_ours = (
        Payment.objects.unsent()
        .filter(pk=payment.pk)
        .update(state=CONFIRMED, problem="", confirmed_at=timezone.now())
    )
    return CONFIRMED if is_ours else ""


def _refuse(payment: Payment, problem: str) -> str:
    is_ours = Payment.objects.unsent().filter(pk=payment.pk).update(state=REFUSED, problem=problem)
    return REFUSED if is_ours else ""
