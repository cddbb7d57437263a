"""Asking for a qualification: starting its test, handing it in, and what is decided.

Time ends a test that isn't handed in: whoever looks at requests calls `expire_overdue` first.
"""

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from error_codes import CodedText, require
from marketplace import clock
from marketplace.documents.answers import parse_answer_key, read_given_answers
from marketplace.exceptions import (
    InvalidQualificationRequestState,
    InvalidQualificationState,
    QualificationDoesNotExist,
    QualificationRequestDoesNotExist,
    RequestRefused,
    first_or_raise,
)
from marketplace.models import (
    Qualification,
    QualificationChange,
    QualificationRequest,
    QualificationType,
    Requester,
    WorkerAccount,
)
from marketplace.people.messages import send_message
from marketplace.qualifications.eligibility import is_earned
from marketplace.qualifications.results import is_too_low, pass_marks, value_sentence

# Giving qualifications to workers and taking them back.

QualificationStatus = Qualification.Status


def value_message(qualification_type: QualificationType, value: int) -> tuple[str, str]:
    now = clock.now()
    is_low = is_too_low(pass_marks(qualification_type, now=now), value)
    subject = "A value in a qualification" if is_low else "You were granted a qualification"
    return subject, value_sentence(qualification_type, value, now)


@transaction.atomic
def disassociate(
    *, qualification_type: QualificationType, worker: WorkerAccount, reason: str
) -> None:
    now = clock.now()
    qualification = find_qualification(qualification_type, worker, lock=True)
    qualification.save_values(status=QualificationStatus.REVOKED, revoked_at=now)
    _write_down(qualification, reason=reason, at=now)


def revocation_message(qualification_type: QualificationType, reason: str) -> tuple[str, str]:
    return (
        "A qualification of yours was revoked",
        f"You no longer have the qualification “{qualification_type.name}”: {reason}",
    )


def grant(
    *,
    qualification_type: QualificationType,
    worker: WorkerAccount,
    value: int | None,
    at: datetime,
) -> Qualification:
    qualification, _ = Qualification.objects.update_or_create(
        qualification_type=qualification_type,
        worker=worker,
        defaults={
            "status": QualificationStatus.GRANTED,
            "integer_value": value,
            "granted_at": at,
            "revoked_at": None,
        },
    )
    _write_down(qualification, reason="", at=at)
    return qualification


def find_qualification(
    qualification_type: QualificationType, worker: WorkerAccount, *, lock: bool = False
) -> Qualification:
    rows = Qualification.objects.filter(
        qualification_type=qualification_type, worker=worker
    ).select_related("worker")
    qualification = first_or_raise(
        rows.select_for_update(no_key=True, of=("self",)) if lock else rows,
        QualificationDoesNotExist(),
    )
    require(
        qualification.status == QualificationStatus.GRANTED,
        InvalidQualificationState("This operation can be called with a status of: Granted"),
    )
    return qualification


def _write_down(qualification: Qualification, *, reason: str, at: datetime) -> None:
    QualificationChange.objects.create(
        qualification=qualification,
        status=qualification.status,
        integer_value=qualification.integer_value,
        reason=reason,
        created_at=at,
    )


Status = QualificationRequest.Status


def why_not_request(
    worker: WorkerAccount, qualification_type: QualificationType
) -> CodedText | None:
    now = clock.now()
    if qualification_type.deleted_at or qualification_type.status != "Active":
        return CodedText(_("This qualification can't be requested."), "not_requestable")
    if is_earned(qualification_type):
        return CodedText(
            _("This qualification can't be requested: it is given for work."), "earned_by_work"
        )
    mine = QualificationRequest.objects.filter(qualification_type=qualification_type, worker=worker)
    expire_overdue(worker, now=now)
    if mine.filter(status=Status.STARTED).exists():
        return CodedText(
            _("You are taking the test for this qualification already."), "test_started"
        )
    if mine.filter(status=Status.SUBMITTED).exists():
        return CodedText(
            _("Your request for this qualification is waiting for a decision."), "request_waiting"
        )
    return _refusal_of_repetition(qualification_type, mine.order_by("-pk").first(), worker, now)


@transaction.atomic
def request_qualification(
    *, worker: WorkerAccount, qualification_type: QualificationType
) -> QualificationRequest:
    """Request a qualification. It is granted at once, or a test begins (Started), or its requester
    decides (Submitted)."""
    # One request of a worker at a time: of two tabs, the second sees what came of the first.
    worker = WorkerAccount.objects.select_for_update(no_key=True).get(pk=worker.pk)
    reason = why_not_request(worker, qualification_type)
    if reason is not None:
        raise RequestRefused(reason, code=reason.code)
    now = clock.now()
    request = QualificationRequest(
        qualification_type=qualification_type,
        worker=worker,
        status=Status.STARTED if qualification_type.test else Status.SUBMITTED,
        test=qualification_type.test,
        answer_key=qualification_type.answer_key,
        created_at=now,
        submitted_at=None if qualification_type.test else now,
    )
    if qualification_type.test:
        request.deadline = now + timedelta(seconds=qualification_type.test_duration_seconds or 0)
    try:
        with transaction.atomic():
            request.save(force_insert=True)
    except IntegrityError as error:
        raise RequestRefused(
            _("You have asked for this qualification already."), code="request_waiting"
        ) from error
    if qualification_type.auto_granted:
        _grant(request, value=qualification_type.auto_granted_value, at=now)
    return request


def submit_test(*, request: QualificationRequest, answer: str) -> QualificationRequest:
    """Submit a test as a QuestionFormAnswers document. With an answer key it is graded and
    granted, otherwise the requester decides. Repeating it changes nothing."""
    now = clock.now()
    expire_overdue(request.worker, now=now)
    with transaction.atomic():
        request = _locked(request)
        if request.status == Status.STARTED:
            _hand_in(request, answer, now=now)
    require(
        request.status != Status.EXPIRED,
        RequestRefused(_("The time for this test is over."), code="test_over"),
    )
    return request


def expire_overdue(worker: WorkerAccount, *, now: datetime) -> None:
    QualificationRequest.objects.filter(
        worker=worker, status=Status.STARTED, deadline__lte=now
    ).update(status=Status.EXPIRED, decided_at=now)


@transaction.atomic
def accept_request(*, requester: Requester, public_id: str, value: int | None) -> None:
    _grant(_find_pending(requester, public_id), value=value, at=clock.now())


@transaction.atomic
def reject_request(*, requester: Requester, public_id: str, reason: str) -> None:
    refuse(_find_pending(requester, public_id), reason=reason, at=clock.now())


def refuse(request: QualificationRequest, *, reason: str, at: datetime) -> None:
    request.save_values(status=Status.REJECTED, reason=reason, decided_at=at)
    name = request.qualification_type.name
    send_message(
        requester=request.qualification_type.requester,
        worker=request.worker,
        subject="A qualification was not granted",
        text=f"Your request for “{name}” was rejected. {reason}".strip(),
    )


def _grant(request: QualificationRequest, *, value: int | None, at: datetime) -> None:
    grant(qualification_type=request.qualification_type, worker=request.worker, value=value, at=at)
    request.save_values(status=Status.GRANTED, decided_at=at)


def _hand_in(request: QualificationRequest, answer: str, *, now: datetime) -> None:
    request.save_values(answer=answer, submitted_at=now, status=Status.SUBMITTED)
    if request.answer_key:
        _grant(
            request,
            value=parse_answer_key(request.answer_key).grade(read_given_answers(answer)),
            at=now,
        )


def _find_pending(requester: Requester, public_id: str) -> QualificationRequest:
    request = first_or_raise(
        QualificationRequest.objects.filter(
            public_id=public_id, qualification_type__requester=requester
        ).exclude(status=Status.STARTED),
        QualificationRequestDoesNotExist(public_id),
    )
    request = _locked(request)
    require(
        request.status == Status.SUBMITTED,
        InvalidQualificationRequestState(
            "This operation can be called with a status of: Submitted"
        ),
    )
    return request


def _locked(request: QualificationRequest) -> QualificationRequest:
    rows = QualificationRequest.objects.select_for_update(no_key=True, of=("self",))
    return rows.select_related("qualification_type__requester", "worker").get(pk=request.pk)


def _refusal_of_repetition(
    qualification_type: QualificationType,
    last: QualificationRequest | None,
    worker: WorkerAccount,
    now: datetime,
) -> CodedText | None:
    delay = qualification_type.retry_delay_seconds
    if last is None:
        qualification = Qualification.objects.filter(
            qualification_type=qualification_type, worker=worker, status="Granted"
        )
        has_it = delay is None and qualification.exists()
        text = _("You have this qualification already.")
        return CodedText(text, "held_already") if has_it else None
    if delay is None:
        return CodedText(_("This qualification can be requested only once."), "only_once")
    again_at = last.created_at + timedelta(seconds=delay)
    if again_at > now:
        text = _("You can request this qualification again from %(time)s UTC on.")
        return CodedText(text % {"time": f"{again_at:%Y-%m-%d %H:%M}"}, "too_early")
    return None
