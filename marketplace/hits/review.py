"""What a requester decides about submitted work."""

from datetime import datetime, timedelta

from django.db import transaction

from marketplace import clock
from marketplace.exceptions import AssignmentDoesNotExist, InvalidAssignmentState
from marketplace.hits import lifecycle
from marketplace.hits.settlement import approve_and_pay, reject
from marketplace.hits.worker_messages import report_override
from marketplace.models import Assignment, Hit, LedgerAccount, Requester

OVERRIDE_WITHIN = timedelta(days=30)
Status = Assignment.Status


@transaction.atomic
def approve_assignment(
    *, requester: Requester, public_id: str, feedback: str, override_rejection: bool
) -> None:
    """Approve submitted work and pay it from its hold; with `override_rejection`
    approve rejected work and pay it from the available balance."""
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
    """Reject submitted work; what was held for it is the requester's again."""
    now = clock.now()
    assignment, hit = _lock_assignment(requester, public_id, now=now)
    _require(assignment, Status.SUBMITTED)
    reject(assignment=assignment, at=now, feedback=feedback)
    lifecycle.refresh(hit, now=now)


def find_assignment(requester: Requester, public_id: str) -> Assignment:
    """The requester's assignment of this id, up to date, whatever its status."""
    now = clock.now()
    hits = Hit.objects.of(requester).filter(assignments__public_id=public_id)
    lifecycle.settle_due(hits, now=now)
    rows = Assignment.objects.of(requester).filter(public_id=public_id)
    assignment = rows.select_related("worker", "hit").first()
    if assignment is None:
        raise AssignmentDoesNotExist(public_id)
    return assignment


def _lock_assignment(
    requester: Requester, public_id: str, *, now: datetime
) -> tuple[Assignment, Hit]:
    """The assignment as it is once its HIT's lock is held."""
    rows = Assignment.objects.of(requester).filter(public_id=public_id)
    key = rows.values_list("hit_id", flat=True).first()
    if key is None:
        raise AssignmentDoesNotExist(public_id)
    hit = Hit.objects.locked().get(pk=key)
    lifecycle.apply_time(hit, now=now)
    assignment = Assignment.objects.on(hit).select_related("worker").get(public_id=public_id)
    return assignment, hit


def _require(assignment: Assignment, status: Status) -> None:
    if assignment.status != status:
        raise InvalidAssignmentState(
            f"This operation can be called with a status of: {status.value}"
        )


def _check_overridable(assignment: Assignment, hit: Hit, *, now: datetime) -> None:
    if assignment.worker.erased_at is not None:
        raise InvalidAssignmentState(
            "The worker had their account erased, and can't be paid.", code="erased_worker"
        )
    if hit.status == Hit.Status.DISPOSED:
        raise InvalidAssignmentState("A rejection can't be overridden once its HIT is deleted.")
    if assignment.submitted_at is None or assignment.submitted_at < now - OVERRIDE_WITHIN:
        raise InvalidAssignmentState(
            "A rejection can be overridden within 30 days of the assignment's submission."
        )
