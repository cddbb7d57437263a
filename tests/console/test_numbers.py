from dataclasses import dataclass
from math import nan

import pytest

from console.templatetags.numbers import change, coefficient, duration, interval, words
from stats.agreement import Reason


@dataclass
class Estimate:
    ci_low: float | None
    ci_high: float | None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.344, "0.34"), (-0.5, "−0.50"), (-0.001, "0.00"), (1, "1.00"), (nan, "–"), (None, "–")],
)
def test_coefficients_have_two_decimals_and_a_minus_that_lines_up(value, text):
    assert coefficient(value) == text


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


def test_reasons_are_written_as_words():
    assert words(Reason.NO_PAIRABLE_UNITS) == "no pairable units"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "+0.012"), (-0.5, "−0.500"), (nan, "–"), (None, "–")]
)
def test_a_change_has_its_sign(value, text):
    assert change(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(160, "2 min 40 s"), (9.6, "10 s"), (7260, "2 h 1 min"), (None, "–"), (nan, "–")],
)
def test_durations_are_told_in_the_units_people_use(seconds, text):
    assert duration(seconds) == text
