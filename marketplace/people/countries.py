"""Countries and their parts, by the ISO 3166 codes that workers' profiles and HITs' requirements
share: a code that is in neither list could match no worker."""

from functools import cache
from typing import Any

import pycountry
from django.utils.translation import gettext as _

# What people write for codes that ISO 3166-1 gives other letters.
MISTAKEN = {"UK": "GB", "EL": "GR"}


@cache
def country_choices() -> tuple[tuple[str, str], ...]:
    """Codes and names, by name, as a form takes them."""
    named = (
        (each.alpha_2, getattr(each, "common_name", each.name)) for each in pycountry.countries
    )
    return tuple(sorted(named, key=lambda choice: choice[1]))


def locale_error(country: str, subdivision: str = "") -> str | None:
    """What is wrong with a country's code, or with that of a part of it; None where nothing is."""
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
    """What a country, or a part of it, is called within a sentence; the code where it has none."""
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
