"""Assignments of open HITs, stored as they came; collecting again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from hits.calls import calls_at_once
from hits.changes import expiry_of
from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceFault, MarketplaceSlow
from hits.exclusions import send_exclusions
from hits.foreign_records import AssignmentRecord, assignment_record
from hits.listings import PAGE_SIZE, listed
from hits.models import Assignment, Batch, Hit, HitRecordQuerySet, Worker
from hits.submissions import read_assignments, set_status
from presentation.counts import count_of
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# What a HIT is once nobody can hand in any more work for it.
CLOSED = ("Reviewable", "Reviewing", "Disposed")
# HITs that were looked at are written down so many at a time.
CHUNK = 100
# A collection goes on after one that was interrupted no longer ago than this.
RESUMED_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True)
class CollectionResult:
    """What a collection brought: assignments new to us, and those no submission could be made of.

    `n_skipped` open HITs had been looked at before the last collection was interrupted.
    """

    n_hits: int
    n_new: int
    n_unreadable: int
    n_skipped: int = 0
    is_unfinished: bool = False

    def __str__(self) -> str:
        report = (
            f"{count_of(self.n_new, 'new assignment')} from {count_of(self.n_hits, 'open HIT')}"
        )
        if self.n_skipped:
            report += f" (and {self.n_skipped} looked at before the last run was interrupted)"
        if self.n_unreadable:
            report += f"; kept but not read: {self.n_unreadable} (see the study's page)"
        return f"{report}."


def collect_batch(
    *,
    batch: Batch,
    client: MTurkClient,
    progress: Progress = silently,
    only_awaited: bool = False,
) -> CollectionResult:
    """Store every assignment of the batch's open HITs, and make submissions of them.

    Interrupted, it leaves what it has; the next one goes on with the HITs that are left.
    So does one whose calls have used up their time (hits.call_limits), if any HIT was looked at.
    With `only_awaited` it leaves out HITs that are complete and wait for our decision, on which
    only somebody at the marketplace itself could have decided meanwhile.
    """
    open_hits = awaited_hits(batch) if only_awaited else Hit.objects.of(batch).collectable()
    late = open_hits.uncollected_since(timezone.now() - RESUMED_WITHIN)
    hits = list(late.select_related("batch__connection"))
    n_skipped = open_hits.count() - len(hits)
    answers = calls_at_once(partial(_fetch, client), hits)
    collection, is_unfinished = _Collection(), False
    try:
        with collection:
            for hit, fetched in progress(answers, len(hits)):
                collection.add(hit, fetched)
    except MarketplaceSlow:
        if not collection.n_hits:
            raise
        is_unfinished = True
    finally:
        read_assignments(batch=batch)
    if not is_unfinished:
        send_exclusions(batch=batch, client=client)
        Hit.objects.of(batch).exclude(collected_at=None).update(collected_at=None)
        Batch.objects.filter(pk=batch.pk).update(collected_at=timezone.now())
    unreadable = Assignment.objects.of(batch).unread().count()
    return CollectionResult(
        n_hits=collection.n_hits,
        n_new=collection.n_new,
        n_unreadable=unreadable,
        n_skipped=max(n_skipped, 0),
        is_unfinished=is_unfinished,
    )


def awaited_hits(batch: Batch) -> HitRecordQuerySet:
    """The batch's HITs that an answer, or a decision by time, is to come for."""
    delay = timedelta(seconds=batch.auto_approval_delay_seconds)
    return Hit.objects.of(batch).awaited(decided_since=timezone.now() - delay)


class _Collection:
    """What comes in, stored HIT by HIT; which HITs were looked at is written some at a time."""

    def __init__(self) -> None:
        self.n_new = self.n_hits = 0
        self._unwritten: list[int] = []

    def __enter__(self) -> _Collection:
        return self

    def __exit__(self, *exception: object) -> None:
        self._write()

    def add(self, hit: Hit, answers: _Answers) -> None:
        """Store what is new to us, and how much it is once no more can come."""
        stored: dict[str, str] = {}
        if answers.records:
            _require_possible(hit, len(answers.records))
            rows = Assignment.objects.filter(hit=hit)
            stored = dict(rows.values_list("assignment_id", "status"))
        for record in answers.records:
            if stored.get(record.assignment_id) != record.status:
                self.n_new += store_assignment(hit=hit, record=record)
        if answers.is_complete:
            Hit.objects.filter(pk=hit.pk).update(n_answers=len(answers.records))
        self.n_hits += 1
        self._unwritten.append(hit.pk)
        if len(self._unwritten) >= CHUNK:
            self._write()

    def _write(self) -> None:
        Hit.objects.filter(pk__in=self._unwritten).update(collected_at=timezone.now())
        self._unwritten.clear()


@dataclass(frozen=True)
class _Answers:
    """What the marketplace has of a HIT; complete once no more can be handed in."""

    records: list[AssignmentRecord]
    is_complete: bool


def _fetch(client: MTurkClient, hit: Hit) -> _Answers:
    # In this order: what was handed in between is among the assignments.
    is_complete = _may_be_closed(hit.batch) and _status_there(client, hit) in CLOSED
    return _Answers(list(_assignments(client, hit)), is_complete)


def _may_be_closed(batch: Batch) -> bool:
    """Whether it is worth asking; until its HITs expire, no short HIT of a batch is complete."""
    return batch.publishing_started_at is not None and timezone.now() > expiry_of(batch)


def _status_there(client: MTurkClient, hit: Hit) -> str:
    with translated_errors():
        return client.get_hit(HITId=hit.hit_id)["HIT"]["HITStatus"]


def _assignments(client: MTurkClient, hit: Hit) -> Iterator[AssignmentRecord]:
    rows = listed(
        client, "list_assignments_for_hit", "Assignments", "AssignmentId", HITId=hit.hit_id
    )
    # A page more than there can be says enough of a marketplace that never comes to an end.
    for n_read, row in enumerate(rows):
        if n_read > hit.n_assignments + PAGE_SIZE:
            raise _too_many(hit)
        yield assignment_record(hit, row)


def _require_possible(hit: Hit, n_records: int) -> None:
    """MarketplaceFault, where more came in for a HIT than it ever had on offer."""
    if n_records > hit.n_assignments:
        # More may have been asked for since the HIT was read.
        hit.refresh_from_db(fields=["max_assignments"])
        if n_records > hit.n_assignments:
            raise _too_many(hit)


def _too_many(hit: Hit) -> MarketplaceFault:
    return MarketplaceFault(
        f"HIT {hit.hit_id} has {hit.n_assignments} assignments, and it sent more"
    )


@transaction.atomic
def store_assignment(*, hit: Hit, record: AssignmentRecord) -> bool:
    """Keep an assignment as it came; True if we had not seen it."""
    worker, _ = Worker.objects.get_or_create(
        marketplace=hit.batch.connection.marketplace, worker_id=record.worker_id
    )
    fields = {
        "worker": worker,
        "answer_xml": record.answer_xml,
        "accepted_at": record.accepted_at,
        "submitted_at": record.submitted_at,
        "status": record.status,
    }
    # Of this HIT alone: another team's marketplace may name the same assignment.
    assignment, new = Assignment.objects.get_or_create(
        hit=hit, assignment_id=record.assignment_id, defaults=fields
    )
    # A decision made since the marketplace answered is never taken back by its older answer.
    if not new and record.status not in (assignment.status, Assignment.Status.SUBMITTED):
        set_status(assignment=assignment, status=record.status)
    return new
