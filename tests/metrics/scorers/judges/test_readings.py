import math

import pytest

from metrics.scorers.judges.readings import (
    read_grade,
    read_grade_as_released,
    read_rating,
    read_rating_as_released,
)


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


def test_the_released_grade_is_50_without_a_number_and_knows_no_scale():
    assert read_grade_as_released("Quite good.").value == 50
    assert read_grade_as_released("150").value == 150


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


def test_the_released_rating_is_the_first_digit_or_0():
    replies = ["2.5", "Fact: 84 per cent", "N/A", "1. Coherence: 3"]
    assert [read_rating_as_released(reply).value for reply in replies] == [2, 8, 0, 1]
