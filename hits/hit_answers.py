"""What a marketplace has of one HIT: its assignments, and whether more can come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _

from hits.changes import expiry_of
from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceFault
from hits.foreign_records import AssignmentRecord, assignment_record
from hits.listings import PAGE_SIZE, listed
from hits.models import Hit, PracticeHit

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# What a HIT is once nobody can hand in any more work for it.
CLOSED = ("Reviewable", "Reviewing", "Disposed")


@dataclass(frozen=True)
class HitAnswers:
    """What the marketplace has of a HIT; complete once no more can be handed in."""

    records: list[AssignmentRecord]
    is_complete: bool


def fetch_answers(client: MTurkClient, hit: Hit | PracticeHit) -> HitAnswers:
    """All of a HIT's assignments, and whether it will have any other."""
    # In this order: what was handed in between is among the assignments.
    is_complete = _may_be_closed(hit) and _status_there(client, hit) in CLOSED
    return HitAnswers(list(_assignments(client, hit)), is_complete)


def _may_be_closed(hit: Hit | PracticeHit) -> bool:
    """Whether it is worth asking; until its HITs expire, no short HIT of a batch is complete."""
    if isinstance(hit, PracticeHit) and hit.ended_at is not None:
        return True
    batch = hit.batch
    return batch.publishing_started_at is not None and timezone.now() > expiry_of(batch)


def _status_there(client: MTurkClient, hit: Hit | PracticeHit) -> str:
    with translated_errors():
        return client.get_hit(HITId=hit.hit_id)["HIT"]["HITStatus"]


def _assignments(client: MTurkClient, hit: Hit | PracticeHit) -> Iterator[AssignmentRecord]:
    rows = listed(
        client, "list_assignments_for_hit", "Assignments", "AssignmentId", HITId=hit.hit_id
    )
    # A page more than there can be says enough of a marketplace that never comes to an end.
    for n_read, row in enumerate(rows):
        if n_read > hit.n_assignments + PAGE_SIZE:
            raise _too_many(hit)
        yield assignment_record(hit, row)


def require_possible(hit: Hit | PracticeHit, n_records: int) -> None:
    """MarketplaceFault, where more came in for a HIT than it ever had on offer."""
    if n_records > hit.n_assignments:
        # More may have been asked for since the HIT was read.
        hit.refresh_from_db(fields=["max_assignments"])
        if n_records > hit.n_assignments:
            raise _too_many(hit)


def _too_many(hit: Hit | PracticeHit) -> MarketplaceFault:
    return MarketplaceFault(
        _("HIT {hit_id} has {n} assignments, and it sent more").format(
            hit_id=hit.hit_id, n=hit.n_assignments
        )
    )
