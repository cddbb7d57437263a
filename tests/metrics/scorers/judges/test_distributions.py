import math

import pytest

from error_codes import InvalidValue
from metrics.scorers.judges.distributions import from_samples, from_tokens
from metrics.scorers.judges.replies import Token
from tests.codes import refused


def test_samples_with_one_mean_have_one_score_to_the_last_digit():
    """20 samples that sum to 38, in every way there is."""
    means = {
        from_samples([1.0] * ones + [2.0] * twos + [3.0] * (20 - ones - twos)).expectation
        for ones in range(21)
        for twos in range(21 - ones)
        if ones + 2 * twos + 3 * (20 - ones - twos) == 38
    }
    assert means == {1.9}


def test_samples_that_were_not_read_lessen_the_mass_and_not_the_score():
    assert from_samples([3.0, math.nan]).expectation == 3
    assert from_samples([3.0, math.nan]).mass == 0.5
    assert math.isnan(from_samples([math.nan]).expectation)


def token(text: str, *alternatives: tuple[str, float]) -> Token:
    return Token(text, math.log(0.5), tuple((name, math.log(p)) for name, p in alternatives))


def test_the_score_may_come_after_other_tokens():
    tokens = [token("Score", ("2", 0.2)), token(":"), token(" 2", (" 2", 0.5), ("3", 0.5))]
    assert from_tokens(tokens, range(1, 4)).expectation == pytest.approx(2.5)


def test_a_reply_that_chose_no_level_has_no_distribution():
    assert from_tokens([token("Good", ("2", 0.4))], range(1, 4)) == ({}, 0.0)


def test_the_chosen_token_counts_where_the_alternatives_leave_it_out():
    assert from_tokens([token("1", ("3", 0.5))], range(1, 4)).expectation == pytest.approx(2)


def test_no_samples_and_levels_of_two_digits_are_refused():
    with refused(InvalidValue, "values_empty"):
        from_samples([])
    with refused(InvalidValue, "levels_of_two_digits"):
        from_tokens([], range(11))
