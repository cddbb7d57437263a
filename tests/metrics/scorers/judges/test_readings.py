import math

import pytest

from error_codes import InvalidValue
from metrics.scorers.judges.distributions import from_samples, from_tokens
from metrics.scorers.judges.readings import (
    read_grade,
    read_grade_as_released,
    read_rating,
    read_rating_as_released,
)
from metrics.scorers.judges.replies import Token
from tests.codes import refused


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("85", 85),
        ("Appropriateness Score: [90]", 90),
        ("0", 0),
        ("100.", 100),
        ("I'd say 72 out of 100", 72),
        ("85.5", 85),
    ],
)
def test_a_grade_is_the_first_integer(reply, grade):
    assert read_grade(reply) == (grade, None)


@pytest.mark.parametrize(
    ("reply", "code"),
    [("Quite good.", "no_number"), ("", "no_number"), ("150", "off_scale"), ("-5", "off_scale")],
)
def test_a_reply_without_a_grade_is_nan_with_a_reason_and_never_50(reply, code):
    grade = read_grade(reply)
    assert math.isnan(grade.value)
    assert grade.reason.code == code


def test_released_readings_are_the_first_digits_or_a_default():
    assert read_grade_as_released("Quite good.").value == 50
    assert read_grade_as_released("150").value == 150
    replies = ["2.5", "Fact: 84 per cent", "N/A", "1. Coherence: 3"]
    assert [read_rating_as_released(reply).value for reply in replies] == [2, 8, 0, 1]


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("3", 3),
        ("- Coherence: 2", 2),
        ("1. Coherence: 3", 3),
        ("2. The response is loosely coherent.", 2),
        ("2.5", 2.5),
        ("Coherence:\n2", 2),
        ("**Coherence**: 2", 2),
        ("The score is 3.", 3),
        ("It has 7 turns, so I hesitate. Therefore, the coherence score is 1.", 1),
        ("The response is somewhat coherent (2).", 2),
        ("3/3", 3),
    ],
)
def test_a_rating_is_read_from_the_forms_that_models_give_it(reply, rating):
    assert read_rating(reply, "coherence", 1, 3) == (rating, None)


@pytest.mark.parametrize(
    ("reply", "code"), [("N/A", "no_number"), ("Coherence: 0", "off_scale"), ("4", "off_scale")]
)
def test_a_reply_without_a_rating_on_the_scale_is_nan_with_a_reason(reply, code):
    rating = read_rating(reply, "coherence", 1, 3)
    assert math.isnan(rating.value)
    assert rating.reason.code == code
    assert read_rating("Coherence: 0", "coherence", 0, 3) == (0, None)


def test_distributions_are_of_samples_that_were_read():
    """20 samples that sum to 38, in every way there is."""
    means = {
        from_samples([1.0] * ones + [2.0] * twos + [3.0] * (20 - ones - twos)).expectation
        for ones in range(21)
        for twos in range(21 - ones)
        if ones + 2 * twos + 3 * (20 - ones - twos) == 38
    }
    assert means == {1.9}
    assert from_samples([3.0, math.nan]).expectation == 3
    assert from_samples([3.0, math.nan]).mass == 0.5
    assert math.isnan(from_samples([math.nan]).expectation)


def token(text: str, *alternatives: tuple[str, float]) -> Token:
    return Token(text, math.log(0.5), tuple((name, math.log(p)) for name, p in alternatives))


def test_distributions_of_tokens_are_of_the_first_level_chosen():
    tokens = [token("Score", ("2", 0.2)), token(":"), token(" 2", (" 2", 0.5), ("3", 0.5))]
    assert from_tokens(tokens, range(1, 4)).expectation == pytest.approx(2.5)
    assert from_tokens([token("Good", ("2", 0.4))], range(1, 4)) == ({}, 0.0)
    assert from_tokens([token("1", ("3", 0.5))], range(1, 4)).expectation == pytest.approx(2)


def test_no_samples_and_levels_of_two_digits_are_refused():
    with refused(InvalidValue, "values_empty"):
        from_samples([])
    with refused(InvalidValue, "levels_of_two_digits"):
        from_tokens([], range(11))
