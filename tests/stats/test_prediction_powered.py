import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.inference.active_labels import actively_labelled_mean, labelling_probabilities
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_quantiles import (
    prediction_powered_correlation,
    prediction_powered_quantile,
)
from stats.inference.powered_regression import prediction_powered_regression
from tests.codes import codes_of, refused
from tests.stats.worked_examples import worked_example


def columns_of(inputs):
    unlabelled = inputs["judge_on_unlabelled"]
    human = [*inputs["human"], *[np.nan] * len(unlabelled)]
    return human, [*inputs["judge_on_labelled"], *unlabelled]


def limits(result):
    return [result.value, result.ci_low, result.ci_high]


def expected_limits(row):
    return [row["estimate"], row["low"], row["high"]]


def test_means_differences_and_clusters_of_one_size_equal_those_of_ppi_python():
    example = worked_example(3)
    human, judge = columns_of(example["inputs"])
    expected = example["expected"]
    tuned = prediction_powered_mean(human, judge, small_sample=False)
    own = example["inputs"]
    spread = np.std(own["judge_on_labelled"]) / np.std(own["human"])
    assert tuned.power == pytest.approx(expected["lambda"] * spread, abs=1e-8)
    assert limits(tuned) == pytest.approx(expected_limits(expected["ppi_plus_plus"]), abs=1e-8)
    plain = prediction_powered_mean(human, judge, power=1, small_sample=False)
    assert limits(plain) == pytest.approx(expected_limits(expected["ppi"]), abs=1e-8)
    people = limits(tuned.people_only)
    assert people == pytest.approx(expected_limits(expected["classical"]), abs=1e-8)
    example = worked_example(4)
    inputs, expected = example["inputs"], example["expected"]
    n = len(inputs["human_a"])
    judge = np.subtract(inputs["judge_a"], inputs["judge_b"])
    human = np.full(len(judge), np.nan)
    human[:n] = np.subtract(inputs["human_a"], inputs["human_b"])
    result = prediction_powered_mean(human, judge, small_sample=False)
    assert limits(result) == pytest.approx(expected_limits(expected["ppi_plus_plus"]), abs=1e-8)
    example = worked_example(6)
    inputs = example["inputs"]
    human = [*inputs["human"], *[np.nan] * (len(inputs["judge"]) - len(inputs["human"]))]
    expected = example["expected"]["ppi_python_on_cluster_means"]
    result = prediction_powered_mean(
        human, inputs["judge"], clusters=inputs["cluster"], small_sample=False
    )
    assert limits(result) == pytest.approx(expected_limits(expected), abs=1e-8)
    example = worked_example(7)
    inputs, expected = example["inputs"], example["expected"]["by_hand"]
    human = [*inputs["human"], *[np.nan] * (len(inputs["judge"]) - len(inputs["human"]))]
    result = prediction_powered_mean(
        human, inputs["judge"], strata=inputs["stratum"], small_sample=False
    )
    assert limits(result) == pytest.approx(expected_limits(expected), abs=1e-8)


def test_items_sent_with_unequal_chances_are_weighted_back():
    example = worked_example(8)
    inputs, expected = example["inputs"], example["expected"]
    human = [np.nan if value is None else value for value in inputs["human"]]
    result = actively_labelled_mean(
        human, inputs["judge"], inputs["probability"], small_sample=False
    )
    assert limits(result) == pytest.approx(expected_limits(expected), abs=1e-7)
    assert result.se == pytest.approx(expected["se"], abs=1e-7)


@pytest.mark.parametrize("rho", [0.0, 0.8])
@pytest.mark.parametrize("n_labelled", [10, 30])
def test_small_samples_are_covered_as_often_as_said(rho, n_labelled):
    rng = np.random.default_rng(n_labelled)
    trials, covered, narrower = 600, 0, 0
    for _ in range(trials):
        truth = rng.normal(size=200)
        judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=200)
        human = np.where(np.arange(200) < n_labelled, truth, np.nan)
        result = prediction_powered_mean(human, judge)
        covered += result.ci_low <= 0 <= result.ci_high
        people = result.people_only
        narrower += result.ci_high - result.ci_low < people.ci_high - people.ci_low
    assert 0.92 <= covered / trials <= 0.98
    assert narrower / trials > (0.9 if rho else -1)


def test_clusters_labelled_in_part_cover_and_a_judge_that_knows_nothing_adds_nothing():
    rng = np.random.default_rng(7)
    trials, covered = 200, 0
    for _ in range(trials):
        cluster = np.arange(240) // 6
        truth = rng.normal(size=40)[cluster] + rng.normal(size=240)
        judge = truth + rng.normal(size=240)
        human = np.where(rng.random(240) < 0.25, truth, np.nan)
        result = prediction_powered_mean(human, judge, clusters=cluster)
        covered += result.ci_low <= 0 <= result.ci_high
    assert covered / trials >= 0.93
    rng = np.random.default_rng(1)
    human = np.where(np.arange(100) < 40, rng.normal(size=100), np.nan)
    result = prediction_powered_mean(human, np.ones(100))
    assert result.power == 0
    assert result.ci_low == result.people_only.ci_low
    assert "judge_adds_nothing" in codes_of(result.notes)
    rng = np.random.default_rng(4)
    judge = rng.normal(size=202)
    human = np.where(np.arange(202) < 200, judge + 0.1 * rng.normal(size=202), np.nan)
    found = prediction_powered_mean(human, judge)
    assert found.power < 0.02
    assert "judge_adds_nothing" not in codes_of(found.notes)


@pytest.mark.parametrize(
    ("human", "reason"),
    [
        ([np.nan] * 40, "no_labels"),
        ([1.0, 2, 3] + [np.nan] * 37, "too_few_labels"),
        ([1.0] * 4 + [0.0] * 16 + [np.nan] * 20, "too_few_of_a_class"),
        ([1.0] * 20 + [np.nan] * 20, "no_variation"),
    ],
)
def test_too_little_is_refused_with_its_reason(human, reason):
    result = prediction_powered_mean(human, np.arange(40) % 7)
    assert result.reason == reason
    assert np.isnan(result.ci_low)
    rng = np.random.default_rng(0)
    human = np.where(np.arange(100) < 10, rng.normal(size=100), np.nan)
    result = prediction_powered_mean(human, rng.normal(size=100), clusters=np.arange(100) // 5)
    assert result.reason == "too_few_labels"  # two rated clusters
    assert np.isnan(result.ci_low)


def test_labelling_chances_follow_the_error_and_active_labels_beat_random_ones():
    rng = np.random.default_rng(0)
    error = rng.exponential(size=300) ** 2
    chance = labelling_probabilities(error, budget=60)
    assert chance.sum() == pytest.approx(60)
    assert chance.min() >= 0.1 * 60 / 300
    assert chance.max() <= 1
    assert np.corrcoef(chance, error)[0, 1] > 0.8
    rng = np.random.default_rng(4)
    n, trials = 400, 300
    spread = rng.exponential(size=n)
    widths = {"active": [], "random": []}
    for _ in range(trials):
        judge = rng.normal(size=n)
        truth = judge + spread * rng.normal(size=n)
        for name, chance in (
            ("active", labelling_probabilities(spread, budget=80)),
            ("random", np.full(n, 0.2)),
        ):
            human = np.where(rng.random(n) < chance, truth, np.nan)
            widths[name].append(actively_labelled_mean(human, judge, chance).se)
    assert np.mean(widths["active"]) < np.mean(widths["random"])


@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(21), 5)])
def test_one_item_or_cluster_that_nobody_rated_still_gives_an_interval(clusters):
    rng = np.random.default_rng(3)
    n = 21 if clusters is None else 105
    judge = rng.normal(size=n) if clusters is None else rng.normal(size=21)[clusters]
    human = judge + 0.1 * rng.normal(size=n)
    human[n - 1 if clusters is None else 100 :] = np.nan
    result = prediction_powered_mean(human, judge, clusters=clusters)
    assert result.reason is None
    assert result.ci_low < result.value < result.ci_high
    assert "judge_adds_nothing" not in codes_of(result.notes)
    assert result.se == pytest.approx(result.people_only.se, rel=0.05)


def test_a_regression_needs_unrated_items_enough_and_both_classes():
    rng = np.random.default_rng(5)
    length = rng.normal(size=42)
    truth = length + rng.normal(size=42)
    human = np.where(np.arange(42) < 40, truth, np.nan)
    found = prediction_powered_regression(human, truth, {"length": length})
    assert found.power == 0
    assert found.coefficients[1].value == pytest.approx(found.coefficients[1].people_only.value)
    passed = np.where(np.isnan(human), np.nan, np.arange(42) < 3)
    assert prediction_powered_regression(passed, truth, {"length": length}).reason == (
        "too_few_of_a_class"
    )


def rated(truth, n_rated):
    return np.where(np.arange(len(truth)) < n_rated, truth, np.nan)


def judged(rng, *, n=300, rho=0.8):
    truth = rng.normal(size=n)
    return truth, rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=n)


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
