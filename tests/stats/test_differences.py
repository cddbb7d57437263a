import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.interval_cases.crowds import Crowd
from error_codes import InvalidValue
from simulation.switching import share_over_workers
from stats.aggregation.bradley_terry import bradley_terry
from stats.correlation import correlation_at_level, influence, item_limits
from stats.inference import crossed_means, judge_soundness, powered_means
from stats.inference.preferences_with_ties import abilities_with_ties
from stats.inference.two_systems import difference_of_systems, ordered_comparison
from stats.significance import compare_by_resampling, resampled
from stats.significance.paired_differences import paired_difference
from tests.codes import codes_of, refused
from tests.stats.worked_examples import worked_example


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    first = rng.normal(size=30)
    return first, first + rng.normal(0.4, 1, size=30)


def test_tests_and_intervals_are_scipys_and_incomplete_and_equal_pairs_are_counted(pairs):
    first, second = pairs
    difference = paired_difference(first, second, n_resamples=10)
    t = stats.ttest_rel(second, first)
    assert (difference.t, difference.t_p) == pytest.approx((t.statistic, t.pvalue))
    ranked = stats.wilcoxon(second, first)
    assert (difference.wilcoxon, difference.wilcoxon_p) == pytest.approx(
        (ranked.statistic, ranked.pvalue)
    )
    assert difference.mean == pytest.approx(difference.mean_second - difference.mean_first)
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
    difference = paired_difference([1, math.nan, 3, 4], [2, 2, math.nan, 7], n_resamples=10)
    assert (difference.mean, difference.n_pairs, difference.n_missing) == (2, 2, 2)
    assert paired_difference([1, 2, 3], [1, 2, 5], n_resamples=10).n_equal == 2


def test_what_cannot_be_tested_says_why_and_what_cannot_be_used_is_refused():
    for first, second, code in (
        ([], [], "too_few_pairs"),
        ([1], [2], "too_few_pairs"),
        ([1, 2], [1, 2], "no_difference"),
        ([1, 2], [2, 3], "equal_differences"),
    ):
        difference = paired_difference(first, second, n_resamples=10)
        assert difference.reason.code == code
        assert math.isnan(difference.t)
        assert math.isnan(difference.t_p)
    for second, options, code in (
        ([2, 3], {"confidence": 1}, "confidence_out_of_range"),
        ([2, 3], {"n_resamples": 0}, "n_resamples_out_of_range"),
        ([2], {}, "unequal_lengths"),
    ):
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
    three, five, six = (resampled.difference_limits(0.5, drawn, "both", n, 0.95) for n in (3, 5, 6))
    assert np.isnan(three.low)
    assert three.reason == five.reason == "too_few_systems"
    assert five.low > 0
    assert np.isnan(five.p)
    assert six.p < 0.001
    drawn = np.where(np.arange(200) % 10 == 0, np.nan, np.arange(200.0))
    limits = resampled.difference_limits(0.5, drawn, "items", 5, 0.95)
    assert np.isnan(limits.low)
    assert limits.reason == "undefined_resamples"
    rng = np.random.default_rng(1)
    for _ in range(200):
        drawn = rng.normal(rng.normal() / 2, 0.25, size=999)
        limits = resampled.difference_limits(float(drawn.mean()), drawn, "items", None, 0.95)
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


SKEWED = Crowd(n_items=60, per_item=2, n_annotators=12, skew=1.5)


def ratings(seed=0, crowd=SKEWED):
    rng = np.random.default_rng(seed)
    item, annotator = crowd.cells(rng)
    return item, annotator, rng.normal(size=len(item)) + 0.4 * rng.normal(size=12)[annotator]


def variance_without_each(estimate, clusters):
    """The jackknife about the estimate of all rows; `estimate` is a function of the rows kept."""
    value = estimate(np.ones(len(clusters), dtype=bool))
    names = np.unique(clusters)
    squares = [(estimate(clusters != name) - value) ** 2 for name in names]
    return (len(names) - 1) / len(names) * np.sum(squares)


def effective(clusters):
    shares = pd.Series(clusters).value_counts(normalize=True)
    return 1 / (shares**2).sum()


def check_both_ways(found, estimate, item, annotator):
    cells = [f"{i} {a}" for i, a in zip(item, annotator, strict=True)]
    of_items, of_annotators, of_cells = (
        variance_without_each(estimate, np.asarray(codes)) for codes in (item, annotator, cells)
    )
    expected = max(of_items + of_annotators - of_cells, of_items, of_annotators)
    assert found.se**2 == pytest.approx(expected)
    assert found.freedom == pytest.approx(min(effective(item), effective(annotator)) - 1)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.value) / found.se, found.freedom))
    assert found.method == "two-way-clusters"


def test_means_differences_and_ordinal_leads_are_those_without_each_item_and_annotator():
    item, annotator, y = ratings()
    found = crossed_means.mean_over_items_and_annotators(item, annotator, y)
    check_both_ways(found, lambda kept: y[kept].mean(), item, annotator)
    assert found.busiest_share == pytest.approx(np.bincount(annotator).max() / len(y))
    is_first = np.arange(len(y)) % 2 == 0  # each annotator rates one system of an item
    found = difference_of_systems(item, annotator, is_first, y)
    check_both_ways(
        found, lambda kept: y[kept & is_first].mean() - y[kept & ~is_first].mean(), item, annotator
    )
    points = np.random.default_rng(1).integers(1, 6, size=(2, len(item)))
    is_first = np.arange(2 * len(item)) < len(item)
    found = ordered_comparison(np.tile(item, 2), np.tile(annotator, 2), is_first, points.ravel())
    signs = np.sign(points[0] - points[1])
    check_both_ways(found.lead, lambda kept: signs[kept].mean(), item, annotator)


def test_equal_loads_have_the_variance_of_sums_and_one_busy_annotator_one_degree_of_freedom():
    item = np.repeat(np.arange(24), 2)
    annotator = np.stack([np.arange(24) % 6, (np.arange(24) + 1 + np.arange(24) // 6) % 6], axis=1)
    annotator = annotator.ravel()
    assert len(set(np.bincount(annotator))) == 1
    y = np.random.default_rng(2).normal(size=48)
    found = crossed_means.mean_over_items_and_annotators(item, annotator, y)
    sums = np.bincount(annotator, y - y.mean())
    assert found.of_annotators == pytest.approx(6 / 5 * (sums**2).sum() / 48**2)
    assert found.freedom == pytest.approx(5)
    annotator = np.append(np.zeros(40, dtype=int), [1, 2])
    y = np.random.default_rng(3).normal(size=42)
    found = crossed_means.mean_over_items_and_annotators(np.arange(42), annotator, y)
    assert (found.freedom, found.effective_annotators < 1.2) == (1.0, True)
    assert np.isfinite([found.ci_low, found.ci_high, found.p]).all()
    item, is_first = np.tile(np.arange(100), 2), np.repeat([1, 0], 100)
    annotator = np.append(np.zeros(100, dtype=int), np.arange(100) % 20 + 1)
    y = np.random.default_rng(0).normal(size=200)
    assert difference_of_systems(item, annotator, is_first, y).freedom == 1


def compare_crowds(n_systems, seed=4):
    rng = np.random.default_rng(seed)
    item, annotator = SKEWED.cells(rng)
    pairs = np.array([rng.choice(n_systems, 2, replace=False) for _ in item])
    return item, annotator, *pairs.T, np.where(rng.random(len(item)) < 0.6, 1, -1)


def test_abilities_of_two_systems_move_as_a_share_does_and_bradley_terry_agrees():
    """Of two systems without ties log odds are one parameter: the information of n comparisons is
    n p (1 - p), and a step without some is their scores over that of the others."""
    item, annotator, first, second, outcome = compare_crowds(2)
    won = (outcome > 0) == (first == 0)  # by system 0
    share = won.mean()
    steps = {
        name: [
            (won[codes == one] - share).sum() / (share * (1 - share) * (codes != one).sum())
            for one in np.unique(codes)
        ]
        for name, codes in (("item", item), ("annotator", annotator))
    }
    by = {name: (1 - 1 / len(s)) * np.square(s).sum() for name, s in steps.items()}
    by_comparison = 1 / (share * (1 - share)) / (len(won) - 1)
    both = by["item"] + by["annotator"] - by_comparison
    [pair] = abilities_with_ties(first, second, outcome, items=item, annotators=annotator).pairs
    expected = both if both >= min(by.values()) else max(by.values())
    assert pair.se**2 == pytest.approx(expected, rel=1e-5)
    assert pair.freedom == pytest.approx(effective(annotator) - 1)
    winner, loser = np.where(outcome > 0, [first, second], [second, first])
    labels = bradley_terry(winner, loser, items=item, annotators=annotator).labels
    # strengths about their mean: of two, each half of the difference
    se = np.sqrt(max(both, *by.values()))
    assert 2 * labels["se"][0] == pytest.approx(se, rel=1e-5)
    t = stats.t.ppf(0.975, pair.freedom)
    assert 2 * (labels["ci_high"] - labels["ci_low"])[0] == pytest.approx(2 * t * se, rel=1e-5)


def test_abilities_and_clusters_of_people_vary_as_without_each_annotator():
    _item, annotator, first, second, outcome = compare_crowds(3)
    outcome[::5] = 0

    def difference(kept):
        found = abilities_with_ties(first[kept], second[kept], outcome[kept])
        return found.pairs[0].delta

    found = abilities_with_ties(first, second, outcome, annotators=annotator)
    assert found.se_by == "annotators"
    refitted = variance_without_each(difference, annotator)
    assert found.pairs[0].se ** 2 == pytest.approx(refitted, rel=0.1)
    assert "uneven_annotators" in codes_of(found.notes)
    item, annotator, first, second, outcome = compare_crowds(3)
    busiest = np.bincount(annotator).argmax()
    kept = (annotator == busiest) | ((first < 2) & (second < 2))
    columns = (column[kept] for column in (first, second, outcome))
    found = abilities_with_ties(*columns, items=item[kept], annotators=annotator[kept])
    assert all(0 < pair.se < 2 for pair in found.pairs)
    rng = np.random.default_rng(5)
    _, cluster, y = ratings(5, Crowd(80, 1, 12, 1.5))
    expected = variance_without_each(lambda kept: y[kept].mean(), cluster)
    freedom = effective(cluster) - 1
    half = stats.t.ppf(0.975, freedom) * np.sqrt(expected)
    switches = share_over_workers(pd.Series(cluster), y, 0.95)
    assert [switches.ci_low, switches.ci_high] == pytest.approx([y.mean() - half, y.mean() + half])
    shift = judge_soundness.judge_shift(np.zeros(80), y, clusters=cluster)
    assert [shift.ci_low, shift.ci_high] == pytest.approx([y.mean() - half, y.mean() + half])
    human = np.append(y, np.full(40, np.nan))
    clusters = np.append(cluster, 100 + np.arange(40))
    powered = powered_means.prediction_powered_mean(human, rng.normal(size=120), clusters=clusters)
    assert powered.people_only.se**2 == pytest.approx(expected)
    assert powered.people_only.ci_high == pytest.approx(y.mean() + half)


def test_pooled_correlations_leave_out_clusters_of_unequal_size():
    _, cluster, y = ratings(6)
    x = y + np.random.default_rng(6).normal(size=len(y))
    found = item_limits.limits_of_cells(x, y, cluster, "pearson", 0.95)
    influences = influence.pearson_influences(x, y)
    sums, sizes = np.bincount(cluster, influences.of_cell), np.bincount(cluster)
    n = len(sizes)
    squares = np.square(sums / (1 - sizes / len(y))).sum()
    # once more n / (n - 1): what a cluster moves is larger without its own pull
    variance = (n - 1) / n * squares * n / (n - 1)
    expected = influence.z_t_limits(influences.value, variance, effective(cluster) - 1, 0.95)
    assert (found.low, found.high) == pytest.approx(expected)
