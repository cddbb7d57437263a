"""Shares of outcomes that come in clusters: their intervals hold what they are about."""

import numpy as np
import pytest
from scipy.special import expit

from error_codes import InvalidValue
from stats.inference.clustered_share import clustered_share
from tests.codes import refused


def test_one_outcome_a_cluster_gives_the_interval_of_clopper_and_pearson() -> None:
    found = clustered_share([1] * 7 + [0] * 13, range(20))
    # R 4.3: binom.test(7, 20)
    assert (found.ci_low, found.ci_high) == pytest.approx((0.1539092, 0.5921885), abs=1e-6)


def test_clusters_that_never_change_their_mind_count_once_each() -> None:
    found = clustered_share(np.repeat([1, 0, 0, 1, 0, 0], 50), np.repeat(range(6), 50))
    assert found.effective_n < 6
    independent = clustered_share([1, 0, 0, 1, 0, 0], range(6))
    assert found.ci_high - found.ci_low >= independent.ci_high - independent.ci_low


@pytest.mark.parametrize("own", [[1, 0], [1, 0, 0], [1, 1, 0, 0, 0]])
def test_clusters_of_equal_shares_count_in_full_whether_the_share_is_a_binary_fraction_or_not(
    own: list[int],
) -> None:
    found = clustered_share(own * 10, np.repeat([0, 1], 5 * len(own)))
    assert found.effective_n == 10 * len(own)


@pytest.mark.parametrize("value", [0, 1])
def test_outcomes_that_are_all_alike_bound_the_share_by_the_number_of_clusters(value: int) -> None:
    found = clustered_share([value] * 100, np.arange(100) % 10)
    low, high = sorted((value, abs(value - (1 - 0.025 ** (1 / 10)))))
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high))
    assert found.effective_n == 10


@pytest.mark.parametrize(("logit", "sd"), [(-5, 0.8), (-3, 1.5), (0, 0.8), (1, 1.5)])
@pytest.mark.parametrize("n_clusters", [3, 6, 20])
def test_the_interval_holds_the_share_of_all_clusters(
    logit: float, sd: float, n_clusters: int
) -> None:
    rng, n_trials, held = np.random.default_rng(0), 150, 0
    share = expit(logit + sd * rng.normal(size=200_000)).mean()
    cluster = np.repeat(np.arange(n_clusters), 10)
    for _ in range(n_trials):
        p = expit(logit + sd * rng.normal(size=n_clusters))[cluster]
        found = clustered_share(rng.random(len(p)) < p, cluster)
        held += found.ci_low <= share <= found.ci_high
    # Of 150 at 95 %, 133 or fewer have a probability of .001.
    assert held > 133


@pytest.mark.parametrize("n_clusters", [12, 40])
def test_the_interval_holds_where_one_cluster_has_half_of_the_outcomes(n_clusters: int) -> None:
    rng, n_trials, held = np.random.default_rng(1), 150, 0
    size = np.full(n_clusters, 5)
    size[0] = 5 * (n_clusters - 1)
    cluster = np.repeat(np.arange(n_clusters), size)
    for _ in range(n_trials):
        p = rng.beta(0.8, 3.2, size=n_clusters)[cluster]
        found = clustered_share(rng.random(len(p)) < p, cluster)
        held += found.ci_low <= 0.2 <= found.ci_high
    assert held > 133


def test_the_most_unequal_clusters_have_an_interval() -> None:
    found = clustered_share([1] * 500 + [0] * 500 + [1], [0] * 1000 + [1])
    assert 0 <= found.ci_low < found.value < found.ci_high <= 1


def test_too_little_has_a_reason_and_what_is_no_outcome_is_refused() -> None:
    assert clustered_share([], []).reason.code == "no_outcomes"
    alone = clustered_share([1, 0], ["a", "a"])
    assert (alone.value, alone.reason.code) == (0.5, "one_cluster")
    assert np.isnan(alone.ci_low)
    for outcome, cluster, code in (
        ([0, 2], [1, 2], "outcome_out_of_range"),
        ([0, 1], [1], "unequal_lengths"),
    ):
        with refused(InvalidValue, code):
            clustered_share(outcome, cluster)
