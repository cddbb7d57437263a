"""The error spent over several looks."""

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.inference.looks import confidence_at_look
from stats.inference.prediction_powered import prediction_powered_mean
from tests.codes import refused

BOUNDARIES = {
    # two-sided, .05 in all, five equally spaced looks: the programs of Reboussin, DeMets, Kim and
    # Lan (2000, Controlled Clinical Trials 21, 190-207), of which R's ldbounds is a translation
    "obrien_fleming": [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
    "pocock": [2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
}


@pytest.mark.parametrize("spending", BOUNDARIES)
def test_boundaries_are_those_of_lan_and_demets(spending):
    levels = [confidence_at_look(look, 5, spending=spending) for look in range(1, 6)]
    bounds = stats.norm.isf((1 - np.array(levels)) / 2)
    assert bounds == pytest.approx(BOUNDARIES[spending], abs=2e-4)


@pytest.mark.parametrize("spending", BOUNDARIES)
@pytest.mark.parametrize(("looks", "confidence"), [(2, 0.9), (4, 0.95), (12, 0.99)])
def test_sums_that_still_grow_cross_a_boundary_as_often_as_is_spent(looks, confidence, spending):
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(200_000, looks)).cumsum(axis=1) / np.sqrt(np.arange(1, looks + 1))
    levels = [
        confidence_at_look(look, looks, confidence=confidence, spending=spending)
        for look in range(1, looks + 1)
    ]
    crossed = (np.abs(steps) > stats.norm.isf((1 - np.array(levels)) / 2)).any(axis=1)
    error = 1 - confidence
    assert crossed.mean() == pytest.approx(error, abs=4 * np.sqrt(error / 200_000))


def test_one_look_is_no_look_at_all_and_others_are_refused():
    assert confidence_at_look(1, 1, confidence=0.9) == 0.9
    for look, looks in ((0, 3), (4, 3), (1, 0)):
        with refused(InvalidValue, "look_out_of_range"):
            confidence_at_look(look, looks)


def test_looking_five_times_without_spending_misses_too_often_and_with_it_does_not():
    rng = np.random.default_rng(2)
    missed = {"spent": 0, "ignored": 0}
    for _ in range(300):
        truth = rng.normal(size=200)
        judge = 0.5 * truth + 0.8 * rng.normal(size=200)
        means = {
            name: [
                prediction_powered_mean(
                    np.where(np.arange(200) < 20 * look, truth, np.nan), judge, confidence=level
                )
                for look, level in enumerate(levels, start=1)
            ]
            for name, levels in (
                ("spent", [confidence_at_look(look, 5) for look in range(1, 6)]),
                ("ignored", [0.95] * 5),
            )
        }
        for name, looked in means.items():
            missed[name] += any(not one.ci_low <= 0 <= one.ci_high for one in looked)
    assert missed["ignored"] > 30
    assert missed["spent"] < 25
