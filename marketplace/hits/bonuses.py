"""Paying a worker a bonus."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.exceptions import (
    AssignmentDoesNotExist,
    DuplicateRequest,
    InvalidAssignmentState,
    InvalidParameter,
)
from marketplace.hits import lifecycle
from marketplace.hits.worker_messages import report_bonus
from marketplace.models import Assignment, BonusPayment, Hit, Requester
from marketplace.money import ledger
from marketplace.money.fees import CENT, fee_schedule

LARGEST_BONUS_USD = Decimal("10000.00")
# Half a year after the work was handed in, it is too late.
PAYABLE_FOR = timedelta(days=183)


@dataclass(frozen=True)
class Bonus:
    """What a requester asks for."""

    assignment_id: str
    worker_id: str
    amount_usd: Decimal
    reason: str
    token: str | None


def send_bonus(*, requester: Requester, bonus: Bonus) -> BonusPayment:
    """Pay a bonus and the fee on it; the same token never pays twice."""
    # By itself: what time does to the HIT pays others, and a HIT is locked before any money.
    hits = Hit.objects.of(requester).filter(assignments__public_id=bonus.assignment_id)
    lifecycle.settle_due(hits, now=clock.now())
    return _pay(requester, bonus)


@transaction.atomic
def _pay(requester: Requester, bonus: Bonus) -> BonusPayment:
    now = clock.now()
    _refuse_repetition(requester, bonus.token)
    if not CENT <= bonus.amount_usd <= LARGEST_BONUS_USD:
        raise InvalidParameter(
            f"BonusAmount must be from ${CENT} to ${LARGEST_BONUS_USD:,}.", code="out_of_range"
        )
    assignment = _find_assignment(requester, bonus)
    if assignment.submitted_at is None or assignment.submitted_at < now - PAYABLE_FOR:
        raise InvalidParameter(
            "A bonus can be paid within 183 days of the assignment's submission.", code="too_late"
        )
    fee_usd = fee_schedule().per_bonus(bonus.amount_usd)
    movement = ledger.pay_bonus(
        assignment=assignment, amount_usd=bonus.amount_usd, fee_usd=fee_usd, at=now
    )
    payment = BonusPayment(
        requester=requester,
        assignment=assignment,
        amount_usd=bonus.amount_usd,
        fee_usd=fee_usd,
        reason=bonus.reason,
        unique_request_token=bonus.token,
        transaction=movement,
        created_at=now,
    )
    try:
        with transaction.atomic():
            payment.save(force_insert=True)
    except IntegrityError:
        # The same token came in on another connection at the same moment.
        _refuse_repetition(requester, bonus.token)
        raise
    report_bonus(payment)
    return payment


def _find_assignment(requester: Requester, bonus: Bonus) -> Assignment:
    rows = Assignment.objects.of(requester).filter(public_id=bonus.assignment_id)
    assignment = rows.select_related("worker", "hit__requester", "hit__hit_type").first()
    if assignment is None:
        raise AssignmentDoesNotExist(bonus.assignment_id)
    if assignment.worker.worker_id != bonus.worker_id:
        raise InvalidParameter(
            f"The assignment {bonus.assignment_id} is not one of the worker {bonus.worker_id}."
        )
    if assignment.worker.erased_at is not None:
        raise InvalidParameter(
            "The worker had their account erased: no bonus can be paid.", code="erased_worker"
        )
    if assignment.status not in Assignment.HANDED_IN_STATUSES:
        raise InvalidAssignmentState(
            "This operation can be called with a status of: Submitted,Approved,Rejected"
        )
    return assignment


def _refuse_repetition(requester: Requester, token: str | None) -> None:
    if token is None:
        return
    earlier = BonusPayment.objects.filter(requester=requester, unique_request_token=token).first()
    if earlier is not None:
        raise DuplicateRequest("bonus payment", earlier.public_id)
