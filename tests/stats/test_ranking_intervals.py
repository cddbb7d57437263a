from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.agreement.specific import relevant_overlap
from stats.inference.resampled_means import two_way_bootstrap
from stats.ranking.rank_biased_overlap import RankTies, rbo, rbo_rows, tie_groups
from stats.ranking.rank_similarity import (
    random_assessors,
    tau_ap_a,
    tau_ap_a_rows,
    tau_ap_b,
    tau_ap_b_rows,
    tau_b,
)
from stats.ranking.resampled_topics import (
    UNMOVED,
    Similarity,
    similarities_over_topics,
    topic_samples,
    weighted_means,
    weighted_scores,
)
from stats.ranking.topic_means import mean_over_topics, weighted_mean_over_topics
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


def test_intervals_hold_1_where_true_rankings_are_the_same_and_unmoved_values_have_none():
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


def test_what_has_no_order_has_a_reason():
    for first, second, name, code in (
        (np.ones((3, 5)), np.eye(3, 5), "tau_b", "all_tied"),
        (np.ones((3, 5)), np.eye(3, 5), "tau_ap_a", "truth_tied"),
        (np.ones((1, 5)), np.ones((1, 5)), "tau_b", "too_few_systems"),
        (np.eye(3), np.eye(3)[::-1], "tau_b", "all_tied"),
    ):
        samples = topic_samples(first.shape[1], 100, 1)
        (found,) = similarities_over_topics(first, second, [name], samples=samples)
        assert np.isnan([found.value, found.ci_low, found.ci_high]).all()
        assert found.reason.code == code


SAMPLES = topic_samples(4, 10, 1)


def test_what_cannot_be_used_is_refused():
    for call, code in (
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
        (lambda: rbo(groups(""), groups("a")), "first_empty"),
        (lambda: rbo(groups("a a"), groups("a")), "repeated_items"),
        (lambda: rbo(groups("a"), groups("a"), p=1.0), "p_out_of_range"),
        (lambda: rbo(groups("a"), groups("a"), ties="c"), "unknown_ties"),
        (lambda: tau_ap_a([1, 1, 2], [1, 2, 3]), "truth_tied"),
    ):
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


def test_overlap_is_what_either_calls_relevant_and_resampled_by_rows_and_columns():
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
    rng = np.random.default_rng(6)
    values = rng.normal(size=(8, 1)) + rng.normal(size=(8, 12))
    limits = two_way_bootstrap(values, n_resamples=20_000, rng=1)
    means = [
        values[np.ix_(rng.integers(0, 8, 8), rng.integers(0, 12, 12))].mean() for _ in range(20_000)
    ]
    assert limits == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.03)
    for shape in ((1, 5), (5, 1)):
        assert np.isnan(two_way_bootstrap(np.ones(shape))).all()


def test_weighted_means_are_of_all_targets_and_have_a_reason_without_an_interval():
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
    for values, strata, code in (
        ([0.5], None, "too_few_topics"),
        ([0.5, 0.5, 0.5], None, "all_tied"),
        ([0.1, 0.5, 0.9], [1, 1, 2], "one_topic_in_stratum"),
    ):
        found = weighted_mean_over_topics(values, [0.5] * len(values), strata)
        assert np.isnan(found.ci_low)
        assert found.reason.code == code


# The test data of the R package ircor, and the values that it is tested with.
X = {
    1: [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
    2: [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
    3: [0.185, 0.573, 0.944, 0.129, 0.468, 0.553, 0.761, 0.405, 0.976, 0.445],
}

Y = {
    1: [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
    2: [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
    3: [0.845, 0.272, 0.275, 0.924, 0.605, 0.334, 0.162, 0.872, 0.018, 0.25],
}

OF_IRCOR = {  # tau, tau_AP, tau_AP,a with ties in y, tau_AP,b without ties and with ties in both
    1: (0.9111, 0.8519, 0.7454, 0.8333, 0.7321),
    2: (0.2889, 0.2504, 0.2692, 0.2880, 0.2970),
    3: (-0.6889, -0.6971, -0.5558, -0.6680, -0.7047),
}

# Rankings with their ties, p, and the extrapolated overlap, its bounds by Corsi and Urbano's code.
OF_CORSI_AND_URBANO: list[tuple[str, str, float, RankTies, float, float, float]] = [
    ("a b c", "a c b", 0.9, "w", 0.955000, 0.477528, 0.955000),
    ("a/b c d", "b a/c d", 0.9, "w", 0.948667, 0.555038, 0.948667),
    ("a/b c d", "b a/c d", 0.9, "a", 0.927500, 0.533871, 0.927500),
    ("a/b c d", "b a/c d", 0.9, "b", 0.958653, 0.565024, 0.958653),
    ("a b/c/d e", "b/a c f g/h i", 0.8, "w", 0.663125, 0.584324, 0.756810),
    ("a b/c/d e", "b/a c f g/h i", 0.8, "a", 0.628782, 0.545301, 0.717786),
    ("a b/c/d e", "b/a c f g/h i", 0.8, "b", 0.712950, 0.626683, 0.799169),
    ("a/b/c/d", "d", 0.7, "w", 0.482250, 0.293988, 0.729000),
    ("a/b/c/d", "d", 0.7, "a", 0.345812, 0.226238, 0.633250),
    ("a/b/c/d", "d", 0.7, "b", 0.560615, 0.328670, 0.768798),
    ("a b", "c d/e a/f g", 0.95, "w", 0.146635, 0.067688, 0.843534),
    ("a b", "c d/e a/f g", 0.95, "a", 0.142467, 0.063520, 0.841748),
    ("a b", "c d/e a/f g", 0.95, "b", 0.142837, 0.063890, 0.843598),
    ("a/b/c d e", "a/b/c d e", 0.9, "w", 1.000000, 0.671989, 1.000000),
    ("a/b/c d e", "a/b/c d e", 0.9, "a", 0.903333, 0.575322, 0.903333),
    ("a/b/c d e", "a/b/c d e", 0.9, "b", 1.000000, 0.671989, 1.000000),
]


@pytest.mark.parametrize("number", OF_IRCOR)
def test_coefficients_are_ircors(number):
    x, y = X[number], Y[number]
    x_tied, y_tied = ([round(each, 1) for each in side] for side in (x, y))
    values = (
        tau_b(x, y),
        tau_ap_a(x, y),
        tau_ap_a(x, y_tied),
        tau_ap_b(x, y),
        tau_ap_b(x_tied, y_tied),
    )
    assert values == pytest.approx(OF_IRCOR[number], abs=5e-5)


def test_tau_b_is_scipys_and_rankings_have_the_coefficients_of_their_swaps():
    rng = np.random.default_rng(1)
    for _ in range(200):
        x, y = rng.integers(0, 6, (2, int(rng.integers(2, 12))))
        if len(set(x)) > 1 and len(set(y)) > 1:
            assert tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic)
    truth, estimate = [5.0, 4.0, 3.0, 2.0, 1.0], [2.0, 1.0, 1.0, 3.0, 1.0]
    orders = [np.array(estimate) + 0.1 * np.array(order) for order in permutations(range(5))]
    consistent = [order for order in orders if tau_b(order, estimate) > 0]
    expected = np.mean([tau_ap_a(truth, order) for order in consistent])
    assert tau_ap_a(truth, estimate) == pytest.approx(expected)
    values = [3.0, 2.0, 2.0, 1.0]
    assert tau_ap_b(values, values) == 1
    assert tau_ap_a([3, 2, 1], [1, 2, 3]) == -1 == tau_ap_b([3, 2, 1], [1, 2, 3])
    truth = [5, 4, 3, 2, 1]
    at_top, at_bottom = [4, 5, 3, 2, 1], [5, 4, 3, 1, 2]
    assert tau_ap_a(truth, at_top) == pytest.approx(0.5)
    assert tau_ap_a(truth, at_bottom) == pytest.approx(0.875)
    assert tau_b(truth, at_top) == tau_b(truth, at_bottom)
    rng = np.random.default_rng(2)
    x, y = rng.permuted(np.tile(np.arange(7.0), (50, 1)), axis=1), rng.integers(0, 4, (50, 7)) * 1.0
    rows = list(zip(x, y, strict=True))
    np.testing.assert_allclose(tau_ap_a_rows(x, y), [tau_ap_a(*row) for row in rows])
    np.testing.assert_allclose(tau_ap_b_rows(x, y), [tau_ap_b(*row) for row in rows])
    names = list("abcdefg")
    for ties in ("w", "a", "b"):
        one_by_one = [
            rbo(tie_groups(names, a), tie_groups(names, b), p=0.8, ties=ties).ext for a, b in rows
        ]
        np.testing.assert_allclose(rbo_rows(x, y, p=0.8, ties=ties), one_by_one)
    for values in ([1.0], [2.0, 2.0, 2.0]):
        assert np.isnan([tau_b(values, values), tau_ap_b(values, values)]).all()


def groups(text: str) -> list[list[str]]:
    """Ranks with white space between them, ties with / between them."""
    return [rank.split("/") for rank in text.split()]


def test_overlap_of_prefixes_is_webbers_and_bounds_hold_whatever_comes_below():
    # Webber et al. (2010), equation 32: agreement .5 at rank 2 goes on below it.
    p, agreement = 0.9, [1, 0.5]
    found = rbo(groups("a b"), groups("a c d"), p=p)
    third = (1 + 1 * 0.5) / 3
    expected = (1 - p) * (agreement[0] + agreement[1] * p + third * p**2) + third * p**3
    assert found.ext == pytest.approx(expected)
    p, first, second = 0.8, ["a", "b", "c", "d", "e", "f"], ["b", "a", "e", "c", "f", "d"]
    whole = rbo(groups(" ".join(first)), groups(" ".join(second)), p=p)
    for here, there in ((2, 2), (2, 5), (4, 3)):
        one = rbo(groups(" ".join(first[:here])), groups(" ".join(second[:there])), p=p)
        assert one.min <= whole.min <= whole.max <= one.max


@pytest.mark.parametrize(
    ("first", "second", "p", "ties", "ext", "least", "most"), OF_CORSI_AND_URBANO
)
def test_overlap_with_ties_is_corsi_and_urbanos(first, second, p, ties, ext, least, most):
    found = rbo(groups(first), groups(second), p=p, ties=ties)
    assert (found.ext, found.min, found.max) == pytest.approx((ext, least, most), abs=1e-6)
    other_way = rbo(groups(second), groups(first), p=p, ties=ties)
    assert other_way.ext == pytest.approx(ext, abs=1e-6)
