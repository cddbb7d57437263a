import math

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.correlation import correlation_at_level
from stats.significance import compare_by_resampling
from stats.significance.paired_differences import paired_difference
from stats.significance.result import difference_limits
from tests.codes import refused
from tests.stats.worked_examples import worked_example


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    first = rng.normal(size=30)
    return first, first + rng.normal(0.4, 1, size=30)


def test_the_tests_and_the_interval_are_scipys_and_a_seed_decides_it(pairs):
    first, second = pairs
    difference = paired_difference(first, second, n_resamples=10)
    t = stats.ttest_rel(second, first)
    assert (difference.t, difference.t_p) == pytest.approx((t.statistic, t.pvalue))
    ranked = stats.wilcoxon(second, first)
    assert (difference.wilcoxon, difference.wilcoxon_p) == pytest.approx(
        (ranked.statistic, ranked.pvalue)
    )
    assert difference.mean == pytest.approx(difference.mean_second - difference.mean_first)
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


EXAMPLE = worked_example(16)
MEANS = {"level": "system", "coefficient": "pearson"}


def crossed(table):
    """Cells of a table of systems by items."""
    return np.asarray(table).ravel()


def compared(resample, n_resamples=4000):
    inputs = EXAMPLE["inputs"]
    systems, items = np.indices(np.shape(inputs["metric_a"])).reshape(2, -1)
    metrics = {name: crossed(inputs[f"metric_{name}"]) for name in "ab"}
    options = {"items": items, "systems": systems, "resample": resample}
    human = crossed(inputs["human_system_item"])
    return compare_by_resampling(human, metrics, **MEANS, **options, n_resamples=n_resamples).iloc[
        0
    ]


@pytest.mark.parametrize(
    ("resample", "name"), [("both", "both"), ("items", "items_only"), ("systems", "systems_only")]
)
def test_differences_are_those_of_a_two_way_bootstrap_by_hand(resample, name):
    row, expected = compared(resample), EXAMPLE["expected"]
    assert row["delta"] == pytest.approx(expected["delta"], abs=1e-9)
    limits = [expected[name]["low"], expected[name]["high"]]
    if name == "items_only":  # of so few items percentiles are too narrow: Student's t
        assert 0.95 < (row["ci_high"] - row["ci_low"]) / (limits[1] - limits[0]) < 1.4
        assert (row["p"] < 0.05) == (row["ci_low"] > 0)
        return
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(limits, abs=0.08)
    assert row["p"] == pytest.approx(expected[name]["p"], abs=0.04)


def test_limits_have_reasons_and_agree_with_p():
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.5, 0.1, size=500)
    three, five, six = (difference_limits(0.5, drawn, "both", n, 0.95) for n in (3, 5, 6))
    assert np.isnan(three.low)
    assert three.reason == five.reason == "too_few_systems"
    assert five.low > 0
    assert np.isnan(five.p)
    assert six.p < 0.001
    drawn = np.where(np.arange(200) % 10 == 0, np.nan, np.arange(200.0))
    limits = difference_limits(0.5, drawn, "items", 5, 0.95)
    assert np.isnan(limits.low)
    assert limits.reason == "undefined_resamples"
    rng = np.random.default_rng(1)
    for _ in range(200):
        drawn = rng.normal(rng.normal() / 2, 0.25, size=999)
        limits = difference_limits(float(drawn.mean()), drawn, "items", None, 0.95)
        assert (limits.p < 0.05) == (limits.low > 0 or limits.high < 0)


def rejections(resample, n_systems, trials=120):
    rng = np.random.default_rng(n_systems)
    items, systems = np.indices((40, n_systems)).reshape(2, -1)
    rejected = 0
    for _ in range(trials):
        quality = rng.normal(size=n_systems)
        human = (quality + rng.normal(size=(40, n_systems))).ravel()
        metrics = {
            name: (quality + rng.normal(size=n_systems) + rng.normal(size=(40, n_systems))).ravel()
            for name in "ab"
        }
        options = {"items": items, "systems": systems, "resample": resample}
        row = compare_by_resampling(human, metrics, **MEANS, **options, n_resamples=199).iloc[0]
        rejected += row["p"] < 0.05
    return rejected / trials


@pytest.mark.slow
def test_metrics_with_favourites_of_their_own_differ_on_these_systems_but_not_on_new_ones():
    assert rejections("items", 8) > 0.2
    assert rejections("both", 8) <= 0.08


def test_clusters_are_resampled_instead_of_items():
    rng = np.random.default_rng(2)
    items, systems = np.arange(60).repeat(4), np.tile(np.arange(4), 60)
    human, metric = rng.normal(size=(2, 240))
    columns = {"items": items, "systems": systems, "level": "pooled", "coefficient": "kendall"}
    alone = correlation_at_level(human, metric, **columns, clusters=items)
    assert alone == correlation_at_level(human, metric, **columns)
    clustered = correlation_at_level(human, metric, **columns, clusters=items // 6)
    by_name = correlation_at_level(
        human, metric, items=items // 6, level="pooled", coefficient="kendall"
    )
    assert (clustered.ci_low, clustered.ci_high) == (by_name.ci_low, by_name.ci_high)
