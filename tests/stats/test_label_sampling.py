"""Items that people labeled are a random sample of all, or the result says that they are not."""

import numpy as np
import pytest
from scipy import stats

from stats.agreement import coefficients_at_level
from stats.inference.powered_correlations import prediction_powered_correlation
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_quantiles import prediction_powered_quantile
from stats.inference.powered_regression import prediction_powered_regression
from stats.inference.sampled_batches import sampled_mean
from stats.label_sampling import SIGNIFICANT, compare_labeled
from tests.codes import codes_of

N = 400


def scored(seed=0, n=N):
    rng = np.random.default_rng(seed)
    truth = rng.normal(3.2, 1, size=n)
    return truth, truth + rng.normal(0, 0.7, size=n), rng


def of_correlation(human, judge, covariate):
    return prediction_powered_correlation(human, judge, covariate)


def of_slopes(human, judge, covariate):
    return prediction_powered_regression(human, judge, {"length": covariate})


def of_mean(human, judge, _covariate):
    return prediction_powered_mean(human, judge)


def of_median(human, judge, _covariate):
    return prediction_powered_quantile(human, judge)


ESTIMATES = (of_mean, of_median, of_correlation, of_slopes)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_labels_of_the_highest_scores_give_no_value(estimate):
    truth, judge, rng = scored()
    length = rng.normal(size=N)
    human = np.where(stats.rankdata(judge) > N - 60, truth, np.nan)
    found = estimate(human, judge, length)
    assert found.reason == "labels_do_not_overlap"
    assert "labels_not_random" in codes_of(found.notes)
    one = found.coefficients[1] if estimate is of_slopes else found
    assert np.isnan([one.value, one.ci_low, one.people_only.value, one.people_only.ci_low]).all()


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("by", ["judge", "middle", "covariate"])
def test_labels_that_depend_on_what_is_known_are_warned_of(estimate, by):
    truth, judge, rng = scored(1)
    length = rng.normal(size=N)
    if by == "covariate" and estimate in (of_mean, of_median):
        return
    drawn = {
        "judge": rng.random(N) < stats.norm.cdf(judge - 4),
        "middle": (np.abs(judge - 3.2) < 0.8) & (rng.random(N) < 0.5),
        "covariate": rng.random(N) < stats.norm.cdf(length - 0.8),
    }[by]
    found = estimate(np.where(drawn, truth, np.nan), judge, length)
    assert "labels_not_random" in codes_of(found.notes)
    assert found.reason is None
    random = rng.permutation(N) < drawn.sum()
    found = estimate(np.where(random, truth, np.nan), judge, length)
    assert "labels_not_random" not in codes_of(found.notes)


def test_probabilities_and_strata_account_for_unequal_chances():
    truth, judge, rng = scored(2)
    chance = np.where(judge > 3.2, 0.4, 0.1)
    human = np.where(rng.random(N) < chance, truth, np.nan)
    assert "labels_not_random" in codes_of(prediction_powered_mean(human, judge).notes)
    sent = np.where(np.isnan(human), np.nan, 1)
    found = sampled_mean(human, judge, sent, np.where(np.isnan(human), np.nan, chance))
    assert "labels_not_random" not in codes_of(found.notes)
    found = prediction_powered_mean(human, judge, strata=judge > 3.2)
    assert "labels_not_random" not in codes_of(found.notes)


@pytest.mark.parametrize(
    ("n_labeled", "size", "whole"), [(10, 1, True), (60, 1, True), (60, 5, True), (60, 5, False)]
)
@pytest.mark.parametrize("points", [2, 5, None])
def test_random_labels_are_rarely_warned_of(n_labeled, size, whole, points):
    rng = np.random.default_rng(n_labeled + size)
    trials, warned = 400, 0
    for _ in range(trials):
        cluster = np.arange(200) // size
        judge = 3 + rng.normal(size=200)[cluster] + rng.normal(size=200)
        if points:
            judge = np.clip(np.round(judge), 3, 2 + points)
        unit = cluster if whole else np.arange(200)
        order = rng.permutation(unit.max() + 1)
        labeled = order[unit] < n_labeled // (size if whole else 1)
        found = compare_labeled(labeled, {"judge": judge}, cluster=None if size == 1 else cluster)
        warned += not found.is_random
    assert warned / trials <= 0.025


@pytest.mark.parametrize(("n_clusters", "n_labeled"), [(40, 6), (40, 3), (12, 4)])
@pytest.mark.parametrize("is_top", [True, False])
def test_whole_clusters_with_the_highest_scores_give_no_value(n_clusters, n_labeled, is_top):
    rng = np.random.default_rng(n_clusters + n_labeled)
    cluster = np.repeat(rng.permutation(n_clusters), 10)
    judge = cluster + rng.uniform(0, 1, size=len(cluster))
    truth = judge + rng.normal(size=len(cluster))
    chosen = cluster >= n_clusters - n_labeled if is_top else cluster < n_labeled
    found = prediction_powered_mean(np.where(chosen, truth, np.nan), judge, clusters=cluster)
    assert found.reason == "labels_do_not_overlap"
    part = chosen & (rng.random(len(cluster)) < 0.6)
    found = prediction_powered_mean(np.where(part, truth, np.nan), judge, clusters=cluster)
    assert "labels_not_random" in codes_of(found.notes)


def test_few_clusters_are_rarely_warned_of():
    rng = np.random.default_rng(0)
    for n_clusters, n_labeled, least in ((12, 2, 1.0), (12, 4, 1.0), (30, 8, 0.02)):
        trials, warned = 300, 0
        for _ in range(trials):
            sizes = np.ceil(10 * rng.uniform(least, 1, size=n_clusters)).astype(int)
            cluster = np.repeat(np.arange(n_clusters), sizes)
            judge = rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(cluster))
            labeled = rng.permutation(n_clusters)[cluster] < n_labeled
            warned += not compare_labeled(labeled, {"judge": judge}, cluster=cluster).is_random
        assert warned / trials <= 0.03


def test_the_test_of_location_is_wilcoxons():
    _, judge, rng = scored(3, n=50)
    judge = np.round(judge)
    labeled = rng.permutation(50) < 20
    expected = stats.mannwhitneyu(
        judge[labeled], judge[~labeled], method="asymptotic", use_continuity=False
    ).pvalue
    found = compare_labeled(labeled, {"judge": judge, "same": np.zeros(50)})
    assert found.p == pytest.approx(min(1, 4 * expected)) or found.p < 4 * expected
    found = compare_labeled(judge > 3, {"judge": judge})
    assert found.is_apart
    assert found.p < SIGNIFICANT
    assert not compare_labeled(np.arange(6) < 3, {"judge": np.arange(6.0)}).is_apart
    assert compare_labeled(np.ones(6, dtype=bool), {"judge": np.arange(6.0)}).p == 1


@pytest.mark.parametrize("n", [20, 50])
def test_means_of_few_skewed_ratings_hold_or_have_a_note(n):
    rng = np.random.default_rng(n)
    trials, missed, unsaid, noted_normal = 500, 0, 0, 0
    for _ in range(trials):
        truth = np.exp(rng.normal(size=300))
        found = prediction_powered_mean(
            np.where(np.arange(300) < n, truth, np.nan), truth + rng.normal(size=300)
        )
        missed += (miss := not found.ci_low <= np.exp(0.5) <= found.ci_high)
        unsaid += miss and "skewed_ratings" not in codes_of(found.notes)
        values = rng.normal(size=300)
        plain = prediction_powered_mean(
            np.where(np.arange(300) < n, values, np.nan), rng.normal(size=300)
        )
        noted_normal += "skewed_ratings" in codes_of(plain.notes)
    assert missed / trials > 0.08
    assert unsaid / trials < 0.08
    assert noted_normal / trials < 0.1


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_agreement_on_items_that_were_picked_by_their_label_is_warned_of(level):
    rng = np.random.default_rng(0)
    first = rng.choice(3, p=[0.5, 0.3, 0.2], size=300)
    second = np.where(rng.random(300) < 0.8, first, rng.choice(3, size=300))
    picked = (first == 2) | (rng.random(300) < 0.1)
    for again, expected in ((picked, True), (rng.permutation(300) < 80, False)):
        found = coefficients_at_level(
            [*range(300), *np.flatnonzero(again)],
            ["a"] * 300 + ["b"] * again.sum(),
            [*first, *second[again]],
            level=level,
        )
        for one in found:
            assert ("overlap_not_random" in codes_of(one.warnings)) == (expected and one.is_defined)
