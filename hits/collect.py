"""Assignments of open HITs, stored as they came; collecting again changes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from hits.calls import HitAnswers, calls_at_once, fetch_answers, require_possible
from hits.exceptions import MarketplaceSlow
from hits.exclusions import send_exclusions
from hits.foreign_records import AssignmentRecord
from hits.models import Assignment, Batch, Hit, HitRecordQuerySet, Worker
from hits.practice import collect_practice
from hits.submissions import read_assignments, set_status
from presentation.numbers import count_of
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# HITs that were looked at are written down so many at a time, and after so long at the latest:
# whoever is killed every few seconds gets on all the same.
CHUNK, UNWRITTEN_SECONDS = 100, 1.0
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
    since: datetime | None = None,
) -> CollectionResult:
    """Store every assignment of the batch's open HITs, and make submissions of them.

    Interrupted, it leaves what it has; the next one goes on with the HITs that are left.
    So does one whose calls have used up their time (hits.limits), if any HIT was looked at.
    Who asks for what is there now says `since` when: HITs that were looked at before may have
    answers that nobody saw.
    With `only_awaited` it leaves out HITs that are complete and wait for our decision, on which
    only somebody at the marketplace itself could have decided meanwhile.
    """
    open_hits = awaited_hits(batch) if only_awaited else Hit.objects.of(batch).collectable()
    late = open_hits.uncollected_since(since or timezone.now() - RESUMED_WITHIN)
    hits = list(late.select_related("batch__connection"))
    n_skipped = open_hits.count() - len(hits)
    answers = calls_at_once(partial(fetch_answers, client), hits)
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
        collect_practice(batch=batch, client=client)
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
        self._written_at = time.monotonic()

    def __enter__(self) -> _Collection:
        return self

    def __exit__(self, *exception: object) -> None:
        self._write()

    def add(self, hit: Hit, answers: HitAnswers) -> None:
        """Store what is new to us, and how much it is once no more can come."""
        stored: dict[str, str] = {}
        if answers.records:
            require_possible(hit, len(answers.records))
            rows = Assignment.objects.filter(hit=hit)
            stored = dict(rows.values_list("assignment_id", "status"))
        for record in answers.records:
            if stored.get(record.assignment_id) != record.status:
                self.n_new += store_assignment(hit=hit, record=record)
        if answers.is_complete:
            Hit.objects.filter(pk=hit.pk).update(n_answers=len(answers.records))
        self.n_hits += 1
        self._unwritten.append(hit.pk)
        is_late = time.monotonic() - self._written_at > UNWRITTEN_SECONDS
        if is_late or len(self._unwritten) >= CHUNK:
            self._write()

    def _write(self) -> None:
        Hit.objects.filter(pk__in=self._unwritten).update(collected_at=timezone.now())
        self._unwritten.clear()
        self._written_at = time.monotonic()


@transaction.atomic
def store_assignment(*, hit: Hit, record: AssignmentRecord) -> bool:
    """Keep an assignment as it came; True if we had not seen it."""
    worker, _is_new = Worker.objects.get_or_create(
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
