"""Giving a HIT more assignments or more time. The caller holds the lock on the HIT, and
refreshes it afterwards."""

from datetime import datetime, timedelta

from marketplace.exceptions import InvalidMaximumAssignmentsIncrease, InvalidParameter
from marketplace.hits.holds import hold_what_is_promised
from marketplace.models import Hit
from marketplace.notifications.events import announce

# From here on Amazon's fee is higher, so a HIT can't grow across it.
LARGE = 10
MOST_ASSIGNMENTS = 1_000_000_000


def add_assignments(hit: Hit, *, additional: int, now: datetime) -> None:
    """Ask so many more workers, and hold the money for them."""
    total = hit.max_assignments + additional
    if hit.max_assignments < LARGE <= total:
        raise InvalidMaximumAssignmentsIncrease(
            "HITs created with fewer than 10 assignments cannot be extended to have 10 or more "
            "assignments."
        )
    if total > MOST_ASSIGNMENTS:
        raise InvalidParameter(f"A HIT has at most {MOST_ASSIGNMENTS} assignments.")
    hit.max_assignments = total
    hit.save(update_fields=["max_assignments"])
    hold_what_is_promised(hit, now=now)
    announce("HITExtended", hit=hit, at=now)


def put_off(hit: Hit, *, until: datetime, now: datetime) -> None:
    """Let the HIT live until then; money is held for assignments that open again."""
    hit.expiration = until
    hit.expired_at = None
    hit.save(update_fields=["expiration", "expired_at"])
    hold_what_is_promised(hit, now=now)
    announce("HITExtended", hit=hit, at=now)


def lengthen(hit: Hit, *, seconds: int, now: datetime) -> None:
    """Let the HIT live at least so many seconds from now, if any."""
    until = now + timedelta(seconds=seconds)
    if seconds and until > hit.expiration:
        put_off(hit, until=until, now=now)
