import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from error_codes import InvalidValue
from stats.inference import alternative_annotator, powered_regression, sampled_batches
from stats.inference.judge_soundness import judge_shift
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_quantiles import (
    prediction_powered_correlation,
    prediction_powered_quantile,
)
from stats.proportions import mcnemar, wilson
from stats.significance import benjamini_hochberg, benjamini_yekutieli, holm
from tests.codes import codes_of, refused
from tests.stats.worked_examples import worked_example

EXAMPLE = worked_example(18)


def test_two_judges_are_compared_by_mcnemar_and_differences_are_covered():
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    inputs, expected = EXAMPLE["inputs"], EXAMPLE["expected"]
    cells = [inputs[k] for k in ("both_right", "only_a_right", "only_b_right", "both_wrong")]
    pair = mcnemar(*cells)
    assert pair.p == pytest.approx(expected["mcnemar_exact_p"], abs=1e-9)
    assert pair.mid_p == pytest.approx(expected["mcnemar_mid_p"], abs=1e-9)
    assert pair.difference == pytest.approx(expected["accuracy_difference"], abs=1e-9)
    assert pair.ci_low < pair.difference < pair.ci_high
    for table in ([[30, 8], [2, 10]], [[5, 0], [6, 1]], [[40, 3], [3, 4]]):
        (a, b), (c, d) = table
        assert mcnemar(a, b, c, d).p == pytest.approx(theirs(table, exact=True).pvalue)
    rng = np.random.default_rng(0)
    covered, trials = 0, 800
    for _ in range(trials):
        easy = rng.random(80)
        a, b = rng.random(80) < 0.6 + 0.3 * easy, rng.random(80) < 0.5 + 0.3 * easy
        pair = mcnemar(*(int((x & y).sum()) for x, y in ((a, b), (a, ~b), (~a, b), (~a, ~b))))
        covered += pair.ci_low <= 0.1 <= pair.ci_high
    assert 0.93 <= covered / trials <= 0.99
    from statsmodels.stats.proportion import proportion_confint

    for x, n in ((0, 10), (10, 10), (3, 17), (500, 501)):
        assert wilson(x, n) == pytest.approx(proportion_confint(x, n, method="wilson"), abs=1e-12)


def test_a_shift_of_the_judge_is_covered_and_at_the_tolerance_seldom_stops_a_pipeline():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(600):
        before = rng.normal(size=50)
        after = before + 0.3 + 0.5 * rng.normal(size=50)
        drift = judge_shift(before, after, human=before, looks=4)
        covered += drift.ci_low <= 0.3 <= drift.ci_high
        assert drift.p_adjusted == pytest.approx(min(4 * drift.p, 1))
    assert covered / 600 >= 0.97
    assert drift.distance_after > drift.distance_before == 0
    rng = np.random.default_rng(5)
    alarms = 0
    for before in rng.normal(size=(300, 200)):
        after = before + 0.3 + 0.5 * rng.normal(size=200)
        alarms += judge_shift(before, after, tolerance=0.3).p_beyond < 0.05
    assert alarms / 300 <= 0.07
    before = rng.normal(size=200)
    moved = judge_shift(before, before + 0.6 + 0.5 * rng.normal(size=200), tolerance=0.3)
    assert moved.p_beyond < 0.001
    assert judge_shift(before, before + 0.5, tolerance=0.6).p_beyond == 1
    with refused(InvalidValue, "too_few_clusters"):
        judge_shift(before, before, clusters=["one"] * 200)
    for wrong in (-0.1, np.nan, np.inf):
        with refused(InvalidValue, "tolerance_out_of_range"):
            judge_shift(before, before, tolerance=wrong)


def long_frame(inputs):
    said = {**inputs["humans"], "judge": inputs["judge"]}
    rows = [(item, name, value) for name, of in said.items() for item, value in of.items()]
    return zip(*rows, strict=True)


def run(inputs, *, clusters=False, **options):
    items, annotators, values = long_frame(inputs)
    level = "nominal" if inputs["score"] == "accuracy" else "interval"
    cluster = [inputs["clusters"][item] for item in items] if clusters else None
    return alternative_annotator.alternative_annotator_test(
        list(items),
        list(annotators),
        list(values),
        judge="judge",
        level=level,
        epsilon=inputs["epsilon"],
        min_items=inputs["min_items_per_human"],
        clusters=cluster,
        n_resamples=200,
        n_shuffles=10,
        **options,
    )


@pytest.mark.parametrize("number", [1, 2])
def test_the_published_program_gives_the_same_numbers(number):
    example = worked_example(number)
    expected, result = example["expected"], run(example["inputs"])
    assert result.winning_rate == expected["winning_rate"]
    advantage = pytest.approx(expected["advantage_probability"], abs=1e-9)
    assert result.advantage_probability == advantage
    assert result.passes is expected["passes"]
    for test, row in zip(result.annotators, expected["annotators"], strict=True):
        assert (test.annotator, test.n) == (row["annotator"], row["n"])
        assert test.judge_wins == pytest.approx(row["llm_wins_or_ties"], abs=1e-9)
        assert test.annotator_wins == pytest.approx(row["human_wins_or_ties"], abs=1e-9)
        assert test.mean_difference == pytest.approx(row["mean_difference"], abs=1e-9)
        assert test.p == pytest.approx(row["p"], abs=1e-9)
    assert result.advantage_low < result.advantage_probability < result.advantage_high


def test_p_is_adjusted_as_published_and_the_least_epsilon_is_where_the_judge_passes():
    example = worked_example(1)
    adjusted = [test.p_adjusted for test in run(example["inputs"]).annotators]
    assert adjusted == pytest.approx(example["expected"]["by_adjusted_p"], abs=1e-9)
    tests = run(example["inputs"], clusters=True).annotators
    expected = [row["p_clustered"] for row in example["expected"]["annotators"]]
    assert [test.p for test in tests] == pytest.approx(expected, abs=1e-9)
    assert {test.n_clusters for test in tests} == {12}
    example = worked_example(2)["inputs"]
    least = run(example).least_epsilon
    assert run(example | {"epsilon": least}).passes
    assert least == 0 or not run(example | {"epsilon": least - 0.001}).passes


def crowd(rng, prevalence, n_items=100):
    truth = rng.random(n_items) < prevalence
    return [np.where(rng.random(n_items) < 0.3, ~truth, truth) for _ in range(3)]


def judged(names, said):
    n = len(said[0])
    return alternative_annotator.alternative_annotator_test(
        np.tile(np.arange(n), len(names)), np.repeat(names, n), np.concatenate(said), judge="J"
    )


def test_controls_and_few_annotators_decide_and_adjustments_are_the_published_ones():
    said = [*crowd(np.random.default_rng(3), 0.02), np.zeros(100, dtype=bool)]
    result = judged(list("abcJ"), said)
    assert result.passes
    assert result.controls["constant"].passes
    assert result.controls["constant"].value == 0
    result = judged(list("abJ"), crowd(np.random.default_rng(0), 0.5))
    assert not result.passes
    assert result.reason == "too_few_annotators"
    assert np.isnan(result.winning_rate)
    with refused(InvalidValue, "unknown_judge"):
        alternative_annotator.alternative_annotator_test([1, 1], ["a", "b"], [1, 1], judge="J")
    from statsmodels.stats.multitest import multipletests

    example = worked_example(19)
    p, expected = example["inputs"]["p"], example["expected"]
    assert holm(p) == pytest.approx(expected["holm"], abs=1e-9)
    assert benjamini_hochberg(p) == pytest.approx(expected["bh"], abs=1e-9)
    assert benjamini_yekutieli(p) == pytest.approx(expected["by"], abs=1e-9)
    p = np.random.default_rng(5).random(40) ** 2
    assert benjamini_yekutieli(p) == pytest.approx(multipletests(p, method="fdr_by")[1])


N, N_RATED = 160, 40
slopes = st.tuples(st.sampled_from([-1.0, 1.0]), st.floats(0.001, 1000.0)).map(np.prod)
shifts = st.floats(-1000.0, 1000.0)


def studied(seed, rho=0.9):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=N)
    judge = rho * truth + np.sqrt(1 - rho**2) * rng.normal(size=N)
    human = np.where(rng.permutation(N) < N_RATED, np.clip(np.round(3 + truth), 1, 5), np.nan)
    return human, judge


AT = np.arange(N)
ESTIMATES = {
    "mean": prediction_powered_mean,
    "clusters": lambda *of: prediction_powered_mean(*of, clusters=AT // 2),
    "whole clusters": lambda human, judge: prediction_powered_mean(
        np.where(AT < 60, 2 * np.where(np.isnan(human), AT % 5 / 2, human), np.nan),
        judge,
        clusters=AT // 3,
    ),
    "strata": lambda *of: prediction_powered_mean(*of, strata=AT % 2),
    "batches": lambda human, judge: sampled_batches.sampled_mean(
        human, judge, *np.where(np.isnan(human), np.nan, [[1], [0.25]])
    ),
    "quantiles": lambda *of: prediction_powered_quantile(*of, quantile=0.5),
    "clustered quantiles": lambda human, judge: prediction_powered_quantile(
        human + 0.1 * np.sin(AT), judge, quantile=0.4, clusters=AT // 2
    ),
    "correlations": lambda *of: prediction_powered_correlation(*of, np.sin(AT) + AT / N),
    "slopes": lambda *of: powered_regression.prediction_powered_regression(*of, {"x": np.sin(AT)}),
}


def numbers_of(result):
    one = result.coefficients[1] if hasattr(result, "coefficients") else result
    numbers = [one.value, one.ci_low, one.ci_high, result.power]
    return [*numbers, getattr(one, "effective_n", 0.0)], codes_of(result.notes), result.reason


@pytest.mark.parametrize("name", ESTIMATES)
@settings(max_examples=15, deadline=None)
@given(slope=slopes, shift=shifts, seed=st.integers(0, 9))
def test_an_affine_change_of_the_judge_changes_nothing(name, slope, shift, seed):
    human, judge = studied(seed)
    numbers, notes, reason = numbers_of(ESTIMATES[name](human, judge))
    assert numbers[3] > 0 or name == "correlations"
    moved, moved_notes, moved_reason = numbers_of(ESTIMATES[name](human, shift + slope * judge))
    assert moved == pytest.approx(numbers, rel=1e-5, abs=1e-7)
    assert (moved_notes, moved_reason) == (notes, reason)


@pytest.mark.parametrize("scale", [1.0, 25.0, 0.25, -1.0])
def test_a_nearly_perfect_judge_is_worth_as_much_in_any_unit(scale):
    """With lambda itself limited to 0 to 1, the last two were worth 50 and 40 ratings only."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=400)
    human = np.where(np.arange(400) < 40, truth, np.nan)
    found = prediction_powered_mean(human, scale * (truth + 0.06 * rng.normal(size=400)))
    assert found.effective_n == pytest.approx(218.5, abs=0.1)
    assert "judge_adds_nothing" not in codes_of(found.notes)


def test_scores_that_are_equal_up_to_rounding_say_nothing():
    human, _ = studied(0)
    for level in (0.0, 0.1, 1e9):
        judge = level * (1 + 1e-16 * np.arange(N)) + 0.0
        found = prediction_powered_mean(human, judge)
        assert (found.power, found.value) == (0, pytest.approx(np.nanmean(human)))
        assert "judge_adds_nothing" in codes_of(found.notes)
