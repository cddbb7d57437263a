"""Giving qualifications to workers and taking them back."""

from datetime import datetime

from django.db import transaction

from marketplace import clock
from marketplace.exceptions import (
    InvalidQualificationState,
    QualificationDoesNotExist,
)
from marketplace.models import (
    Qualification,
    QualificationChange,
    QualificationType,
    WorkerAccount,
)
from marketplace.people.messages import send_message
from marketplace.qualifications.results import is_too_low, pass_marks, value_sentence

Status = Qualification.Status


@transaction.atomic
def associate(
    *, qualification_type: QualificationType, worker: WorkerAccount, value: int, notify: bool
) -> None:
    """Give a worker a qualification, or another value of it."""
    grant(qualification_type=qualification_type, worker=worker, value=value, at=clock.now())
    if notify:
        subject, text = value_message(qualification_type, value)
        send_message(
            requester=qualification_type.requester, worker=worker, subject=subject, text=text
        )


def value_message(qualification_type: QualificationType, value: int) -> tuple[str, str]:
    """What a worker who has this value now reads: the subject and the text."""
    now = clock.now()
    is_low = is_too_low(pass_marks(qualification_type, now=now), value)
    subject = "A value in a qualification" if is_low else "You were granted a qualification"
    return subject, value_sentence(qualification_type, value, now)


@transaction.atomic
def disassociate(
    *, qualification_type: QualificationType, worker: WorkerAccount, reason: str
) -> None:
    """Take a qualification back; the worker reads the reason."""
    now = clock.now()
    qualification = find_qualification(qualification_type, worker, lock=True)
    qualification.status = Status.REVOKED
    qualification.revoked_at = now
    qualification.save(update_fields=["status", "revoked_at"])
    _write_down(qualification, reason=reason, at=now)
    if reason:
        subject, text = revocation_message(qualification_type, reason)
        send_message(
            requester=qualification_type.requester, worker=worker, subject=subject, text=text
        )


def revocation_message(qualification_type: QualificationType, reason: str) -> tuple[str, str]:
    """What a worker who has it no longer reads: the subject and the text."""
    text = f"You no longer have the qualification “{qualification_type.name}”: {reason}"
    return "A qualification of yours was revoked", text


def grant(
    *,
    qualification_type: QualificationType,
    worker: WorkerAccount,
    value: int | None,
    at: datetime,
) -> Qualification:
    """Write down that a worker has a qualification now, with this value."""
    qualification, _ = Qualification.objects.update_or_create(
        qualification_type=qualification_type,
        worker=worker,
        defaults={
            "status": Status.GRANTED,
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
    """The worker's qualification of this type, which must not be revoked."""
    rows = Qualification.objects.filter(qualification_type=qualification_type, worker=worker)
    rows = rows.select_related("worker")
    qualification = (rows.select_for_update(no_key=True, of=("self",)) if lock else rows).first()
    if qualification is None:
        raise QualificationDoesNotExist
    if qualification.status != Status.GRANTED:
        raise InvalidQualificationState("This operation can be called with a status of: Granted")
    return qualification


def _write_down(qualification: Qualification, *, reason: str, at: datetime) -> None:
    QualificationChange.objects.create(
        qualification=qualification,
        status=qualification.status,
        integer_value=qualification.integer_value,
        reason=reason,
        created_at=at,
    )
