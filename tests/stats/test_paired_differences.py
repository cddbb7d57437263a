import math

import numpy as np
import pytest
from scipy import stats

from stats.significance.paired_differences import paired_difference


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    first = rng.normal(size=30)
    return first, first + rng.normal(0.4, 1, size=30)


def test_the_tests_are_scipys(pairs):
    first, second = pairs
    difference = paired_difference(first, second, n_resamples=10)
    t = stats.ttest_rel(second, first)
    assert (difference.t, difference.t_p) == pytest.approx((t.statistic, t.pvalue))
    ranked = stats.wilcoxon(second, first)
    assert (difference.wilcoxon, difference.wilcoxon_p) == pytest.approx(
        (ranked.statistic, ranked.pvalue)
    )
    assert difference.mean == pytest.approx(difference.mean_second - difference.mean_first)


def test_the_interval_is_that_of_scipys_bootstrap(pairs):
    first, second = pairs
    difference = paired_difference(first, second, n_resamples=40_000, confidence=0.9)
    oracle = stats.bootstrap(
        (second - first,),
        np.mean,
        method="percentile",
        confidence_level=0.9,
        n_resamples=40_000,
        rng=1,
    ).confidence_interval
    assert (difference.ci_low, difference.ci_high) == pytest.approx(
        (oracle.low, oracle.high), abs=0.01
    )


def test_the_same_seed_gives_the_same_interval_and_another_another(pairs):
    same = [paired_difference(*pairs, n_resamples=200, seed=seed) for seed in (1, 1, 2)]
    assert same[0] == same[1]
    assert same[0].ci_low != same[2].ci_low


def test_an_incomplete_pair_is_left_out_and_counted():
    difference = paired_difference([1, math.nan, 3, 4], [2, 2, math.nan, 7], n_resamples=10)
    assert (difference.mean, difference.n_pairs, difference.n_missing) == (2, 2, 2)


def test_pairs_without_a_difference_are_counted():
    assert paired_difference([1, 2, 3], [1, 2, 5], n_resamples=10).n_equal == 2


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([], [], "fewer than two complete pairs"),
        ([1], [2], "fewer than two complete pairs"),
        ([1, 2], [1, 2], "all differences are 0"),
        ([1, 2], [2, 3], "all differences are the same, so t is undefined"),
    ],
)
def test_what_cannot_be_tested_says_why(first, second, reason):
    difference = paired_difference(first, second, n_resamples=10)
    assert difference.reason == reason
    assert math.isnan(difference.t)
    assert math.isnan(difference.t_p)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"confidence": 1}, "confidence"), ({"n_resamples": 0}, "n_resamples must be at least 1")],
)
def test_options_out_of_range_are_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        paired_difference([1, 2], [2, 3], **options)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="first has 2, second has 1"):
        paired_difference([1, 2], [2])
