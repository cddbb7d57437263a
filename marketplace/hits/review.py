from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import (
    AssignmentDoesNotExist,
    DuplicateRequest,
    InvalidAssignmentState,
    InvalidParameter,
    RequestRefused,
    first_or_raise,
    require,
)
from marketplace.hits import lifecycle
from marketplace.hits.creation import refuse_repetition
from marketplace.hits.settlement import (
    approve_and_pay,
    reject,
    report_appeal_answer,
    report_bonus,
    report_override,
)
from marketplace.models import (
    Appeal,
    Assignment,
    BonusPayment,
    Hit,
    LedgerAccount,
    Requester,
    WorkerAccount,
)
from marketplace.money import ledger
from marketplace.money.amounts import CENT, fee_schedule

OVERRIDE_WITHIN = timedelta(days=30)
Status = Assignment.Status


@transaction.atomic
def approve_assignment(
    *, requester: Requester, public_id: str, feedback: str, override_rejection: bool
) -> None:
    """Approve submitted work, paid from its hold; with `override_rejection` also rejected work,
    paid from the available balance."""
    now = clock.now()
    assignment, hit = _lock_assignment(requester, public_id, now=now)
    is_overridden = override_rejection and assignment.status == Status.REJECTED
    if is_overridden:
        _check_overridable(assignment, hit, now=now)
        source = LedgerAccount.Kind.AVAILABLE
    else:
        _require(assignment, Status.SUBMITTED)
        source = LedgerAccount.Kind.HELD
    approve_and_pay(assignment=assignment, source=source, at=now, feedback=feedback)
    if is_overridden:
        report_override(assignment)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def reject_assignment(*, requester: Requester, public_id: str, feedback: str) -> None:
    now = clock.now()
    assignment, hit = _lock_assignment(requester, public_id, now=now)
    _require(assignment, Status.SUBMITTED)
    reject(assignment=assignment, at=now, feedback=feedback)
    lifecycle.refresh(hit, now=now)


def find_assignment(requester: Requester, public_id: str) -> Assignment:
    lifecycle.settle_due(
        Hit.objects.of(requester).filter(assignments__public_id=public_id), now=clock.now()
    )
    rows = Assignment.objects.of(requester).filter(public_id=public_id)
    return first_or_raise(rows.select_related("worker", "hit"), AssignmentDoesNotExist(public_id))


def _lock_assignment(
    requester: Requester, public_id: str, *, now: datetime
) -> tuple[Assignment, Hit]:
    rows = Assignment.objects.of(requester).filter(public_id=public_id)
    hit = Hit.objects.locked().get(
        pk=first_or_raise(rows.values_list("hit_id", flat=True), AssignmentDoesNotExist(public_id))
    )
    lifecycle.apply_time(hit, now=now)
    return Assignment.objects.on(hit).select_related("worker").get(public_id=public_id), hit


def _require(assignment: Assignment, status: Status) -> None:
    require(
        assignment.status == status,
        InvalidAssignmentState(f"This operation can be called with a status of: {status.value}"),
    )


def _check_overridable(assignment: Assignment, hit: Hit, *, now: datetime) -> None:
    require(
        assignment.worker.erased_at is None,
        InvalidAssignmentState(
            "The worker had their account erased, and can't be paid.", code="erased_worker"
        ),
    )
    require(
        hit.status != Hit.Status.DISPOSED,
        InvalidAssignmentState("A rejection can't be overridden once its HIT is deleted."),
    )
    if assignment.submitted_at is None or assignment.submitted_at < now - OVERRIDE_WITHIN:
        raise InvalidAssignmentState(
            "A rejection can be overridden within 30 days of the assignment's submission."
        )


# Appeals: a worker says once why a rejection is wrong, and the requester answers.

LONGEST_TEXT = 4096


def is_appealable(assignment: Assignment, *, now: datetime) -> bool:
    if assignment.status != Assignment.Status.REJECTED or hasattr(assignment, "appeal"):
        return False
    return assignment.submitted_at is not None and assignment.submitted_at > now - OVERRIDE_WITHIN


def appeal(*, worker: WorkerAccount, assignment: Assignment, reason: str) -> Appeal:
    now = clock.now()
    require(
        is_appealable(assignment, now=now),
        RequestRefused(
            _("A rejection can be appealed once, within 30 days of submitting the work.")
        ),
    )
    require(
        0 < len(reason.strip()) <= LONGEST_TEXT,
        RequestRefused(_("Say in at most %(n)s characters why.") % {"n": LONGEST_TEXT}),
    )
    try:
        with transaction.atomic():
            return Appeal.objects.create(
                assignment=assignment, reason=reason.strip(), created_at=now
            )
    except IntegrityError as error:
        raise RequestRefused(_("You have appealed already."), code="appealed_already") from error


@transaction.atomic
def answer_appeal(*, requester: Requester, assignment_id: str, answer: str) -> Appeal:
    """Answer an appeal and write to the worker; the same answer again changes nothing."""
    stored = first_or_raise(
        Appeal.objects.filter(
            assignment__hit__requester=requester, assignment__public_id=assignment_id
        ),
        AssignmentDoesNotExist(assignment_id),
    )
    require(
        0 < len(answer.strip()) <= LONGEST_TEXT,
        InvalidParameter(f"'answer' must be a text of 1 to {LONGEST_TEXT} characters."),
    )
    is_new = bool(
        Appeal.objects.filter(pk=stored.pk, answer="").update(
            answer=answer.strip(), answered_at=clock.now()
        )
    )
    stored.refresh_from_db()
    require(
        stored.answer == answer.strip(), InvalidParameter("The appeal has another answer already.")
    )
    if is_new:
        report_appeal_answer(stored)
    return stored


# Paying a worker a bonus.

LARGEST_BONUS_USD = Decimal("10000.00")
# Half a year after the work was handed in, it is too late.
PAYABLE_FOR = timedelta(days=183)


@dataclass(frozen=True)
class Bonus:
    assignment_id: str
    worker_id: str
    amount_usd: Decimal
    reason: str
    token: str | None


def send_bonus(*, requester: Requester, bonus: Bonus) -> BonusPayment:
    """Pay a bonus and its fee; a token never pays twice."""
    # By itself: what time does to the HIT pays others, and a HIT is locked before any money.
    lifecycle.settle_due(
        Hit.objects.of(requester).filter(assignments__public_id=bonus.assignment_id),
        now=clock.now(),
    )
    return _pay(requester, bonus)


@transaction.atomic
def _pay(requester: Requester, bonus: Bonus) -> BonusPayment:
    now, payments = clock.now(), BonusPayment.objects.all()
    repeated = partial(DuplicateRequest, "bonus payment")
    refuse_repetition(payments, requester, bonus.token, repeated)
    require(
        CENT <= bonus.amount_usd <= LARGEST_BONUS_USD,
        InvalidParameter(
            f"BonusAmount must be from ${CENT} to ${LARGEST_BONUS_USD:,}.", code="out_of_range"
        ),
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
        refuse_repetition(payments, requester, bonus.token, repeated)
        raise
    report_bonus(payment)
    return payment


def _find_assignment(requester: Requester, bonus: Bonus) -> Assignment:
    assignment = first_or_raise(
        Assignment.objects.of(requester)
        .filter(public_id=bonus.assignment_id)
        .select_related("worker", "hit__requester", "hit__hit_type"),
        AssignmentDoesNotExist(bonus.assignment_id),
    )
    require(
        assignment.worker.worker_id == bonus.worker_id,
        InvalidParameter(
            f"The assignment {bonus.assignment_id} is not one of the worker {bonus.worker_id}."
        ),
    )
    require(
        assignment.worker.erased_at is None,
        InvalidParameter(
            "The worker had their account erased: no bonus can be paid.", code="erased_worker"
        ),
    )
    require(
        assignment.status in Assignment.HANDED_IN_STATUSES,
        InvalidAssignmentState(
            "This operation can be called with a status of: Submitted,Approved,Rejected"
        ),
    )
    return assignment
