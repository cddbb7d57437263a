"""Prediction-powered means on a published study, by the benchmark's own functions."""

import pytest

from benchmarks.prediction_powered import active_error, outcome, responses

pytestmark = pytest.mark.shared_data


@pytest.fixture
def pool(shared_data):
    return responses(shared_data / "topical_chat_usr", "coherence")


def test_a_quarter_of_the_ratings_and_a_judge_hold_the_mean_as_theory_says(pool):
    found = outcome(pool, 300, clustered=False)
    assert found.covered > 0.91
    assert found.width_ratio == pytest.approx(pool.theory(), abs=0.015)


def test_whole_dialogues_are_at_most_a_twentieth_wider_than_people_alone(pool):
    found = outcome(pool, 150, clustered=True)
    assert found.covered > 0.9
    assert found.width_ratio < 1.05


def test_active_choice_is_at_least_as_good_as_even_chances(pool):
    assert active_error(pool, 400) < 1.03
