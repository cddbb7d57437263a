"""What time does to HITs, all of it, and the HIT's status that follows.

    assignment accepted  --deadline-->          abandoned, another worker may take it
    assignment submitted --auto-approval-->     approved and paid
    HIT                  --expiration-->        nobody can accept it, its hold is released
    HIT becomes reviewable                      its review policy is applied, once each time
    HIT reviewable       --120 quiet days-->    disposed

`Hit.next_transition_at` says when the next of these is due. Whoever changes a
HIT takes its lock, calls `apply_time` first and `refresh` last; whoever only
reads calls `settle_due` on what it is about to read. So a HIT's status is right
even where no sweep ever runs, but for more HITs than a request settles.
"""

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction

from marketplace.hits.policies import review_hit
from marketplace.hits.settlement import (
    Tally,
    approve_and_pay,
    count_assignments,
    hold_what_is_promised,
)
from marketplace.models import Assignment, Hit, HitQuerySet, LedgerAccount
from marketplace.notifications.events import announce

DISPOSAL_AFTER = timedelta(days=120)
# What one request settles: after a long absence the sweep does the rest, and no page waits for it.
MOST_IN_A_REQUEST = 200
logger = logging.getLogger(__name__)


def sweep(now: datetime) -> int:
    """Settle all HITs that are due; return how many. A HIT that cannot be settled is logged and
    skipped."""
    n_settled = 0
    for key in _due_keys(Hit.objects.all(), now):
        try:
            _settle(key, now=now)
            n_settled += 1
        except DatabaseError:
            raise
        except Exception:
            logger.exception("HIT %s could not be settled", key)
    return n_settled


def settle_due(hits: HitQuerySet, *, now: datetime, limit: int = MOST_IN_A_REQUEST) -> int:
    keys = _due_keys(hits, now, limit)
    for key in keys:
        _settle(key, now=now)
    return len(keys)


def _due_keys(hits: HitQuerySet, now: datetime, limit: int | None = None) -> list[int]:
    return list(hits.due(now).order_by("next_transition_at").values_list("pk", flat=True)[:limit])


def is_due(hit: Hit, *, now: datetime) -> bool:
    return hit.next_transition_at is not None and hit.next_transition_at <= now


def apply_time(hit: Hit, *, now: datetime) -> None:
    if not is_due(hit, now=now):
        return
    _abandon_overdue(hit, now=now)
    _approve_overdue(hit, now=now)
    refresh(hit, now=now)


def begin(hit: Hit, *, now: datetime) -> None:
    hit.accepted_count = hit.submitted_count = hit.decided_count = 0
    hit.status = _status(hit, Tally(), now=now)
    hit.next_transition_at = _next_transition(hit, Tally(), now=now)


def refresh(
    hit: Hit, *, now: datetime, tally: Tally | None = None, is_hold_right: bool = False
) -> None:
    """Derive a locked HIT's status, hold and next date from its assignments. Pass `tally` if they
    are counted already, `is_hold_right` if the hold stays."""
    before = hit.status
    tally = tally or count_assignments(hit)
    if hit.expired_at is None and hit.expiration <= now:
        hit.expired_at = hit.expiration
        announce("HITExpired", hit=hit, at=hit.expiration)
    hit.status = _status(hit, tally, now=now)
    hit.next_transition_at = _next_transition(hit, tally, now=now)
    hit.save(update_fields=["status", "next_transition_at", "expired_at"])
    if not is_hold_right:
        hold_what_is_promised(hit, now=now, tally=tally)
    if hit.status == before:
        return
    if hit.status == Hit.Status.DISPOSED:
        announce("HITDisposed", hit=hit, at=now)
    if hit.status == Hit.Status.REVIEWABLE and before != Hit.Status.REVIEWING:
        announce("HITReviewable", hit=hit, at=now)
        if review_hit(hit, now=now):
            refresh(hit, now=now)  # what the policy did may have opened the HIT again


def dispose(hit: Hit, *, now: datetime) -> None:
    hit.save_values(status=Hit.Status.DISPOSED, next_transition_at=None)
    hold_what_is_promised(hit, now=now)
    announce("HITDisposed", hit=hit, at=now)


@transaction.atomic
def _settle(key: int, *, now: datetime) -> None:
    apply_time(Hit.objects.locked().get(pk=key), now=now)


def _abandon_overdue(hit: Hit, *, now: datetime) -> None:
    for assignment in Assignment.objects.on(hit).filter(
        status=Assignment.Status.ACCEPTED, deadline__lte=now
    ):
        assignment.save_values(status=Assignment.Status.ABANDONED, closed_at=assignment.deadline)
        announce("AssignmentAbandoned", hit=hit, assignment=assignment, at=assignment.deadline)


def _approve_overdue(hit: Hit, *, now: datetime) -> None:
    overdue = Assignment.objects.on(hit).filter(
        status=Assignment.Status.SUBMITTED, auto_approval_at__lte=now
    )
    overdue = overdue.select_related("worker", "hit__hit_type", "hit__requester")
    for assignment in overdue.order_by("worker_id"):
        at = assignment.auto_approval_at or now
        approve_and_pay(assignment=assignment, source=LedgerAccount.Kind.HELD, at=at)


def _status(hit: Hit, tally: Tally, *, now: datetime) -> Hit.Status:
    disposed = Hit.Status.DISPOSED
    if hit.status == disposed:
        return disposed
    if tally.taken < hit.max_assignments and hit.expiration > now:
        return Hit.Status.ASSIGNABLE
    if tally.accepted > 0:
        return Hit.Status.UNASSIGNABLE
    if tally.submitted == 0 and _disposal_date(hit, tally, now=now) <= now:
        return disposed
    return Hit.Status.REVIEWING if hit.status == Hit.Status.REVIEWING else Hit.Status.REVIEWABLE


def _disposal_date(hit: Hit, tally: Tally, *, now: datetime) -> datetime:
    times = [hit.created_at, tally.last_closed_at]
    if hit.expiration <= now:
        times.append(hit.expiration)
    return max(at for at in times if at) + DISPOSAL_AFTER


def _next_transition(hit: Hit, tally: Tally, *, now: datetime) -> datetime | None:
    if hit.status == Hit.Status.DISPOSED:
        return None
    times = [tally.next_deadline, tally.next_auto_approval]
    if hit.expiration > now:
        times.append(hit.expiration)
    if tally.accepted == tally.submitted == 0 and hit.status != Hit.Status.ASSIGNABLE:
        times.append(_disposal_date(hit, tally, now=now))
    return min((at for at in times if at), default=None)
