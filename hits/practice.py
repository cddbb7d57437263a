"""Practice at a marketplace: paid HITs with the study's own page, and the qualification that who
passes one is granted. They are planned with a batch, and published before its own HITs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from annotation.models import Candidate, Item, Study
from annotation.protocols.practice import RightRange, n_attempts, practice_fingerprint, right_range
from annotation.protocols.records import (
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.scales import range_of
from hits.answers import Answer, read_answer
from hits.calls import (
    AssignmentRecord,
    HitAnswers,
    calls_at_once,
    create_hit,
    create_type,
    fetch_answers,
    grant_qualification,
    identifier,
    require_possible,
)
from hits.endpoints import MTurkClient, QualificationRequirementTypeDef, translated_errors
from hits.exceptions import AnswerUnreadable, QuestionTooLarge
from hits.models import (
    Assignment,
    Batch,
    Hit,
    PracticeAnswer,
    PracticeHit,
    PracticeResult,
    Worker,
)
from hits.page_texts import page_language, page_text
from hits.questions import html_question, value_in_words
from hits.wages import duration_of, practice_duration, with_duration
from presentation.numbers import count_of


@dataclass(frozen=True)
class RightAnswer:
    candidate: str | None
    question: str
    range: RightRange
    words: str
    feedback: str

    def record(self) -> dict[str, Any]:
        return {
            "candidate": self.candidate,
            "question": self.question,
            "least": self.range.least,
            "most": self.range.most,
            "value": self.range.value,
            "right": self.words,
            "feedback": self.feedback,
        }


@dataclass(frozen=True)
class GradedAnswer:
    right: RightAnswer
    value: float | None

    @property
    def is_right(self) -> bool:
        return self.value is not None and self.right.range.holds(self.value)


@dataclass(frozen=True)
class Grade:
    n_right: int
    n_graded: int
    is_passed: bool


# The right values travel in the page: practice teaches, and what is read of it is public after the
# last answer. A qualification test must stay secret: the marketplace keeps its key.
@dataclass(frozen=True)
class PracticePage:
    item: Item
    document: ProtocolDocument
    practice: Practice
    right_answers: tuple[RightAnswer, ...]

    @property
    def n_needed(self) -> int:
        return -(-len(self.right_answers) * self.practice.pass_percent // 100)

    def record(self) -> dict[str, Any]:
        return {"needed": self.n_needed, "answers": [each.record() for each in self.right_answers]}

    def html_question(self) -> str:
        return html_question(self.item, self.document, practice=self.record())

    def grade(self, answer_xml: str) -> Grade:
        n_right = sum(each.is_right for each in self.graded(answer_xml))
        return Grade(n_right, len(self.right_answers), n_right >= self.n_needed)

    def graded(self, answer_xml: str) -> list[GradedAnswer]:
        values = _values(read_answer(answer_xml, self.item, self.document))
        return [
            GradedAnswer(each, values.get((each.candidate, each.question)))
            for each in self.right_answers
        ]


def _values(answer: Answer) -> dict[tuple[str | None, str], float]:
    return {
        (None if (one := judged.candidate) is None else one.blind_key, judged.question.name): (
            judged.value
        )
        for judged in answer.judgments
    }


def practice_page(study: Study, document: ProtocolDocument, number: int) -> PracticePage:
    practice = document.qualifications.practice
    if practice is None:
        raise ValueError(f"document: study '{study.slug}' has no practice.")
    case = practice.items[number]
    item = study.items.get(key=case.item) if case.item else _written_item(study, number, case)
    return PracticePage(
        item, document, practice, tuple(_right_answers(document, practice, case, item))
    )


def practice_pages(study: Study, document: ProtocolDocument) -> Iterator[PracticePage]:
    practice = document.qualifications.practice
    for number in range(len(practice.items) if practice else 0):
        yield practice_page(study, document, number)


def practice_page_errors(study: Study, document: ProtocolDocument) -> list[str]:
    errors = []
    for number, page in enumerate(practice_pages(study, document), start=1):
        try:
            page.html_question()
        except (QuestionTooLarge, ValueError) as error:
            errors.append(f"Page {number} of practice: {error}")
    return errors


def _written_item(study: Study, number: int, case: PracticeItem) -> Item:
    item = Item(
        # No stored item has such a key, so that no answer to one is taken for the other's.
        pk=-1 - number,
        study=study,
        key=f"practice {number + 1}",
        context=case.context,
        reference=case.reference,
        condition=case.condition,
        picture=None,
    )
    candidates = [
        Candidate(
            pk=-1 - index,
            item=item,
            key=f"candidate {index + 1}",
            blind_key=_blind_key(study, number, index),
            text=each.text,
            picture=None,
            position=index,
        )
        for index, each in enumerate(case.candidates)
    ]
    # As if they had been fetched: what is not stored cannot be.
    item._prefetched_objects_cache = {"candidates": candidates}  # type: ignore[attr-defined]
    return item


def _blind_key(study: Study, number: int, index: int) -> str:
    return sha256(f"{study.pseudonym_salt}\n{number}\n{index}".encode()).hexdigest()[:12]


def _right_in_words(question: ProtocolQuestion, right: RightRange, language: str) -> str:
    if question.kind in ("line", "number"):
        ends = dict.fromkeys((f"{right.least:g}", f"{right.most:g}"))
        low, high = range_of(question)
        return page_text("{value} on a scale from {min} to {max}", language).format(
            value="–".join(ends), min=f"{low:g}", max=f"{high:g}"
        )
    if question.kind in ("yes_no", "selection") and not (question.yes_label or question.no_label):
        return page_text("Yes" if right.value else "No", language)
    return value_in_words(question, right.value)


def _right_answers(
    document: ProtocolDocument, practice: Practice, case: PracticeItem, item: Item
) -> Iterator[RightAnswer]:
    own = {each.key: each.blind_key for each in item.candidates.all()}
    keys = [each.candidate or f"candidate {n}" for n, each in enumerate(case.candidates, start=1)]
    holders: list[tuple[str | None, PracticeCandidate | PracticeItem]] = [
        (own[key], each) for key, each in zip(keys, case.candidates, strict=True)
    ]
    for question in document.questions:
        for blind_key, holder in [*holders, (None, case)]:
            if (value := holder.scores.get(question.name)) is not None:
                right = right_range(question, value, practice.tolerance_percent)
                words = _right_in_words(question, right, page_language(document.language))
                feedback = holder.feedback.get(question.name, "").strip()
                yield RightAnswer(blind_key, question.name, right, words, feedback)


# Of the qualification; who has none may practise.
PASSED, FAILED = 1, 0
# So that a name has at most 200 characters, and a HIT's title 128.
LONGEST_TITLE = 100


def practice_of(batch: Batch) -> Practice | None:
    return batch.document.qualifications.practice


def create_practice_type(batch: Batch, client: MTurkClient) -> None:
    # One type for all batches of the study with the same practice: who passed once need not again.
    practice = practice_of(batch)
    if practice is None or batch.practice_type_id:
        return
    title = _title(batch, practice)
    n, percent = n_attempts(practice), practice.pass_percent
    batch.practice_type_id = create_type(
        client,
        name=f"{title[:LONGEST_TITLE]} – passed",
        key=f"practice-{batch.study_id}-{practice_fingerprint(batch.document)[:12]}",
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
    rows = [_requirement(batch, "EqualTo", IntegerValues=[PASSED])]
    return rows if batch.practice_type_id else []


def _requirement(batch: Batch, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": batch.practice_type_id, "Comparator": comparator, **values}


def _title(batch: Batch, practice: Practice) -> str:
    return f"{practice.title}: {batch.title}"[:128]


def publish_practice(
    batch: Batch, client: MTurkClient, requirements: Sequence[QualificationRequirementTypeDef]
) -> list[PracticeHit]:
    practice = practice_of(batch)
    rest = list(PracticeHit.objects.of(batch).unpublished())
    if practice is None or not rest:
        return []
    if not batch.practice_hit_type_id:
        batch.practice_hit_type_id = _create_hit_type(batch, client, practice, requirements)
        Batch.objects.filter(pk=batch.pk).update(practice_hit_type_id=batch.practice_hit_type_id)
    duration = practice_duration(practice, duration_of(batch.study, document=batch.document))
    for hit in rest:
        hit.batch = batch  # one for all: a protocol is too much to read again for every HIT
        page = practice_page(batch.study, batch.document, hit.number)
        page = replace(page, document=with_duration(page.document, duration))
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


def collect_practice(*, batch: Batch, client: MTurkClient) -> int:
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
    worker, _ = Worker.objects.get_or_create(
        marketplace=batch.connection.marketplace, worker_id=record.worker_id
    )
    grade, problem = Grade(0, 0, False), ""
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
    results = PracticeResult.objects.of_type(batch.study, batch.practice_type_id)
    open_answers = (
        PracticeAnswer.objects.filter(
            hit__batch__study=batch.study_id, hit__batch__practice_type_id=batch.practice_type_id
        )
        .exclude(worker__in=results.values("worker"))
        .select_related("hit")
    )
    # The first answer to each item: who does one again has read what is right.
    attempts: dict[int, dict[int, bool]] = {}
    for answer in open_answers.order_by("submitted_at", "pk"):
        attempts.setdefault(answer.worker_id, {}).setdefault(answer.hit.number, answer.is_passed)
    new = []
    for worker_id, by_item in attempts.items():
        counted = list(by_item.values())[: n_attempts(practice)]
        if any(counted) or len(counted) == n_attempts(practice):
            new.append(
                PracticeResult(
                    study_id=batch.study_id,
                    type_id=batch.practice_type_id,
                    worker_id=worker_id,
                    is_passed=any(counted),
                )
            )
    PracticeResult.objects.bulk_create(new, ignore_conflicts=True)


def _send_results(batch: Batch, client: MTurkClient) -> None:
    unsent = PracticeResult.objects.of_type(batch.study, batch.practice_type_id).unsent()
    for result in unsent.select_related("worker"):
        outcome = grant_qualification(
            client,
            result.type_id,
            result.worker.worker_id,
            PASSED if result.is_passed else FAILED,
            # Who failed has read so on the page.
            is_told=result.is_passed,
        )
        PracticeResult.objects.filter(pk=result.pk).update(**outcome)


@dataclass(frozen=True)
class PracticeReport:
    n_workers: int
    n_answers: int
    n_passed: int
    n_failed: int

    @property
    def n_undecided(self) -> int:
        return self.n_workers - self.n_passed - self.n_failed


def practice_report(batch: Batch) -> PracticeReport | None:
    if not batch.practice_type_id:
        return None
    answers = PracticeAnswer.objects.filter(hit__batch=batch).order_by()
    return PracticeReport(
        **answers.aggregate(n_workers=Count("worker", distinct=True), n_answers=Count("*")),
        **PracticeResult.objects.of_type(batch.study, batch.practice_type_id)
        .order_by()
        .filter(worker__in=answers.values("worker"))
        .aggregate(
            n_passed=Count("pk", filter=Q(is_passed=True)),
            n_failed=Count("pk", filter=Q(is_passed=False)),
        ),
    )
