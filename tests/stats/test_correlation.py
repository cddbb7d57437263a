from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

from error_codes import InvalidValue
from stats.correlation import (
    CiMethod,
    Correlation,
    NoInterval,
    Reason,
    bootstrap as replicas,
    correlate,
    correlation_at_level,
    grouped_correlation,
)
from tests.codes import codes_of, refused

COEFFICIENTS = ["pearson", "spearman", "kendall"]
LEVELS = ["item", "system", "pooled"]


def by_scipy(x: np.ndarray, y: np.ndarray, coefficient: str) -> float:
    complete = ~(np.isnan(x) | np.isnan(y))
    x, y = x[complete], y[complete]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return np.nan
    function = {
        "pearson": scipy.stats.pearsonr,
        "spearman": scipy.stats.spearmanr,
        "kendall": scipy.stats.kendalltau,
    }
    return float(function[coefficient](x, y).statistic)


def study(seed: int = 0, *, n_items: int = 30, n_systems: int = 5) -> pd.DataFrame:
    """A ragged study with tied ratings, gaps and missing scores."""
    rng = np.random.default_rng(seed)
    item, system = np.nonzero(rng.random((n_items, n_systems)) < 0.85)
    human = np.round(system * 0.4 + rng.normal(0, 1.5, len(item)))
    metric = np.round(human + rng.normal(0, 2, len(item)))
    metric[rng.random(len(item)) < 0.05] = np.nan
    return pd.DataFrame({"item": item, "system": system, "human": human, "metric": metric})


def at_level(frame: pd.DataFrame, level: str, coefficient: str, **options) -> Correlation:
    columns = {"items": frame["item"], "systems": frame["system"]} | options
    return correlation_at_level(
        frame["human"], frame["metric"], level=level, coefficient=coefficient, **columns
    )


def plainly(frame: pd.DataFrame, level: str, coefficient: str) -> float:
    """The correlation at a level by a loop over scipy."""
    frame = frame.dropna()
    if level == "system":
        frame = frame.groupby("system")[["human", "metric"]].mean()
    if level == "item":
        groups = frame.groupby("item")
        return float(np.nanmean([plainly(group, "pooled", coefficient) for _, group in groups]))
    return by_scipy(frame["human"].to_numpy(), frame["metric"].to_numpy(), coefficient)


numbers = st.one_of(
    st.integers(0, 4).map(float), st.floats(-100, 100, width=16), st.just(float("nan"))
)
ragged = st.lists(st.tuples(st.integers(0, 6), numbers, numbers), min_size=1, max_size=60)


@settings(max_examples=60)
@given(ragged, st.sampled_from(COEFFICIENTS))
def test_every_group_gets_what_scipy_gives_it(rows, coefficient):
    group, x, y = (np.array(column) for column in zip(*rows, strict=True))
    coefficients = grouped_correlation(x, y, group, coefficient=coefficient)
    assert list(coefficients.index) == sorted(set(group))
    for name, value in coefficients.items():
        expected = by_scipy(x[group == name], y[group == name], coefficient)
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_groups_of_any_size_equal_scipy_and_constant_sides_or_single_cells_are_undefined(
    coefficient,
):
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(12), [2, 2, 3, 5, 14, 63, 64, 65, 66, 120, 300, 300])
    x = rng.integers(0, 9, len(group)) / 7
    y = x + rng.normal(0, 1, len(group)).round(1)
    coefficients = grouped_correlation(x, y, group, coefficient=coefficient)
    expected = [by_scipy(x[group == name], y[group == name], coefficient) for name in range(12)]
    assert coefficients.to_numpy() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    x = np.full(7, 0.1)
    assert (x - x.mean()).any()  # centring does not give zeros
    assert np.isnan(correlate(x, np.arange(7), coefficient=coefficient))
    assert np.isnan(correlate(np.arange(7), x, coefficient=coefficient))
    for cells in ([], [1.0], [1.0, np.nan]):
        assert np.isnan(correlate(cells, cells, coefficient=coefficient))


def test_huge_values_do_not_overflow_and_groups_may_be_named_by_tuples():
    r = correlate([1e200, 2e200, 3e200], [1e-200, 2e-200, 3e-200], coefficient="pearson")
    assert r == pytest.approx(1, abs=1e-12)
    names = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    coefficients = grouped_correlation([1, 2, 1, 2], [1, 2, 2, 1], names, coefficient="kendall")
    assert list(coefficients.index) == [("a", 1), ("b", 2)]
    assert list(coefficients) == [1, -1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("seed", range(3))
def test_each_level_is_what_a_loop_over_scipy_gives(level, coefficient, seed):
    frame = study(seed)
    result = at_level(frame, level, coefficient, n_resamples=0)
    assert result.value == pytest.approx(plainly(frame, level, coefficient), abs=1e-12)
    assert result.reason is None
    assert result.ci_method is CiMethod.NONE
    assert (result.n_resamples, result.seed) == (0, None)


def test_what_a_correlation_rests_on_is_counted_and_equal_means_tie():
    frame = pd.DataFrame(
        [
            *[(1, "a", 1, 3), (1, "b", 2, 5), (1, "c", np.nan, 4)],
            *[(2, "a", 3, 1), (2, "b", 3, 2)],
            *[(3, "a", 1, 2), (3, "b", 2, 2)],
            *[(4, "a", 1, 2), (4, "b", 2, np.nan)],
            *[(5, "a", 1, np.nan)],
            *[(6, "a", 2, 2), (6, "b", 2, 2)],
        ],
        columns=["item", "system", "human", "metric"],
    )
    result = at_level(frame, "item", "pearson")
    assert result.value == pytest.approx(1)
    assert (result.n_groups, result.n_used, result.n_undefined) == (6, 1, 5)
    assert (result.n_too_few, result.n_constant_human, result.n_constant_metric) == (2, 2, 1)
    assert (result.n_rows, result.n_missing) == (9, 3)
    assert (result.n_items, result.n_systems) == (5, 2)
    system = ["a"] * 3 + ["b"] * 7 + ["c"] * 9
    assert np.mean([0.1] * 3) != np.mean([0.1] * 7)
    result = correlation_at_level(
        [0.1] * 19, range(19), level="system", coefficient="kendall", systems=system
    )
    assert result.reason is Reason.CONSTANT_HUMAN


@pytest.mark.parametrize(
    ("human", "metric", "reason"),
    [
        ([1, 1, 1, 1], [1, 2, 3, 4], Reason.CONSTANT_HUMAN),
        ([1, 2, 3, 4], [1, 1, 1, 1], Reason.CONSTANT_METRIC),
        ([1, np.nan, 3, 4], [1, 1, np.nan, np.nan], Reason.TOO_FEW),
        ([np.nan] * 4, [1, 1, 1, 1], Reason.TOO_FEW),
        ([], [], Reason.TOO_FEW),
    ],
)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize("level", LEVELS)
def test_an_undefined_correlation_is_nan_with_its_reason(human, metric, reason, coefficient, level):
    size = len(human)
    frame = pd.DataFrame({"item": [0, 0, 1, 1], "system": [0, 1, 0, 1]}).head(size)
    result = at_level(frame.assign(human=human, metric=metric), level, coefficient)
    assert np.isnan([result.value, result.ci_low, result.ci_high]).all()
    assert not result.is_defined
    assert result.reason is (Reason.NO_DEFINED_ITEM if level == "item" else reason)
    assert result.n_used == 0
    assert result.ci_method is CiMethod.NONE


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_every_replicate_is_the_coefficient_of_the_resampled_cells(coefficient):
    cells = study(4).dropna().reset_index(drop=True)
    item, n_items = pd.factorize(cells["item"])[0], cells["item"].nunique()
    x, y = cells["human"].to_numpy(), cells["metric"].to_numpy()
    rng = np.random.default_rng(0)
    weights = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=40).astype(float)
    per_item = grouped_correlation(x, y, item, coefficient=coefficient).to_numpy()
    pooled: dict[str, Callable[[], replicas.Replicate]] = {
        "pearson": lambda: replicas.pooled_pearson(x, y, item, n_items),
        "spearman": lambda: replicas.pooled_spearman(x, y, item),
        "kendall": lambda: replicas.pooled_kendall(x, y, item, n_items),
    }
    drawn = {
        "item": replicas.mean_of_defined(per_item)(weights),
        "pooled": pooled[coefficient]()(weights),
        "system": replicas.of_system_means(
            replicas.unit_range(x),
            replicas.unit_range(y),
            item,
            cells["system"].to_numpy(),
            (n_items, cells["system"].nunique()),
            coefficient,
        )(weights),
    }
    for row, weight in enumerate(weights.astype(int)):
        copied = cells.loc[np.repeat(cells.index, weight[item])]
        for level in ("pooled", "system"):
            expected = plainly(copied, level, coefficient)
            assert drawn[level][row] == pytest.approx(expected, abs=1e-10)
        of_items = np.repeat(per_item, weight)
        assert drawn["item"][row] == pytest.approx(np.nanmean(of_items), abs=1e-12)


def test_draws_may_be_divided_and_many_cells_have_the_variance_of_their_clusters(monkeypatch):
    frame = study(5)
    undivided = at_level(frame, "pooled", "spearman", n_resamples=50)
    kendall = at_level(frame, "pooled", "kendall", n_resamples=50)
    monkeypatch.setattr(replicas, "CHUNK", 300)
    assert at_level(frame, "pooled", "spearman", n_resamples=50) == undivided
    assert at_level(frame, "pooled", "kendall", n_resamples=50) == kendall
    drawn = at_level(study(), "pooled", "kendall")
    monkeypatch.setattr(replicas, "PAIRS_UP_TO_CELLS", 20)
    result = at_level(study(), "pooled", "kendall")
    assert result.ci_method is CiMethod.CLUSTERS_ITEMS
    assert result.ci_high - result.ci_low == pytest.approx(drawn.ci_high - drawn.ci_low, rel=0.4)
    assert at_level(study(), "pooled", "spearman").n_resamples == 1000


FEW_ITEMS = {
    **{("item", name): CiMethod.T_ITEMS for name in COEFFICIENTS},
    **{("pooled", name): CiMethod.CLUSTERS_ITEMS for name in COEFFICIENTS},
    ("system", "pearson"): CiMethod.JACKKNIFE_ITEMS,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_an_interval_holds_the_value_says_how_it_was_drawn_and_never_has_zero_width(
    level, coefficient
):
    result = at_level(study(2), level, coefficient, n_resamples=400, rng=17)
    assert -1 <= result.ci_low < result.value < result.ci_high <= 1
    assert result.ci_method is FEW_ITEMS.get((level, coefficient), CiMethod.BOOTSTRAP_ITEMS)
    assert (result.n_resamples, result.n_resamples_undefined, result.seed) == (400, 0, 17)
    item, system = np.indices((5, 2)).reshape(2, -1)
    human = item + system.astype(float)
    columns = {"level": level, "coefficient": coefficient, "items": item, "systems": system}
    result = correlation_at_level(human, 2 * human, **columns)
    assert result.value == pytest.approx(1)
    if level == "item":
        assert (round(result.ci_low, 2), result.ci_high) == (0.24, 1.0)
        assert codes_of(result.notes) == ["few_items"]
    else:
        assert np.isnan(result.ci_low)
        assert result.ci_reason is NoInterval.NO_SPREAD


def test_undefined_resamples_are_counted_and_a_seed_decides_the_interval():
    human, metric = np.zeros(8), np.arange(8.0)
    human[:2] = 1, 2
    item, system = np.arange(8).repeat(1), np.arange(8)
    result = correlation_at_level(
        human, metric, level="pooled", coefficient="kendall", items=item, systems=system
    )
    assert np.isnan(result.ci_low)
    assert result.ci_reason is NoInterval.UNDEFINED_RESAMPLES
    assert result.n_resamples_undefined > 50
    items, human, metric = [1, 1, 2, 2, 3, 3], [1, 1, 2, 3, 3, 2], [1, 2, 3, 5, 3, 5]
    result = correlation_at_level(
        human, metric, level="item", coefficient="pearson", items=items, n_resamples=2700
    )
    # all three draws are the constant item in one of 27 resamples
    assert 70 < result.n_resamples_undefined < 130
    frame = study(2, n_items=60)
    first, again = (at_level(frame, "item", "kendall", rng=3) for _ in range(2))
    assert first == again
    other = at_level(frame, "item", "kendall", rng=4)
    assert (other.ci_low, other.ci_high) != (first.ci_low, first.ci_high)
    drawn = at_level(frame, "item", "kendall", rng=np.random.default_rng(3))
    assert (drawn.ci_low, drawn.ci_high, drawn.seed) == (first.ci_low, first.ci_high, None)
    narrow, wide = (at_level(study(2), "item", "pearson", confidence=c) for c in (0.8, 0.99))
    assert wide.ci_low < narrow.ci_low < narrow.ci_high < wide.ci_high


def test_without_items_the_interval_is_fishers_unless_the_correlation_is_perfect_or_tiny():
    rng = np.random.default_rng(0)
    human = rng.normal(size=200)
    metric = human + rng.normal(size=200)
    result = correlation_at_level(human, metric, level="pooled", coefficient="pearson")
    expected = scipy.stats.pearsonr(human, metric).confidence_interval(0.95)
    assert result.ci_method is CiMethod.FISHER_CELLS
    assert [result.ci_low, result.ci_high] == pytest.approx(list(expected))
    assert result.n_items is None
    systems = np.arange(200) // 10
    result = correlation_at_level(
        human, metric, level="system", coefficient="spearman", systems=systems
    )
    assert result.ci_method is CiMethod.FISHER_SYSTEMS
    assert result.n_systems == 20
    few = [1, 2, 3, 5, 5, 5], [1, 3, 2, 1, 2, 3]
    options = {"level": "item", "items": [1, 1, 1, 2, 2, 2]}
    for human, metric, columns in (
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], {"level": "pooled"}),
        ([1, 2, 3], [1, 3, 2], {"level": "pooled"}),
        (*few, options),
    ):
        result = correlation_at_level(human, metric, coefficient="pearson", **columns)
        assert result.is_defined
        assert result.ci_method is CiMethod.NONE
        assert np.isnan([result.ci_low, result.ci_high]).all()
    assert result.n_used == 1


def test_what_cannot_be_used_is_refused_by_name():
    for options, code in (
        ({"level": "sample"}, "unknown_level"),
        ({"coefficient": "tau"}, "unknown_coefficient"),
        ({"undefined": "sometimes"}, "unknown_undefined"),
        ({"resample": "sometimes"}, "unknown_resample"),
        ({"confidence": 95}, "confidence_out_of_range"),
        ({"n_resamples": -1}, "n_resamples_out_of_range"),
        ({"level": "item", "items": None}, "items_missing"),
        ({"level": "system", "systems": None}, "systems_missing"),
        ({"items": [1, 1, 2]}, "unequal_lengths"),
        ({"items": [1, 1, None, 2]}, "items_missing"),
        ({"systems": [1, 1, 1, 2]}, "repeated_cells"),
        ({"systems": [1, 2, 3, 4], "clusters": [1, 2, 2, 2]}, "clusters_split_items"),
        ({"level": "item", "coefficient": "spa"}, "spa_of_systems"),
        ({"level": "system", "coefficient": "spa", "items": None}, "items_missing"),
    ):
        options_of_call = {"level": "pooled", "coefficient": "pearson"}
        options_of_call |= {"items": [1, 1, 2, 2], "systems": [1, 2, 1, 2]} | options
        with refused(InvalidValue, code):
            correlation_at_level([1, 2, 3, 4], [1, 2, 4, 3], **options_of_call)
    for values, code in (
        (["1", "2"], "y_not_numeric"),
        ([1, np.inf], "y_not_finite"),
        ([1, 2, 3], "unequal_lengths"),
        (np.ones((2, 1)), "y_not_a_column"),
    ):
        with refused(InvalidValue, code):
            correlate([1, 2], values, coefficient="pearson")
