from functools import cache, lru_cache
from typing import Any

import pycountry
from django.db import transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, require
from marketplace.models import LocationStatement, WorkerAccount
from marketplace.users import User

# Countries and their parts, by the ISO 3166 codes that workers' profiles and HITs' requirements
# share: a code that is in neither list could match no worker.

# What people write for codes that ISO 3166-1 gives other letters.
MISTAKEN = {"UK": "GB", "EL": "GR"}


@cache
def country_choices() -> tuple[tuple[str, str], ...]:
    named = (
        (each.alpha_2, getattr(each, "common_name", each.name)) for each in pycountry.countries
    )
    return tuple(sorted(named, key=lambda choice: choice[1]))


def locale_error(country: str, subdivision: str = "") -> str | None:
    if country not in _country_codes():
        meant = MISTAKEN.get(country.upper(), country.upper())
        refusal = _("Country '%(country)s' is not an ISO 3166-1 alpha-2 code.")
        if meant in _country_codes():
            hint = _("Did you mean %(meant)s?")
            refusal = f"{refusal} {hint}"
        return refusal % {"country": country, "meant": meant}
    if subdivision and subdivision not in _subdivision_codes(country):
        return _(
            "Subdivision '%(subdivision)s' is not an ISO 3166-2 code of %(country)s, "
            "without the '%(country)s-' in front."
        ) % {"subdivision": subdivision, "country": country}
    return None


# Whose names have an article in a sentence.
WITH_ARTICLE = frozenset((
    "AE", "AX", "BS", "CC", "CF", "CK", "DO", "FK", "FO", "GB", "IM", "IO", "KM", "KY", "MH", "MP",
    "MV", "NL", "PH", "SB", "SC", "TC", "TF", "UM", "US", "VG", "VI",
))  # fmt: skip


def place_name(country: str, subdivision: str = "") -> str:
    known: Any = pycountry.countries.get(alpha_2=country)
    if known is None:
        return f"{country}-{subdivision}" if subdivision else country
    name = getattr(known, "common_name", known.name)
    if country in WITH_ARTICLE and not name.startswith("The "):
        name = f"the {name}"
    code = f"{country}-{subdivision}"
    part = next((each.name for each in pycountry.subdivisions if each.code == code), "")
    return f"{part} ({name})" if part else name


@cache
def _country_codes() -> frozenset[str]:
    return frozenset(each.alpha_2 for each in pycountry.countries)


@cache
def _subdivision_codes(country: str) -> frozenset[str]:
    parts = (each for each in pycountry.subdivisions if each.country_code == country)
    return frozenset(each.code.partition("-")[2] for each in parts)


@transaction.atomic
def state_location(
    *, worker: WorkerAccount, country: str, subdivision: str, network_country: str = ""
) -> None:
    # Accepted once: HITs are offered by it.
    locked = WorkerAccount.objects.select_for_update().get(pk=worker.pk)
    if (locked.country, locked.subdivision) == (country, subdivision):
        return
    require(
        not locked.country,
        InvalidParameter(
            _("Your country is settled. If it is wrong, or you have moved, ask the operator.")
        ),
    )
    _write(
        worker,
        country,
        subdivision,
        LocationStatement.Source.WORKER,
        network_country=network_country,
    )


@transaction.atomic
def correct_location(
    *,
    worker: WorkerAccount,
    country: str,
    subdivision: str = "",
    reason: str,
    user: User | None = None,
) -> None:
    if not country or (error := locale_error(country, subdivision)):
        raise InvalidParameter(error if country else _("Say a country."), code="unknown_place")
    require(reason.strip(), InvalidParameter(_("Say why the country is changed.")))
    _write(worker, country, subdivision, "operator", reason=reason.strip())
    detail = {"country": country, "subdivision": subdivision}
    note("worker.correct_location", subject=worker.worker_id, user=user, detail=detail)


def _write(
    worker: WorkerAccount,
    country: str,
    subdivision: str,
    source: str,
    *,
    network_country: str = "",
    reason: str = "",
) -> None:
    LocationStatement.objects.create(
        worker=worker,
        country=country,
        subdivision=subdivision,
        source=source,
        network_country=network_country,
        reason=reason[:500],
        created_at=clock.now(),
    )
    worker.save_values(country=country, subdivision=subdivision)


# Languages that workers say they know, by the ISO 639 codes that profiles and HITs share.

MOST_LANGUAGES = 20


def language_code(text: str) -> str | None:
    """A language's code by its name or code: two letters if there are, else three."""
    # Codes first: En is the name of a language too, though not of English.
    language = _of_code(text.strip().lower())
    if language is None:
        try:
            language = pycountry.languages.lookup(text.strip())
        except LookupError:
            return None
    return _code(language)


@lru_cache(1000)
def language_name(code: str) -> str:
    return str(_of_code(code).name)


@lru_cache(1000)
def code_of_three_letters(letters: str) -> str | None:
    is_code = len(letters) == 3 and letters.isupper()
    language = _of_code(letters.lower()) if is_code else None
    return _code(language) if language else None


@lru_cache(1000)
def three_letters(code: str) -> str:
    return str(_of_code(code).alpha_3).upper()


def read_languages(text: str) -> tuple[list[str], list[str]]:
    words = [word.strip() for word in text.replace(";", ",").split(",") if word.strip()]
    codes = {word: language_code(word) for word in words}
    errors = [
        _("“%(word)s” is not a language that ISO 639 has. Write its name in English, or its code.")
        % {"word": word[:40]}
        for word, code in codes.items()
        if code is None
    ]
    if len(words) > MOST_LANGUAGES:
        errors.append(_("At most %(n)d languages fit.") % {"n": MOST_LANGUAGES})
    return list(dict.fromkeys(code for code in codes.values() if code)), errors


def _of_code(code: str) -> Any:
    languages = pycountry.languages
    return languages.get(alpha_2=code) if len(code) == 2 else languages.get(alpha_3=code)


def _code(language: Any) -> str:
    return str(getattr(language, "alpha_2", language.alpha_3))
