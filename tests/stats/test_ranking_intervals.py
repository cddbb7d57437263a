from itertools import product

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.agreement.overlap import relevant_overlap
from stats.inference.two_way_bootstrap import two_way_bootstrap
from stats.ranking.random_assessors import random_assessors
from stats.ranking.rank_similarity import tau_b
from stats.ranking.resampled_topics import (
    UNMOVED,
    Similarity,
    similarities_over_topics,
    topic_samples,
    weighted_means,
    weighted_scores,
)
from stats.ranking.topic_means import mean_over_topics
from stats.ranking.weighted_topics import weighted_mean_over_topics
from tests.codes import refused

NAMES: list[Similarity] = ["tau_b", "tau_ap_a", "tau_ap_b", "rbo"]


def test_the_value_is_that_of_the_means_over_all_topics():
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 6, 40))
    found = similarities_over_topics(first, second, NAMES, samples=topic_samples(40, 200, 1))
    assert [each.name for each in found] == NAMES
    assert found[0].value == pytest.approx(
        stats.kendalltau(first.mean(axis=1), second.mean(axis=1)).statistic
    )
    for each in found:
        assert each.ci_low < each.value < each.ci_high
        assert (each.n_systems, each.n_topics, each.reason) == (6, 40, None)
    # The same systems under the same judgments are as alike as can be.
    for each in similarities_over_topics(first, first, NAMES, samples=topic_samples(40, 200, 1)):
        assert each.value == each.ci_high == pytest.approx(1)


def test_intervals_hold_1_where_true_rankings_are_the_same_and_noise_swaps_systems():
    rng = np.random.default_rng(2)
    held, values = [], []
    for _ in range(40):
        truth = 0.05 * rng.normal(size=(10, 1))
        seen = truth + 0.2 * rng.normal(size=(2, 10, 30))
        (tau,) = similarities_over_topics(*seen, ["tau_b"], samples=topic_samples(30, 200, rng))
        held.append(tau.ci_low <= 1 <= tau.ci_high)
        values.append(tau.value)
    assert np.mean(values) < 0.7
    assert np.mean(held) > 0.9


def test_swaps_lower_the_upper_limit_and_unmoved_values_have_no_interval():
    noise = 0.1 * np.random.default_rng(3).normal(size=(2, 4, 50))
    # the last two are so close that samples of topics swap them now and then
    first = np.array([[0.9], [0.7], [0.4], [0.38]]) + noise[0]
    second = np.array([[0.7], [0.9], [0.4], [0.38]]) + noise[1]
    found = similarities_over_topics(first, second, NAMES, samples=topic_samples(50, 500, 1))
    assert all(each.ci_low < each.value <= each.ci_high < 1 for each in found)
    noise = 0.01 * np.random.default_rng(6).random((2, 4, 30))
    first = np.array([[0.9], [0.7], [0.5], [0.3]]) + noise[0]
    second = first[[0, 2, 1, 3]] + noise[1]
    for there, value in ((first, 1), (second, 2 / 3)):
        samples = topic_samples(30, 200, 1)
        (found,) = similarities_over_topics(first, there, ["tau_b"], samples=samples)
        assert found.value == pytest.approx(value)
        assert np.isnan([found.ci_low, found.ci_high]).all()
        assert found.reason == UNMOVED
        assert found.method == "none"


def test_scores_are_means_or_where_topics_lack_mean_differences_on_topics_of_both():
    values = np.array([[0.2, np.nan, 0.6], [0.1, 0.5, np.nan]])
    weights = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    means = weighted_means(values, weights)
    np.testing.assert_allclose(means, [[0.4, 0.3], [1 / 3, 0.1], [0.6, np.nan]])
    rng = np.random.default_rng(5)
    values, weights = rng.random((4, 12)), rng.integers(0, 3, (3, 12)).astype(float)
    np.testing.assert_array_equal(weighted_scores(values, weights), weighted_means(values, weights))
    values[0, :5] = values[2, 3:9] = np.nan
    expected = [
        [
            np.mean(
                [
                    np.average((values[a] - values[b])[both], weights=row[both])
                    for b in range(4)
                    if b != a and (both := ~np.isnan(values[a] + values[b])).any()
                ]
            )
            for a in range(4)
        ]
        for row in weights
    ]
    np.testing.assert_allclose(weighted_scores(values, weights), expected, atol=1e-11)


@pytest.mark.parametrize(
    ("first", "second", "name", "code"),
    [
        (np.ones((3, 5)), np.eye(3, 5), "tau_b", "all_tied"),
        (np.ones((3, 5)), np.eye(3, 5), "tau_ap_a", "truth_tied"),
        (np.ones((1, 5)), np.ones((1, 5)), "tau_b", "too_few_systems"),
        (np.eye(3), np.eye(3)[::-1], "tau_b", "all_tied"),
    ],
)
def test_what_has_no_order_has_a_reason(
    first: np.ndarray, second: np.ndarray, name: Similarity, code: str
):
    samples = topic_samples(first.shape[1], 100, 1)
    (found,) = similarities_over_topics(first, second, [name], samples=samples)
    assert np.isnan([found.value, found.ci_low, found.ci_high]).all()
    assert found.reason.code == code


SAMPLES = topic_samples(4, 10, 1)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (
            lambda: similarities_over_topics(*np.ones((2, 2, 5)), ["tau_b"], samples=SAMPLES),
            "different_topics",
        ),
        (
            lambda: random_assessors(np.ones((1, 2, 2)), np.array([[True, False]]), np.ones(2)),
            "has_judged_empty",  # nobody judged the second topic
        ),
        (lambda: weighted_mean_over_topics([0.1, 0.2], [0.5, 0.0]), "probabilities_out_of_range"),
        (lambda: weighted_mean_over_topics([0.1, 0.2], [0.5, 1.1]), "probabilities_out_of_range"),
    ],
)
def test_what_cannot_be_used_is_refused(call, code):
    with refused(InvalidValue, code):
        call()


def test_random_assessors_have_the_distribution_of_all_choices():
    rng = np.random.default_rng(5)
    values = rng.random((2, 4, 3))
    merged = values.mean(axis=(0, 2))
    drawn = random_assessors(values, np.ones((2, 3), bool), merged, n_draws=20_000, rng=1)
    choices = [
        np.mean([values[choice[topic], :, topic] for topic in range(3)], axis=0)
        for choice in product((0, 1), repeat=3)
    ]
    assert drawn.tau.mean() == pytest.approx(np.mean([tau_b(merged, c) for c in choices]), abs=0.02)
    for a, b in product(range(4), repeat=2):
        share = np.mean([c[a] < c[b] for c in choices]) if merged[a] > merged[b] else 0
        assert drawn.swapped[a, b] == pytest.approx(share, abs=0.02)
    values = np.array([[[0.1, np.nan], [0.2, np.nan]], [[np.nan, 0.5], [np.nan, 0.1]]])
    judged = np.array([[True, False], [False, True]])
    drawn = random_assessors(values, judged, np.array([0.3, 0.15]), n_draws=5)
    np.testing.assert_allclose(drawn.means, [[0.3, 0.15]] * 5)
    assert drawn.n_topics_with_choice == 0


def test_overlap_is_the_shared_part_of_what_either_calls_relevant():
    first = np.array([1, 1, 1, 0, 0, 1])
    second = np.array([1, 0, 1, 1, 0, 1])
    topics = np.array([1, 1, 2, 2, 3, 3])
    found = relevant_overlap(first, second, topics)
    assert found.value == pytest.approx(3 / 5)
    without = [2 / 3, 2 / 3, 2 / 4]
    se = np.sqrt(2 / 3 * np.square(np.array(without) - np.mean(without)).sum())
    half = stats.t.ppf(0.975, 2) * se
    assert (found.ci_low, found.ci_high) == pytest.approx((max(0, 0.6 - half), min(1, 0.6 + half)))
    assert found.method == "jackknife-t-clusters"
    found = relevant_overlap([0, 0], [0, 0], [1, 2])
    assert np.isnan(found.value)
    assert found.reason.code == "nothing_relevant"


def test_both_resampled_is_as_resampling_rows_and_columns_by_hand():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(8, 1)) + rng.normal(size=(8, 12))
    limits = two_way_bootstrap(values, n_resamples=20_000, rng=1)
    means = [
        values[np.ix_(rng.integers(0, 8, 8), rng.integers(0, 12, 12))].mean() for _ in range(20_000)
    ]
    assert limits == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.03)
    for shape in ((1, 5), (5, 1)):
        assert np.isnan(two_way_bootstrap(np.ones(shape))).all()


def test_weighted_means_are_those_of_the_targets_the_strata_were_drawn_from():
    rng = np.random.default_rng(6)
    sizes, drawn = np.array([900, 100]), np.array([20, 12])
    values = [rng.beta(1, 4, drawn[0]), rng.beta(4, 1, drawn[1])]
    probabilities = np.repeat(drawn / sizes, drawn)
    found = weighted_mean_over_topics(np.concatenate(values), probabilities, [0] * 20 + [1] * 12)
    shares = sizes / sizes.sum()
    variances = [
        s**2 * each.var(ddof=1) / len(each) for s, each in zip(shares, values, strict=True)
    ]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 19 + variances[1] ** 2 / 11)
    mean = sum(s * each.mean() for s, each in zip(shares, values, strict=True))
    half = stats.t.ppf(0.975, freedom) * sum(variances) ** 0.5
    assert found.value == pytest.approx(mean)
    assert (found.ci_low, found.ci_high) == pytest.approx((mean - half, mean + half))
    values = np.random.default_rng(7).random(25)
    plain = mean_over_topics(values)
    found = weighted_mean_over_topics(values, [0.2] * 25)
    expected = (plain.value, plain.ci_low, plain.ci_high)
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "strata", "code"),
    [
        ([0.5], None, "too_few_topics"),
        ([0.5, 0.5, 0.5], None, "all_tied"),
        ([0.1, 0.5, 0.9], [1, 1, 2], "one_topic_in_stratum"),
    ],
)
def test_weighted_means_without_an_interval_have_a_reason(values, strata, code):
    found = weighted_mean_over_topics(values, [0.5] * len(values), strata)
    assert np.isnan(found.ci_low)
    assert found.reason.code == code
