"""What becomes of a participant's assignment when the participation ends before its work, or
the work comes after the participation."""

from django.db import transaction

from marketplace import clock
from marketplace.hits import lifecycle
from marketplace.hits.assignments import hand_in_locked, lock_assignment
from marketplace.hits.holds import count_assignments
from marketplace.identifiers import is_entity_id
from marketplace.models import Assignment, AssignmentDraft, Hit, HitType, PaidBy, SurplusAnswer
from marketplace.notifications.events import announce

Status = Assignment.Status
HANDED_IN = Assignment.HANDED_IN_STATUSES
EVENTS = {Status.RETURNED: "AssignmentReturned", Status.ABANDONED: "AssignmentAbandoned"}


@transaction.atomic
def give_up(*, public_id: str, status: str) -> None:
    """Free an assignment that is worked on. Its draft stays with one that ran out of time."""
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    if assignment.status != Status.ACCEPTED:
        return
    assignment.status = status
    assignment.closed_at = now
    assignment.save(update_fields=["status", "closed_at"])
    if status == Status.RETURNED:
        AssignmentDraft.objects.filter(assignment=assignment).delete()
    announce(EVENTS[Status(status)], hit=hit, assignment=assignment, at=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def withdraw(*, public_id: str, is_decided_too: bool = False) -> None:
    """Take handed-in work back, on its author's wish: the answer is deleted, the HIT is free. Of
    work that a recruiter was to pay for `is_decided_too` takes what was decided on, too: no money
    has moved for it here."""
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    is_paid_here = assignment.paid_by == PaidBy.LEDGER
    takes_decided = is_decided_too and not is_paid_here
    if assignment.status not in (HANDED_IN if takes_decided else (Status.SUBMITTED,)):
        return
    assignment.status = Status.RETURNED
    assignment.answer = ""
    assignment.submitted_at = assignment.auto_approval_at = None
    assignment.approved_at = assignment.rejected_at = None
    assignment.closed_at = assignment.withdrawn_at = now
    assignment.save()
    announce("AssignmentReturned", hit=hit, assignment=assignment, at=now)
    lifecycle.refresh(hit, now=now)


@transaction.atomic
def take_late_answer(*, public_id: str, answer: str | None) -> Assignment | None:
    """Keep work that comes after its time: as the assignment's own where its HIT still wants
    one, and beside it where another has taken the place. None where it is not to be kept."""
    if answer is None or not is_entity_id(public_id):
        return None
    now = clock.now()
    assignment, hit = lock_assignment(public_id, now=now)
    if assignment.status != Status.ABANDONED or assignment.paid_by != PaidBy.RECRUITER:
        return None
    tally = count_assignments(hit, worker=assignment.worker)
    has_room = tally.taken < hit.max_assignments and hit.status != Hit.Status.DISPOSED
    if has_room and tally.own_status is None:
        hand_in_locked(assignment, hit, answer, now=now)
    else:
        values = {"answer": answer, "received_at": now}
        SurplusAnswer.objects.get_or_create(assignment=assignment, defaults=values)
    return assignment


# Who pays for a HIT type: the requester's balance here, until it is handed to a recruiter.


@transaction.atomic
def let_recruiter_pay(hit_type: HitType) -> None:
    """From now on a recruiter pays for this HIT type. What is held for its HITs is the requester's
    again, but for assignments that workers of the marketplace hold already: those are paid here,
    as it was promised. There is no way back."""
    hits = Hit.objects.in_group(hit_type).order_by("pk")
    list(hits.locked().values_list("pk", flat=True))  # before the type: who creates HITs holds it
    HitType.objects.filter(pk=hit_type.pk).update(paid_by=PaidBy.RECRUITER)
    hit_type.paid_by = PaidBy.RECRUITER
    now = clock.now()
    for hit in Hit.objects.in_group(hit_type).order_by("pk").locked():
        hit.hit_type = hit_type
        lifecycle.apply_time(hit, now=now)
        lifecycle.refresh(hit, now=now)
