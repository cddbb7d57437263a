from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.documents.answers import parse_answer_key
from marketplace.documents.questions import parse_question_form
from marketplace.exceptions import (
    InvalidParameter,
    InvalidQualificationTypeState,
    QualificationTypeAlreadyExists,
    QualificationTypeDoesNotExist,
    first_or_raise,
    require,
)
from marketplace.models import (
    HitType,
    QualificationRequest,
    QualificationRequirement,
    QualificationType,
    Requester,
)
from marketplace.people.locations import locale_error
from marketplace.qualifications import requests
from marketplace.qualifications.system import LOCALE_ID, MASTERS_IDS, find_system

Comparator = QualificationRequirement.Comparator
OF_SETS = (Comparator.IN, Comparator.NOT_IN)


@dataclass(frozen=True)
class RequirementValues:
    type_id: str
    comparator: str
    integer_values: tuple[int, ...]
    locale_values: tuple[tuple[str, str], ...]
    actions_guarded: str


def asks_for_masters(requirements: Sequence[RequirementValues]) -> bool:
    return any(
        requirement.type_id in MASTERS_IDS and requirement.comparator != Comparator.DOES_NOT_EXIST
        for requirement in requirements
    )


def requirements_of(hit_type: HitType) -> tuple[RequirementValues, ...]:
    return tuple(map(_values_of, hit_type.requirements.all()))


@lru_cache(maxsize=4_096)
def stored_requirements(public_id: str) -> tuple[RequirementValues, ...]:
    """The requirements of the HIT type with this id. They never change, so each process reads them
    once."""
    rows = QualificationRequirement.objects.filter(hit_type__public_id=public_id)
    return tuple(map(_values_of, rows.select_related("qualification_type")))


def _values_of(row: QualificationRequirement) -> RequirementValues:
    return RequirementValues(
        type_id=row.type_id,
        comparator=row.comparator,
        integer_values=tuple(row.integer_values),
        locale_values=tuple((country, part) for country, part in row.locale_values),
        actions_guarded=row.actions_guarded,
    )


def check_types(requirements: Sequence[RequirementValues]) -> dict[str, QualificationType]:
    ids = {each.type_id for each in requirements if find_system(each.type_id) is None}
    types = {
        row.public_id: row
        for row in (QualificationType.objects.filter(public_id__in=ids) if ids else ())
    }
    for public_id in sorted(ids):
        require(
            public_id in types and not types[public_id].deleted_at,
            QualificationTypeDoesNotExist(public_id),
        )
        require(
            types[public_id].status == QualificationType.Status.ACTIVE,
            InvalidQualificationTypeState(
                f"QualificationType {public_id} is inactive. "
                "This operation can be called with a status of: Active"
            ),
        )
    return types


def write_requirements(hit_type: HitType, requirements: Sequence[RequirementValues]) -> None:
    types = check_types(requirements)
    QualificationRequirement.objects.bulk_create(
        QualificationRequirement(
            hit_type=hit_type,
            position=position,
            qualification_type=types.get(requirement.type_id),
            system_id="" if requirement.type_id in types else requirement.type_id,
            comparator=requirement.comparator,
            integer_values=list(requirement.integer_values),
            locale_values=[list(locale) for locale in requirement.locale_values],
            actions_guarded=requirement.actions_guarded,
        )
        for position, requirement in enumerate(requirements)
    )


def read_requirement(members: Mapping[str, Any]) -> RequirementValues:
    type_id: str = members["QualificationTypeId"]
    integers = tuple(members["IntegerValues"] or ())
    locales = tuple(
        (locale["Country"], locale["Subdivision"] or "") for locale in members["LocaleValues"] or ()
    )
    _check_values(type_id, members["Comparator"], integers, locales)
    return RequirementValues(
        type_id=type_id,
        comparator=members["Comparator"],
        integer_values=integers,
        locale_values=locales,
        actions_guarded=members["ActionsGuarded"]
        or (
            QualificationRequirement.Guard.PREVIEW_AND_ACCEPT
            if members["RequiredToPreview"]
            else QualificationRequirement.Guard.ACCEPT
        ),
    )


def _check_values(
    type_id: str,
    comparator: str,
    integers: tuple[int, ...],
    locales: tuple[tuple[str, str], ...],
) -> None:
    values = integers + locales
    require(
        not integers or not locales,
        InvalidParameter("A requirement has IntegerValues or LocaleValues, not both."),
    )
    if comparator in (Comparator.EXISTS, Comparator.DOES_NOT_EXIST):
        require(
            not values, InvalidParameter(f"{comparator} compares with nothing: give it no values.")
        )
        return
    require(values, InvalidParameter(f"{comparator} needs a value to compare with."))
    require(
        comparator in OF_SETS or len(values) <= 1,
        InvalidParameter(f"{comparator} compares with one value, not {len(values)}."),
    )
    require(
        bool(locales) == (type_id == LOCALE_ID),
        InvalidParameter(
            f"LocaleValues go with the QualificationTypeId {LOCALE_ID}, "
            "IntegerValues with any other."
        ),
    )
    require(
        not locales or comparator in (Comparator.EQUAL_TO, Comparator.NOT_EQUAL_TO, *OF_SETS),
        InvalidParameter(f"{comparator} can't compare locales."),
    )
    for country, subdivision in locales:
        if error := locale_error(country, subdivision):
            raise InvalidParameter(error)


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
    qualification_type = first_or_raise(
        QualificationType.objects.of(requester)
        .select_for_update(no_key=True)
        .filter(public_id=public_id),
        QualificationTypeDoesNotExist(public_id),
    )
    require(
        not qualification_type.deleted_at,
        InvalidQualificationTypeState(
            "This operation can be called with a status of: Active,Inactive"
        ),
    )
    now = clock.now()
    for request in qualification_type.requests.filter(
        status__in=QualificationRequest.OPEN_STATUSES
    ).select_for_update(no_key=True):  # one may be granted right now
        requests.refuse(request, reason="This qualification was withdrawn.", at=now)
    qualification_type.save_values(deleted_at=now)


def find_type(public_id: str) -> QualificationType:
    return first_or_raise(
        QualificationType.objects.existing()
        .select_related("requester")
        .filter(public_id=public_id),
        QualificationTypeDoesNotExist(public_id),
    )


def find_own_type(requester: Requester, public_id: str, *, lock: bool = False) -> QualificationType:
    own = QualificationType.objects.of(requester).existing().filter(public_id=public_id)
    return first_or_raise(
        own.select_for_update(no_key=True) if lock else own,
        QualificationTypeDoesNotExist(public_id),
    )


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
    require(
        not row.auto_granted or not row.test,
        InvalidParameter("A qualification type with a test can't be granted automatically."),
    )


def _check_test(values: TypeValues) -> None:
    if values.test is None:
        require(values.answer_key is None, InvalidParameter("An AnswerKey goes with a Test."))
        return
    if values.test_duration_seconds is None:
        raise InvalidParameter("A Test needs a TestDurationInSeconds.")
    parse_question_form(values.test)
    if values.answer_key is not None:
        parse_answer_key(values.answer_key)
