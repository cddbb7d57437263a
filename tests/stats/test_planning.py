import re

import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from stats import ceilings, power_curves
from stats.ceilings.more_ratings import MoreRatings, stretches
from stats.correlation import correlate
from stats.inference import agreement_sizes, correlation_sizes, rogan_gladen, sample_sizes
from tests.codes import codes_of, refused
from tests.stats.test_ceilings import five_steps
from tests.stats.worked_examples import worked_example

SIZES = worked_example(10)["expected"]


def test_items_for_widths_and_tests_of_agreement_and_correlation_are_the_known_ones():
    for function, name, names, options in (
        (correlation_sizes.items_for_correlation, "correlation_test", "rho", "power alpha"),
        (
            agreement_sizes.items_for_kappa,
            *("kappa_donner_eliasziw", "kappa null", "prevalence power alpha"),
        ),
        (
            agreement_sizes.items_for_kappa_of_margins,
            "kappa_margins",
            "kappa null",
            "margins power",
        ),
        (agreement_sizes.items_for_icc, "icc_walter_one_sided", "icc null", "raters power"),
        (agreement_sizes.items_for_icc_width, "icc_bonett_width", "icc width", "raters"),
    ):
        for case in SIZES[name]:
            values = [case[each] for each in names.split()]
            exact = function(*values, **{each: case[each] for each in options.split()})
            assert exact == pytest.approx(case["n_exact"], abs=1e-4)
            if name in ("correlation_test", "kappa_donner_eliasziw"):
                assert sample_sizes.whole_items(exact) == case["n"]
    for case in SIZES["power_of"]:
        power = correlation_sizes.power_for_correlation(case["rho"], case["n"])
        assert power == pytest.approx(case["power"], abs=1e-6)
    for case in SIZES["bonett_wright_width"]:
        value, width, kind = (case[name] for name in ("value", "width", "kind"))
        least = correlation_sizes.items_for_correlation_width(value, width, coefficient=kind)
        assert least == case["least"]

    def added(icc: float, raters: int) -> float:
        narrow, wide = (
            agreement_sizes.items_for_icc_width(icc, width, raters=raters) for width in (0.1, 0.2)
        )
        return wide - 1 - (narrow - wide) / 3

    assert added(0.7, 2) == pytest.approx(3.5)
    assert added(0.69, 2) == pytest.approx(0, abs=1e-9)
    assert added(0.9, 3) == pytest.approx(0, abs=1e-9)
    assert agreement_sizes.items_for_icc_width(0.85, 0.2, raters=4) == pytest.approx(19.2, abs=0.05)
    from statsmodels.stats.power import TTestPower

    ours = sample_sizes.items_for_difference(0.4, 1.3, power=0.9)
    theirs = TTestPower().solve_power(0.4 / 1.3, power=0.9, alpha=0.05)
    assert ours == pytest.approx(theirs, abs=1e-3)


def counts(inputs):
    named = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives"}
    named |= {"fp": "false_positives", "pos": "positives", "n": "n"}
    return {name: inputs[short] for short, name in named.items()}


def test_a_corrected_share_is_as_published_clipped_with_a_note_and_missing_for_guesses():
    example = worked_example(9)
    share, expected = rogan_gladen.corrected_share(**counts(example["inputs"])), example["expected"]
    assert share.value == pytest.approx(expected["estimate"], abs=1e-8)
    assert share.sensitivity == expected["sensitivity"]
    assert share.specificity == pytest.approx(expected["specificity"], abs=1e-8)
    assert [share.ci_low, share.ci_high] == pytest.approx(
        list(expected["lee2025"].values()), abs=1e-8
    )
    guessing = {"true_positives": 6, "false_negatives": 4, "true_negatives": 6}
    share = rogan_gladen.corrected_share(**guessing, false_positives=4, positives=50, n=100)
    assert np.isnan(share.value)
    assert share.reason is rogan_gladen.Uninformative.MAYBE_NO_INFORMATION
    calibration = {
        "true_positives": 45, "false_negatives": 5, "true_negatives": 40, "false_positives": 10,
    }  # fmt: skip
    low = rogan_gladen.corrected_share(**calibration, positives=10, n=200)
    assert (low.value, codes_of(low.notes)) == (0.0, ["clipped"])
    assert re.findall(r"-?[\d.]+", low.notes[0])[:2] == ["-0.214", "0"]  # (.05 - .2) / .7
    high = rogan_gladen.corrected_share(**calibration, positives=195, n=200)
    assert (high.value, codes_of(high.notes)) == (1.0, ["clipped"])
    assert rogan_gladen.corrected_share(**calibration, positives=90, n=200).notes == ()
    assert rogan_gladen.corrected_share(**calibration, positives=40, n=200).notes == ()


def pilot(n_items: int = 300, n_systems: int = 5, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    item, system = (axis.ravel() for axis in np.indices((n_items, n_systems)))
    human = rng.normal(size=len(item))
    a, b = (human + rng.normal(0, noise, len(item)) for noise in (1.2, 1.8))
    return pd.DataFrame({"item": item, "system": system, "human": human, "a": a, "b": b})


def cells(ratings: np.ndarray, **metrics: np.ndarray) -> pd.DataFrame:
    item, system = (axis.ravel() for axis in np.indices(ratings.shape[:2]))
    columns = {name: values.ravel() for name, values in metrics.items()}
    human = ratings.mean(axis=2).ravel()
    return pd.DataFrame({"item": item, "system": system, "human": human} | columns)


def curve(frame: pd.DataFrame, **options) -> pd.DataFrame:
    columns = {"items": frame["item"], "systems": frame["system"]}
    arguments = {"level": "item", "coefficient": "pearson", "n_items": [20, 80]} | columns | options
    return power_curves.sample_size_curve(frame["human"], frame["a"], frame["b"], **arguments)


@pytest.mark.slow
def test_the_spread_is_that_of_studies_of_that_size():
    row = curve(pilot(10_000), n_items=[40], n_studies=500).iloc[0]
    deltas = []
    for seed in range(200):
        frame = pilot(40, seed=seed + 1)
        by_item = [
            np.corrcoef(part["human"], part["a"])[0, 1]
            - np.corrcoef(part["human"], part["b"])[0, 1]
            for _, part in frame.groupby("item")
        ]
        deltas.append(np.mean(by_item))
    assert row["delta"] == pytest.approx(np.mean(deltas), abs=0.02)
    assert row["se"] == pytest.approx(np.std(deltas, ddof=1), rel=0.2)
    power = np.mean(np.array(deltas) > 1.96 * np.std(deltas, ddof=1))
    assert row["power"] == pytest.approx(power, abs=0.1)


@pytest.mark.parametrize("level", ["item", "pooled", "system"])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall", "kendall_c", "acc_eq"])
def test_more_items_are_more_power_at_every_level(level, coefficient):
    frame = pilot(200)
    if level == "system":
        frame["human"] += frame["system"] / 5
        frame[["a", "b"]] += frame[["system"]].to_numpy() / 5
    rows = curve(frame, level=level, coefficient=coefficient, n_items=[10, 200], n_studies=200)
    assert rows["n_items"].tolist() == [10, 200]
    assert rows["se"].is_monotonic_decreasing
    if level != "system":
        assert rows["power"].iloc[1] > rows["power"].iloc[0]


def test_more_annotators_stretch_the_difference_by_the_attenuation_formula():
    known = ceilings.Reliability(0.2, 0.5, 4.0, 1500, 6000)
    rows = curve(pilot(), n_items=[40], n_annotators=[4, 16], reliability=known)
    assert rows["n_annotators"].tolist() == [4, 16]
    now, then = rows["delta"]
    assert then / now == pytest.approx(np.sqrt(known.of_mean(16) / known.of_mean(4)))
    assert rows["power"].iloc[1] > rows["power"].iloc[0]
    alone = curve(pilot(), n_items=[40], reliability=known)
    assert alone["n_annotators"].tolist() == [4.0]
    assert alone["delta"].iloc[0] == pytest.approx(now)


@pytest.mark.parametrize("scale", [np.asarray, five_steps])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall", "kendall_c", "acc_eq"])
def test_the_difference_with_more_annotators_is_what_such_a_study_shows(coefficient, scale):
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(4000, 6))
    # Items that lie apart and annotators who are severe alter nothing within an item.
    rated = truth + 1.5 * rng.normal(size=(4000, 1))
    error = rng.normal(size=(4000, 6, 8)) + 0.7 * rng.normal(size=(4000, 1, 8))
    ratings = scale(rated[:, :, None] + error)
    metrics = {"a": truth + rng.normal(0, 0.8, truth.shape)}
    metrics["b"] = truth + rng.normal(0, 1.6, truth.shape)
    of_two, of_eight = (cells(ratings[:, :, :k], **metrics) for k in (2, 8))
    known = ceilings.level_reliability(
        *(axis.ravel() for axis in np.indices((4000, 6, 2))), ratings[:, :, :2].ravel(),
        level="item", coefficient=coefficient, n_splits=3,
    )  # fmt: skip
    options = {"coefficient": coefficient, "n_items": [4000], "n_studies": 20}
    foretold = curve(of_two, n_annotators=[8], reliability=known, **options)["delta"].iloc[0]
    now, shown = (curve(one, **options)["delta"].iloc[0] for one in (of_two, of_eight))
    assert foretold == pytest.approx(shown, rel=0.08)
    assert shown / now > 1.15


def test_a_pooled_rank_coefficient_grows_by_more_than_the_root_of_its_reliability():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=20_000)
    ratings = truth[:, None] + rng.normal(size=(20_000, 8))
    metric = truth + rng.normal(0, 0.8, 20_000)
    now, shown = (
        correlate(ratings[:, :k].mean(axis=1), metric, coefficient="kendall") for k in (2, 8)
    )
    known = ceilings.Reliability(0.5, 2 / 3, 2.0, 20_000, 40_000)
    [(times, stretch)] = stretches([8], known)
    more = MoreRatings("kendall", np.array([20_000]), 1.0, times, stretch)
    assert more.value(now) == pytest.approx(shown, abs=0.01)
    assert now * stretch < shown - 0.02


def test_annotators_of_systems_count_the_more_the_fewer_the_items():
    known = ceilings.Reliability(0.2, 0.5, 4.0, 1500, 6000)
    frame = pilot(100)
    frame["human"] += frame["system"] / 5
    frame[["a", "b"]] += frame[["system"]].to_numpy() / 5
    options = {"level": "system", "reliability": known, "n_items": [10, 100, 400]}
    rows = curve(frame, n_annotators=[4, 16], **options)
    now, then = (rows.loc[rows["n_annotators"] == n, "delta"].to_numpy() for n in (4, 16))
    # As many items as the pilot's: its own reliability. Of more the means are the more reliable.
    at_pilot = np.sqrt(known.of_mean(16) / known.of_mean(4))
    assert then / now == pytest.approx(
        [
            np.sqrt(known.of_mean(1.6) / known.of_mean(0.4)),
            at_pilot,
            np.sqrt(known.of_mean(64) / known.of_mean(16)),
        ]
    )


@pytest.mark.parametrize("icc", [0.0, -0.2])
def test_without_agreement_in_the_pilot_other_numbers_of_annotators_have_no_power(icc):
    disagreed = ceilings.Reliability(icc, icc, 2.0, 1500, 3000)
    rows = curve(pilot(20), n_items=[40], n_annotators=[2, 4], reliability=disagreed)
    assert rows["n_annotators"].tolist() == [2, 4]
    assert rows[["delta", "se", "power"]].isna().all(axis=None)


def test_the_least_number_is_named_and_what_cannot_be_used_is_refused_by_name():
    rows = curve(pilot(), n_items=[5, 20, 80, 300], n_studies=300)
    least = power_curves.items_needed(rows, 0.8)["n_items"].iloc[0]
    reached = rows.loc[rows["power"] >= 0.8, "n_items"].min()
    assert least == reached
    assert power_curves.items_needed(rows.head(1), 0.99)["n_items"].isna().all()
    with refused(InvalidValue, "power_out_of_range"):
        power_curves.items_needed(rows, 80)
    first, again, other = (curve(pilot(50), n_studies=100, rng=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    frame = pilot(10).assign(b=np.nan)
    assert curve(frame)["power"].isna().all()
    for options, code in (
        ({"n_items": [1]}, "n_items_out_of_range"),
        ({"n_annotators": [3]}, "reliability_missing"),
        ({"alpha": 5}, "alpha_out_of_range"),
        ({"n_studies": 1}, "n_studies_out_of_range"),
        ({"coefficient": "spa", "level": "system"}, "unknown_coefficient"),
        ({"level": "sample"}, "unknown_level"),
    ):
        with refused(InvalidValue, code):
            curve(pilot(5), **options)
