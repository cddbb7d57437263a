"""Quick pooled coefficients under swaps, against the coefficient of each swapped table."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.correlation.cells import complete_cells
from stats.significance import permutation_test
from stats.significance.deltas import deltas_of
from stats.significance.statistics import statistic
from stats.significance.swapped_pairs import BLOCK, CELLS_UP_TO, pair_sums

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
@settings(max_examples=40)
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
@settings(max_examples=40)
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
