"""Differences of two systems' ratings that do not vary."""

import numpy as np
import pytest

from stats.inference.two_systems import difference_of_systems


@pytest.mark.parametrize("n_annotators", [1, 3])
def test_a_constant_difference_of_decimals_has_no_p_and_no_interval(n_annotators):
    items = np.repeat(np.arange(20), n_annotators)
    annotators = np.tile(np.arange(n_annotators), 20)
    second = np.round(np.random.default_rng(0).uniform(1, 5, items.size), 1)
    one = difference_of_systems(
        np.tile(items, 2), np.tile(annotators, 2), np.repeat([1, 0], items.size),
        np.concatenate([second + 0.3, second]),
    )  # fmt: skip
    assert one.value == pytest.approx(0.3)
    assert np.isnan([one.se, one.p, one.ci_low, one.ci_high]).all()
