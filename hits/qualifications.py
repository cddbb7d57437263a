"""What a batch requires of its workers, as the Requester API takes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pycountry

from hits.exclusions import exclusion_requirement
from hits.models import Batch

if TYPE_CHECKING:
    from mypy_boto3_mturk.type_defs import QualificationRequirementTypeDef

# Mechanical Turk's own ids, which every compatible marketplace has.
LOCALE = "00000000000000000071"
PERCENT_APPROVED = "000000000000000000L0"
NUMBER_APPROVED = "00000000000000000040"
MASTERS = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"
MASTERS_IN_SANDBOX = "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"
MOST_REQUIREMENTS = 10
MOST_COUNTRIES = 30
# What people write for codes that ISO 3166-1 gives other letters.
MISTAKEN = {"UK": "GB", "EL": "GR"}


def requirements(
    *,
    countries: Sequence[str] = (),
    min_approval_percent: int | None = None,
    min_approved: int | None = None,
) -> list[dict[str, Any]]:
    """The requirements that hold for all HITs of a batch, to be stored with it."""
    wanted: list[dict[str, Any]] = []
    if countries:
        comparator = "EqualTo" if len(countries) == 1 else "In"
        locales = [{"Country": code} for code in countries]
        wanted.append(_requirement(LOCALE, comparator, LocaleValues=locales))
    if min_approval_percent:
        wanted.append(_at_least(PERCENT_APPROVED, min_approval_percent))
    if min_approved:
        wanted.append(_at_least(NUMBER_APPROVED, min_approved))
    return wanted


def _at_least(type_id: str, value: int) -> dict[str, Any]:
    return _requirement(type_id, "GreaterThanOrEqualTo", IntegerValues=[value])


def _requirement(type_id: str, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": type_id, "Comparator": comparator, **values}


def requirements_of(batch: Batch) -> Sequence[QualificationRequirementTypeDef]:
    """All that a batch's HIT type requires: its own, Masters, and not to be excluded."""
    wanted = list(batch.requirements)
    if batch.needs_masters:
        is_sandbox = batch.connection.marketplace == "sandbox"
        wanted.append(_requirement(MASTERS_IN_SANDBOX if is_sandbox else MASTERS, "Exists"))
    if batch.exclusion_type_id:
        wanted.append(exclusion_requirement(batch))
    return wanted


def country_error(code: str) -> str | None:
    """What is wrong with a country's code, if it is none: no worker could have it."""
    if code in _country_codes():
        return None
    meant = MISTAKEN.get(code.upper(), code.upper())
    hint = f" Did you mean {meant}?" if meant in _country_codes() else ""
    return f"“{code}” is not an ISO 3166 code of a country.{hint}"


@cache
def _country_codes() -> frozenset[str]:
    return frozenset(country.alpha_2 for country in pycountry.countries)
