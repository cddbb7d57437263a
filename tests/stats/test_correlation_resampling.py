import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stats.correlation import CiMethod, Reason, bootstrap as replicas, correlation_at_level
from stats.correlation.influence import (
    cluster_variance,
    kendall_influences,
    pearson_influences,
    two_way_variance,
    z_t_limits,
)
from stats.correlation.pairwise_accuracy import table
from tests.codes import codes_of
from tests.stats.test_correlation import COEFFICIENTS, at_level, plainly, study
from tests.stats.worked_examples import worked_example

ALL = [*COEFFICIENTS, "kendall_c", "acc_eq", "acc_star"]
METHODS = {
    "items": CiMethod.BOOTSTRAP_ITEMS,
    "systems": CiMethod.BOOTSTRAP_SYSTEMS,
    "both": CiMethod.BOOTSTRAP_BOTH,
}


def draws(n_units: int, seed: int, count: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=count).astype(float)


def copied(cells: pd.DataFrame, item_weights, system_weights) -> pd.DataFrame:
    """Every cell as often as drawn; copies of an item, or a system, are items or systems anew."""
    times = item_weights[cells["item"]] * system_weights[cells["system"]]
    again = cells.loc[np.repeat(cells.index, times.astype(int))].copy()
    of_system = again.groupby(["item", "system"]).cumcount() % system_weights[
        again["system"]
    ].astype(int)
    again["system"] = again["system"] * 100 + of_system
    again["item"] = again["item"] * 100 + again.groupby(["item", "system"]).cumcount()
    return again


def complete_study(seed: int) -> pd.DataFrame:
    cells = study(seed, n_items=12).dropna().reset_index(drop=True)
    cells["item"] = pd.factorize(cells["item"])[0]
    return cells


def by_levels(cells: pd.DataFrame, coefficient: str) -> dict[str, replicas.Replicate]:
    item, system = cells["item"].to_numpy(), cells["system"].to_numpy()
    x, y = cells["human"].to_numpy(), cells["metric"].to_numpy()
    n_items, n_systems = item.max() + 1, system.max() + 1
    tables = (table(side, item, system, (n_systems, n_items)) for side in (x, y))
    unit = (replicas.unit_range(side) for side in (x, y))
    shape = (n_items, n_systems)
    return {
        "item": replicas.of_items(*tables, coefficient, 0.0, "drop"),
        "system": replicas.of_resampled_means(*unit, item, system, shape, coefficient, 0.0),
    }


@pytest.mark.parametrize("level", ["item", "system"])
@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_replicates_of_items_and_systems_are_of_the_copied_cells(level, coefficient):
    cells = complete_study(6)
    of_item, of_system = draws(cells["item"].max() + 1, 1), draws(5, 2)
    values = by_levels(cells, coefficient)[level](of_item, of_system)
    defined = 0
    for row in range(len(of_item)):
        again = copied(cells, of_item[row], of_system[row])
        if again["system"].nunique() < 5:
            assert level == "item" or np.isnan(values[row])
            continue
        expected = plainly(again, level, coefficient)
        assert values[row] == pytest.approx(expected, abs=1e-10, nan_ok=True)
        defined += not np.isnan(expected)
    assert defined > 5


def test_accuracy_makes_no_pair_of_a_system_and_its_copy():
    cells = complete_study(6)
    of_item, of_system = np.ones((1, cells["item"].max() + 1)), np.array([[2.0, 1, 1, 0, 0]])
    accuracy = by_levels(cells, "acc_eq")["item"](of_item, of_system)[0]
    shares = []
    for _, part in cells.groupby("item"):
        part = part[part["system"] < 3]
        rows = part.to_dict("records")
        pairs = [
            (
                of_system[0][a["system"]] * of_system[0][b["system"]],
                np.sign(a["human"] - b["human"]) == np.sign(a["metric"] - b["metric"]),
            )
            for at, a in enumerate(rows)
            for b in rows[at + 1 :]
        ]
        if pairs:
            weights, alike = zip(*pairs, strict=True)
            shares.append(np.average(alike, weights=weights))
    assert accuracy == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("coefficient", ["kendall", "kendall_c"])
def test_copying_cells_gives_what_forms_give(coefficient):
    cells = complete_study(8)
    n_items = cells["item"].max() + 1
    item, x, y = (cells[name].to_numpy() for name in ("item", "human", "metric"))
    weights = draws(n_items, 3)
    forms = {"kendall": replicas.pooled_kendall, "kendall_c": replicas.pooled_kendall_c}
    expected = forms[coefficient](x, y, item, n_items)(weights)
    values = replicas.copied_kendall(x, y, coefficient)(weights[:, item])
    assert values == pytest.approx(expected, abs=1e-12)
    assert np.isnan(replicas.copied_kendall(x, y, coefficient)(np.zeros((1, len(x)))))


@pytest.mark.parametrize(
    ("resample", "method"),
    [("systems", CiMethod.CLUSTERS_SYSTEMS), ("both", CiMethod.CLUSTERS_BOTH)],
)
def test_an_interval_too_dear_to_draw_is_of_clusters_and_never_fishers_by_stealth(
    monkeypatch, resample, method
):
    monkeypatch.setattr(replicas, "PAIRS_UP_TO_CELLS", 20)
    result = at_level(study(), "pooled", "kendall", resample=resample)
    assert result.ci_method is method
    assert result.ci_low < result.value < result.ci_high


@pytest.mark.parametrize("coefficient", ["kendall_c", "acc_eq"])
def test_pooled_replicates_of_other_coefficients_are_of_the_copied_cells(coefficient):
    cells = complete_study(7)
    n_items = cells["item"].max() + 1
    item, x, y = (cells[name].to_numpy() for name in ("item", "human", "metric"))
    weights = draws(n_items, 3)
    if coefficient == "kendall_c":
        values = replicas.pooled_kendall_c(x, y, item, n_items)(weights)
    else:
        values = replicas.pooled_accuracy(x, y, item, n_items, 0.0)(weights)
    for row, weight in enumerate(weights.astype(int)):
        again = cells.loc[np.repeat(cells.index, weight[item])]
        result = correlation_at_level(
            again["human"], again["metric"], level="pooled", coefficient=coefficient, n_resamples=0
        )
        expected = result.value
        if coefficient == "acc_eq":  # less the pairs of copies, which are always right
            n, copies = len(again), (weight[item] * (weight[item] - 1)).sum() / 2
            pairs = n * (n - 1) / 2
            expected = (expected * pairs - copies) / (pairs - copies)
        assert values[row] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("resample", list(METHODS))
@pytest.mark.parametrize("level", ["item", "system", "pooled"])
@pytest.mark.parametrize("coefficient", [*ALL, "spa"])
def test_every_interval_says_what_it_resampled(resample, level, coefficient):
    if coefficient == "spa" and level != "system":
        return
    frame = study(5, n_items=60, n_systems=8)
    result = at_level(frame, level, coefficient, resample=resample, n_resamples=200, rng=5)
    means = (level, coefficient, resample) == ("system", "pearson", "items")
    assert result.ci_method is (CiMethod.JACKKNIFE_ITEMS if means else METHODS[resample])
    assert result.ci_low < result.ci_high
    assert result.ci_low - 0.05 <= result.value <= result.ci_high + 0.05
    assert (result.n_resamples, result.seed) == (200, 5)
    again = at_level(frame, level, coefficient, resample=resample, n_resamples=200, rng=5)
    assert again == result


def test_few_systems_matter_more_than_many_items_and_without_systems_fisher_is_left():
    frame = study(3, n_items=60, n_systems=4)
    widths = {}
    for resample in METHODS:
        result = at_level(frame, "pooled", "pearson", resample=resample)
        widths[resample] = result.ci_high - result.ci_low
    assert widths["both"] > widths["items"]
    frame = study(1)
    fisher = at_level(frame, "pooled", "pearson", resample="systems", systems=None)
    assert fisher.ci_method is CiMethod.FISHER_CELLS
    none = at_level(frame, "item", "kendall", resample="both", systems=None)
    assert none.ci_method is CiMethod.NONE


CONSTANT = pd.DataFrame(
    {
        "item": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4],
        "system": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1],
        "human": [1, 2, 3, 1, 2, 3, 4, 5, 6, 1],
        "metric": [1, 2, 3, 1, 3, 2, 7, 7, 7, 1],
    }
)


@pytest.mark.parametrize(("undefined", "value"), [("drop", 0.75), ("zero", 0.5), ("nan", np.nan)])
def test_constant_groups_are_dropped_zeroed_or_passed_on(undefined, value):
    result = at_level(CONSTANT, "item", "pearson", undefined=undefined)
    assert result.value == pytest.approx(value, nan_ok=True)
    assert result.undefined == undefined
    assert (result.n_groups, result.n_used) == (4, 2)
    assert (result.n_constant_metric, result.n_too_few) == (1, 1)
    assert result.n_zeroed == (1 if undefined == "zero" else 0)
    assert result.reason == (Reason.CONSTANT_ITEMS if undefined == "nan" else None)
    options = {"level": "pooled", "coefficient": "kendall", "undefined": "zero"}
    result = correlation_at_level([1, 2, 3], [5, 5, 5], **options)
    assert (result.value, result.n_zeroed, result.n_used) == (0.0, 1, 0)


EXAMPLE = worked_example(15)


def example_columns():
    return (np.asarray(EXAMPLE["inputs"][k]) for k in ("item", "system", "human", "metric"))


def test_taus_influences_and_variances_are_those_by_hand():
    item, system, human, metric = example_columns()
    expected, found = EXAMPLE["expected"], kendall_influences(human, metric)
    assert found.value == pytest.approx(expected["tau_b"], abs=1e-9)
    assert found.of_cell[:5] == pytest.approx(expected["influence_of_first_5"], abs=1e-9)
    by_item = cluster_variance(found.of_cell, item)
    both = two_way_variance(found.of_cell, item, system)
    assert by_item == pytest.approx(expected["var_by_item"], abs=1e-9)
    assert cluster_variance(found.of_cell, system) == pytest.approx(expected["var_by_system"])
    assert cluster_variance(found.of_cell, np.arange(40)) == pytest.approx(expected["var_by_cell"])
    assert both == pytest.approx(expected["var_two_way"], abs=1e-9)
    assert z_t_limits(found.value, by_item, 9, 0.95) == pytest.approx(
        expected["ci_by_item_z_t"], abs=1e-9
    )
    assert z_t_limits(found.value, both, 3, 0.95) == pytest.approx(
        expected["ci_two_way_z_t"], abs=1e-9
    )


@pytest.mark.parametrize("n", [2, 3, 17, 64, 501])
@pytest.mark.parametrize("distinct", [2, 5, 1000])
def test_tau_is_that_of_scipy_and_influences_those_of_all_pairs(n, distinct):
    rng = np.random.default_rng(n * distinct)
    x, y = rng.integers(0, distinct, size=(2, n)).astype(float)
    found = kendall_influences(x, y)
    assert found.value == pytest.approx(stats.kendalltau(x, y).statistic, nan_ok=True)
    if np.isnan(found.value):
        return
    sign_x, sign_y = (np.sign(side[:, None] - side) for side in (x, y))
    scale = np.sqrt(np.abs(sign_x).sum() * np.abs(sign_y).sum())
    share = sum(np.abs(s).sum(axis=1) / np.abs(s).sum() for s in (sign_x, sign_y))
    by_hand = 2 * (sign_x * sign_y).sum(axis=1) / scale - found.value * share
    assert found.of_cell == pytest.approx(by_hand, abs=1e-12)
    assert found.of_cell.sum() == pytest.approx(0, abs=1e-9)


def test_pearsons_influences_give_its_delta_variance():
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    y = 0.5 * x + rng.normal(size=4000)
    found = pearson_influences(x, y)
    assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    variance = cluster_variance(found.of_cell, np.arange(4000))
    assert variance == pytest.approx((1 - found.value**2) ** 2 / 4000, rel=0.1)


def with_empty_items(frame: pd.DataFrame) -> pd.DataFrame:
    """The same cells after, between and before items without a complete cell."""
    scored, judged = frame.assign(human=np.nan), frame.assign(metric=np.nan)
    half = len(frame) // 2
    parts = [
        scored.head(5).assign(item=-1),
        frame.iloc[half:],
        judged.iloc[half : half + 5].assign(item=-2),
        frame.iloc[:half],
    ]
    return pd.concat(parts, ignore_index=True).drop_duplicates(["item", "system"])


@pytest.mark.parametrize("resample", list(METHODS))
@pytest.mark.parametrize("is_clustered", [False, True])
def test_an_item_without_a_complete_cell_is_counted_and_changes_nothing_else(
    resample, is_clustered
):
    frame = with_empty_items(complete_study(3))
    without = frame[frame["item"] >= 0].reset_index(drop=True)
    measures = [(level, name) for level in ("item", "system", "pooled") for name in ALL]
    for level, coefficient in [*measures, ("system", "spa")]:
        options = {"resample": resample, "n_resamples": 40}
        rows = [
            at_level(
                cells,
                level,
                coefficient,
                **options,
                **({"clusters": cells["item"] // 3} if is_clustered else {}),
            )
            for cells in (frame, without)
        ]
        assert [row.n_empty_items for row in rows] == [2, 0]
        assert "empty_items" in codes_of(rows[0].notes)
        values = [
            (row.value, row.ci_low, row.ci_high, row.ci_method, row.n_units, row.n_items)
            for row in rows
        ]
        assert values[0] == pytest.approx(values[1], nan_ok=True)


@pytest.mark.parametrize("coefficient", [*ALL, "spa"])
@pytest.mark.parametrize(
    "cells",
    [
        [(0, 0), (1, 1), (2, 2), (3, 3)],
        [(0, 0), (0, 1), (0, 2)],
        [(0, 0), (1, 0), (2, 0)],
        [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)],
        [(0, 0)],
        [],
    ],
    ids=["one cell a system", "one item", "one system", "two systems", "one cell", "nothing"],
)
@pytest.mark.filterwarnings("error")
def test_almost_nothing_has_a_value_or_a_reason(cells, coefficient):
    item, system = np.indices((4, 4)).reshape(2, -1)
    is_kept = [cell in cells for cell in zip(item, system, strict=True)]
    rng = np.random.default_rng(7)
    for human in (rng.integers(1, 6, 16).astype(float), np.full(16, 3.0)):
        columns = {"item": item, "system": system, "human": human}
        frame = pd.DataFrame(columns | {"metric": np.where(is_kept, rng.normal(size=16), np.nan)})
        for level in ("item", "system", "pooled") if coefficient != "spa" else ("system",):
            for resample in METHODS:
                row = at_level(frame, level, coefficient, resample=resample, n_resamples=9)
                assert np.isnan(row.value) == (row.reason is not None)
                assert row.n_empty_items == 4 - len({item for item, _ in cells})
