from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.ceilings import ceiling, ceilings, level_reliability, reliability, spearman_brown
from stats.ceilings.normal_scale import NormalScale, untied_share
from stats.correlation import correlation_at_level
from tests.codes import refused

COLUMNS = ("item", "system", "annotator", "value")
SEVERAL = ("pearson", "spearman", "kendall", "kendall_c", "acc_eq")


def as_frame(*columns) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def crowd(seed: int = 0, *, n_items: int = 400, n_systems: int = 4, k: int = 4, noise: float = 1.5):
    """Ratings of truths of variance 1, so that one has reliability ``1 / (1 + noise**2)``."""
    rng = np.random.default_rng(seed)
    item, system, annotator = (axis.ravel() for axis in np.indices((n_items, n_systems, k)))
    truth = rng.normal(size=(n_items, n_systems))
    value = truth[item, system] + rng.normal(0, noise, len(item))
    return as_frame(item, system, annotator, value), truth


def at_level(human, metric, items, systems, level, coefficient) -> float:
    options = {"level": level, "coefficient": coefficient, "n_resamples": 0}
    return correlation_at_level(human, metric, items=items, systems=systems, **options).value


def of(frame: pd.DataFrame, **options):
    columns = (frame[name] for name in COLUMNS)
    return ceiling(*columns, **options)


@pytest.mark.shared_data
def test_the_ceiling_of_dstc9_is_the_reference_one(shared_data: Path):
    frame = pd.read_csv(shared_data / "dstc9" / "ratings.csv").dropna(subset=["overall"])
    pilot = reliability(frame["dialog_id"], frame["overall"])
    assert round(pilot.icc_single, 3) == 0.046
    assert round(pilot.icc_mean, 3) == 0.124
    assert round(pilot.attainable, 3) == 0.352
    columns = (frame[name] for name in ("dialog_id", "chatbot", "rater_slot", "overall"))
    halves = ceiling(*columns, level="pooled", n_splits=20)
    assert halves.attainable == pytest.approx(pilot.attainable, abs=0.03)
    assert halves.share(0.19) == pytest.approx(0.54, abs=0.05)


def test_reliability_is_that_of_simulated_ratings_and_corrects_for_their_noise():
    frame, truth = crowd(k=4, noise=1.5)
    pilot = reliability(frame["item"] * 4 + frame["system"], frame["value"])
    assert pilot.icc_single == pytest.approx(1 / (1 + 1.5**2), abs=0.03)
    assert pilot.icc_mean == pytest.approx(spearman_brown(pilot.icc_single, 4))
    assert pilot.of_mean(4) == pytest.approx(pilot.icc_mean)
    assert (pilot.ratings_per_unit, pilot.n_units) == (4, 1600)
    metric = truth.ravel() + np.random.default_rng(1).normal(size=truth.size)
    means = frame.groupby(["item", "system"])["value"].mean().to_numpy()
    noisy = np.corrcoef(metric, means)[0, 1]
    noiseless = np.corrcoef(metric, truth.ravel())[0, 1]
    assert noisy / np.sqrt(pilot.icc_mean) == pytest.approx(noiseless, abs=0.04)


def five_steps(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values), -2, 2)


@pytest.mark.parametrize("scale", [np.asarray, five_steps])
@pytest.mark.parametrize("level", ["pooled", "item"])
@pytest.mark.parametrize(
    ("coefficient", "noise"), [("kendall", 0.5), ("spearman", 0.8), ("pearson", 0.8)]
)
def test_a_perfect_metric_attains_the_attainable(scale, level, coefficient, noise):
    frame, truth = crowd(n_items=250, n_systems=8, k=4, noise=noise)
    frame["value"] = scale(frame["value"].to_numpy())
    cells = frame.groupby(["item", "system"], as_index=False)["value"].mean()
    attained = at_level(
        cells["value"], truth.ravel(), cells["item"], cells["system"], level, coefficient
    )
    found = of(frame, level=level, coefficient=coefficient, n_splits=10)
    assert found.share(attained) == pytest.approx(1, abs=0.015)
    # The root that is right for Pearson's r lies above all that can be reached.
    root = np.sqrt(spearman_brown(found.split_half, 2))
    assert coefficient != "kendall" or attained / root < 0.95


def test_scales_are_of_pairs_or_of_as_many_values_as_there_are_and_ties_count_by_group():
    for coefficient, expected in (("kendall_c", 1 / 3), ("acc_eq", 2 / 3)):
        scale = NormalScale(coefficient, np.array([8]))
        assert scale.value(0.5) == pytest.approx(expected)
        assert scale.correlation(expected) == pytest.approx(0.5)

    def value(*sizes: int) -> float:
        return NormalScale("spearman", np.array(sizes)).value(0.5)

    kendall = NormalScale("kendall", np.array([2])).value(0.5)
    assert value(2) == value(2, 1) == pytest.approx(kendall) == pytest.approx(1 / 3)
    assert value(10**6) == pytest.approx(6 / np.pi * np.arcsin(0.25), abs=1e-4)
    assert value(4, 8) == pytest.approx((value(4) + value(8)) / 2)
    scale = NormalScale("spearman", np.array([5]))
    for r in (-1.0, -0.4, 0.0, 0.9, 1.0):
        assert scale.correlation(scale.value(r)) == pytest.approx(r)
    assert np.isnan(NormalScale("spearman", np.array([1])).correlation(0.5))
    values, group = np.array([1.0, 1, 2, 3, 3, 3, 5]), np.array([0, 0, 0, 1, 1, 1, 2])
    # One of three pairs is tied in the first; the second, all tied, has no correlation.
    assert untied_share(values, group, 3) == pytest.approx(2 / 3)
    assert untied_share(values[:1], group[:1], 3) == 1


@pytest.mark.parametrize("coefficient", SEVERAL)
def test_reliability_by_item_is_of_differences_within_items(coefficient):
    frame, _ = crowd(n_items=300, n_systems=8, k=4, noise=1.0)
    rng = np.random.default_rng(1)
    moved = frame.assign(
        value=frame["value"]
        + 3 * rng.normal(size=300)[frame["item"]]
        + 2 * rng.normal(size=(300, 4))[frame["item"], frame["annotator"]]
    )
    options = {"level": "item", "coefficient": coefficient, "n_splits": 10}
    plain, other = (
        level_reliability(*(one[name] for name in COLUMNS), **options) for one in (frame, moved)
    )
    assert plain.icc_single == pytest.approx(0.5, abs=0.05)
    assert other.icc_mean == pytest.approx(plain.icc_mean, abs=1e-9)
    assert (plain.ratings_per_unit, plain.n_units, plain.n_ratings) == (4, 2400, 9600)


def test_one_person_left_out_does_worse_than_the_attainable():
    frame, _ = crowd(k=5)
    result = of(frame, level="pooled")
    expected = np.sqrt(1 / (1 + 1.5**2)) * np.sqrt(1 / (1 + 1.5**2 / 4))
    assert result.leave_one_out == pytest.approx(expected, abs=0.03)
    assert result.leave_one_out < result.attainable
    assert list(result.by_annotator.index) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("level", ["pooled", "item", "system"])
def test_ragged_ratings_and_order_do_not_matter(level):
    frame, _ = crowd(n_items=30, n_systems=5)
    frame["value"] += frame["system"]
    frame = frame.sample(frac=0.7, random_state=1)
    result = of(frame, level=level, coefficient="spearman", n_splits=10)
    assert 0 < result.attainable <= 1
    moved = of(
        frame.sample(frac=1, random_state=2), level=level, coefficient="spearman", n_splits=10
    )
    assert moved.leave_one_out == pytest.approx(result.leave_one_out)
    assert (result.n_splits, result.seed, moved.split_half) == (10, 0, result.split_half)


def test_without_a_second_annotator_or_agreement_nothing_is_attainable():
    frame, _ = crowd(n_items=5, k=1)
    result = of(frame, level="pooled")
    assert np.isnan([result.split_half, result.attainable, result.leave_one_out]).all()
    assert np.isnan(result.share(0.5))
    alone = reliability(frame["item"] * 4 + frame["system"], frame["value"])
    assert np.isnan([alone.icc_single, alone.attainable]).all()
    found = level_reliability(*(frame[name] for name in COLUMNS), level="item")
    assert np.isnan([found.icc_single, found.icc_mean, found.ratings_per_unit]).all()
    again = ceiling([0, 0, 1, 1], [0] * 4, ["a"] * 4, [1, 2, 3, 4], level="pooled")
    assert again.reason == "no_second_rating"  # a cell rated twice by one
    pilot = reliability([1, 1, 2, 2], [0, 4, 1, 4])
    assert pilot.icc_single < 0
    assert np.isnan(pilot.attainable)


@pytest.mark.parametrize("coefficient", ["kendall", "pearson"])
def test_two_who_order_two_systems_oppositely_have_no_ceiling(coefficient):
    rows = [(i, s, a, float(s == a)) for i in range(5) for s in range(2) for a in range(2)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    found = of(frame, level="system", coefficient=coefficient)
    assert found.split_half == pytest.approx(-1)
    assert np.isnan([found.reliability, found.attainable, found.attainable_low]).all()
    assert found.moved_by is None


def yes_or_no(noise: float) -> pd.DataFrame:
    frame, _ = crowd(n_items=60, n_systems=5, k=3, noise=noise)
    return frame.assign(value=(frame["value"] > 0).astype(float))


@pytest.mark.parametrize("noise", [0.1, 1.0])
@pytest.mark.parametrize("level", ["item", "pooled"])
def test_pairwise_accuracy_of_yes_and_no_has_no_ceiling_for_they_are_often_equal(level, noise):
    """Though annotators agree: two of them tie and order half the pairs alike, or more."""
    found = of(yes_or_no(noise), level=level, coefficient="acc_eq", n_splits=10)
    assert np.isnan([found.attainable, found.reliability, found.attainable_low]).all()
    assert found.reason == "tied"
    assert found.split_half > 0.45
    tau = of(yes_or_no(noise), level=level, coefficient="kendall", n_splits=10)
    assert tau.attainable > 0.5
    assert tau.reason is None


def test_why_nothing_is_attainable_is_said_and_what_cannot_be_used_is_refused():
    for values, reason in (
        ([1, 1, 1, 1, 1, 1], "no_halves"),  # they agree, and say nothing of any order
        ([0, 1, 1, 0, 0, 1], "no_agreement"),
        ([0, 0, 1, 1, 2, 2], None),
    ):
        found = ceiling([0, 0, 1, 1, 2, 2], [0] * 6, [0, 1] * 3, values, level="pooled")
        assert found.reason == reason
        assert np.isnan(found.attainable) == (reason is not None)
    frame, _ = crowd(n_items=3)
    missing = frame.assign(value=[np.nan, *frame["value"][1:]])
    for unfit, options, code in (
        (frame, {"level": "pooled", "n_splits": 0}, "n_splits_out_of_range"),
        (frame, {"level": "sample"}, "unknown_level"),
        (missing, {"level": "pooled"}, "values_missing"),
    ):
        with refused(InvalidValue, code):
            of(unfit, **options)
    with refused(InvalidValue, "factor_out_of_range"):
        spearman_brown(0.5, 0)


def test_measures_share_their_splits_and_each_annotator_is_correlated_with_the_others():
    rng = np.random.default_rng(4)
    items, systems, annotators = (axis.ravel() for axis in np.indices((12, 4, 5)))
    values = (systems + items % 3 + rng.normal(0, 2, size=len(items))).round()
    measures = [(level, name) for level in ("item", "system", "pooled") for name in SEVERAL]
    together = ceilings(items, systems, annotators, values, measures=measures, n_splits=6, rng=3)
    for (level, name), one in zip(measures, together, strict=True):
        alone = ceiling(
            items, systems, annotators, values, level=level, coefficient=name, n_splits=6, rng=3
        )
        assert (one.level, one.coefficient, one.seed) == (level, name, 3)
        assert (one.split_half, one.attainable) == (alone.split_half, alone.attainable)
        assert one.by_annotator.equals(alone.by_annotator)
    rng = np.random.default_rng(5)
    items, systems, annotators = (axis.ravel() for axis in np.indices((8, 3, 3)))
    values = (systems + rng.normal(0, 1, size=len(items))).round()
    frame = as_frame(items, systems, annotators, values)
    for level in ("item", "system", "pooled"):
        for name in SEVERAL:
            result = ceiling(*frame.to_numpy().T, level=level, coefficient=name, n_splits=1)
            for person, own in frame.groupby("annotator"):
                rest = frame[frame["annotator"] != person]
                others = rest.groupby(["item", "system"])["value"].mean().to_numpy()
                alone = at_level(own["value"], others, own["item"], own["system"], level, name)
                assert result.by_annotator[person] == pytest.approx(alone, abs=1e-12)


def test_pearsons_r_of_few_candidates_is_brought_to_that_of_all():
    """The mean of r of n normal pairs, by the integral of its density and by simulation."""
    rng = np.random.default_rng(0)
    for n, rho in ((2, 0.5), (3, 0.6), (4, 0.9), (8, -0.5)):
        x, noise = rng.normal(size=(2, 40_000, n))
        y = rho * x + np.sqrt(1 - rho**2) * noise
        x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
        r = (x * y).sum(axis=1) / np.sqrt(np.square(x).sum(axis=1) * np.square(y).sum(axis=1))
        scale = NormalScale("pearson", np.array([n]))
        assert scale.value(rho) == pytest.approx(r.mean(), abs=0.01)
        assert scale.correlation(scale.value(rho)) == pytest.approx(rho)
    assert NormalScale("pearson", np.array([2])).value(0.5) == pytest.approx(1 / 3)
    assert NormalScale("pearson", np.array([400])).value(0.5) == 0.5


def uneven_crowd(rng, n_cells, k, n_people=12):
    """People of each cell, one of whom rates most of them."""
    keys = rng.exponential(size=(n_cells, n_people)) * np.arange(1, n_people + 1) ** 1.5
    return np.argsort(keys, axis=1)[:, :k].ravel()


@pytest.mark.parametrize(
    ("shift", "severity", "is_uneven", "warnings"),
    [
        (None, 0.0, False, {"pearson": None, "kendall": None, "pooled": None}),
        (0.0, 0.0, False, {"pearson": None, "kendall": "tied_ratings", "pooled": None}),
        (2.0, 0.0, False, {"pearson": "top_heavy_scale", "kendall": "top_heavy_scale"}),
        (None, 1.0, False, {"pearson": None, "pooled": None}),
        (None, 1.0, True, dict.fromkeys(("pearson", "kendall", "pooled"), "severe_annotators")),
    ],
)
def test_ceilings_hold_what_a_perfect_metric_reaches_or_have_a_warning(
    shift, severity, is_uneven, warnings
):
    measures = {"pearson": ("item", "pearson"), "kendall": ("item", "kendall")}
    measures["pooled"] = ("pooled", "pearson")
    item, system, seat = (axis.ravel() for axis in np.indices((30, 4, 3)))
    cells = [axis.ravel() for axis in np.indices((30, 4))]
    levels = np.linspace(-2, 2, 5)
    z = stats.norm.ppf((np.arange(100) + 0.5) / 100)
    reached, found = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=(30, 4))
        who = uneven_crowd(rng, 120, 3) if is_uneven else seat
        value = truth[item, system] + 0.5 * rng.normal(size=len(item))
        value += severity * rng.normal(size=12)[who]
        expected = truth
        if shift is not None:
            value = levels[np.clip(np.round(value + shift), -2, 2).astype(int) + 2]
            expected = np.clip(np.round(truth[..., None] + 0.5 * z + shift), -2, 2).mean(axis=-1)
        means = as_frame(item, system, who, value).groupby(["item", "system"])["value"].mean()
        columns = (means.to_numpy(), expected.ravel(), *cells)
        reached.append([at_level(*columns, *measure) for measure in measures.values()])
        found.append(
            ceilings(item, system, who, value, measures=list(measures.values()), n_splits=5)
        )
    targets = dict(zip(measures, np.nanmean(reached, axis=0), strict=True))
    for name, row in zip(measures, zip(*found, strict=True), strict=True):
        if name not in warnings:
            continue
        warned = [one.warning == warnings[name] for one in row]
        assert np.mean(warned) > 0.9
        if warnings[name] is None:
            held = [one.attainable_low <= targets[name] <= one.attainable_high for one in row]
            assert np.mean(held) >= 0.88  # two standard errors below .95


@pytest.mark.parametrize(("n_items", "expected"), [(19, "few_items"), (20, None)])
def test_a_ceiling_of_few_items_or_clusters_has_a_warning(n_items, expected):
    item, system, person = (axis.ravel() for axis in np.indices((n_items, 4, 3)))
    value = np.random.default_rng(3).normal(size=(n_items, 4))[item, system]
    value += 0.5 * np.random.default_rng(4).normal(size=len(item))
    measures = [("item", "kendall"), ("system", "pearson")]
    found = ceilings(item, system, person, value, measures=measures, n_splits=5)
    assert [one.warning for one in found] == [expected] * 2
    [clustered] = ceilings(
        item, system, person, value, measures=measures[:1], n_splits=5, clusters=item // 2
    )
    assert clustered.warning == "few_items"


@pytest.mark.parametrize(("width", "expected"), [(1.0, None), (2.0, "one_point_heavy_scale")])
def test_a_scale_whose_middle_point_is_used_most_has_a_warning(width, expected):
    """With one of five points for .69 of the ratings the ceiling is .06 too high."""
    item, system, person = (axis.ravel() for axis in np.indices((30, 4, 3)))
    rng = np.random.default_rng(0)
    value = rng.normal(size=(30, 4))[item, system] + 0.5 * rng.normal(size=len(item))
    value = np.clip(np.round(value / width * 0.9), -2, 2)
    if expected:
        assert 0.5 < np.mean(value == 0) < 0.8
    found = ceiling(item, system, person, value, level="item", n_splits=5)
    assert found.warning == expected
    assert ceiling(item, system, person, value, level="pooled", n_splits=5).warning is None
