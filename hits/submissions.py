"""Submissions of the study made of collected assignments, and what was decided about them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import DataError, transaction
from django.utils.translation import gettext as _

from accounts.audit import record
from annotation.flags import count_judgments_change
from annotation.models import Annotator, CheckAnswer, Judgment, Submission, WrittenAnswer
from annotation.submission_imports import pseudonym
from hits.answers import Answer, is_proved, read_answer
from hits.exceptions import AlreadyJudged, AnswerUnreadable
from hits.models import Assignment, AssignmentRecordQuerySet, Batch, Message, Payment

logger = logging.getLogger(__name__)
# Assignments with their items that are in memory at once.
CHUNK = 100

STATUSES = {
    Assignment.Status.SUBMITTED: Submission.Status.SUBMITTED,
    Assignment.Status.APPROVED: Submission.Status.APPROVED,
    Assignment.Status.REJECTED: Submission.Status.REJECTED,
}


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


@transaction.atomic
def delete_withdrawn(assignments: AssignmentRecordQuerySet) -> int:
    """Delete answers that their workers took back, decided on or not, with the judgments made of
    them; return how many. One that a bonus was paid for stays, or may have been; one that was not
    sent, or that was refused, goes with its answer."""
    # Held, since a collection may be making a submission of one just now.
    held = assignments.select_for_update(of=("self",)).order_by("pk")
    found = list(held.select_related("hit__batch__study__team"))
    paid = _paid_among(found)
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
    numbers = Counter(one.hit.batch.study for one in found)
    for study, n in numbers.items():
        count_judgments_change(study_ids=[study.pk])
        record(
            team=study.team,
            actor=None,
            action="submissions.withdraw",
            subject=study.slug,
            details={"n": n} | ({"n_unpaid": unpaid[study.pk]} if unpaid[study.pk] else {}),
        )
    return len(keys)


def _paid_among(assignments: list[Assignment]) -> set[int]:
    """The keys of those with a payment that went out, or may have; held, since whoever sends one
    writes that down first."""
    payments = Payment.objects.filter(assignment__in=[one.pk for one in assignments])
    held = payments.select_for_update().order_by("pk")
    return {one.assignment_id for one in held if one.may_have_gone}


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
        checks = hit.placed_checks
        answer = read_answer(assignment.answer_xml, hit.item, hit.batch.document, checks)
        _write_submission(assignment, answer)
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
            _("This worker has judged item '{item}' in round {round} already.").format(
                item=hit.item.key, round=hit.batch.round
            )
        )
    return earlier


def _consent(assignment: Assignment, answer: Answer) -> tuple[datetime | None, str]:
    """When the annotator agreed, and a note where their clock names a time that cannot be: then
    it is the time at which the work was handed in, by which they had."""
    at = answer.consented_at
    earliest = assignment.hit.batch.created_at - CLOCK_TOLERANCE
    if at is None or earliest <= at <= assignment.submitted_at + CLOCK_TOLERANCE:
        return at, ""
    note = _(
        "The annotator's clock had consent given at {time}; the time of submission is stored "
        "instead."
    )
    return assignment.submitted_at, note.format(time=at.isoformat())


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
    CheckAnswer.objects.bulk_create(
        CheckAnswer(submission=submission, **vars(checked)) for checked in answer.checked
    )
    count_judgments_change(study_ids=[assignment.hit.item.study_id])
    return submission


# As much as a clock in the wrong time zone is off.
CLOCK_TOLERANCE = timedelta(days=1)
