import numpy as np
import pytest

from stats.inference.ordered_ratings import ordered_comparison
from stats.inference.two_systems import difference_of_systems


def paired(first, second):
    """Ratings of both systems by one annotator an item."""
    n = len(first)
    items = np.tile(np.arange(n), 2)
    return items, items, np.repeat([1, 0], n), np.concatenate([first, second])


def test_yes_and_no_give_the_conditional_odds_ratio_and_the_difference_of_agresti():
    """Approval of a prime minister twice (Agresti 2002, Categorical Data Analysis, section 10.1):
    794 yes both times, 150 yes then no, 86 no then yes, 570 no; the log odds ratio of a model
    with an effect of each person is log(86/150) = -0.556, the difference of shares -0.04 with
    standard error 0.0095, and z**2 = 17.36."""
    before = np.repeat([1, 1, 0, 0], [794, 150, 86, 570])
    after = np.repeat([1, 0, 1, 0], [794, 150, 86, 570])
    one = ordered_comparison(*paired(after, before))
    assert np.log(one.odds_ratio) == pytest.approx(-0.556, abs=5e-4)
    assert one.lead.value == pytest.approx(-0.04, abs=1e-9)
    assert one.lead.se == pytest.approx(0.0095, abs=1e-4)
    assert (one.lead.value / one.lead.se) ** 2 == pytest.approx(17.36, rel=0.02)
    assert one.odds_low < one.odds_ratio < one.odds_high < 1


def test_only_the_order_counts_and_shares_of_yes_differ_by_the_lead():
    rng = np.random.default_rng(0)
    items, annotators = np.indices((30, 5)).reshape(2, -1)
    a, b = rng.integers(1, 6, size=(2, 150))
    columns = np.tile(items, 2), np.tile(annotators, 2), np.repeat([1, 0], 150)
    values = np.concatenate([a, b])
    assert ordered_comparison(*columns, values) == ordered_comparison(*columns, np.exp(values))
    rng = np.random.default_rng(1)
    items, annotators = np.indices((40, 4)).reshape(2, -1)
    columns = np.tile(items, 2), np.tile(annotators, 2), np.repeat([1, 0], 160)
    values = (rng.random(320) < np.repeat([0.7, 0.5], 160)).astype(int)
    one, mean = ordered_comparison(*columns, values), difference_of_systems(*columns, values)
    assert (one.lead.value, one.lead.p) == pytest.approx((mean.value, mean.p))
    assert one.above + one.below + one.tied == pytest.approx(1)


def test_ratings_all_alike_tied_or_unpaired_conclude_what_they_can():
    one = ordered_comparison(*paired(np.full(12, 4), np.full(12, 2)))
    assert (one.above, one.odds_ratio) == (1, np.inf)
    assert 0.5 < one.lead.ci_low < one.lead.ci_high == 1
    assert one.lead.p == pytest.approx(2 * 0.5**12)
    turned = ordered_comparison(*paired(np.full(12, 2), np.full(12, 4)))
    assert (turned.lead.ci_low, turned.lead.ci_high) == (-1, -one.lead.ci_low)
    assert turned.odds_ratio == 0
    tied = ordered_comparison(*paired(np.full(12, 3), np.full(12, 3)))
    assert tied.tied == 1
    assert np.isnan([tied.lead.p, tied.odds_ratio]).all()
    assert ordered_comparison([1, 2], ["a", "b"], [1, 0], [3, 4]) is None
    clusters = np.repeat(np.arange(10), 3)
    one = ordered_comparison(
        np.repeat(np.arange(30), 2), ["ann"] * 60, [1, 0] * 30, [4, 2, 4, 2, 1, 2] * 10,
        clusters=np.repeat(clusters, 2),
    )  # fmt: skip
    assert one.lead.value == pytest.approx(1 / 3)
    assert np.isnan([one.lead.p, one.lead.ci_low, one.lead.ci_high]).all()
    of_one_item = ordered_comparison([1] * 4, list("aabb"), [1, 0] * 2, [4, 2, 2, 4])
    assert np.isnan([of_one_item.lead.p, of_one_item.lead.ci_low]).all()


def test_odds_hold_1_just_where_p_is_above_five_percent():
    rng = np.random.default_rng(3)
    for _ in range(50):
        a, b = rng.integers(1, 4, size=(2, 25))
        one = ordered_comparison(*paired(a + (rng.random(25) < 0.4), b))
        assert (one.lead.p < 0.05) == (one.odds_low > 1 or one.odds_high < 1)


@pytest.mark.parametrize("n_annotators", [1, 3])
def test_a_constant_difference_of_decimals_has_no_p_and_no_interval(n_annotators):
    items = np.repeat(np.arange(20), n_annotators)
    annotators = np.tile(np.arange(n_annotators), 20)
    second = np.round(np.random.default_rng(0).uniform(1, 5, items.size), 1)
    one = difference_of_systems(
        np.tile(items, 2), np.tile(annotators, 2), np.repeat([1, 0], items.size),
        np.concatenate([second + 0.3, second]),
    )  # fmt: skip
    assert one.value == pytest.approx(0.3)
    assert np.isnan([one.se, one.p, one.ci_low, one.ci_high]).all()
