import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar as theirs
from statsmodels.stats.proportion import proportion_confint

from error_codes import InvalidValue
from stats.inference.calibration import calibration
from stats.inference.judge_soundness import agreement_by_certainty, judge_shift, position_bias
from stats.inference.paired_accuracy import mcnemar, wilson
from tests.codes import refused
from tests.stats.worked_examples import worked_example

EXAMPLE = worked_example(18)


def test_two_judges_are_compared_by_mcnemar_as_published_and_in_statsmodels():
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


def test_paired_differences_of_accuracy_are_covered():
    rng = np.random.default_rng(0)
    covered, trials = 0, 800
    for _ in range(trials):
        easy = rng.random(80)
        a, b = rng.random(80) < 0.6 + 0.3 * easy, rng.random(80) < 0.5 + 0.3 * easy
        pair = mcnemar(*(int((x & y).sum()) for x, y in ((a, b), (a, ~b), (~a, b), (~a, ~b))))
        covered += pair.ci_low <= 0.1 <= pair.ci_high
    assert 0.93 <= covered / trials <= 0.99


def test_calibration_by_bins_of_width_and_of_mass_finds_an_overconfident_judge():
    inputs, expected = EXAMPLE["inputs"], EXAMPLE["expected"]
    found = calibration(inputs["probability"], inputs["outcome"])
    assert found.error_by_width == pytest.approx(expected["ece_equal_width"], abs=1e-9)
    assert found.error == pytest.approx(expected["ece_equal_mass_5"], abs=1e-9)
    assert found.brier == pytest.approx(expected["brier"], abs=1e-9)
    assert found.error_if_calibrated > 0.05
    rng = np.random.default_rng(1)
    truth = rng.random(500)
    found = calibration(np.clip(2 * truth - 0.5, 0, 1), rng.random(500) < truth)
    assert found.error > 2 * found.error_if_calibrated
    assert found.error_p < 0.01


def test_position_bias_is_consistency_and_which_side_wins():
    inputs, expected = EXAMPLE["inputs"]["order_swaps"], EXAMPLE["expected"]["position"]
    bias = position_bias(
        inputs["consistent"], inputs["chose_first_both_times"], inputs["chose_second_both_times"]
    )
    assert bias.consistency == pytest.approx(expected["consistency"], abs=1e-9)
    assert bias.first_share == pytest.approx(expected["first_among_inconsistent"], abs=1e-9)
    assert bias.p == pytest.approx(expected["p"], abs=1e-9)
    assert [bias.ci_low, bias.ci_high] == pytest.approx(expected["consistency_wilson"], abs=1e-9)
    for x, n in ((0, 10), (10, 10), (3, 17), (500, 501)):
        assert wilson(x, n) == pytest.approx(proportion_confint(x, n, method="wilson"), abs=1e-12)


def test_agreement_is_split_by_how_sure_people_are():
    humans = np.array([[0, 0, 0], [1, 1, np.nan], [0, 1, 1], [np.nan, np.nan, 1]])
    unanimous, split = agreement_by_certainty(humans, np.array([0, 0, 1, 1]))
    assert (unanimous.n, unanimous.judge, unanimous.people) == (2, 0.5, 1.0)
    assert split.n == 1
    assert split.judge == pytest.approx(2 / 3)
    assert split.people == pytest.approx(1 / 3)


def test_a_shift_of_the_judge_is_covered_and_adjusted_for_looks():
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


def test_a_shift_at_the_tolerance_seldom_stops_a_pipeline():
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
    for wrong in (-0.1, np.nan, np.inf):
        with refused(InvalidValue, "tolerance_out_of_range"):
            judge_shift(before, before, tolerance=wrong)


def test_the_shift_of_clustered_items_is_covered():
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(20), 5)
    covered = 0
    for _ in range(400):
        before = rng.normal(size=100)
        after = before + 0.5 * rng.normal(size=20)[clusters] + 0.2 * rng.normal(size=100)
        drift = judge_shift(before, after, clusters=clusters)
        covered += drift.ci_low <= 0 <= drift.ci_high
    assert covered / 400 >= 0.92
    assert drift.n_clusters == 20
    with refused(InvalidValue, "too_few_clusters"):
        judge_shift(before, after, clusters=["one"] * 100)
