"""What a batch requires of its workers, as the Requester API takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any

import pycountry
from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.protocols.validation import is_language
from annotation.protocols.versions import current_document
from hits.endpoints import translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused
from hits.exclusions import exclusion_requirement
from hits.models import Batch
from hits.practice import practice_requirements
from hits.qualification_tests import requirements_of_tests

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import QualificationRequirementTypeDef


# Mechanical Turk's own ids, which every compatible marketplace has.
LOCALE = "00000000000000000071"
PERCENT_APPROVED = "000000000000000000L0"
NUMBER_APPROVED = "00000000000000000040"
# Before three letters of ISO 639-3: Assay's marketplaces have one for each language.
LANGUAGE_PREFIX = "ASSAYLANGUAGE"
ANY_LANGUAGE = f"{LANGUAGE_PREFIX}ENG"
MASTERS = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"
MOST_REQUIREMENTS = 10
MOST_COUNTRIES = 30
# The greatest IntegerValue of the protocol.
MOST_APPROVED = 2**31 - 1
# What people write for codes that ISO 3166-1 gives other letters.
MISTAKEN = {"UK": "GB", "EL": "GR"}


def requirements(
    *,
    countries: Sequence[str] = (),
    languages: Sequence[str] = (),
    min_approval_percent: int | None = None,
    min_approved: int | None = None,
) -> list[dict[str, Any]]:
    """The requirements that hold for all HITs of a batch, to be stored with it.

    BatchUnfit says everything of them that no worker could meet.
    """
    countries = list(dict.fromkeys(countries))
    problems = [*countries_errors(countries), *languages_errors(languages)]
    if min_approval_percent is not None and not 0 <= min_approval_percent <= 100:
        problems.append(
            _("An approval rate is from 0 to 100 percent, not {n}.").format(n=min_approval_percent)
        )
    if min_approved is not None and not 0 <= min_approved <= MOST_APPROVED:
        problems.append(
            _("A number of approved HITs is from 0 to {most}, not {n}.").format(
                most=MOST_APPROVED, n=min_approved
            )
        )
    if problems:
        raise BatchUnfit(" ".join(problems))
    rows: list[dict[str, Any]] = []
    if countries:
        comparator = "EqualTo" if len(countries) == 1 else "In"
        locales = [{"Country": code} for code in countries]
        rows.append(_requirement(LOCALE, comparator, LocaleValues=locales))
    rows += [_requirement(language_type_id(code), "Exists") for code in dict.fromkeys(languages)]
    if min_approval_percent:
        rows.append(_at_least(PERCENT_APPROVED, min_approval_percent))
    if min_approved:
        rows.append(_at_least(NUMBER_APPROVED, min_approved))
    return rows


@dataclass(frozen=True)
class WhoMayWork:
    """What a batch requires of its workers, as `requirements` takes it."""

    countries: list[str]
    languages: list[str]
    min_approval_percent: int | None
    min_approved: int | None


def who_may_work(batch: Batch) -> WhoMayWork:
    """What `requirements` was given for a batch, for another like it."""
    rows = {row["QualificationTypeId"]: row for row in batch.requirements}
    locales = rows.get(LOCALE, {}).get("LocaleValues", [])
    least = {each: row["IntegerValues"][0] for each, row in rows.items() if "IntegerValues" in row}
    return WhoMayWork(
        countries=[locale["Country"] for locale in locales],
        languages=[
            type_id.removeprefix(LANGUAGE_PREFIX).lower()
            for type_id in rows
            if type_id.startswith(LANGUAGE_PREFIX)
        ],
        min_approval_percent=least.get(PERCENT_APPROVED),
        min_approved=least.get(NUMBER_APPROVED),
    )


# Where nothing says how long a HIT may take: workers pause, and come back to what they accepted.
MINUTES_OF_A_HIT = 60


@dataclass(frozen=True)
class ProtocolTerms:
    """What a study's protocol says of a batch: who may work, how much and how long, and how many
    on an item."""

    countries: list[str]
    languages: list[str]
    min_approval_percent: int | None
    min_approved: int | None
    max_per_worker: int | None
    max_assignments: int
    allowed_seconds: int | None

    @property
    def minutes(self) -> int:
        """Whole ones to finish a HIT in."""
        return ceil(self.allowed_seconds / 60) if self.allowed_seconds else MINUTES_OF_A_HIT


def protocol_terms(study: Study) -> ProtocolTerms:
    """Of the newest version; where there is none, of what the study's questions amount to."""
    document = current_document(study)
    who = document.qualifications
    return ProtocolTerms(
        countries=list(who.countries),
        languages=list(who.languages),
        min_approval_percent=who.least_approval_percent,
        min_approved=who.least_approved_hits,
        max_per_worker=who.most_hits_per_worker,
        max_assignments=document.completion.assignments_per_item,
        allowed_seconds=document.time.allowed_seconds,
    )


def _at_least(type_id: str, value: int) -> dict[str, Any]:
    return _requirement(type_id, "GreaterThanOrEqualTo", IntegerValues=[value])


def _requirement(type_id: str, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": type_id, "Comparator": comparator, **values}


def requirements_of(batch: Batch) -> Sequence[QualificationRequirementTypeDef]:
    """All that a batch's HIT type requires: its own, Masters, its tests, its practice, and not to
    be excluded."""
    return [*requirements_to_practise(batch), *_typed(practice_requirements(batch))]


def requirements_to_practise(batch: Batch) -> list[QualificationRequirementTypeDef]:
    """The same of its practice, less that it was passed: nobody practises for HITs that are not
    for them."""
    rows = list(batch.requirements)
    if batch.needs_masters:
        rows.append(_requirement(MASTERS, "Exists"))
    rows += requirements_of_tests(batch)
    if batch.exclusion_type_id:
        rows.append(exclusion_requirement(batch))
    return _typed(rows)


def countries_of(batch: Batch) -> list[str]:
    """The countries whose workers a batch takes; empty where it takes those of any."""
    return [
        str(locale["Country"])
        for row in batch.requirements
        if row["QualificationTypeId"] == LOCALE and row["Comparator"] in ("EqualTo", "In")
        for locale in row["LocaleValues"]
    ]


def _typed(rows: list[dict[str, Any]]) -> list[QualificationRequirementTypeDef]:
    return rows  # type: ignore[return-value]


def countries_errors(codes: Sequence[str]) -> list[str]:
    """All that is wrong with the codes of countries of which a worker must be in one."""
    errors = [error for code in codes if (error := country_error(code))]
    if len(codes) > MOST_COUNTRIES:
        errors.append(_("A marketplace takes at most {n} countries.").format(n=MOST_COUNTRIES))
    return errors


def country_error(code: str) -> str | None:
    """What is wrong with a country's code, if it is none: no worker could have it."""
    if code in _country_codes():
        return None
    correct = MISTAKEN.get(code.upper(), code.upper())
    if correct in _country_codes():
        sentence = _("“%(code)s” is not an ISO 3166 code of a country. Did you mean %(correct)s?")
        return sentence % {"code": code, "correct": correct}
    return _("“%(code)s” is not an ISO 3166 code of a country.") % {"code": code}


def country_name(code: str) -> str:
    """What a country is called, or its code where it has none."""
    country: Any = pycountry.countries.get(alpha_2=code)
    return code if country is None else str(getattr(country, "common_name", country.name))


def languages_errors(codes: Sequence[str]) -> list[str]:
    """All that is wrong with the codes of languages, all of which a worker must know."""
    text = _("“%(code)s” is not an ISO 639 code of a language, such as de.")
    return [text % {"code": code[:40]} for code in codes if not is_language(code)]


def language_type_id(code: str) -> str:
    # By its code alone: En is the name of a language too, though not of English.
    field = "alpha_2" if len(code) == 2 else "alpha_3"
    language: Any = pycountry.languages.get(**{field: code})
    return f"{LANGUAGE_PREFIX}{language.alpha_3.upper()}"


def language_name(code: str) -> str:
    language: Any = pycountry.languages.get(**{"alpha_2" if len(code) == 2 else "alpha_3": code})
    return code if language is None else str(language.name)


def requires_languages(batch: Batch) -> bool:
    return any(
        str(row["QualificationTypeId"]).startswith(LANGUAGE_PREFIX) for row in batch.requirements
    )


def has_languages(client: MTurkClient) -> bool:
    """Whether a marketplace has qualifications for languages, as Amazon's has not."""
    try:
        with translated_errors():
            client.get_qualification_type(QualificationTypeId=ANY_LANGUAGE)
    except MarketplaceRefused as refusal:
        # A marketplace that is busy has said nothing of languages.
        if refusal.is_momentary:
            raise
        return False
    return True


@cache
def _country_codes() -> frozenset[str]:
    return frozenset(country.alpha_2 for country in pycountry.countries)
