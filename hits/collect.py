"""Bringing answers home: kept as they came, then read; again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from annotation.models import Annotator, Judgment, Submission
from annotation.pseudonyms import pseudonym
from annotation.versions import count_judgments_change
from hits.answers import Answer, read_answer
from hits.endpoints import translated_errors
from hits.exceptions import AlreadyJudged, AnswerUnreadable
from hits.exclusions import send_exclusions
from hits.models import Assignment, Batch, Hit, HitRecordQuerySet, Worker
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import AssignmentTypeDef

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


@dataclass(frozen=True)
class Collected:
    """What a collection brought: assignments new to us, and those no submission could be made of.

    `n_skipped` open HITs had been looked at before the last collection was interrupted.
    """

    n_hits: int
    n_new: int
    n_unreadable: int
    n_skipped: int = 0

    def __str__(self) -> str:
        report = f"{self.n_new} new assignments from {self.n_hits} open HITs"
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
) -> Collected:
    """Store every assignment of the batch's open HITs, and make submissions of them.

    Interrupted, it leaves what it has; the next one goes on with the HITs that are left.
    With `only_awaited` it leaves out HITs that are complete and wait for our decision, on which
    only somebody at the marketplace itself could have decided meanwhile.
    """
    open_hits = awaited_hits(batch) if only_awaited else Hit.objects.of(batch).collectable()
    late = open_hits.uncollected_since(timezone.now() - RESUMED_WITHIN)
    hits = list(late.select_related("batch__connection"))
    n_skipped = open_hits.count() - len(hits)
    new = 0
    try:
        for hit in progress(hits, len(hits)):
            new += _collect_hit(client, hit)
    finally:
        read_assignments(batch=batch)
    send_exclusions(batch=batch, client=client)
    Hit.objects.of(batch).exclude(collected_at=None).update(collected_at=None)
    Batch.objects.filter(pk=batch.pk).update(collected_at=timezone.now())
    unreadable = Assignment.objects.of(batch).unread().count()
    return Collected(
        n_hits=len(hits), n_new=new, n_unreadable=unreadable, n_skipped=max(n_skipped, 0)
    )


def awaited_hits(batch: Batch) -> HitRecordQuerySet:
    """The batch's HITs that an answer, or a decision by time, is to come for."""
    delay = timedelta(seconds=batch.auto_approval_delay_seconds)
    return Hit.objects.of(batch).awaited(decided_since=timezone.now() - delay)


def _collect_hit(client: MTurkClient, hit: Hit) -> int:
    """Keep what came in, and note how much it is once no more can; return how much was new."""
    is_closed = _may_be_closed(hit.batch) and _status_there(client, hit) in CLOSED
    new = [keep_assignment(hit=hit, given=given) for given in _assignments(client, hit)]
    noted: dict[str, object] = {"collected_at": timezone.now()}
    if is_closed:
        noted["n_answers"] = len(new)
    Hit.objects.filter(pk=hit.pk).update(**noted)
    return sum(new)


def _may_be_closed(batch: Batch) -> bool:
    """Whether it is worth asking; until its HITs expire, no short HIT of a batch is complete."""
    started, lifetime = batch.publishing_started_at, timedelta(seconds=batch.lifetime_seconds)
    return started is not None and timezone.now() > started + lifetime


def _status_there(client: MTurkClient, hit: Hit) -> str:
    with translated_errors():
        return client.get_hit(HITId=hit.hit_id)["HIT"]["HITStatus"]


def _assignments(client: MTurkClient, hit: Hit) -> Iterator[AssignmentTypeDef]:
    with translated_errors():
        pages = client.get_paginator("list_assignments_for_hit").paginate(
            HITId=hit.hit_id, PaginationConfig={"PageSize": 100}
        )
        for page in pages:
            yield from page["Assignments"]


@transaction.atomic
def keep_assignment(*, hit: Hit, given: AssignmentTypeDef) -> bool:
    """Keep an assignment as it came; True if we had not seen it."""
    worker, _ = Worker.objects.get_or_create(
        marketplace=hit.batch.connection.marketplace, worker_id=given["WorkerId"]
    )
    fields = {
        "hit": hit,
        "worker": worker,
        "answer_xml": given["Answer"],
        "accepted_at": given["AcceptTime"],
        "submitted_at": given["SubmitTime"],
        "status": given["AssignmentStatus"],
    }
    kept, new = Assignment.objects.get_or_create(
        assignment_id=given["AssignmentId"], defaults=fields
    )
    status = Assignment.Status(given["AssignmentStatus"])
    # A decision made since the marketplace answered is never taken back by its older answer.
    if not new and status not in (kept.status, Assignment.Status.SUBMITTED):
        set_status(assignment=kept, status=status)
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
    changed = Submission.objects.filter(assignment=assignment).exclude(status=status)
    rejected = Submission.Status.REJECTED
    counted = changed if status == rejected else changed.filter(status=rejected)
    studies = set(counted.values_list("item__study", flat=True))
    changed.update(status=status)
    if studies:
        count_judgments_change(study_ids=studies)


def read_assignments(*, batch: Batch) -> int:
    """Make submissions of the kept assignments that have none; return how many it made."""
    waiting = list(Assignment.objects.of(batch).unread().values_list("pk", flat=True))
    return sum(_read(assignment) for assignment in _in_chunks(waiting))


def _in_chunks(keys: list[int]) -> Iterator[Assignment]:
    """The assignments with all that reading them takes, not all in memory at once."""
    whole = Assignment.objects.select_related("hit__batch", "hit__item__study", "worker")
    whole = whole.prefetch_related("hit__item__candidates", "hit__item__study__questions")
    for start in range(0, len(keys), CHUNK):
        yield from whole.filter(pk__in=keys[start : start + CHUNK])


def _read(assignment: Assignment) -> bool:
    """Make a submission of an assignment, or write down why not; True if it was made."""
    try:
        _write_submission(assignment, read_answer(assignment.answer_xml, assignment.hit.item))
    except (AnswerUnreadable, AlreadyJudged) as problem:
        Assignment.objects.filter(pk=assignment.pk).update(problem=str(problem))
        return False
    return True


@transaction.atomic
def _write_submission(assignment: Assignment, answer: Answer) -> None:
    """The status is read again under a lock, since a decision may have come meanwhile."""
    status = Assignment.objects.select_for_update().get(pk=assignment.pk).status
    annotator = _annotator(assignment)
    submission = _earlier(assignment, annotator) or _new_submission(assignment, annotator, answer)
    Assignment.objects.filter(pk=assignment.pk).update(submission=submission, problem="")
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
    made_of = (assignment.answer_xml, assignment.submitted_at)
    if earlier is not None and (earlier.raw, earlier.submitted_at) != made_of:
        raise AlreadyJudged(
            f"This worker has judged item '{hit.item.key}' in round {hit.batch.round} already."
        )
    return earlier


def _new_submission(assignment: Assignment, annotator: Annotator, answer: Answer) -> Submission:
    submission = Submission.objects.create(
        item=assignment.hit.item,
        annotator=annotator,
        round=assignment.hit.batch.round,
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
            candidate=judged.candidate,
            question=judged.question,
            value=judged.value,
            position=judged.position,
            seconds=judged.seconds,
        )
        for judged in answer.judgments
    )
    count_judgments_change(study_ids=[assignment.hit.item.study_id])
    return submission
