import math

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.significance.paired_differences import paired_difference
from tests.codes import refused


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


def test_incomplete_and_equal_pairs_are_counted():
    difference = paired_difference([1, math.nan, 3, 4], [2, 2, math.nan, 7], n_resamples=10)
    assert (difference.mean, difference.n_pairs, difference.n_missing) == (2, 2, 2)
    assert paired_difference([1, 2, 3], [1, 2, 5], n_resamples=10).n_equal == 2


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ([], [], "too_few_pairs"),
        ([1], [2], "too_few_pairs"),
        ([1, 2], [1, 2], "no_difference"),
        ([1, 2], [2, 3], "equal_differences"),
    ],
)
def test_what_cannot_be_tested_says_why(first, second, code):
    difference = paired_difference(first, second, n_resamples=10)
    assert difference.reason.code == code
    assert math.isnan(difference.t)
    assert math.isnan(difference.t_p)


@pytest.mark.parametrize(
    ("second", "options", "code"),
    [
        ([2, 3], {"confidence": 1}, "confidence_out_of_range"),
        ([2, 3], {"n_resamples": 0}, "n_resamples_out_of_range"),
        ([2], {}, "unequal_lengths"),
    ],
)
def test_what_cannot_be_used_is_refused(second, options, code):
    with refused(InvalidValue, code):
        paired_difference([1, 2], second, **options)
