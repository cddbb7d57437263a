"""What a worker reads of a requirement of a place."""

import pytest

from marketplace.people.countries import country_choices, place_name
from marketplace.qualifications.comparators import Locale
from marketplace.qualifications.place_reasons import place_reason

US, CANADA = Locale("US"), Locale("CA")


@pytest.mark.parametrize(
    ("comparator", "places", "own", "reason"),
    [
        ("EqualTo", [US], None, "You must be in the United States."),
        ("In", [US, CANADA], None, "You must be in the United States or Canada."),
        (
            "EqualTo",
            [US],
            CANADA,
            "You must be in the United States; by your profile you are in Canada.",
        ),
        ("EqualTo", [Locale("US", "CA")], None, "You must be in California (the United States)."),
        ("NotIn", [US, CANADA], US, "You must not be in the United States or Canada."),
        ("NotEqualTo", [Locale("DE")], None, "You must not be in Germany."),
    ],
)
def test_a_place_is_named_as_people_name_it(comparator, places, own, reason):
    assert place_reason(comparator, places, own) == reason


def test_every_country_has_a_name_and_an_unknown_code_stays():
    assert all(place_name(code).removeprefix("the ") == name for code, name in country_choices())
    assert place_name("XX", "Y") == "XX-Y"
