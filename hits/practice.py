"""Practice at a marketplace: paid HITs with the study's own page, and the qualification that who
passes one is granted. They are planned with a batch, and published before its own HITs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from annotation.protocols.practice import n_attempts, practice_fingerprint
from annotation.protocols.records import Practice
from hits.calls import (
    HitAnswers,
    calls_at_once,
    create_hit,
    create_type,
    fetch_answers,
    require_possible,
)
from hits.endpoints import translated_errors
from hits.exceptions import AnswerUnreadable, MarketplaceRefused
from hits.foreign_records import AssignmentRecord, identifier
from hits.graded_pages import Grade, PracticePage, practice_page
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
from presentation.numbers import count_of

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import QualificationRequirementTypeDef


# Of the qualification; who has none may practise.
PASSED, FAILED = 1, 0
# So that a name has at most 200 characters, and a HIT's title 128.
LONGEST_TITLE = 100


def practice_of(batch: Batch) -> Practice | None:
    """What its workers practise, if anything."""
    return batch.document.qualifications.practice


def create_practice_type(batch: Batch, client: MTurkClient) -> None:
    """Give a batch the qualification that its practice gives: one for all batches of the study
    with the same practice, so that who passed it once need not practise again."""
    practice = practice_of(batch)
    if practice is None or batch.practice_type_id:
        return
    title = _title(batch, practice)
    digest = f"{batch.study_id}-{practice_fingerprint(batch.document)[:12]}"
    n, percent = n_attempts(practice), practice.pass_percent
    batch.practice_type_id = create_type(
        client,
        name=f"{title[:LONGEST_TITLE]} – passed ({digest})",
        # Read on the marketplace by who has not practised yet, and by who did not pass.
        description=(
            f"Granted to who passes one of the HITs “{title}”: {percent} % of its answers must be "
            f"right. It can be tried {count_of(n, 'time')}, each at another HIT. Every one is paid "
            "and approved, passed or not. Who has not passed by then cannot do the HITs that ask "
            "for it, and can do all other work as before."
        ),
    )
    Batch.objects.filter(pk=batch.pk).update(practice_type_id=batch.practice_type_id)


def practice_requirements(batch: Batch) -> list[dict[str, Any]]:
    if not batch.practice_type_id:
        return []
    return [_requirement(batch, "EqualTo", IntegerValues=[PASSED])]


def _requirement(batch: Batch, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": batch.practice_type_id, "Comparator": comparator, **values}


def _title(batch: Batch, practice: Practice) -> str:
    return f"{practice.title}: {batch.title}"[:128]


def publish_practice(
    batch: Batch, client: MTurkClient, requirements: Sequence[QualificationRequirementTypeDef]
) -> list[PracticeHit]:
    """Publish what is unpublished of a batch's practice, for workers of whom `requirements` hold
    and who have no result yet; return what was published."""
    practice = practice_of(batch)
    rest = list(PracticeHit.objects.of(batch).unpublished())
    if practice is None or not rest:
        return []
    if not batch.practice_hit_type_id:
        batch.practice_hit_type_id = _create_hit_type(batch, client, practice, requirements)
        Batch.objects.filter(pk=batch.pk).update(practice_hit_type_id=batch.practice_hit_type_id)
    for hit in rest:
        hit.batch = batch  # one for all: a protocol is too much to read again for every HIT
        page = practice_page(batch.study, batch.document, hit.number)
        hit.hit_id = create_hit(client, hit, batch.practice_hit_type_id, page.html_question())
        PracticeHit.objects.filter(pk=hit.pk, hit_id="").update(hit_id=hit.hit_id)
    return rest


def _create_hit_type(
    batch: Batch,
    client: MTurkClient,
    practice: Practice,
    requirements: Sequence[QualificationRequirementTypeDef],
) -> str:
    unpractised: Any = _requirement(batch, "DoesNotExist") | {
        "ActionsGuarded": "DiscoverPreviewAndAccept"
    }
    with translated_errors():
        answer = client.create_hit_type(
            Title=_title(batch, practice),
            Description=(
                f"Paid practice for “{batch.title}”: the same page, with feedback on your answers. "
                "Pass it, and you may do the other HITs."
            ),
            Keywords=batch.keywords,
            Reward=f"{practice.reward_usd:.2f}",
            AssignmentDurationInSeconds=batch.assignment_duration_seconds,
            # Practice is paid however it went, as soon as it is handed in.
            AutoApprovalDelayInSeconds=0,
            QualificationRequirements=[*requirements, unpractised],
        )
    return identifier(answer, "HITTypeId")


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
        n_new += _store_answers(batch, hit, answers)
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


def _store_answers(batch: Batch, hit: PracticeHit, answers: HitAnswers) -> int:
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


@dataclass(frozen=True)
class PracticeReport:
    """Workers who practised in a batch, and what came of it; the others may still try again."""

    n_workers: int
    n_answers: int
    n_passed: int
    n_failed: int

    @property
    def n_undecided(self) -> int:
        return self.n_workers - self.n_passed - self.n_failed


def practice_report(batch: Batch) -> PracticeReport | None:
    """Of one batch, from what is stored; None where nothing was practised for it."""
    if not batch.practice_type_id:
        return None
    answers = PracticeAnswer.objects.filter(hit__batch=batch).order_by()
    results = PracticeResult.objects.of_type(batch.study, batch.practice_type_id).order_by()
    counts = answers.aggregate(n_workers=Count("worker", distinct=True), n_answers=Count("*"))
    results = results.filter(worker__in=answers.values("worker"))
    decided = results.aggregate(
        n_passed=Count("pk", filter=Q(is_passed=True)),
        n_failed=Count("pk", filter=Q(is_passed=False)),
    )
    return PracticeReport(**counts, **decided)
