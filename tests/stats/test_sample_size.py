"""Sample-size curves, against simulated studies of those sizes."""

import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from stats.ceilings import Reliability, level_reliability
from stats.ceilings.more_ratings import MoreRatings, stretches
from stats.correlation import correlate
from stats.sample_size import items_needed, sample_size_curve
from tests.codes import refused


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


def five_steps(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values), -2, 2)


def curve(frame: pd.DataFrame, **options) -> pd.DataFrame:
    columns = {"items": frame["item"], "systems": frame["system"]}
    arguments = {"level": "item", "coefficient": "pearson", "n_items": [20, 80]} | columns | options
    return sample_size_curve(frame["human"], frame["a"], frame["b"], **arguments)


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
    known = Reliability(0.2, 0.5, 4.0, 1500, 6000)
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
    known = level_reliability(
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
    known = Reliability(0.5, 2 / 3, 2.0, 20_000, 40_000)
    [(times, stretch)] = stretches([8], known)
    more = MoreRatings("kendall", np.array([20_000]), 1.0, times, stretch)
    assert more.value(now) == pytest.approx(shown, abs=0.01)
    assert now * stretch < shown - 0.02


def test_annotators_of_systems_count_the_more_the_fewer_the_items():
    known = Reliability(0.2, 0.5, 4.0, 1500, 6000)
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
    disagreed = Reliability(icc, icc, 2.0, 1500, 3000)
    rows = curve(pilot(20), n_items=[40], n_annotators=[2, 4], reliability=disagreed)
    assert rows["n_annotators"].tolist() == [2, 4]
    assert rows[["delta", "se", "power"]].isna().all(axis=None)


def test_the_least_number_that_suffices_is_named_or_missing():
    rows = curve(pilot(), n_items=[5, 20, 80, 300], n_studies=300)
    least = items_needed(rows, 0.8)["n_items"].iloc[0]
    reached = rows.loc[rows["power"] >= 0.8, "n_items"].min()
    assert least == reached
    assert items_needed(rows.head(1), 0.99)["n_items"].isna().all()
    with refused(InvalidValue, "power_out_of_range"):
        items_needed(rows, 80)


def test_a_seed_decides_the_curve_and_nothing_in_common_is_no_power():
    first, again, other = (curve(pilot(50), n_studies=100, rng=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    frame = pilot(10).assign(b=np.nan)
    assert curve(frame)["power"].isna().all()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"n_items": []}, "n_items_out_of_range"),
        ({"n_items": [1]}, "n_items_out_of_range"),
        ({"n_annotators": [3]}, "reliability_missing"),
        ({"alpha": 5}, "alpha_out_of_range"),
        ({"n_studies": 1}, "n_studies_out_of_range"),
        ({"coefficient": "spa", "level": "system"}, "unknown_coefficient"),
        ({"level": "sample"}, "unknown_level"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(options, code):
    with refused(InvalidValue, code):
        curve(pilot(5), **options)
