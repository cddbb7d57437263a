import re
from dataclasses import dataclass
from math import nan

import pytest

from console.glossary import CODE_NAMES
from console.templatetags.numbers import change, coefficient, duration, interval, words


@dataclass
class Estimate:
    ci_low: float | None
    ci_high: float | None


@pytest.mark.parametrize(
    ("value", "text", "changed"),
    [
        (0.344, "0.34", "+0.344"),
        (0.0123, "0.01", "+0.012"),
        (-0.5, "−0.50", "−0.500"),
        (-0.001, "0.00", "−0.001"),
        (1, "1.00", "+1.000"),
        (nan, "–", "–"),
        (None, "–", "–"),
    ],
)
def test_numbers_are_rounded_and_a_change_has_its_sign(value, text, changed):
    assert (coefficient(value), change(value)) == (text, changed)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(-0.1, 0.25), "[−0.10, 0.25]"),
        (Estimate(nan, nan), ""),
        (Estimate(None, None), ""),
        (object(), ""),
        ({"ci_low": 0.1, "ci_high": 0.2}, "[0.10, 0.20]"),
        ({"ci_low": None, "ci_high": None}, ""),
    ],
)
def test_an_interval_is_written_where_there_is_one(estimate, text):
    assert interval(estimate) == text


@pytest.mark.parametrize("code", ["no_pairable_units", "jackknife-t-clusters"])
def test_codes_are_written_as_words(code):
    assert words(code) == str(CODE_NAMES[code]) != code


@pytest.mark.parametrize(
    ("seconds", "numbers"),
    [(160, ["2", "40"]), (9.6, ["10"]), (7260, ["2", "1"]), (None, []), (nan, [])],
)
def test_durations_are_written_in_the_units_that_people_use(seconds, numbers):
    assert re.findall(r"\d+", duration(seconds)) == numbers
