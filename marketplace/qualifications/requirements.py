from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marketplace.exceptions import (
    InvalidParameter,
    InvalidQualificationTypeState,
    QualificationTypeDoesNotExist,
)
from marketplace.models import HitType, QualificationRequirement, QualificationType
from marketplace.people.locations import locale_error
from marketplace.qualifications.system import LOCALE_ID, MASTERS_IDS, find_system

Comparator = QualificationRequirement.Comparator
Guard = QualificationRequirement.Guard
WITHOUT_VALUE = (Comparator.EXISTS, Comparator.DOES_NOT_EXIST)
OF_SETS = (Comparator.IN, Comparator.NOT_IN)
LOCALE_COMPARATORS = (Comparator.EQUAL_TO, Comparator.NOT_EQUAL_TO, *OF_SETS)


@dataclass(frozen=True)
class RequirementValues:
    """One requirement, part of what distinguishes HIT types."""

    type_id: str
    comparator: str
    integer_values: tuple[int, ...]
    locale_values: tuple[tuple[str, str], ...]
    actions_guarded: str


def read_requirements(members: Sequence[Mapping[str, Any]]) -> tuple[RequirementValues, ...]:
    return tuple(map(_read, members))


def asks_for_masters(requirements: Sequence[RequirementValues]) -> bool:
    """Masters cost more."""
    return any(
        requirement.type_id in MASTERS_IDS and requirement.comparator != Comparator.DOES_NOT_EXIST
        for requirement in requirements
    )


def requirements_of(hit_type: HitType) -> tuple[RequirementValues, ...]:
    """The requirements of a HIT type that was prefetched with them."""
    return tuple(map(_values_of, hit_type.requirements.all()))


def stored_requirements(hit_type: HitType) -> tuple[RequirementValues, ...]:
    """A HIT type's requirements. They never change, so each process reads them once."""
    return _requirements_by_id(hit_type.public_id)


@lru_cache(maxsize=4_096)
def _requirements_by_id(public_id: str) -> tuple[RequirementValues, ...]:
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
    """The required qualification types by id. Raises an error if one cannot be required."""
    ids = {each.type_id for each in requirements if find_system(each.type_id) is None}
    rows = QualificationType.objects.filter(public_id__in=ids) if ids else ()
    types = {row.public_id: row for row in rows}
    for public_id in sorted(ids):
        if public_id not in types or types[public_id].deleted_at:
            raise QualificationTypeDoesNotExist(public_id)
        if types[public_id].status != QualificationType.Status.ACTIVE:
            raise InvalidQualificationTypeState(
                f"QualificationType {public_id} is inactive. "
                "This operation can be called with a status of: Active"
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


def _read(members: Mapping[str, Any]) -> RequirementValues:
    type_id: str = members["QualificationTypeId"]
    integers = tuple(members["IntegerValues"] or ())
    locales = tuple(
        (locale["Country"], locale["Subdivision"] or "") for locale in members["LocaleValues"] or ()
    )
    _check_values(type_id, members["Comparator"], integers, locales)
    preview = Guard.PREVIEW_AND_ACCEPT if members["RequiredToPreview"] else Guard.ACCEPT
    return RequirementValues(
        type_id=type_id,
        comparator=members["Comparator"],
        integer_values=integers,
        locale_values=locales,
        actions_guarded=members["ActionsGuarded"] or preview.value,
    )


def _check_values(
    type_id: str,
    comparator: str,
    integers: tuple[int, ...],
    locales: tuple[tuple[str, str], ...],
) -> None:
    values = integers + locales
    if integers and locales:
        raise InvalidParameter("A requirement has IntegerValues or LocaleValues, not both.")
    if comparator in WITHOUT_VALUE:
        if values:
            raise InvalidParameter(f"{comparator} compares with nothing: give it no values.")
        return
    if not values:
        raise InvalidParameter(f"{comparator} needs a value to compare with.")
    if comparator not in OF_SETS and len(values) > 1:
        raise InvalidParameter(f"{comparator} compares with one value, not {len(values)}.")
    if bool(locales) != (type_id == LOCALE_ID):
        raise InvalidParameter(
            f"LocaleValues go with the QualificationTypeId {LOCALE_ID}, "
            "IntegerValues with any other."
        )
    if locales and comparator not in LOCALE_COMPARATORS:
        raise InvalidParameter(f"{comparator} can't compare locales.")
    for country, subdivision in locales:
        if error := locale_error(country, subdivision):
            raise InvalidParameter(error)
