"""Estimates that a judge helps must not depend on its unit, its zero or its direction."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from stats.inference.powered_correlations import prediction_powered_correlation
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_quantiles import prediction_powered_quantile
from stats.inference.powered_regression import prediction_powered_regression
from stats.inference.sampled_batches import sampled_mean
from tests.codes import codes_of

N, N_RATED = 160, 40
slopes = st.tuples(st.sampled_from([-1.0, 1.0]), st.floats(0.001, 1000.0)).map(np.prod)
shifts = st.floats(-1000.0, 1000.0)


def studied(seed, rho=0.9):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=N)
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=N)
    human = np.where(rng.permutation(N) < N_RATED, np.clip(np.round(3 + truth), 1, 5), np.nan)
    return human, judge


def of_clusters(human, judge):
    return prediction_powered_mean(human, judge, clusters=np.arange(N) // 2)


def of_whole_clusters(human, judge):
    rated = np.arange(N) < 60
    return prediction_powered_mean(
        np.where(rated, 2 * judge_of_people(human), np.nan), judge, clusters=np.arange(N) // 3
    )


def judge_of_people(human):
    return np.where(np.isnan(human), np.arange(N) % 5 / 2, human)


def of_strata(human, judge):
    return prediction_powered_mean(human, judge, strata=np.arange(N) % 2)


def of_batches(human, judge):
    sent = np.where(np.isnan(human), np.nan, 1)
    return sampled_mean(human, judge, sent, 0.25 * sent)


def of_quantiles(human, judge):
    return prediction_powered_quantile(human, judge, quantile=0.5)


def of_clustered_quantiles(human, judge):
    return prediction_powered_quantile(
        human + 0.1 * np.sin(np.arange(N)), judge, quantile=0.4, clusters=np.arange(N) // 2
    )


def of_correlations(human, judge):
    return prediction_powered_correlation(human, judge, np.sin(np.arange(N)) + np.arange(N) / N)


def of_slopes(human, judge):
    found = prediction_powered_regression(human, judge, {"x": np.sin(np.arange(N))})
    return found.coefficients[1], found


ESTIMATES = (
    prediction_powered_mean,
    of_clusters,
    of_whole_clusters,
    of_strata,
    of_batches,
    of_quantiles,
    of_clustered_quantiles,
    of_correlations,
    of_slopes,
)


def numbers_of(result):
    one, whole = result if isinstance(result, tuple) else (result, result)
    numbers = [one.value, one.ci_low, one.ci_high, whole.power]
    return [*numbers, getattr(one, "effective_n", 0.0)], codes_of(whole.notes), whole.reason


@pytest.mark.parametrize("estimate", ESTIMATES)
@settings(max_examples=15, deadline=None)
@given(slope=slopes, shift=shifts, seed=st.integers(0, 9))
def test_an_affine_change_of_the_judge_changes_nothing(estimate, slope, shift, seed):
    human, judge = studied(seed)
    numbers, notes, reason = numbers_of(estimate(human, judge))
    assert numbers[3] > 0 or estimate is of_correlations
    moved, moved_notes, moved_reason = numbers_of(estimate(human, shift + slope * judge))
    assert moved == pytest.approx(numbers, rel=1e-5, abs=1e-7)
    assert (moved_notes, moved_reason) == (notes, reason)


@pytest.mark.parametrize("scale", [1.0, 25.0, 0.25, -1.0])
def test_a_nearly_perfect_judge_is_worth_as_much_in_any_unit(scale):
    """With lambda itself limited to 0 to 1, the last two were worth 50 and 40 ratings only."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=400)
    human = np.where(np.arange(400) < 40, truth, np.nan)
    found = prediction_powered_mean(human, scale * (truth + 0.06 * rng.normal(size=400)))
    assert found.effective_n == pytest.approx(218.5, abs=0.1)
    assert "judge_adds_nothing" not in codes_of(found.notes)


def test_scores_that_are_equal_up_to_rounding_say_nothing():
    human, _ = studied(0)
    for level in (0.0, 0.1, 1e9):
        judge = level * (1 + 1e-16 * np.arange(N)) + 0.0
        found = prediction_powered_mean(human, judge)
        assert (found.power, found.value) == (0, pytest.approx(np.nanmean(human)))
        assert "judge_adds_nothing" in codes_of(found.notes)
