"""What came in of practice: answers graded, and who passed granted the qualification.

A result is a row before it is sent, and sending it again changes nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from annotation.protocols.practice import n_attempts
from hits.calls import calls_at_once
from hits.endpoints import translated_errors
from hits.exceptions import AnswerUnreadable, MarketplaceRefused
from hits.foreign_records import AssignmentRecord
from hits.hit_answers import HitAnswers, fetch_answers, require_possible
from hits.models import (
    Assignment,
    Batch,
    DeliveryState,
    Hit,
    PracticeAnswer,
    PracticeHit,
    PracticeResult,
    Worker,
)
from hits.practice import FAILED, PASSED, practice_of
from hits.practice_pages import Grade, PracticePage, practice_page

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

    from annotation.protocols.records import Practice

UNGRADED = Grade(0, 0, False)


def collect_practice(*, batch: Batch, client: MTurkClient) -> int:
    """Store and grade the answers to a batch's practice, and grant its qualification to who
    passed; return how many answers were new."""
    practice = practice_of(batch) if batch.practice_type_id else None
    if practice is None:
        return 0
    hits = list(PracticeHit.objects.of(batch).awaited().select_related("batch"))
    n_new = 0
    for hit, answers in calls_at_once(partial(fetch_answers, client), hits):
        n_new += _store(batch, hit, answers)
    _write_results(batch, practice)
    _send_results(batch, client)
    if not Hit.objects.of(batch).short_of_answers().exists():
        _end_practice(batch, client)
    return n_new


def _end_practice(batch: Batch, client: MTurkClient) -> None:
    """Nobody practises any more for HITs that are all done."""
    for hit in PracticeHit.objects.of(batch).published().filter(n_answers=None, ended_at=None):
        now = timezone.now()
        with translated_errors():
            client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=now)
        PracticeHit.objects.filter(pk=hit.pk).update(ended_at=now)


def _store(batch: Batch, hit: PracticeHit, answers: HitAnswers) -> int:
    require_possible(hit, len(answers.records))
    page = practice_page(batch.study, batch.document, hit.number)
    n_new = sum(_store_answer(batch, hit, page, record) for record in answers.records)
    if answers.is_complete:
        PracticeHit.objects.filter(pk=hit.pk).update(n_answers=len(answers.records))
    return n_new


@transaction.atomic
def _store_answer(
    batch: Batch, hit: PracticeHit, page: PracticePage, record: AssignmentRecord
) -> bool:
    """Keep an answer as it came, graded; True if it was new."""
    worker, _ = Worker.objects.get_or_create(
        marketplace=batch.connection.marketplace, worker_id=record.worker_id
    )
    grade, problem = UNGRADED, ""
    try:
        grade = page.grade(record.answer_xml)
    except (AnswerUnreadable, ArithmeticError, RecursionError, ValueError) as error:
        problem = str(error)
    answer, is_new = PracticeAnswer.objects.get_or_create(
        hit=hit,
        assignment_id=record.assignment_id,
        defaults={
            "worker": worker,
            "status": record.status,
            "answer_xml": record.answer_xml,
            "accepted_at": record.accepted_at,
            "submitted_at": record.submitted_at,
            "n_right": grade.n_right,
            "n_graded": grade.n_graded,
            "is_passed": grade.is_passed,
            "problem": problem,
        },
    )
    if record.status not in (answer.status, Assignment.Status.SUBMITTED):
        PracticeAnswer.objects.filter(pk=answer.pk).update(status=record.status)
    return is_new


def _write_results(batch: Batch, practice: Practice) -> None:
    """Of every worker whose result is certain and not written down, over all of the study's
    batches with this practice."""
    results = PracticeResult.objects.of_type(batch.study, batch.practice_type_id)
    answers = PracticeAnswer.objects.filter(
        hit__batch__study=batch.study_id, hit__batch__practice_type_id=batch.practice_type_id
    )
    open_answers = answers.exclude(worker__in=results.values("worker")).select_related("hit")
    # The first answer to each item: who does one again has read what is right.
    attempts: dict[int, dict[int, bool]] = {}
    for answer in open_answers.order_by("submitted_at", "pk"):
        attempts.setdefault(answer.worker_id, {}).setdefault(answer.hit.number, answer.is_passed)
    new = []
    for worker_id, by_item in attempts.items():
        counted = list(by_item.values())[: n_attempts(practice)]
        if any(counted) or len(counted) == n_attempts(practice):
            row = PracticeResult(
                study_id=batch.study_id,
                type_id=batch.practice_type_id,
                worker_id=worker_id,
                is_passed=any(counted),
            )
            new.append(row)
    PracticeResult.objects.bulk_create(new, ignore_conflicts=True)


def _send_results(batch: Batch, client: MTurkClient) -> None:
    unsent = PracticeResult.objects.of_type(batch.study, batch.practice_type_id).unsent()
    for result in unsent.select_related("worker"):
        state, problem = DeliveryState.CONFIRMED, ""
        try:
            with translated_errors():
                client.associate_qualification_with_worker(
                    QualificationTypeId=result.type_id,
                    WorkerId=result.worker.worker_id,
                    IntegerValue=PASSED if result.is_passed else FAILED,
                    # Who failed has read so on the page.
                    SendNotification=result.is_passed,
                )
        except MarketplaceRefused as refusal:
            if not refusal.code.startswith("AWS.MechanicalTurk."):
                raise
            state, problem = DeliveryState.REFUSED, refusal.message
        PracticeResult.objects.filter(pk=result.pk).update(state=state, problem=problem)
