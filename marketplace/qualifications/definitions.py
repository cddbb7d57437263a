from dataclasses import dataclass, fields

from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.documents.answer_keys import parse_answer_key
from marketplace.documents.question_forms import parse_question_form
from marketplace.exceptions import (
    InvalidParameter,
    InvalidQualificationTypeState,
    QualificationTypeAlreadyExists,
    QualificationTypeDoesNotExist,
)
from marketplace.models import QualificationRequest, QualificationType, Requester
from marketplace.qualifications import requests

Status = QualificationType.Status


@dataclass(frozen=True)
class TypeValues:
    """None leaves a value unchanged, or unset."""

    description: str | None = None
    status: str | None = None
    test: str | None = None
    answer_key: str | None = None
    test_duration_seconds: int | None = None
    retry_delay_seconds: int | None = None
    auto_granted: bool | None = None
    auto_granted_value: int | None = None


@transaction.atomic
def create_qualification_type(
    *, requester: Requester, name: str, keywords: str, values: TypeValues
) -> QualificationType:
    qualification_type = QualificationType(
        requester=requester, name=name, keywords=keywords, created_at=clock.now()
    )
    _apply(qualification_type, values)
    try:
        with transaction.atomic():
            qualification_type.save(force_insert=True)
    except IntegrityError as error:
        raise QualificationTypeAlreadyExists from error
    return qualification_type


@transaction.atomic
def update_qualification_type(
    *, requester: Requester, public_id: str, values: TypeValues
) -> QualificationType:
    """Change the given values. A test is replaced with its duration and answer key. Open requests
    keep the test they began with."""
    qualification_type = find_own_type(requester, public_id, lock=True)
    _apply(qualification_type, values)
    qualification_type.save()
    return qualification_type


@transaction.atomic
def delete_qualification_type(*, requester: Requester, public_id: str) -> None:
    """Reject open requests, refuse new HITs that require it, and free its name. Existing HITs
    still require it, and workers keep it."""
    own = QualificationType.objects.of(requester).select_for_update(no_key=True)
    qualification_type = own.filter(public_id=public_id).first()
    if qualification_type is None:
        raise QualificationTypeDoesNotExist(public_id)
    if qualification_type.deleted_at:
        raise InvalidQualificationTypeState(
            "This operation can be called with a status of: Active,Inactive"
        )
    now = clock.now()
    open_requests = qualification_type.requests.filter(
        status__in=QualificationRequest.OPEN_STATUSES
    )
    for request in open_requests.select_for_update(no_key=True):  # one may be granted right now
        requests.refuse(request, reason="This qualification was withdrawn.", at=now)
    qualification_type.deleted_at = now
    qualification_type.save(update_fields=["deleted_at"])


def find_type(public_id: str) -> QualificationType:
    """A qualification type of any requester."""
    qualification_type = QualificationType.objects.existing().filter(public_id=public_id).first()
    if qualification_type is None:
        raise QualificationTypeDoesNotExist(public_id)
    return qualification_type


def find_own_type(requester: Requester, public_id: str, *, lock: bool = False) -> QualificationType:
    """A qualification type of this requester; others' do not exist for it."""
    own = QualificationType.objects.of(requester).existing().filter(public_id=public_id)
    qualification_type = (own.select_for_update(no_key=True) if lock else own).first()
    if qualification_type is None:
        raise QualificationTypeDoesNotExist(public_id)
    return qualification_type


def _apply(row: QualificationType, values: TypeValues) -> None:
    _check_test(values)
    if values.test is not None:
        row.test = values.test
        row.answer_key = values.answer_key or ""
    for field in fields(TypeValues):
        value = getattr(values, field.name)
        if value is not None and field.name not in ("test", "answer_key"):
            setattr(row, field.name, value)
    if not row.test:
        row.test_duration_seconds = None  # programs give one without a test, and mean nothing by it
    if row.auto_granted and row.test:
        raise InvalidParameter("A qualification type with a test can't be granted automatically.")


def _check_test(values: TypeValues) -> None:
    if values.test is None:
        if values.answer_key is not None:
            raise InvalidParameter("An AnswerKey goes with a Test.")
        return
    if values.test_duration_seconds is None:
        raise InvalidParameter("A Test needs a TestDurationInSeconds.")
    parse_question_form(values.test)
    if values.answer_key is not None:
        parse_answer_key(values.answer_key)
