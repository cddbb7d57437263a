import numpy as np
import pytest

from stats.inference.active_labels import actively_labelled_mean, labelling_probabilities
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_regression import prediction_powered_regression
from tests.codes import codes_of
from tests.stats.worked_examples import worked_example


def columns_of(inputs):
    unlabelled = inputs["judge_on_unlabelled"]
    human = [*inputs["human"], *[np.nan] * len(unlabelled)]
    return human, [*inputs["judge_on_labelled"], *unlabelled]


def limits(result):
    return [result.value, result.ci_low, result.ci_high]


def expected_limits(row):
    return [row["estimate"], row["low"], row["high"]]


def test_means_and_paired_differences_equal_those_of_ppi_python():
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


def test_clusters_of_one_size_equal_ppi_python_on_their_means_and_strata_have_a_lambda_each():
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


def test_clusters_labelled_in_part_still_cover():
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


def test_a_judge_that_knows_nothing_adds_nothing_and_one_of_few_unrated_items_is_not_said_to():
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
