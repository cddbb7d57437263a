"""Bringing answers home: kept as they came, then read; again changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.db import DataError, transaction
from django.utils import timezone

from annotation.models import Annotator, CheckAnswer, Judgment, Submission, WrittenAnswer
from annotation.pseudonyms import pseudonym
from annotation.versions import count_judgments_change
from hits.answers import Answer, read_answer
from hits.calls import calls_at_once
from hits.changes import expiry_of
from hits.checked_pages import checks_on
from hits.endpoints import translated_errors
from hits.exceptions import AlreadyJudged, AnswerUnreadable, MarketplaceFault, MarketplaceSlow
from hits.exclusions import send_exclusions
from hits.foreign_records import AssignmentRecord, assignment_record
from hits.listings import PAGE_SIZE, listed
from hits.models import Assignment, Batch, Hit, HitRecordQuerySet, Worker
from presentation.counts import count_of
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

logger = logging.getLogger(__name__)
STATUSES = {
    Assignment.Status.SUBMITTED: Submission.Status.SUBMITTED,
    Assignment.Status.APPROVED: Submission.Status.APPROVED,
    Assignment.Status.REJECTED: Submission.Status.REJECTED,
}
# What a HIT is once nobody can hand in any more work for it.
CLOSED = ("Reviewable", "Reviewing", "Disposed")
# Assignments with their items that are in memory at once.
CHUNK = 100


# A collection goes on after one that was interrupted no longer ago than this.
RESUMED_WITHIN = timedelta(minutes=10)
# As much as a clock in the wrong time zone is off.
CLOCK_TOLERANCE = timedelta(days=1)


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


@transaction.atomic
def set_status(*, assignment: Assignment, status: Assignment.Status) -> bool:
    """Record the marketplace's verdict, in the study as well; True if it was news to us."""
    rows = Assignment.objects.filter(pk=assignment.pk)
    is_news = bool(rows.exclude(status=status).update(status=status, decision_problem=""))
    _set_submission_status(assignment, STATUSES[status])
    return is_news


def _set_submission_status(assignment: Assignment, status: str) -> None:
    """Approval leaves results as they are; a rejection, or its end, does not."""
    submissions = Submission.objects.filter(assignment=assignment).exclude(status=status)
    rejected = Submission.Status.REJECTED
    affected = submissions if status == rejected else submissions.filter(status=rejected)
    studies = set(affected.values_list("item__study", flat=True))
    submissions.update(status=status)
    if studies:
        count_judgments_change(study_ids=studies)


def read_assignments(*, batch: Batch) -> int:
    """Make submissions of the kept assignments that have none; return how many it made."""
    keys = list(Assignment.objects.of(batch).unread().values_list("pk", flat=True))
    return sum(_read_assignment(assignment) for assignment in _in_chunks(keys))


def _in_chunks(keys: list[int]) -> Iterator[Assignment]:
    """The assignments with all that reading them takes, not all in memory at once."""
    rows = Assignment.objects.select_related("hit__batch__protocol", "hit__item__study", "worker")
    rows = rows.prefetch_related(
        "hit__item__candidates", "hit__item__study__questions", "hit__item__placed_checks__compared"
    )
    for start in range(0, len(keys), CHUNK):
        yield from rows.filter(pk__in=keys[start : start + CHUNK])


def _read_assignment(assignment: Assignment) -> bool:
    """Make a submission of an assignment, or write down why not; True if it was made."""
    try:
        hit = assignment.hit
        checks = checks_on(hit)
        answer = read_answer(assignment.answer_xml, hit.item, hit.batch.document, checks)
        _write_submission(assignment, answer)
    except (AnswerUnreadable, AlreadyJudged) as problem:
        return _note_problem(assignment, str(problem))
    except (ArithmeticError, DataError, RecursionError, ValueError) as error:
        # What no check has foreseen is one worker's answer too, and holds up nobody else's.
        logger.exception("Assignment %s cannot be read", assignment.assignment_id)
        return _note_problem(assignment, f"The answer cannot be read: {type(error).__name__}.")
    return True


def _note_problem(assignment: Assignment, problem: str) -> bool:
    Assignment.objects.filter(pk=assignment.pk).update(problem=problem)
    return False


@transaction.atomic
def _write_submission(assignment: Assignment, answer: Answer) -> None:
    """The status is read again under a lock, since a decision may have come meanwhile."""
    status = Assignment.objects.select_for_update().get(pk=assignment.pk).status
    annotator = _annotator(assignment)
    submission = _earlier(assignment, annotator) or _new_submission(assignment, annotator, answer)
    _at, note = _consent(assignment, answer)
    rows = Assignment.objects.filter(pk=assignment.pk)
    rows.update(submission=submission, problem="", reading_note=note)
    set_status(assignment=assignment, status=Assignment.Status(status))


def _annotator(assignment: Assignment) -> Annotator:
    study, worker = assignment.hit.item.study, assignment.worker
    name = pseudonym(study, f"{worker.marketplace}:{worker.worker_id}")
    return Annotator.objects.get_or_create(study=study, pseudonym=name)[0]


def _earlier(assignment: Assignment, annotator: Annotator) -> Submission | None:
    """The submission made of this very assignment, where our record of that was lost."""
    hit = assignment.hit
    earlier = Submission.objects.filter(
        item=hit.item, annotator=annotator, round=hit.batch.round
    ).first()
    source = (assignment.answer_xml, assignment.submitted_at)
    if earlier is not None and (earlier.raw, earlier.submitted_at) != source:
        raise AlreadyJudged(
            f"This worker has judged item '{hit.item.key}' in round {hit.batch.round} already."
        )
    return earlier


def _consent(assignment: Assignment, answer: Answer) -> tuple[datetime | None, str]:
    """When the annotator agreed, and a note where their clock names a time that cannot be: then
    it is the time at which the work was handed in, by which they had."""
    at = answer.consented_at
    earliest = assignment.hit.batch.created_at - CLOCK_TOLERANCE
    if at is None or earliest <= at <= assignment.submitted_at + CLOCK_TOLERANCE:
        return at, ""
    note = f"The annotator's clock had consent given at {at.isoformat()}; the time of submission "
    return assignment.submitted_at, f"{note}is stored instead."


def _new_submission(assignment: Assignment, annotator: Annotator, answer: Answer) -> Submission:
    submission = Submission.objects.create(
        item=assignment.hit.item,
        annotator=annotator,
        round=assignment.hit.batch.round,
        protocol=assignment.hit.batch.protocol,
        consented_at=_consent(assignment, answer)[0],
        raw=assignment.answer_xml,
        shown_order=list(answer.order),
        justification=answer.justification,
        comment=answer.comment,
        accepted_at=assignment.accepted_at,
        submitted_at=assignment.submitted_at,
        seconds=(assignment.submitted_at - assignment.accepted_at).total_seconds(),
        active_seconds=answer.active_seconds,
        pasted=answer.pasted,
    )
    Judgment.objects.bulk_create(
        Judgment(
            submission=submission,
            candidate_id=judgment.candidate.pk if judgment.candidate else None,
            question=judgment.question,
            value=judgment.value,
            position=judgment.position,
            seconds=judgment.seconds,
        )
        for judgment in answer.judgments
    )
    WrittenAnswer.objects.bulk_create(
        WrittenAnswer(submission=submission, **vars(written)) for written in answer.written
    )
    CheckAnswer.objects.bulk_create(
        CheckAnswer(submission=submission, **vars(checked)) for checked in answer.checked
    )
    count_judgments_change(study_ids=[assignment.hit.item.study_id])
    return submission
