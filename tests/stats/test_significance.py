from collections import Counter
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

from error_codes import InvalidValue
from stats.correlation import bootstrap, correlation_at_level
from stats.correlation.result import complete_cells
from stats.significance import (
    Undecided,
    benjamini_hochberg,
    compare_metrics,
    holm,
    permutation_test,
    significance_clusters,
    williams_test,
)
from stats.significance.deltas import BLOCK, CELLS_UP_TO, deltas_of, pair_sums, statistic
from tests.codes import refused, refused_naming
from tests.stats.test_correlation import study

LEVELS = ["item", "system", "pooled"]
COEFFICIENTS = ["pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star"]


def test_williams_is_what_other_programs_print_or_undefined():
    for r12, r13, r23, n, t, p in (
        # printed by the documentation of R's psych (r.test) and by users of R's cocor
        (0.4, 0.5, 0.1, 103, -0.89, 0.37),
        (0.5447, 0.8, 0.0729, 70, -2.8114, 0.0065),
        (0.8066, 0.2383, 0.2255, 177, 9.3823, 0.0),
        (-0.1741, 0.2015, 0.3734, 646, -9.0340, 0.0),
    ):
        result = williams_test(r12, r13, r23, n)
        # the correlations are rounded too
        assert result.t == pytest.approx(t, rel=2e-3 if n == 103 else 3e-4)
        assert result.p == pytest.approx(p, abs=0.005 if n == 103 else 5e-5)
        assert result.df == n - 3
    assert np.isnan(williams_test(0.5, 0.5, 1.0, 50).p)
    assert np.isnan(williams_test(0.5, 0.4, 0.2, 3).p)
    assert np.isnan(williams_test(float("nan"), 0.4, 0.2, 30).p)
    with refused(InvalidValue, "r23_out_of_range"):
        williams_test(0.5, 0.4, 1.2, 30)


def pilot(seed: int, *, n_items: int = 3, n_systems: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    item, system = (axis.ravel() for axis in np.indices((n_items, n_systems)))
    human = rng.integers(0, 5, len(item)).astype(float)
    a = np.round(human + rng.normal(0, 1, len(item)), 1)
    b = np.round(human + rng.normal(0, 4, len(item)), 1)
    return pd.DataFrame({"item": item, "system": system, "human": human, "a": a, "b": b})


def permuted(frame: pd.DataFrame, **options):
    columns = {"items": frame["item"], "systems": frame["system"]}
    return permutation_test(frame["human"], frame["a"], frame["b"], **columns, **options)


def by_all_permutations(frame: pd.DataFrame, unit: np.ndarray, **options) -> tuple[float, float]:
    """The difference, and how many of all swaps of units differ as much."""
    a, b = (bootstrap.standard(frame[name].to_numpy()) for name in ("a", "b"))
    columns = {"items": frame["item"], "systems": frame["system"], "n_resamples": 0}

    def delta(first, second) -> float:
        values = [
            correlation_at_level(frame["human"], side, **columns, **options).value
            for side in (first, second)
        ]
        return values[0] - values[1]

    observed = delta(a, b)
    drawn = []
    for swapped in product([False, True], repeat=unit.max() + 1):
        swap = np.array(swapped)[unit]
        drawn.append(delta(np.where(swap, b, a), np.where(swap, a, b)))
    return observed, float(np.mean(np.abs(drawn) >= abs(observed) - 1e-12))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_perm_both_comes_near_the_share_of_all_permutations(level, coefficient):
    frame = pilot(2, n_items=2)
    options = {"level": level, "coefficient": coefficient}
    delta, p = by_all_permutations(frame, np.arange(len(frame)), **options)
    result = permuted(frame, n_permutations=4000, **options)
    assert result.delta == pytest.approx(delta, abs=1e-10)
    assert result.p == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("swap", ["items", "systems"])
@pytest.mark.parametrize("coefficient", ["pearson", "kendall", "acc_eq", "acc_star"])
def test_items_or_systems_are_swapped_whole(swap, coefficient):
    frame = pilot(5, n_items=6, n_systems=5)
    unit = frame[swap.removesuffix("s")].to_numpy()
    options = {"level": "item", "coefficient": coefficient}
    delta, p = by_all_permutations(frame, unit, **options)
    result = permuted(frame, swap=swap, n_permutations=4000, **options)
    assert result.delta == pytest.approx(delta, abs=1e-10)
    assert result.p == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("undefined", ["drop", "zero"])
def test_swapping_items_swaps_undefined_coefficients_too(undefined):
    frame = pilot(5, n_items=6, n_systems=4)
    frame.loc[frame["item"] == 1, "b"] = 3.0
    frame.loc[frame["item"] == 2, "human"] = 3.0
    options = {"level": "item", "coefficient": "kendall", "undefined": undefined}
    delta, p = by_all_permutations(frame, frame["item"].to_numpy(), **options)
    result = permuted(frame, swap="items", n_permutations=4000, **options)
    assert result.delta == pytest.approx(delta, abs=1e-10)
    assert result.p == pytest.approx(p, abs=0.03)


def test_spa_is_compared_and_cells_that_either_metric_lacks_take_no_part():
    frame = study(1, n_items=20).rename(columns={"metric": "a"})
    frame["b"] = frame["human"] + np.random.default_rng(0).normal(0, 3, len(frame))
    frame.loc[::7, "b"] = np.nan
    result = permuted(frame, level="item", coefficient="kendall")
    complete = frame.dropna()
    assert result.n_cells == len(complete) < len(frame)
    options = {"level": "item", "coefficient": "kendall", "n_resamples": 0}
    columns = complete["human"], complete["a"]
    value = correlation_at_level(*columns, items=complete["item"], **options).value
    assert result.value_a == pytest.approx(value, abs=1e-12)
    assert permuted(complete, level="item", coefficient="kendall").p == result.p
    frame = pilot(4, n_items=30, n_systems=5).assign(c=lambda rows: -rows["a"])
    result = permuted(frame.assign(b=frame["c"]), level="system", coefficient="spa")
    assert result.delta > 0.3
    assert result.p < 0.05


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_metric_is_no_different(level):
    frame = pilot(3).assign(b=lambda rows: rows["a"])
    result = permuted(frame, level=level, coefficient="kendall", n_permutations=50)
    assert (result.delta, result.p) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [(pilot(1).assign(b=2.0), Undecided.UNDEFINED), (pilot(1).assign(b=np.nan), Undecided.TOO_FEW)],
)
def test_what_cannot_be_tested_says_why(frame, reason):
    result = permuted(frame, level="pooled", coefficient="pearson")
    assert np.isnan(result.p)
    assert result.reason is reason


def test_a_seed_is_recorded_and_decides_the_p():
    options = {"level": "item", "coefficient": "kendall", "n_permutations": 200}
    frame = pilot(2, n_items=8)
    first, again, other = (permuted(frame, rng=seed, **options) for seed in (3, 3, 4))
    assert first == again
    assert (first.seed, first.n_permutations) == (3, 200)
    assert other.p != first.p
    assert permuted(frame, rng=np.random.default_rng(3), **options).seed is None


def test_what_cannot_be_used_is_refused_by_name():
    for options, code in (
        ({"swap": "cells"}, "unknown_swap"),
        ({"n_permutations": 0}, "n_permutations_out_of_range"),
        ({"coefficient": "tau"}, "unknown_coefficient"),
        ({"level": "sample"}, "unknown_level"),
        ({"undefined": "ignore"}, "unknown_undefined"),
    ):
        with refused(InvalidValue, code):
            permuted(pilot(1), **({"level": "item", "coefficient": "kendall"} | options))


def test_every_pair_of_metrics_is_compared_once_and_adjusted():
    frame = pilot(6, n_items=10, n_systems=4)
    frame["c"] = -frame["a"]
    options = {"level": "item", "coefficient": "kendall", "n_permutations": 300, "rng": 9}
    comparisons = compared(frame, "abc", **options)
    pairs = list(zip(comparisons["metric_a"], comparisons["metric_b"], strict=True))
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    assert comparisons["p_holm"].tolist() == holm(comparisons["p"]).tolist()
    assert comparisons["p_bh"].tolist() == benjamini_hochberg(comparisons["p"]).tolist()
    assert set(comparisons["seed"]) == {9}
    assert comparisons.loc[0, "p"] == permuted(frame, **options).p


@pytest.mark.parametrize("level", ["pooled", "system"])
def test_williams_of_two_metrics_rests_on_cells_or_systems(level):
    frame = pilot(7, n_items=10, n_systems=6)
    comparisons = compared(frame, level=level, coefficient="pearson", test="williams").iloc[0]
    points = frame if level == "pooled" else frame.groupby("system").mean()
    r = points[["human", "a", "b"]].corr()
    expected = williams_test(r.loc["human", "a"], r.loc["human", "b"], r.loc["a", "b"], len(points))
    assert comparisons["p"] == pytest.approx(expected.p, abs=1e-9)
    assert comparisons["delta"] == pytest.approx(r.loc["human", "a"] - r.loc["human", "b"])


def compared(frame, metrics="ab", **options) -> pd.DataFrame:
    scores = {name: frame[name] for name in metrics}
    columns = {"items": frame["item"], "systems": frame["system"]}
    return compare_metrics(frame["human"], scores, **columns, **options)


def test_one_metric_has_no_comparison_and_discoveries_are_adjusted_as_scipy_does():
    for level, coefficient in (("item", "pearson"), ("pooled", "kendall")):
        with refused(InvalidValue, "williams_unfit"):
            compared(pilot(1), "a", level=level, coefficient=coefficient, test="williams")
    comparisons = compared(pilot(1), "a", level="pooled", coefficient="pearson")
    assert len(comparisons) == 0
    assert {"p", "p_holm", "p_bh"} <= set(comparisons.columns)
    p = np.random.default_rng(0).random(30) ** 3
    assert benjamini_hochberg(p) == pytest.approx(scipy.stats.false_discovery_control(p))
    p = [0.001, 0.6, 0.02, 0.02, 0.9]
    by_hand = [0.005, 1.0, 0.08, 0.08, 1.0]
    assert holm(p) == pytest.approx(by_hand)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_tests_not_done_do_not_count(adjust):
    adjusted = adjust([0.01, np.nan, 0.04])
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2]].tolist() == adjust([0.01, 0.04]).tolist()
    with refused(InvalidValue, "p_out_of_range"):
        adjust([1.5])


def test_a_metric_worse_than_any_of_a_cluster_begins_the_next():
    values = {"d": 0.1, "a": 0.9, "b": 0.8, "c": 0.7, "lost": float("nan")}
    p = {("a", "b"): 0.5, ("a", "c"): 0.01, ("b", "c"): 0.4, ("c", "d"): 0.5}
    clusters = significance_clusters(values, p)
    assert clusters.to_dict() == {"a": 1, "b": 1, "c": 2, "d": 2}
    with refused_naming(InvalidValue, "'c'"):
        significance_clusters(values, {("a", "b"): 0.5})
    with refused(InvalidValue, "alpha_out_of_range"):
        significance_clusters(values, p, alpha=5)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("coefficient", ["pearson", "kendall"])
def test_the_scale_of_scores_does_not_matter_however_large_or_small(coefficient, scale):
    rng = np.random.default_rng(3)
    human, a, b = rng.normal(size=(3, 40))
    measure = {"level": "pooled", "coefficient": coefficient, "items": np.arange(40) // 4}
    test = permutation_test(human, a, b, n_permutations=99, **measure)
    scaled = permutation_test(human, a * scale, b * scale, n_permutations=99, **measure)
    assert (scaled.delta, scaled.p) == (pytest.approx(test.delta), test.p)
    clusters, as_scaled = (
        correlation_at_level(human, side, n_resamples=50, **measure) for side in (a, a * scale)
    )
    limits = (as_scaled.ci_low, as_scaled.ci_high)
    assert limits == pytest.approx((clusters.ci_low, clusters.ci_high))


POOLED = ["pearson", "spearman", "kendall", "kendall_c", "acc_eq"]
N_DRAWS = 20


def swaps(n_cells: int, seed: int = 0) -> np.ndarray:
    """Random ones, and those of no cell and of every cell."""
    drawn = np.random.default_rng(seed).random((N_DRAWS, n_cells)) < 0.5
    drawn[0], drawn[1] = False, True
    return drawn


def both_ways(human, a, b, coefficient, undefined, swapped):
    """The differences as the test computes them, and from every swapped table by itself."""
    cells = complete_cells(human, a, None, None)
    quick = deltas_of(cells, a, b, "pooled", coefficient, undefined, "both")(swapped)
    of_rows = statistic(cells, "pooled", coefficient, undefined)
    first, second = np.where(swapped, b, a), np.where(swapped, a, b)
    return quick, of_rows(first) - of_rows(second)


@pytest.mark.parametrize("coefficient", POOLED)
@pytest.mark.parametrize("undefined", ["drop", "zero", "nan"])
@settings(max_examples=20)
@given(data=st.data())
def test_swaps_by_matrix_products_are_those_of_swapped_tables(coefficient, undefined, data):
    few = st.integers(0, 3).map(float)
    rows = data.draw(st.lists(st.tuples(few, few, few), min_size=2, max_size=12))
    human, a, b = (np.array(column) for column in zip(*rows, strict=True))
    quick, slow = both_ways(human, a, b, coefficient, undefined, swaps(len(human)))
    # Pearson's sums of a draw are differences of rounded ones
    within = 1e-7 if coefficient == "pearson" else 1e-12
    assert quick == pytest.approx(slow, abs=within, nan_ok=True)


@pytest.mark.parametrize("coefficient", POOLED)
@pytest.mark.parametrize("undefined", ["drop", "zero", "nan"])
@settings(max_examples=20)
@given(data=st.data())
def test_swaps_of_items_looked_up_are_those_of_swapped_tables(coefficient, undefined, data):
    few = st.integers(0, 3).map(float)
    rows = data.draw(
        st.lists(st.tuples(st.integers(0, 4), few, few, few), min_size=4, max_size=25).filter(
            lambda cells: max(Counter(item for item, *_ in cells).values()) in range(2, 8)
        )
    )
    item, human, a, b = (np.array(column) for column in zip(*rows, strict=True))
    cells = complete_cells(human, a, item, None)
    swapped = swaps(len(human))
    quick = deltas_of(cells, a, b, "item", coefficient, undefined, "both")(swapped)
    of_rows = statistic(cells, "item", coefficient, undefined)
    slow = of_rows(np.where(swapped, b, a)) - of_rows(np.where(swapped, a, b))
    assert quick == pytest.approx(slow, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("coefficient", POOLED)
def test_many_cells_in_several_blocks_are_exact_too(coefficient):
    n_cells = 1_100
    assert n_cells**2 > BLOCK
    rng = np.random.default_rng(1)
    human = rng.integers(0, 5, n_cells).astype(float)
    a, b = np.round(human + rng.normal(size=(2, n_cells)), 1)
    quick, slow = both_ways(human, a, b, coefficient, "drop", swaps(n_cells))
    assert quick == pytest.approx(slow, abs=1e-12)


def test_sums_over_pairs_are_whole_numbers_whatever_is_swapped():
    rng = np.random.default_rng(2)
    human, a, b = rng.integers(0, 9, (3, 700)).astype(float)
    (sums,) = pair_sums(human, a, b, lambda x, y: (x * y,))
    totals = sums(swaps(700).astype(np.float32))
    assert np.array_equal(totals, np.round(totals))
    assert totals[:, 0] == pytest.approx(totals[::-1, 1], abs=0)


@pytest.mark.parametrize("swap", ["both", "items", "systems"])
def test_more_cells_than_a_table_of_pairs_holds_are_sorted_draw_by_draw(swap):
    n_items = CELLS_UP_TO // 10 + 1
    item, system = (axis.ravel() for axis in np.indices((n_items, 10)))
    rng = np.random.default_rng(3)
    human, a, b = rng.normal(size=(3, len(item)))
    result = permutation_test(
        human,
        human + 0.1 * a,
        human + 9 * b,
        level="pooled",
        coefficient="kendall",
        items=item,
        systems=system,
        swap=swap,
        n_permutations=20,
    )
    assert result.n_cells > CELLS_UP_TO
    assert result.delta > 0.5
    assert result.p < 0.1


@pytest.mark.parametrize("coefficient", POOLED)
def test_a_constant_side_that_counts_as_zero_makes_no_difference(coefficient):
    test = partial(permutation_test, level="pooled", coefficient=coefficient, undefined="zero")
    result = test([3, 3, 3, 3], [1, 2, 3, 4], [2, 2, 1, 1], n_permutations=50)
    if coefficient != "acc_eq":
        assert (result.delta, result.p) == (0.0, 1.0)
    varied = test([1, 2, 3, 4], [1, 2, 3, 4], [7, 7, 7, 7], n_permutations=50)
    assert 0 < varied.p <= 1
