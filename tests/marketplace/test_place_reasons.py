"""What a worker reads of a requirement of a place."""

import pytest

from marketplace.people.countries import country_choices, place_name
from marketplace.qualifications.comparators import Locale
from marketplace.qualifications.place_reasons import place_reason

US, CANADA = Locale("US"), Locale("CA")


@pytest.mark.parametrize(
    ("comparator", "places", "own", "code"),
    [
        ("EqualTo", [US], None, "not_stated"),
        ("In", [US, CANADA], None, "not_stated"),
        ("EqualTo", [US], CANADA, "elsewhere"),
        ("EqualTo", [Locale("US", "CA")], None, "not_stated"),
        ("NotIn", [US, CANADA], US, "excluded_place"),
        ("NotEqualTo", [Locale("DE")], None, "excluded_place"),
    ],
)
def test_a_reason_names_the_places(comparator, places, own, code):
    reason = place_reason(comparator, places, own)
    assert reason.code == code
    named = [*places, own] if code == "elsewhere" else places
    assert all(place_name(*place) in reason for place in named)


def test_every_country_has_a_name_and_an_unknown_code_stays():
    assert all(place_name(code).removeprefix("the ") == name for code, name in country_choices())
    assert place_name("XX", "Y") == "XX-Y"
    assert (place_name("US", "CA"), place_name("DE")) == (
        "California (the United States)",
        "Germany",
    )
