import re

import numpy as np
import pytest
from scipy.stats import f

from stats.inference import agreement_sizes, sample_sizes
from stats.inference.rogan_gladen import Uninformative, calibration_sizes, corrected_share
from tests.codes import codes_of
from tests.stats.worked_examples import worked_example

SIZES = worked_example(10)["expected"]


@pytest.mark.parametrize("case", SIZES["correlation_test"])
def test_items_for_a_correlation_are_those_of_pwr_rounded_up(case):
    exact = sample_sizes.items_for_correlation(
        case["rho"], power=case["power"], alpha=case["alpha"]
    )
    assert exact == pytest.approx(case["n_exact"], abs=1e-4)
    assert sample_sizes.whole_items(exact) == case["n"]


@pytest.mark.parametrize("case", SIZES["power_of"])
def test_the_power_of_a_correlation_is_that_of_pwr(case):
    assert sample_sizes.correlation_power(case["rho"], case["n"]) == pytest.approx(
        case["power"], abs=1e-6
    )


@pytest.mark.parametrize("case", SIZES["bonett_wright_width"])
def test_the_least_items_of_a_width(case):
    value, width, kind = (case[name] for name in ("value", "width", "kind"))
    least = sample_sizes.items_for_correlation_width(value, width, coefficient=kind)
    assert least == case["least"]


@pytest.mark.parametrize("case", SIZES["kappa_donner_eliasziw"])
def test_items_for_kappa_by_goodness_of_fit(case):
    options = {name: case[name] for name in ("prevalence", "power", "alpha")}
    exact = agreement_sizes.items_for_kappa(case["kappa"], case["null"], **options)
    assert exact == pytest.approx(case["n_exact"], abs=1e-4)
    assert sample_sizes.whole_items(exact) == case["n"]


@pytest.mark.parametrize(
    ("function", "name", "names", "options"),
    [
        ("items_for_kappa_of_margins", "kappa_margins", ["kappa", "null"], ["margins", "power"]),
        ("items_for_icc", "icc_walter_one_sided", ["icc", "null"], ["raters", "power"]),
        ("items_for_icc_width", "icc_bonett_width", ["icc", "width"], ["raters"]),
    ],
)
def test_items_for_kappa_of_several_classes_and_intraclass_correlations(
    function, name, names, options
):
    for case in SIZES[name]:
        exact = getattr(agreement_sizes, function)(
            *(case[each] for each in names), **{each: case[each] for each in options}
        )
        assert exact == pytest.approx(case["n_exact"], abs=1e-4)


@pytest.mark.parametrize(("icc", "width"), [(0.7, 0.3), (0.8, 0.2), (0.9, 0.2), (0.9, 0.3)])
def test_two_raters_items_give_the_interval_its_width_where_they_agree_well(icc, width):
    exact = agreement_sizes.items_for_icc_width(icc, width, raters=2)
    assert mean_width_of_two(sample_sizes.whole_items(exact), icc) == pytest.approx(width, rel=0.03)
    # Without the correction it would be wider by more than that.
    plain = sample_sizes.whole_items(exact - 5 * icc)
    assert mean_width_of_two(plain, icc) > 1.015 * width


def test_the_correction_is_of_two_raters_who_agree_well_alone_and_the_example_is_met():
    def added(icc: float, raters: int) -> float:
        narrow, wide = (
            agreement_sizes.items_for_icc_width(icc, width, raters=raters) for width in (0.1, 0.2)
        )
        return wide - 1 - (narrow - wide) / 3

    assert added(0.7, 2) == pytest.approx(3.5)
    assert added(0.69, 2) == pytest.approx(0, abs=1e-9)
    assert added(0.9, 3) == pytest.approx(0, abs=1e-9)
    assert agreement_sizes.items_for_icc_width(0.85, 0.2, raters=4) == pytest.approx(19.2, abs=0.05)


def mean_width_of_two(n_items: int, icc: float) -> float:
    """Of the interval from the F distribution, over studies of so many items by two raters."""
    freedom = n_items - 1, n_items
    ratio = (1 + icc) / (1 - icc) * f.rvs(*freedom, size=40_000, random_state=1)
    limits = (ratio / f.ppf(0.975, *freedom), ratio * f.ppf(0.975, *freedom[::-1]))
    low, high = ((limit - 1) / (limit + 1) for limit in limits)
    return float(np.mean(high - low))


def test_items_for_a_difference_are_those_of_statsmodels():
    from statsmodels.stats.power import TTestPower

    ours = sample_sizes.items_for_difference(0.4, 1.3, power=0.9)
    theirs = TTestPower().solve_power(0.4 / 1.3, power=0.9, alpha=0.05)
    assert ours == pytest.approx(theirs, abs=1e-3)


def test_a_planned_correlation_has_the_power_it_was_planned_for():
    n = sample_sizes.whole_items(sample_sizes.items_for_correlation(0.5, power=0.8))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, n))
    y = 0.5 * x + np.sqrt(0.75) * rng.normal(size=x.shape)
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    r = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    t = r * np.sqrt((n - 2) / (1 - r**2))
    from scipy import stats

    rejected = np.abs(t) > stats.t.ppf(0.975, n - 2)
    assert rejected.mean() == pytest.approx(0.8, abs=0.02)


def counts(inputs):
    named = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives"}
    named |= {"fp": "false_positives", "pos": "positives", "n": "n"}
    return {name: inputs[short] for short, name in named.items()}


def test_a_corrected_share_has_the_calibration_aware_interval():
    example = worked_example(9)
    share, expected = corrected_share(**counts(example["inputs"])), example["expected"]
    assert share.value == pytest.approx(expected["estimate"], abs=1e-8)
    assert share.sensitivity == expected["sensitivity"]
    assert share.specificity == pytest.approx(expected["specificity"], abs=1e-8)
    assert [share.ci_low, share.ci_high] == pytest.approx(
        list(expected["lee2025"].values()), abs=1e-8
    )


def test_calibration_items_go_where_the_error_is_as_published_with_a_pilot_of_ten():
    example = worked_example(9)
    inputs, expected = example["inputs"], example["expected"]
    sensitivity, specificity = (
        (10 * expected[name] + 1) / 12 for name in ("sensitivity", "specificity")
    )
    sizes = calibration_sizes(
        200, share=inputs["pos"] / inputs["n"], sensitivity=sensitivity, specificity=specificity
    )
    wanted = expected["allocation_of_200_with_pilot_10"]
    assert sizes == (wanted["m1"], wanted["m0"])
    positive, negative = calibration_sizes(200, share=0.5, sensitivity=0.6, specificity=0.95)
    assert positive > negative
    assert positive + negative == 200


@pytest.mark.parametrize("theta", [0.1, 0.5, 0.9])
def test_corrected_shares_are_covered_as_often_as_said(theta):
    rng = np.random.default_rng(int(10 * theta))
    trials, covered = 1500, 0
    for _ in range(trials):
        tp, tn = rng.binomial(40, 0.85), rng.binomial(40, 0.8)
        positives = rng.binomial(200, theta * 0.85 + (1 - theta) * 0.2)
        share = corrected_share(
            true_positives=tp,
            false_negatives=40 - tp,
            true_negatives=tn,
            false_positives=40 - tn,
            positives=positives,
            n=200,
        )
        covered += share.ci_low <= theta <= share.ci_high
    assert covered / trials >= 0.93


def test_a_judge_that_may_be_guessing_corrects_nothing():
    guessing = {"true_positives": 6, "false_negatives": 4, "true_negatives": 6}
    share = corrected_share(**guessing, false_positives=4, positives=50, n=100)
    assert np.isnan(share.value)
    assert share.reason is Uninformative.MAYBE_NO_INFORMATION


def test_a_corrected_share_beyond_0_or_1_is_clipped_with_a_note():
    calibration = {
        "true_positives": 45, "false_negatives": 5, "true_negatives": 40, "false_positives": 10,
    }  # fmt: skip
    low = corrected_share(**calibration, positives=10, n=200)
    assert (low.value, codes_of(low.notes)) == (0.0, ["clipped"])
    assert re.findall(r"-?[\d.]+", low.notes[0])[:2] == ["-0.214", "0"]  # (.05 - .2) / .7
    high = corrected_share(**calibration, positives=195, n=200)
    assert (high.value, codes_of(high.notes)) == (1.0, ["clipped"])
    assert corrected_share(**calibration, positives=90, n=200).notes == ()
    assert corrected_share(**calibration, positives=40, n=200).notes == ()
