import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.inference.powered_correlations import prediction_powered_correlation
from stats.inference.powered_quantiles import prediction_powered_quantile
from stats.inference.powered_regression import prediction_powered_regression
from tests.codes import refused
from tests.stats.worked_examples import worked_example


def rated(truth, n_rated):
    return np.where(np.arange(len(truth)) < n_rated, truth, np.nan)


def judged(rng, *, n=300, rho=0.8):
    truth = rng.normal(size=n)
    return truth, rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=n)


def limits(result):
    return [result.value, result.ci_low, result.ci_high]


def quantile_by_algorithm_2(human, judge, rest, q):
    """Angelopoulos et al. (2023): the values whose rectified share may be q, over all values."""
    kept = []
    for value in np.sort(np.concatenate([human, judge, rest])):
        gap = (human <= value).astype(float) - (judge <= value)
        below = rest <= value
        se = np.sqrt(gap.var() / len(gap) + below.var() / len(rest))
        if abs(gap.mean() + below.mean() - q) <= stats.norm.ppf(0.975) * se:
            kept.append(value)
    return kept[0], kept[-1]


@pytest.mark.parametrize("q", [0.25, 0.5, 0.8])
def test_an_untuned_quantile_is_that_of_the_published_algorithm(q):
    rng = np.random.default_rng(3)
    truth, judge = judged(rng)
    result = prediction_powered_quantile(
        rated(truth, 60), judge, quantile=q, power=1, small_sample=False
    )
    low, high = quantile_by_algorithm_2(truth[:60], judge[:60], judge[60:], q)
    values = np.unique(np.concatenate([truth[:60], judge]))
    assert result.ci_low == low
    # the share stays the same up to the next value, which is where the interval ends
    assert result.ci_high == values[np.searchsorted(values, high) + 1]


@pytest.mark.slow
@pytest.mark.parametrize(("n_rated", "q"), [(20, 0.5), (60, 0.9)])
def test_quantiles_are_covered_as_often_as_said_and_narrower_than_peoples(n_rated, q):
    rng = np.random.default_rng(n_rated)
    trials, covered, widths, of_people = 120, 0, 0.0, 0.0
    for _ in range(trials):
        truth, judge = judged(rng, n=150, rho=0.95)
        found = prediction_powered_quantile(rated(truth, n_rated), judge, quantile=q)
        covered += found.ci_low <= stats.norm.ppf(q) <= found.ci_high
        widths += found.ci_high - found.ci_low
        of_people += found.people_only.ci_high - found.people_only.ci_low
    assert covered / trials >= 0.92
    assert widths < of_people


def test_medians_of_scales_clusters_and_few_ratings_have_their_limits():
    rng = np.random.default_rng(0)
    truth, judge = judged(rng, n=400)
    human = rated(np.clip(np.round(3.2 + truth), 1, 5), 80)
    found = prediction_powered_quantile(human, 3.2 + judge)
    assert found.value == 3
    assert {found.ci_low, found.ci_high} <= {2.0, 3.0, 4.0}
    assert found.ci_low <= 3 <= found.ci_high
    truth, judge = judged(np.random.default_rng(0))
    found = prediction_powered_quantile(rated(truth, 40), judge, quantile=0.9)
    assert found.reason == "too_few_beyond_the_quantile"
    assert np.isnan(found.ci_low)
    assert np.isnan(found.people_only.ci_high)
    assert not np.isnan(found.value)
    rng = np.random.default_rng(2)
    cluster = np.arange(300) // 10
    truth = rng.normal(size=30)[cluster] + 0.3 * rng.normal(size=300)
    judge = truth + 0.5 * rng.normal(size=300)
    own, clustered = (
        prediction_powered_quantile(rated(truth, 150), judge, clusters=clusters)
        for clusters in (None, cluster)
    )
    assert clustered.ci_high - clustered.ci_low > 1.5 * (own.ci_high - own.ci_low)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall"])
def test_a_correlation_of_people_alone_is_the_usual_one(coefficient):
    rng = np.random.default_rng(1)
    truth, judge = judged(rng)
    length = truth + rng.normal(size=300)
    found = prediction_powered_correlation(
        rated(truth, 50), judge, length, coefficient=coefficient, power=0
    )
    usual = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    expected = usual[coefficient](truth[:50], length[:50]).statistic
    assert found.value == pytest.approx(expected)
    assert found.people_only.value == pytest.approx(expected)


def test_an_untuned_correlation_adds_the_judges_on_fishers_scale():
    rng = np.random.default_rng(1)
    truth, judge = judged(rng)
    length = truth + rng.normal(size=300)
    found = prediction_powered_correlation(rated(truth, 50), judge, length, power=1)
    part, rest = slice(50), slice(50, None)
    pairs = ((truth[part], part), (judge[rest], rest), (judge[part], part))
    own, of_rest, of_part = (np.arctanh(np.corrcoef(x, length[at])[0, 1]) for x, at in pairs)
    assert found.value == pytest.approx(np.tanh(own + of_rest - of_part))


@pytest.mark.parametrize("coefficient", ["pearson", "kendall"])
def test_correlations_are_covered_as_often_as_said_and_narrower_than_peoples(coefficient):
    rng = np.random.default_rng(5)
    truth_of = {"pearson": 0.5, "kendall": 2 / np.pi * np.arcsin(0.5)}[coefficient]
    trials, covered, narrower = 150, 0, 0
    for _ in range(trials):
        length, noise, other = rng.normal(size=(3, 200))
        truth = 0.5 * length + np.sqrt(0.75) * noise
        found = prediction_powered_correlation(
            rated(truth, 25), truth + 0.5 * other, length, coefficient=coefficient
        )
        covered += found.ci_low <= truth_of <= found.ci_high
        people = found.people_only
        narrower += found.ci_high - found.ci_low < people.ci_high - people.ci_low
    assert 0.92 <= covered / trials <= 0.99
    assert narrower / trials > 0.9


def test_correlations_that_cannot_be_had_say_why():
    rng = np.random.default_rng(0)
    truth, judge = judged(rng)
    few = prediction_powered_correlation(rated(truth, 8), judge, rng.normal(size=300))
    assert few.reason == "too_few_labels"
    constant = prediction_powered_correlation(rated(truth, 30), judge, np.ones(300))
    assert constant.reason == "no_variation"
    perfect = prediction_powered_correlation(rated(truth, 30), judge, truth)
    assert (perfect.reason, perfect.value) == ("perfect_correlation", pytest.approx(1))
    for found in (few, constant, perfect):
        assert np.isnan(found.ci_low)
        assert np.isnan(found.people_only.ci_low)
    with refused(InvalidValue, "other_is_judge"):
        prediction_powered_correlation(rated(truth, 30), judge, judge)


def columns_of_example():
    inputs = worked_example(5)["inputs"]
    missing = len(inputs["judge"]) - len(inputs["human"])
    human = [*inputs["human"], *[np.nan] * missing]
    return human, inputs["judge"], {"covariate": inputs["covariate"]}


@pytest.mark.parametrize(("power", "key"), [(1, "untuned"), (None, "tuned")])
def test_least_squares_equal_those_of_ppi_python(power, key):
    expected = worked_example(5)["expected"][key]
    found = prediction_powered_regression(*columns_of_example(), power=power, small_sample=False)
    assert [one.name for one in found.coefficients] == ["intercept", "covariate"]
    for at, one in enumerate(found.coefficients):
        assert one.ci_low == pytest.approx(expected["low"][at], abs=1e-6)
        assert one.ci_high == pytest.approx(expected["high"][at], abs=1e-6)
        # tuned, theirs has an estimate of another lambda than its interval
        theirs = expected["estimate"][at] if power else np.mean([one.ci_low, one.ci_high])
        assert one.value == pytest.approx(theirs, abs=1e-6)


def test_slopes_are_covered_as_often_as_said_and_missing_for_few_ratings():
    rng = np.random.default_rng(8)
    trials, covered, people_covered = 150, 0, 0
    for _ in range(trials):
        length, noise, other = rng.normal(size=(3, 200))
        truth = 0.5 * length + noise
        found = prediction_powered_regression(
            rated(truth, 25), truth + 0.5 * other, {"length": length}
        ).coefficients[1]
        covered += found.ci_low <= 0.5 <= found.ci_high
        people_covered += found.people_only.ci_low <= 0.5 <= found.people_only.ci_high
    assert 0.92 <= covered / trials <= 0.98
    assert people_covered / trials >= 0.92
    human, judge, covariates = columns_of_example()
    few = prediction_powered_regression([*human[:10], *[np.nan] * 140], judge, covariates)
    assert few.reason == "too_few_labels"
    same = prediction_powered_regression(human, judge, {"a": np.ones(150)})
    assert same.reason == "no_variation"
    assert np.isnan(same.coefficients[1].ci_low)
