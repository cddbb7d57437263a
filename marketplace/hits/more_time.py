"""More time: a worker adds to the time allotted, once an assignment, as the requester allows."""

from datetime import timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import NoMoreTime
from marketplace.hits import lifecycle
from marketplace.hits.assignments import lock_assignment, require_accepted
from marketplace.models import Assignment, PaidBy


def offered_seconds(assignment: Assignment) -> int:
    """How much time the worker may add now; 0 where it is none, was taken already, or
    is the recruiter's to give."""
    if assignment.extended_at is not None or assignment.paid_by == PaidBy.RECRUITER:
        return 0
    hit_type = assignment.hit.hit_type
    percent = hit_type.requester.more_time_percent
    return hit_type.assignment_duration_seconds * percent // 100


@transaction.atomic
def add_time(*, assignment: Assignment) -> Assignment:
    """Put the assignment's deadline off, once."""
    now = clock.now()
    assignment, hit = lock_assignment(assignment.public_id, now=now)
    require_accepted(assignment)
    seconds = offered_seconds(assignment)
    if not seconds:
        raise NoMoreTime(_("More time can be had once, and where the requester allows it."))
    assignment.deadline += timedelta(seconds=seconds)
    assignment.extended_at = now
    assignment.save(update_fields=["deadline", "extended_at"])
    lifecycle.refresh(hit, now=now, is_hold_right=True)
    return assignment
