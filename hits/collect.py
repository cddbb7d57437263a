import logging
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import DataError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from annotation.flags import count_judgments_change
from annotation.models import (
    Annotator,
    CheckAnswer,
    Judgment,
    MissingAnswer,
    Submission,
    WrittenAnswer,
)
from annotation.submission_imports import pseudonym
from hits.answers import Answer, is_proved, read_answer
from hits.calls import AssignmentRecord, HitAnswers, calls_at_once, fetch_answers, require_possible
from hits.endpoints import MTurkClient
from hits.exceptions import AlreadyJudged, AnswerUnreadable, MarketplaceSlow
from hits.models import (
    Assignment,
    AssignmentRecordQuerySet,
    Batch,
    Hit,
    HitRecordQuerySet,
    Message,
    Payment,
    Worker,
)
from hits.practice import collect_practice
from hits.requirements import send_exclusions
from presentation.numbers import count_of
from presentation.progress import Progress, silently

# HITs that were looked at are written down so many at a time, and after so long at the latest:
# whoever is killed every few seconds gets on all the same.
CHUNK, UNWRITTEN_SECONDS = 100, 1.0
# A collection goes on after one that was interrupted no longer ago than this.
RESUMED_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True)
class CollectionResult:
    # `n_skipped` open HITs had been looked at before the last collection was interrupted.

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
    """Store every assignment of the batch's open HITs and make submissions of them. Interrupted,
    or out of time (hits.limits), it keeps what it has; the next one continues with the HITs that
    are left. `since` is when the collection was requested: HITs looked at before may have newer
    answers. With `only_awaited` it leaves out complete HITs that wait for our decision."""
    open_hits = awaited_hits(batch) if only_awaited else Hit.objects.of(batch).collectable()
    hits = list(
        open_hits.uncollected_since(since or timezone.now() - RESUMED_WITHIN).select_related(
            "batch__connection"
        )
    )
    n_skipped = open_hits.count() - len(hits)
    answers = calls_at_once(partial(fetch_answers, client), hits)
    collection, is_unfinished = _Collection(), False
    try:
        for hit, fetched in progress(answers, len(hits)):
            collection.add(hit, fetched)
    except MarketplaceSlow:
        if not collection.n_hits:
            raise
        is_unfinished = True
    finally:
        collection.write()
        read_assignments(batch=batch)
    if not is_unfinished:
        collect_practice(batch=batch, client=client)
        send_exclusions(batch=batch, client=client)
        Hit.objects.of(batch).exclude(collected_at=None).update(collected_at=None)
        Batch.objects.filter(pk=batch.pk).update(collected_at=timezone.now())
    return CollectionResult(
        n_hits=collection.n_hits,
        n_new=collection.n_new,
        n_unreadable=Assignment.objects.of(batch).unread().count(),
        n_skipped=max(n_skipped, 0),
        is_unfinished=is_unfinished,
    )


def awaited_hits(batch: Batch) -> HitRecordQuerySet:
    return Hit.objects.of(batch).awaited(
        decided_since=timezone.now() - timedelta(seconds=batch.auto_approval_delay_seconds)
    )


class _Collection:
    def __init__(self) -> None:
        self.n_new = self.n_hits = 0
        self._unwritten: list[int] = []
        self._written_at = time.monotonic()

    def add(self, hit: Hit, answers: HitAnswers) -> None:
        stored: dict[str, str] = {}
        if answers.records:
            require_possible(hit, len(answers.records))
            stored = dict(Assignment.objects.filter(hit=hit).values_list("assignment_id", "status"))
        for one in answers.records:
            if stored.get(one.assignment_id) != one.status:
                self.n_new += store_assignment(hit=hit, record=one)
        if answers.is_complete:
            Hit.objects.filter(pk=hit.pk).update(n_answers=len(answers.records))
        self.n_hits += 1
        self._unwritten.append(hit.pk)
        is_late = time.monotonic() - self._written_at > UNWRITTEN_SECONDS
        if is_late or len(self._unwritten) >= CHUNK:
            self.write()

    def write(self) -> None:
        Hit.objects.filter(pk__in=self._unwritten).update(collected_at=timezone.now())
        self._unwritten.clear()
        self._written_at = time.monotonic()


@transaction.atomic
def store_assignment(*, hit: Hit, record: AssignmentRecord) -> bool:
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


logger = logging.getLogger(__name__)
# Assignments with their items that are in memory at once.
READ_AT_ONCE = 100

STATUSES = {
    Assignment.Status.SUBMITTED: Submission.Status.SUBMITTED,
    Assignment.Status.APPROVED: Submission.Status.APPROVED,
    Assignment.Status.REJECTED: Submission.Status.REJECTED,
}


@transaction.atomic
def set_status(*, assignment: Assignment, status: Assignment.Status) -> bool:
    is_news = bool(
        Assignment.objects.filter(pk=assignment.pk)
        .exclude(status=status)
        .update(status=status, decision_problem="")
    )
    _set_submission_status(assignment, STATUSES[status])
    return is_news


def _set_submission_status(assignment: Assignment, status: str) -> None:
    # An approval leaves results as they are; a rejection, or its end, does not.
    submissions = Submission.objects.filter(assignment=assignment).exclude(status=status)
    rejected = Submission.Status.REJECTED
    affected = submissions if status == rejected else submissions.filter(status=rejected)
    studies = set(affected.values_list("item__study", flat=True))
    submissions.update(status=status)
    if studies:
        count_judgments_change(study_ids=studies)


@transaction.atomic
def delete_withdrawn(assignments: AssignmentRecordQuerySet) -> int:
    """Delete answers that their workers took back, with their judgments; return how many. Those
    with a bonus that was or may have been paid stay."""
    # Held, since a collection may be making a submission of one just now.
    found = list(
        assignments.select_for_update(of=("self",))
        .order_by("pk")
        .select_related("hit__batch__study__team")
    )
    paid = {
        one.assignment_id
        for one in Payment.objects.filter(assignment__in=[one.pk for one in found])
        .select_for_update()
        .order_by("pk")
        if one.may_have_gone
    }
    found = [one for one in found if one.pk not in paid]
    keys = [one.pk for one in found]
    unpaid = Counter(
        Payment.objects.unsent()
        .filter(assignment__in=keys)
        .values_list("assignment__hit__batch__study", flat=True)
    )
    Payment.objects.filter(assignment__in=keys).delete()
    Submission.objects.filter(assignment__in=keys).delete()
    Message.objects.filter(assignment__in=keys).update(assignment=None)
    Assignment.objects.filter(pk__in=keys).delete()
    for study, n in Counter(one.hit.batch.study for one in found).items():
        count_judgments_change(study_ids=[study.pk])
        record(
            team=study.team,
            actor=None,
            action="submissions.withdraw",
            subject=study.slug,
            details={"n": n} | ({"n_unpaid": unpaid[study.pk]} if unpaid[study.pk] else {}),
        )
    return len(keys)


def read_assignments(*, batch: Batch) -> int:
    keys = list(Assignment.objects.of(batch).unread().values_list("pk", flat=True))
    return sum(_read_assignment(assignment) for assignment in _in_chunks(keys))


def _in_chunks(keys: list[int]) -> Iterator[Assignment]:
    rows = Assignment.objects.select_related("hit__batch__protocol", "hit__item__study", "worker")
    rows = rows.prefetch_related(
        "hit__item__candidates", "hit__item__study__questions", "hit__item__placed_checks__compared"
    )
    for start in range(0, len(keys), READ_AT_ONCE):
        yield from rows.filter(pk__in=keys[start : start + READ_AT_ONCE])


def _read_assignment(assignment: Assignment) -> bool:
    try:
        hit = assignment.hit
        _write_submission(
            assignment,
            read_answer(assignment.answer_xml, hit.item, hit.batch.document, hit.placed_checks),
        )
    except (AnswerUnreadable, AlreadyJudged) as problem:
        return _note_problem(assignment, str(problem))
    except Assignment.DoesNotExist:
        return False  # its worker took it back meanwhile
    except (ArithmeticError, DataError, RecursionError, ValueError) as error:
        # What no check has foreseen is one worker's answer too, and holds up nobody else's.
        logger.exception("Assignment %s cannot be read", assignment.assignment_id)
        return _note_problem(
            assignment,
            _("The answer cannot be read: {problem}.").format(problem=type(error).__name__),
        )
    return True


def _note_problem(assignment: Assignment, problem: str) -> bool:
    Assignment.objects.filter(pk=assignment.pk).update(problem=problem)
    return False


@transaction.atomic
def _write_submission(assignment: Assignment, answer: Answer) -> None:
    # The status is read again under a lock, since a decision may have come meanwhile.
    status = Assignment.objects.select_for_update().get(pk=assignment.pk).status
    annotator = _annotator(assignment)
    submission = _earlier(assignment, annotator) or _new_submission(assignment, annotator, answer)
    _at, note = _consent(assignment, answer)
    Assignment.objects.filter(pk=assignment.pk).update(
        submission=submission, problem="", reading_note=note
    )
    set_status(assignment=assignment, status=Assignment.Status(status))


def _annotator(assignment: Assignment) -> Annotator:
    study, worker = assignment.hit.item.study, assignment.worker
    return Annotator.objects.get_or_create(
        study=study, pseudonym=pseudonym(study, f"{worker.marketplace}:{worker.worker_id}")
    )[0]


def _earlier(assignment: Assignment, annotator: Annotator) -> Submission | None:
    hit = assignment.hit
    earlier = Submission.objects.filter(
        item=hit.item, annotator=annotator, round=hit.batch.round
    ).first()
    source = (assignment.answer_xml, assignment.submitted_at)
    if earlier is not None and (earlier.raw, earlier.submitted_at) != source:
        raise AlreadyJudged(
            _("This worker has judged item '{item}' in round {round} already.").format(
                item=hit.item.key, round=hit.batch.round
            )
        )
    return earlier


def _consent(assignment: Assignment, answer: Answer) -> tuple[datetime | None, str]:
    at = answer.consented_at
    earliest = assignment.hit.batch.created_at - CLOCK_TOLERANCE
    if at is None or earliest <= at <= assignment.submitted_at + CLOCK_TOLERANCE:
        return at, ""
    return assignment.submitted_at, _(
        "The annotator's clock had consent given at {time}; the time of submission is stored "
        "instead."
    ).format(time=at.isoformat())


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
        is_simulated=answer.is_simulated,
        has_unproved_mark=answer.is_simulated and not is_proved(answer.mark, assignment),
        events=answer.events,
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
    MissingAnswer.objects.bulk_create(
        MissingAnswer(submission=submission, **vars(missing)) for missing in answer.missing
    )
    CheckAnswer.objects.bulk_create(
        CheckAnswer(submission=submission, **vars(checked)) for checked in answer.checked
    )
    count_judgments_change(study_ids=[assignment.hit.item.study_id])
    return submission


# As much as a clock in the wrong time zone is off.
CLOCK_TOLERANCE = timedelta(days=1)
