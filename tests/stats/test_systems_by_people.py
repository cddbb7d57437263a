import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.inference import crossed_means, resampled_means
from stats.inference.larger_studies import least_distinguishable
from stats.inference.preferences_with_ties import Reason, abilities_with_ties
from stats.inference.two_systems import difference_of_systems, ordered_comparison
from tests.codes import codes_of, refused
from tests.stats.worked_examples import worked_example


def differences():
    table = np.array(worked_example(17)["inputs"]["difference_item_by_annotator"])
    items, annotators = np.indices(table.shape).reshape(2, -1)
    return table, items, annotators


def test_means_over_items_and_annotators_are_a_quasi_f_and_of_items_t_tests():
    table, items, annotators = differences()
    expected = worked_example(17)["expected"]
    mean = crossed_means.mean_over_items_and_annotators(items, annotators, table.ravel())
    assert mean.value == pytest.approx(expected["mean"], abs=1e-9)
    assert mean.p == pytest.approx(expected["quasi_f"]["p"], abs=1e-9)
    assert mean.freedom == pytest.approx(expected["quasi_f"]["df"], abs=1e-9)
    assert (mean.value / mean.se) ** 2 == pytest.approx(expected["quasi_f"]["F"], abs=1e-9)
    squares = [expected["quasi_f"][f"ms_{name}"] for name in ("item", "annotator", "residual")]
    assert crossed_means.mean_squares(table) == pytest.approx(squares, abs=1e-9)
    assert mean.ci_low < 0 < mean.ci_high
    by_item = resampled_means.sign_flip_test(items, table.ravel())
    by_annotator = resampled_means.sign_flip_test(annotators, table.ravel())
    assert by_item == pytest.approx(expected["sign_flip_items_p"], abs=1e-9)
    assert by_annotator == pytest.approx(expected["sign_flip_annotators_p"], abs=1e-9)
    values = np.random.default_rng(0).normal(size=60)
    mean = crossed_means.mean_over_items_and_annotators(np.arange(60) // 3, np.arange(60), values)
    of_items = values.reshape(20, 3).mean(axis=1)
    assert mean.method == "items"
    assert mean.p == pytest.approx(stats.ttest_1samp(of_items, 0).pvalue)
    values = np.random.default_rng(3).exponential(size=25)
    items, nobody = np.arange(25), np.zeros(25)
    plain = crossed_means.mean_over_items_and_annotators(items, nobody, values)
    mean = crossed_means.mean_over_items_and_annotators(items, nobody, values, skewed=True)
    assert mean.method == "items-hall"
    assert mean.skewness == pytest.approx(stats.skew(values, bias=False) / 5)
    t = stats.t.ppf(0.975, 24)
    assert [mean.t_against(mean.ci_low), mean.t_against(mean.ci_high)] == pytest.approx([t, -t])
    assert mean.ci_high - plain.ci_high > mean.ci_low - plain.ci_low > 0
    assert mean.p == pytest.approx(2 * stats.t.sf(mean.t_against(0.0), 24))
    # Three annotators of all items, a fourth of two, and one item unlike the others.
    items, annotators = np.r_[np.arange(36) // 3, 0, 1], np.r_[np.arange(36) % 3, 3, 3]
    values = np.where(items, 50.0 + 3 * (items % 4), -10.0) + 2 * annotators
    mean = crossed_means.mean_over_items_and_annotators(items, annotators, values, skewed=True)
    t = stats.t.ppf(0.975, mean.freedom)
    assert mean.skewness * t == pytest.approx(-crossed_means.MOST_SKEWED)
    assert 1.5 * t < (mean.value - mean.ci_low) / mean.se < 1.7 * t
    assert least_distinguishable(1.0, np.inf) == pytest.approx(2.8016, abs=1e-4)
    assert least_distinguishable(0.5, 2) == pytest.approx(0.5 * (4.3027 + 1.0607), abs=1e-4)
    with refused(InvalidValue, "power_out_of_range"):
        least_distinguishable(1.0, 9, power=1.0)


def comparisons():
    rows = []
    for pair in worked_example(14)["inputs"]["pairs"]:
        for count, outcome in (("a_wins", 1), ("b_wins", -1), ("ties", 0)):
            rows += [(pair["a"], pair["b"], outcome)] * pair[count]
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("model", ["davidson", "rao_kupper"])
def test_abilities_with_ties_are_the_published_models(model):
    expected = worked_example(14)["expected"][model]
    result = abilities_with_ties(*comparisons(), model=model)
    assert result.converged
    assert result.abilities == pytest.approx(expected["abilities"], abs=1e-4)
    assert result.log_likelihood == pytest.approx(expected["log_likelihood"], abs=1e-5)
    tie = expected["nu"] if model == "davidson" else expected["theta"]
    assert result.tie_parameter == pytest.approx(tie, abs=1e-4)


def test_abilities_without_ties_are_bradley_and_terrys_and_their_error_log_linear():
    import choix

    result = abilities_with_ties(*comparisons())
    [first] = [pair for pair in result.pairs if (pair.a, pair.b) == ("A", "B")]
    assert first.se == pytest.approx(
        worked_example(14)["expected"]["davidson"]["se_of_A_minus_B"], abs=1e-4
    )
    first, second, outcome = comparisons()
    kept = [at for at, result in enumerate(outcome) if result]
    won = [(first[i], second[i]) if outcome[i] > 0 else (second[i], first[i]) for i in kept]
    names = sorted(set(first) | set(second))
    theirs = choix.opt_pairwise(4, [(names.index(a), names.index(b)) for a, b in won], alpha=0)
    result = abilities_with_ties([a for a, _ in won], [b for _, b in won], [1] * len(won))
    assert result.tie_parameter == 0
    assert list(result.abilities.values()) == pytest.approx(theirs - theirs.mean(), abs=1e-4)


def test_covariates_are_estimated_whatever_their_unit():
    rng = np.random.default_rng(2)
    ability = np.array([0.8, 0.0, -0.8])
    first, second = rng.integers(0, 3, 6000), rng.integers(0, 3, 6000)
    first, second = first[first != second], second[first != second]
    longer = rng.normal(size=len(first))
    odds = ability[first] - ability[second] + 0.5 * longer + 0.4
    chances = np.exp(np.stack([odds / 2, np.full_like(odds, -0.3), -odds / 2]))
    drawn = (rng.random(len(odds)) > np.cumsum(chances / chances.sum(axis=0), axis=0)).sum(axis=0)
    result = abilities_with_ties(first, second, 1 - drawn, covariates={"length": longer}, side=True)
    assert list(result.abilities.values()) == pytest.approx(ability, abs=0.12)
    assert result.coefficients["length"] == pytest.approx(0.5, abs=0.1)
    assert result.coefficients["first"] == pytest.approx(0.4, abs=0.1)
    low, high = result.coefficient_limits["length"]
    assert low < 0.5 < high
    assert result.tie_parameter == pytest.approx(np.exp(-0.3), abs=0.1)
    rng = np.random.default_rng(2)
    first, longer = rng.choice(list("ab"), 200), rng.normal(size=200)
    second, outcome = np.where(first == "a", "b", "a"), np.sign(longer + 2 * rng.normal(size=200))
    one, other = (
        abilities_with_ties(first, second, outcome, covariates={"length": unit * longer})
        for unit in (1.0, 1e12)
    )
    assert other.pairs[0].se == pytest.approx(one.pairs[0].se)
    assert other.coefficients["length"] == pytest.approx(one.coefficients["length"] / 1e12)
    for theirs, mine in zip(
        other.coefficient_limits["length"], one.coefficient_limits["length"], strict=True
    ):
        assert theirs == pytest.approx(mine / 1e12)


def test_systems_that_never_lost_are_refused_and_clusters_widen_the_intervals():
    result = abilities_with_ties(list("aaab"), list("bccc"), [1, 1, 1, 1])
    assert not result.converged
    assert result.reason is Reason.UNBEATEN
    assert set(result.smoothed) == {"a", "b"}
    result = abilities_with_ties(list("aaab"), list("bccc"), [1, 1, 1, 1], separated="half_wins")
    assert result.converged
    assert result.abilities["a"] > result.abilities["b"] > result.abilities["c"]
    assert "half_wins" in codes_of(result.notes)
    result = abilities_with_ties(list("aabb"), list("ccdd"), [1, -1, 1, -1])
    assert result.reason is Reason.NOT_COMPARED
    assert np.isnan(list(result.abilities.values())).all()
    result = abilities_with_ties(list("aab"), list("bcc"), [0, 0, 0])
    assert result.reason is Reason.ALL_TIES
    first, second, outcome = comparisons()
    repeated = [column * 4 for column in (first, second, outcome)]
    items = list(range(len(first))) * 4
    naive = abilities_with_ties(*repeated)
    honest = abilities_with_ties(*repeated, items=items)
    assert honest.pairs[0].se == pytest.approx(2 * naive.pairs[0].se, rel=0.15)
    assert honest.se_by == "items"
    items = [at % 20 for at in range(len(first))]
    alone = abilities_with_ties(first, second, outcome, items=items)
    both = abilities_with_ties(first, second, outcome, items=items, annotators=["one"] * len(first))
    assert both.se_by == "items"
    assert both.pairs[0].ci_low == pytest.approx(alone.pairs[0].ci_low)
    assert "one_only" in codes_of(both.notes)


@pytest.mark.parametrize("model", ["davidson", "rao_kupper"])
def test_where_one_only_won_or_tied_there_is_no_maximum(model):
    first, second, outcome = list("ab" * 12), list("ba" * 12), [1, -1, 0, 0] * 6
    result = abilities_with_ties(first, second, outcome, model=model, items=range(24))
    assert result.reason is Reason.UNBEATEN
    assert result.smoothed == ("a",)
    assert result.pairs == ()
    smoothed = abilities_with_ties(first, second, outcome, model=model, separated="half_wins")
    assert smoothed.converged
    assert 0 < smoothed.pairs[0].ci_low < smoothed.pairs[0].delta < 5


def test_a_covariate_in_step_with_systems_or_outcomes_is_refused():
    rng = np.random.default_rng(0)
    outcome = rng.integers(-1, 2, 60)
    always_first = abilities_with_ties(["a"] * 60, ["b"] * 60, outcome, side=True)
    assert always_first.reason is Reason.NOT_IDENTIFIED
    first, second = rng.choice(list("ab"), 60), np.full(60, "c")
    constant = abilities_with_ties(first, second, outcome, covariates={"length": [5.0] * 60})
    assert constant.reason is Reason.NOT_IDENTIFIED
    alone = abilities_with_ties(first, second, outcome)
    assert alone.converged
    first, longer = rng.choice(list("ab"), 80), rng.normal(size=80)
    second = np.where(first == "a", "b", "a")
    result = abilities_with_ties(first, second, np.sign(longer), covariates={"length": longer})
    assert result.reason is Reason.COVARIATE_DECIDES


def paired(first, second):
    """Ratings of both systems by one annotator an item."""
    n = len(first)
    items = np.tile(np.arange(n), 2)
    return items, items, np.repeat([1, 0], n), np.concatenate([first, second])


def test_yes_and_no_give_the_conditional_odds_ratio_and_only_their_order_counts():
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


def test_ratings_all_alike_or_unpaired_conclude_what_they_can_and_odds_hold_1_as_p_says():
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
