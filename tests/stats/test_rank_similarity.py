from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.ranking.rank_biased_overlap import RankTies, rbo, rbo_rows, tie_groups
from stats.ranking.rank_similarity import (
    swapped_pairs,
    tau_ap_a,
    tau_ap_a_rows,
    tau_ap_b,
    tau_ap_b_rows,
    tau_b,
)
from tests.codes import refused

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
    ("a b c", "a c b", 0.9, "a", 0.955000, 0.477528, 0.955000),
    ("a b c", "a c b", 0.9, "b", 0.955000, 0.477528, 0.955000),
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
def test_coefficients_are_ircors(number: int):
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


def test_tau_b_is_scipys_and_ties_of_an_estimate_are_the_mean_of_their_orders():
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


def test_identical_rankings_have_1_opposite_ones_minus_1_and_swaps_at_the_top_weigh_more():
    values = [3.0, 2.0, 2.0, 1.0]
    assert tau_ap_b(values, values) == 1
    assert tau_ap_a([3, 2, 1], [1, 2, 3]) == -1 == tau_ap_b([3, 2, 1], [1, 2, 3])
    truth = [5, 4, 3, 2, 1]
    at_top, at_bottom = [4, 5, 3, 2, 1], [5, 4, 3, 1, 2]
    assert tau_ap_a(truth, at_top) == pytest.approx(0.5)
    assert tau_ap_a(truth, at_bottom) == pytest.approx(0.875)
    assert tau_b(truth, at_top) == tau_b(truth, at_bottom)


def test_rows_have_the_values_of_one_after_another():
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


def test_a_pair_tied_on_a_side_is_not_swapped_and_without_order_there_is_no_coefficient():
    swaps = swapped_pairs([3, 2, 1, 0], [1, 1, 2, 0])
    assert [(swap.above, swap.below) for swap in swaps] == [(0, 2), (1, 2)]
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
    ("first", "options", "code"),
    [
        ("", {}, "first_empty"),
        ("a a", {}, "repeated_items"),
        ("a", {"p": 1.0}, "p_out_of_range"),
        ("a", {"ties": "c"}, "unknown_ties"),
    ],
)
def test_a_callers_mistake_names_the_argument(first: str, options: dict, code: str):
    with refused(InvalidValue, code):
        rbo(groups(first), groups("a"), **options)
    with refused(InvalidValue, "truth_tied"):
        tau_ap_a([1, 1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("first", "second", "p", "ties", "ext", "least", "most"), OF_CORSI_AND_URBANO
)
def test_overlap_with_ties_is_corsi_and_urbanos(
    first: str, second: str, p: float, ties: RankTies, ext: float, least: float, most: float
):
    found = rbo(groups(first), groups(second), p=p, ties=ties)
    assert (found.ext, found.min, found.max) == pytest.approx((ext, least, most), abs=1e-6)
    other_way = rbo(groups(second), groups(first), p=p, ties=ties)
    assert other_way.ext == pytest.approx(ext, abs=1e-6)
