import numpy as np
import pytest
from scipy import stats

from stats.correlation import correlation_at_level
from stats.correlation.influence import (
    cluster_variance,
    kendall_influences,
    pearson_influences,
    two_way_variance,
    z_t_limits,
)
from tests.stats.worked_examples import worked_example

EXAMPLE = worked_example(15)


def columns():
    return (np.asarray(EXAMPLE["inputs"][k]) for k in ("item", "system", "human", "metric"))


def test_taus_influences_and_variances_are_those_by_hand():
    item, system, human, metric = columns()
    expected, found = EXAMPLE["expected"], kendall_influences(human, metric)
    assert found.value == pytest.approx(expected["tau_b"], abs=1e-9)
    assert found.of_cell[:5] == pytest.approx(expected["influence_of_first_5"], abs=1e-9)
    by_item = cluster_variance(found.of_cell, item)
    both = two_way_variance(found.of_cell, item, system)
    assert by_item == pytest.approx(expected["var_by_item"], abs=1e-9)
    assert cluster_variance(found.of_cell, system) == pytest.approx(expected["var_by_system"])
    assert cluster_variance(found.of_cell, np.arange(40)) == pytest.approx(expected["var_by_cell"])
    assert both == pytest.approx(expected["var_two_way"], abs=1e-9)
    assert z_t_limits(found.value, by_item, 9, 0.95) == pytest.approx(
        expected["ci_by_item_z_t"], abs=1e-9
    )
    assert z_t_limits(found.value, both, 3, 0.95) == pytest.approx(
        expected["ci_two_way_z_t"], abs=1e-9
    )


@pytest.mark.parametrize("n", [2, 3, 17, 64, 501])
@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_tau_is_that_of_scipy_and_influences_those_of_all_pairs(n, distinct):
    rng = np.random.default_rng(n * distinct)
    x, y = rng.integers(0, distinct, size=(2, n)).astype(float)
    found = kendall_influences(x, y)
    assert found.value == pytest.approx(stats.kendalltau(x, y).statistic, nan_ok=True)
    if np.isnan(found.value):
        return
    sign_x, sign_y = (np.sign(side[:, None] - side) for side in (x, y))
    scale = np.sqrt(np.abs(sign_x).sum() * np.abs(sign_y).sum())
    share = sum(np.abs(s).sum(axis=1) / np.abs(s).sum() for s in (sign_x, sign_y))
    by_hand = 2 * (sign_x * sign_y).sum(axis=1) / scale - found.value * share
    assert found.of_cell == pytest.approx(by_hand, abs=1e-12)
    assert found.of_cell.sum() == pytest.approx(0, abs=1e-9)


def test_the_variance_is_near_that_of_a_jackknife_over_items():
    rng = np.random.default_rng(0)
    item = np.arange(60).repeat(5)
    x, y = rng.normal(size=60)[item] + rng.normal(size=(2, 300))
    by_influence = cluster_variance(kendall_influences(x, y).of_cell, item)
    without = [stats.kendalltau(x[item != i], y[item != i]).statistic for i in range(60)]
    jackknife = 59 / 60 * np.square(without - np.mean(without)).sum()
    assert by_influence == pytest.approx(jackknife, rel=0.1)


def test_pearsons_influences_give_its_delta_variance():
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    y = 0.5 * x + rng.normal(size=4000)
    found = pearson_influences(x, y)
    assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    variance = cluster_variance(found.of_cell, np.arange(4000))
    assert variance == pytest.approx((1 - found.value**2) ** 2 / 4000, rel=0.1)


def test_many_cells_are_covered_where_items_are_shared():
    """Fisher's z over cells covers .73 here: 430 items of 12 systems, an effect of each item."""
    rng = np.random.default_rng(2)
    items, systems = np.arange(430).repeat(12), np.tile(np.arange(12), 430)
    trials, covered = 60, 0
    for _ in range(trials):
        human, metric = (rng.normal(size=430)[items] + rng.normal(size=5160) for _ in range(2))
        found = correlation_at_level(
            human,
            metric,
            level="pooled",
            coefficient="kendall",
            items=items,
            systems=systems,
            n_resamples=100,
        )
        covered += found.ci_low <= 0 <= found.ci_high
        assert found.ci_method == "cluster-z-t-items"
    assert covered / trials >= 0.88
