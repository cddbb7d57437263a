"""Bonuses and parts of rewards: written down first, then paid, each at most once ever."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from hits.calls import listed
from hits.costs import CENT, SCHEDULES
from hits.decisions import CONTROL_CHARACTERS, ReviewResult, advice_on
from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceRefused, PaymentRefused
from hits.foreign_records import amount_usd
from hits.limits import earning, run_time
from hits.models import PART, Assignment, Batch, DeliveryState, Payment
from hits.participant_bonuses import plain_reason, require_unrequested
from hits.recruiter_api import RefusedBonus
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

LARGEST_USD = Decimal("10000.00")
LONGEST_REASON = 4096
CONFIRMED, REFUSED = DeliveryState.CONFIRMED, DeliveryState.REFUSED


def bonus_purpose(reason: str) -> str:
    """The same for the same reason, so that one assignment gets one bonus for it, whoever asks."""
    return f"bonus:{hashlib.sha256(plain_reason(reason).encode()).hexdigest()[:24]}"


def validate_bonus(amount_usd: Decimal, reason: str) -> None:
    """PaymentRefused, where no marketplace pays this."""
    if not CENT <= amount_usd <= LARGEST_USD or amount_usd != amount_usd.quantize(CENT):
        raise PaymentRefused(
            _("A payment is from $0.01 to ${most:,}, in whole cents.").format(most=LARGEST_USD),
            code="amount",
        )
    if not reason.strip():
        raise PaymentRefused(
            _("A payment needs a reason, which the worker reads."), code="no_reason"
        )
    if len(reason) > LONGEST_REASON or CONTROL_CHARACTERS.search(reason):
        raise PaymentRefused(
            _("A reason has at most {n} characters, and no control characters.").format(
                n=LONGEST_REASON
            ),
            code="reason_characters",
        )


def validate_part(assignment: Assignment, amount_usd: Decimal, reason: str) -> None:
    """PaymentRefused, where this is no part of the assignment's reward."""
    validate_bonus(amount_usd, reason)
    reward_usd = assignment.hit.batch.reward_usd
    if amount_usd >= reward_usd:
        raise PaymentRefused(
            _("A part is less than the reward of ${reward}. To pay all of it, approve.").format(
                reward=reward_usd
            ),
            code="part_too_large",
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
    """Write down a payment to be sent; None where the same one stands already.

    One that the marketplace refused is requested anew: no money went.
    """
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
    refusals = Payment.objects.filter(pk=payment.pk, state=REFUSED)
    is_again = refusals.update(**fields, state=DeliveryState.INTENDED, problem="")
    return Payment.objects.get(pk=payment.pk) if is_again else None


@run_time()
def send_payments(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> ReviewResult:
    """Pay what was written down for a batch's assignments.

    A part of a reward waits until the rejection is confirmed. Processes that send at once pay
    once, and each reports what it alone came to know.
    """
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
    """Where the payment is now, if this run brought it there."""
    if payment.purpose == PART and payment.assignment.status != Assignment.Status.REJECTED:
        return _settle_part(payment)
    is_first = _is_first_attempt(payment)
    if not Payment.objects.unsent().filter(pk=payment.pk).exists():
        return ""  # its worker took the answer back meanwhile, or it was settled
    if not is_first and _is_paid_there(client, payment):
        return _confirm(payment)
    try:
        _send(client, payment)
    except MarketplaceRefused as refusal:
        if not refusal.is_about_request:
            raise
        # Of its own success, after a lost answer or another process's, it may be refused too.
        if refusal.has_code("DuplicateRequest") or _is_paid_there(client, payment):
            return _confirm(payment)
        return _refuse(payment, advice_on(refusal))
    return _confirm(payment)


def note_refused_payments(
    batch: Batch, bonuses: Collection[RefusedBonus], *, asked_at: datetime
) -> None:
    """Of a batch's bonuses that its marketplace took, note those that the participants' recruiter
    had refused when that was asked, as for want of money: they can be requested anew."""
    refused = {one.request_token: one.problem for one in bonuses}
    if not refused:
        return
    workers = {one.worker_id for one in bonuses}
    # One that was asked for again meanwhile is another matter.
    rows = Payment.objects.filter(assignment__hit__batch=batch, state=CONFIRMED)
    rows = rows.filter(confirmed_at__lt=asked_at)
    for payment in rows.filter(assignment__worker__worker_id__in=workers):
        if (problem := refused.get(payment.unique_request_token)) is not None:
            same = rows.filter(pk=payment.pk)
            same.update(state=REFUSED, problem=problem, confirmed_at=None)


def _is_first_attempt(payment: Payment) -> bool:
    """Whether nobody has tried before: whose tries may have gone through unheard."""
    rows = Payment.objects.filter(pk=payment.pk, first_sent_at=None)
    return bool(rows.update(first_sent_at=timezone.now()))


def _send(client: MTurkClient, payment: Payment) -> None:
    with translated_errors():
        client.send_bonus(
            WorkerId=payment.assignment.worker.worker_id,
            AssignmentId=payment.assignment.assignment_id,
            BonusAmount=f"{payment.amount_usd:.2f}",
            Reason=payment.reason,
            UniqueRequestToken=payment.unique_request_token,
        )


def _is_paid_there(client: MTurkClient, payment: Payment) -> bool:
    """Whether the marketplace lists one more payment like this than we know to be others."""
    same = Payment.objects.filter(
        assignment=payment.assignment_id, amount_usd=payment.amount_usd, reason=payment.reason
    )
    n_known = same.filter(state=CONFIRMED).exclude(pk=payment.pk).count()
    bonuses = listed(
        client,
        "list_bonus_payments",
        "BonusPayments",
        AssignmentId=payment.assignment.assignment_id,
    )
    n_there = sum(
        amount_usd(bonus["BonusAmount"], "BonusAmount") == payment.amount_usd
        and plain_reason(bonus["Reason"]) == plain_reason(payment.reason)
        for bonus in bonuses
    )
    return n_there > n_known


def _settle_part(payment: Payment) -> str:
    """A part is for rejected work alone: what was approved meanwhile has its whole reward."""
    if payment.assignment.status == Assignment.Status.SUBMITTED:
        return DeliveryState.INTENDED
    return _refuse(payment, _("The assignment was approved: its whole reward is paid."))


def _confirm(payment: Payment) -> str:
    rows = Payment.objects.unsent().filter(pk=payment.pk)
    is_ours = rows.update(state=CONFIRMED, problem="", confirmed_at=timezone.now())
    return CONFIRMED if is_ours else ""


def _refuse(payment: Payment, problem: str) -> str:
    is_ours = Payment.objects.unsent().filter(pk=payment.pk).update(state=REFUSED, problem=problem)
    return REFUSED if is_ours else ""
