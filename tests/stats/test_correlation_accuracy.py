from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

from stats.correlation import (
    correlate,
    correlation_at_level,
    grouped_correlation,
    pairwise_accuracy as calibration,
)
from tests.stats.test_correlation import at_level, study

cells = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 40).map(lambda n: n / 8))
ragged = st.lists(cells, min_size=1, max_size=50)


def accuracy(x, y, threshold=0.0) -> float:
    """The share of pairs alike, by the definition."""
    alike = [
        np.sign(a[0] - b[0]) == np.sign(a[1] - b[1]) * (abs(a[1] - b[1]) > threshold)
        for a, b in combinations(zip(x, y, strict=True), 2)
    ]
    return float(np.mean(alike)) if alike else np.nan


def calibrated(groups) -> tuple[float, float]:
    """The best mean accuracy over every threshold there could be, and the least such threshold."""
    distances = {abs(a - b) for _, y in groups for a, b in combinations(y, 2)} | {0.0}
    means = {t: np.mean([accuracy(x, y, t) for x, y in groups]) for t in distances}
    best = max(means.values())
    return best, min(t for t, mean in means.items() if mean > best - 1e-12)


@settings(max_examples=50)
@given(ragged)
def test_tau_c_and_accuracy_of_every_group_are_scipys_and_the_share_of_pairs_alike(rows):
    group, x, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    coefficients = grouped_correlation(x, y, group, coefficient="kendall_c")
    for name, value in coefficients.items():
        a, b = x[group == name], y[group == name]
        constant = len(a) < 2 or len(set(a)) == 1 or len(set(b)) == 1
        expected = np.nan if constant else scipy.stats.kendalltau(a, b, variant="c").statistic
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for name, value in grouped_correlation(x, y, group, coefficient="acc_eq").items():
        expected = accuracy(x[group == name], y[group == name])
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("size", [64, 65, 150])
def test_large_groups_are_counted_alike(size):
    rng = np.random.default_rng(size)
    x = rng.integers(0, 6, size).astype(float)
    y = np.round(x + rng.normal(0, 2, size))
    assert correlate(x, y, coefficient="acc_eq") == pytest.approx(accuracy(x, y), abs=1e-12)
    expected = scipy.stats.kendalltau(x, y, variant="c").statistic
    assert correlate(x, y, coefficient="kendall_c") == pytest.approx(expected, abs=1e-12)
    constant = np.zeros(size)
    assert correlate(constant, y, coefficient="acc_eq") == accuracy(constant, y)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=2, max_size=40))
def test_a_sweep_of_many_pairs_finds_the_same_threshold(rows):
    human, metric = (np.array(column, dtype=float) / 8 for column in zip(*rows, strict=True))
    pairs = calibration.pairs_within(np.zeros(len(human), dtype=int), 1, np.random.default_rng(0))
    sign = calibration.signs(human[pairs.first], human[pairs.second])
    by_order = calibration._calibrate(sign, metric[None], pairs)
    swept = calibration._sweep(sign, metric[None], pairs)
    assert swept[1] == pytest.approx(by_order[1], abs=1e-12)
    best, least = calibrated([(human, metric)])
    assert (swept[1][0], swept[0][0]) == (pytest.approx(best, abs=1e-12), least)


def test_acc_star_of_systems_or_a_large_group_is_calibrated_as_by_the_definition():
    rng = np.random.default_rng(4)
    human = rng.integers(0, 4, 210).astype(float)
    metric = human + rng.integers(0, 8, 210) / 4
    assert calibration.SWEEP_FROM_PAIRS < 210 * 209 // 2
    result = correlation_at_level(
        human, metric, level="pooled", coefficient="acc_star", n_resamples=0
    )
    best, least = calibrated([(human, metric)])
    assert (result.value, result.threshold) == (pytest.approx(best, abs=1e-12), least)
    human, metric = [1, 1, 2, 2, 5, 5], [10, 10, 30, 30, 90, 90]
    columns = {"items": [1, 2] * 3, "systems": list("aabbcc")}
    result = correlation_at_level(human, metric, level="system", coefficient="acc_star", **columns)
    assert (result.value, result.threshold) == (1.0, 0.0)
    tied = correlation_at_level(
        [1, 1, 1, 1, 5, 5], metric, level="system", coefficient="acc_star", **columns
    )
    assert (tied.value, tied.threshold) == (1.0, pytest.approx(20))


@pytest.mark.parametrize("seed", range(4))
def test_acc_star_takes_the_threshold_that_serves_all_items_best(seed):
    frame = study(seed, n_items=9).dropna()
    frame["metric"] += np.random.default_rng(seed).integers(0, 8, len(frame)) / 16
    groups = [
        (part["human"].to_numpy(), part["metric"].to_numpy())
        for _, part in frame.groupby("item")
        if len(part) > 1
    ]
    result = at_level(frame, "item", "acc_star", n_resamples=0)
    assert (result.value, result.threshold) == pytest.approx(calibrated(groups), abs=1e-12)
    pooled = at_level(frame, "pooled", "acc_star", n_resamples=0)
    cells = [(frame["human"].to_numpy(), frame["metric"].to_numpy())]
    assert (pooled.value, pooled.threshold) == pytest.approx(calibrated(cells), abs=1e-12)


def test_acc_star_of_very_many_cells_is_that_of_a_sample_of_pairs(monkeypatch):
    rng = np.random.default_rng(0)
    human = rng.integers(0, 4, 300).astype(float)
    metric = human + rng.normal(size=300)
    options = {"level": "pooled", "coefficient": "acc_star", "n_resamples": 0}
    expected = correlation_at_level(human, metric, **options)
    monkeypatch.setattr(calibration, "PAIRS_UP_TO", 20_000)
    sampled = correlation_at_level(human, metric, **options)
    assert sampled.value != expected.value
    assert sampled.value == pytest.approx(expected.value, abs=0.02)


def by_all_flips(human, metric) -> float:
    """Soft pairwise accuracy over every sign flip there is, from tables (n_systems, n_items)."""
    flips = np.array(list(product([1, -1], repeat=human.shape[1])))

    def p(table, a, b) -> float:
        difference = table[a] - table[b]
        return float(np.mean(flips @ difference >= difference.sum() - 1e-12))

    errors = [abs(p(human, a, b) - p(metric, a, b)) for a, b in combinations(range(len(human)), 2)]
    return 1 - float(np.mean(errors))


def test_soft_pairwise_accuracy_is_one_less_the_difference_of_permutation_ps_on_shared_items(
    monkeypatch,
):
    def soft(human, metric, items, systems) -> float:
        columns = {"items": items, "systems": systems}
        return correlation_at_level(
            human, metric, level="system", coefficient="spa", **columns
        ).value

    monkeypatch.setattr(calibration, "N_PERMUTATIONS", 20_000)
    rng = np.random.default_rng(3)
    human, metric = rng.normal(size=(2, 4, 8)).round(1)
    system, item = (axis.ravel() for axis in np.indices(human.shape))
    expected = by_all_flips(human, metric)
    assert soft(human.ravel(), metric.ravel(), item, system) == pytest.approx(expected, abs=0.01)
    assert soft(human.ravel(), human.ravel() * 3, item, system) == pytest.approx(1)
    human, metric = [1, 2, 1, 3, 2, 3, 9], [5, 4, 5, 4, 6, 3, 0]
    estimate = soft(human, metric, [1, 1, 2, 2, 3, 3, 4], list("abababa"))
    # people are surest of b (p = 1 and 1/8), the metric of a (p = 1/8 and 1)
    assert estimate == pytest.approx(1 - 7 / 8, abs=0.01)
    assert np.isnan(soft([1, 2], [1, 2], [1, 2], ["a", "b"]))
