"""What a team knows of a worker: what was handed in and decided, blocks, holds and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value

from accounts.models import Membership, User
from accounts.roles import PERMISSIONS, Permission, Role
from annotation.models import Study
from annotation.models.studies import counted
from hits.models import (
    Assignment,
    DeliveryState,
    Exclusion,
    Worker,
    WorkerBlock,
    WorkerClearance,
    WorkerNote,
)


@dataclass(frozen=True)
class WorkerRecord:
    """What a team knows of a worker; `block_state` is empty where they are not blocked.

    One who `is_held` gets no more HITs of the batch until somebody has looked at the first.
    """

    n_submitted: int
    n_approved: int
    n_rejected: int
    block_state: str
    block_reason: str
    is_held: bool
    notes: Sequence[Any] = field(default_factory=list)


def _memberships_of(reader: User) -> QuerySet[Membership]:
    roles = [role for role in Role if Permission.REVIEW in PERMISSIONS[role]]
    return Membership.objects.filter(team=OuterRef("team"), user=reader, role__in=roles)


def record_of(assignment: Assignment, study: Study, reader: User) -> WorkerRecord:
    """What a worker has done for the study's team; for the study alone where it has none.

    The team's notes are for its own reviewers; one of this study alone reads what they wrote.
    """
    batches = Q(hit__batch__study=study.pk)
    if study.team_id is not None:
        batches |= Q(hit__batch__study__team=study.team_id)
    of_team = Assignment.objects.filter(batches)
    block = WorkerBlock.objects.filter(
        connection=assignment.hit.batch.connection_id, worker=OuterRef("pk"), is_active=True
    )
    notes = WorkerNote.objects.filter(team=study.team_id).filter(
        Q(author=reader) | Q(Exists(_memberships_of(reader))) | Q(Value(reader.is_superuser))
    )
    held = Exclusion.objects.of(assignment.hit.batch).filter(reason=Exclusion.Reason.HELD)
    held = held.filter(worker=OuterRef("pk"))
    cleared = WorkerClearance.objects.filter(worker=OuterRef("pk"), study=study)
    record = Worker.objects.filter(pk=assignment.worker_id).values(
        n_submitted=counted(of_team, "worker"),
        n_approved=counted(of_team.filter(status=Assignment.Status.APPROVED), "worker"),
        n_rejected=counted(of_team.filter(status=Assignment.Status.REJECTED), "worker"),
        block_state=Subquery(block.values("state")[:1]),
        block_reason=Subquery(block.values("reason")[:1]),
        n_notes=counted(notes, "worker"),
        is_held=Exists(held) & ~Exists(cleared),
    )
    row: dict[str, Any] = dict(record.get())
    n_notes, state = row.pop("n_notes"), row.pop("block_state")
    own_notes = notes.filter(worker=assignment.worker_id).select_related("author")
    return WorkerRecord(
        **row | {"block_reason": row["block_reason"] or ""},
        block_state=str(DeliveryState(state).label) if state else "",
        notes=list(own_notes) if n_notes else [],
    )
