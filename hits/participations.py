"""Participations as the review desk tells them apart: which items one has, and how it stands at the
recruiter while its work waits for a decision, as the marketplace says."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from hits.models import Assignment, Participation, Recruitment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from hits.recruiting_records import ParticipationRecord

FACTS = ("worker_id", "state", "outcome", "reported", "arrived_at")
# The items of a participation are reserved together, when its participant arrives; nobody is done
# with one, and comes again, so soon.
RESERVED_WITHIN = timedelta(minutes=1)


def items_of_participation(assignment: Assignment) -> QuerySet[Assignment]:
    """All items of the participation that this one is of: whoever comes to a batch twice is decided
    on each time by itself."""
    mine = Assignment.objects.of(assignment.hit.batch).filter(worker=assignment.worker_id)
    return mine.filter(accepted_at__range=_about(assignment))


def standing_of(assignment: Assignment) -> QuerySet[Participation]:
    """How the participation stands at the recruiter that this item is of, where a decision should
    know it; one of before arrivals were told may be any of the participant's."""
    rows = Participation.objects.filter(
        recruitment__batch=assignment.hit.batch, worker_id=assignment.worker.worker_id
    )
    of_it = Q(arrived_at__range=_about(assignment)) | Q(arrived_at=None)
    return rows.filter(of_it).select_related("recruitment__recruiter")


def _about(assignment: Assignment) -> tuple[Any, Any]:
    at = assignment.accepted_at
    return at - RESERVED_WITHIN, at + RESERVED_WITHIN


def store_participations(recruitment: Recruitment, records: Iterable[ParticipationRecord]) -> None:
    """Store those of a study, in place of what was known of them."""
    mine = [one for one in records if one.study == recruitment.public_id]
    told = {tuple(getattr(one, name) for name in FACTS) for one in mine}
    known = Participation.objects.filter(recruitment=recruitment)
    stored = {row[1:]: row[0] for row in known.values_list("pk", *FACTS)}
    if gone := [key for facts, key in stored.items() if facts not in told]:
        known.filter(pk__in=gone).delete()
    Participation.objects.bulk_create(
        Participation(recruitment=recruitment, **dict(zip(FACTS, facts, strict=True)))
        for facts in sorted(told - stored.keys(), key=repr)
    )
