import json
import math
from dataclasses import replace

import pandas as pd
import pytest

from tests.codes import refused_naming
from tests.validation.validation_tables import (
    correlations_of,
    judged_table,
    random_tables,
    row_of,
    score_table,
)
from validation.analysis import Settings, records, report_from_tables
from validation.analysis.settings import POLICIES

BASE = Settings(n_resamples=0, levels=("item",), coefficients=("pearson",))


def value_of(human, scores, settings=BASE):
    return row_of(report_from_tables(human, scores, settings))["value"]


def varied(report, setting, choice, metric="m"):
    [row] = [
        records.plain(one)
        for one in report.sensitivity
        if (one.setting, one.choice, one.metric) == (setting, choice, metric)
    ]
    return row


def check(human, scores, setting, choice, before, after):
    report = report_from_tables(human, scores, BASE)
    row = varied(report, setting, choice)
    assert row_of(report)["value"] == pytest.approx(before)
    assert (row["base_value"], row["value"]) == pytest.approx((before, after))
    assert row["delta"] == pytest.approx(after - before)
    assert value_of(human, scores, replace(BASE, **{setting: choice})) == pytest.approx(after)


def test_policies_decide_what_is_undefined_raw_scaled_one_or_rejected():
    human = judged_table([[1, 2, 3], [1, 2, 3], [5, 5, 5]])
    scores = score_table([[1, 2, 3], [4, 4, 4], [1, 2, 3]])
    check(human, scores, "undefined", "zero", before=1, after=1 / 3)
    row = varied(report_from_tables(human, scores, BASE), "undefined", "zero")
    assert (row["n_used"], row["n_zeroed"]) == (1, 2)
    human = judged_table([[1, 2, 3]])
    scores = score_table([[2, math.nan, 4]], reason="")
    scores.loc[1, "reason"] = "no number in the reply"
    # with a zero: scores 2, 0, 4, whose covariance with 1, 2, 3 is 1 in 1 * 2
    check(human, scores, "unparsed", "zero", before=1, after=0.5)
    scores = score_table([[2, math.nan, 4]], reason="no reference")
    report = report_from_tables(human, scores, replace(BASE, unparsed="zero"))
    assert row_of(report)["n_rows"] == 2
    # Bob uses a hundred times Ann's scale, so that raw means are nearly his alone.
    tables = [
        judged_table([[1, 2, 3]], annotator="Ann"),
        judged_table([[300, 100, 200]], annotator="Bob"),
    ]
    # z-scores -1, 0, 1 and 1, -1, 0: means 0, -.5, .5
    raw = [301 / 2, 102 / 2, 203 / 2]
    after = pd.Series([0, -0.5, 0.5]).corr(pd.Series([1, 2, 3]))
    before = pd.Series(raw).corr(pd.Series([1, 2, 3]))
    check(pd.concat(tables), score_table([[1, 2, 3]]), "ratings", "zscore", before, after)
    tables = [
        judged_table([[1, 2, 3]], annotator="Ann"),
        judged_table([[0.1, 0.1, 0.1]], annotator="Bob"),
    ]
    settings = replace(BASE, ratings="zscore", aggregation="median")
    assert value_of(pd.concat(tables), score_table([[1, 2, 3]]), settings) == pytest.approx(1)
    tables = [
        judged_table([values], annotator=name)
        for name, values in {"a": [1, 2, 3], "b": [1, 2, 3], "c": [13, 2, 3]}.items()
    ]
    # means 5, 2, 3; medians 1, 2, 3
    before = pd.Series([5, 2, 3]).corr(pd.Series([1, 2, 3]))
    check(pd.concat(tables), score_table([[1, 2, 3]]), "aggregation", "median", before, 1)
    tables = [
        judged_table([[1, 2, 3]], annotator="Ann"),
        judged_table([[9, 2, 1]], annotator="Bob", accepted=False),
    ]
    # means of both: 5, 2, 2
    after = pd.Series([5, 2, 2]).corr(pd.Series([1, 2, 3]))
    human = pd.concat(tables).fillna({"accepted": True})
    human["accepted"] = human["accepted"].astype(bool)
    check(human, score_table([[1, 2, 3]]), "judgments", "all", before=1, after=after)


def test_planning_and_policies_are_shown_and_come_back_from_their_content():
    human, scores = random_tables(n_annotators=1)
    report = report_from_tables(human, scores, BASE)
    assert {one.setting for one in report.sensitivity} == {"undefined", "ratings"}
    human, scores = random_tables(n_items=20, n_metrics=2)
    assert report_from_tables(human, scores, BASE).planning == ()
    settings = replace(BASE, planned=(("item", "pearson"),), n_resamples=100)
    rows = report_from_tables(human, scores, settings).planning
    assert {(row.metric_a, row.metric_b) for row in rows} == {("m0", "m1")}
    assert {row.n_items for row in rows if row.is_pilot} == {20}
    assert sorted({round(row.n_annotators, 6) for row in rows}) == [3, 4, 5]
    few, many = (next(row.power for row in rows if row.n_items == size) for size in (5, 200))
    assert few < many
    human = judged_table([[1, 2, 3], [1, 2, 3], [1, 2, 3]])
    steady = score_table([[1, 3, 2], [1, 3, 2], [1, 3, 2]], "steady")
    silent = score_table([[1, 2, 3], [5, 5, 5], [5, 5, 5]], "silent")
    report = report_from_tables(human, pd.concat([steady, silent]), BASE)
    ranks = {row["metric"]: row["rank"] for row in correlations_of(report)}
    assert ranks == {"silent": 1, "steady": 2}
    for metric, ranks in {"silent": (1, 2), "steady": (2, 1)}.items():
        row = varied(report, "undefined", "zero", metric)
        assert (row["base_rank"], row["rank"], row["moves_rank"]) == (*ranks, True)
    human = judged_table([[1, 2, 3], [3, 1, 2]])
    report = report_from_tables(human, score_table([[1, 1, 1], [1, 1, 1]]), BASE)
    assert varied(report, "ratings", "zscore", "m")["moves_rank"] is False
    assert varied(report, "undefined", "zero", "m")["moves_rank"] is True
    for setting, choices in POLICIES.items():
        assert getattr(Settings(), setting) in choices
    settings = Settings(
        questions_of=(("m", ("q", "r")),), planned=(("item", "kendall"),), undefined="zero"
    )
    assert Settings.of(json.loads(json.dumps(settings.content()))) == settings
    for field, value in (
        ("undefined", "ignore"),
        ("ratings", "ranks"),
        ("levels", ("segment",)),
        ("seed", -1),
        ("coefficients", ("kendall", "kendall")),
        ("planned", (("item", "kendall"),) * 2),
    ):
        with refused_naming(ValueError, field):
            Settings(**{field: value})


def test_systems_have_means_ranks_and_intervals_and_their_disagreements_are_named():
    human = judged_table([[1, 2, 6], [3, 2, 4]])
    scores = score_table([[5, 6, 7], [5, 6, math.nan]])
    report = report_from_tables(human, scores, replace(BASE, n_resamples=200))
    by_name = {row.system: row for row in report.systems}
    assert {name: row.mean for name, row in by_name.items()} == {"s0": 2, "s1": 2, "s2": 5}
    assert {name: row.rank for name, row in by_name.items()} == {"s0": 2.5, "s1": 2.5, "s2": 1}
    assert (by_name["s0"].ci_low, by_name["s0"].ci_high) == (1, 3)
    assert (by_name["s1"].ci_low, by_name["s1"].ci_high) == (2, 2)
    [of_metric] = by_name["s2"].metrics
    assert (of_metric.mean, of_metric.rank, of_metric.n_scored) == (7, 1, 1)
    human = judged_table([[1, 2], [3, 2]])
    human = pd.concat([human, judged_table([[1, 2, 6]]).replace({"i0": "i9"})])
    human = human.assign(condition=(human["item"] == "i9").map(str))
    report = report_from_tables(human, score_table([[5, 6]]), replace(BASE, n_resamples=50, seed=7))
    drawn = {
        (row.by, row.system): (row.ci_low is None, row.n_resamples, row.seed)
        for row in report.systems
    }
    none, once = (True, 0, None), ["s0", "s1", "s2"]
    assert drawn == {("", "s0"): (False, 50, 7), ("", "s1"): (False, 50, 7), ("", "s2"): none} | {
        ("False", "s0"): (False, 50, 8),
        ("False", "s1"): (False, 50, 8),
    } | {("True", system): none for system in once}
    human, scores = judged_table([[1, 2, 3]]), score_table([[1, 5, 2]])
    [pair] = report_from_tables(human, scores, BASE).disagreements
    assert (pair.better, pair.worse) == ("s2", "s1")
    assert (pair.human_delta, pair.metric_delta) == (1, -3)
    human, scores = judged_table([[1, 2, 3, 4]]), score_table([[1, 2, 3, -9]])
    worst = report_from_tables(human, scores, BASE).worst
    assert [row.rank for row in worst] == [1, 2, 3, 4]
    first = worst[0]
    assert (first.system, first.human, first.score) == ("s3", 4, -9)
    assert first.residual == pytest.approx(first.z_score - first.z_human)
    assert first.residual < 0


@pytest.mark.slow
def test_the_fingerprint_is_of_the_rows():
    human, scores = random_tables()
    base = report_from_tables(human, scores, BASE).fingerprint
    mixed = report_from_tables(human.sample(frac=1, random_state=1), scores[::-1], BASE)
    assert mixed.fingerprint == base
    human.loc[0, "value"] += 1
    assert report_from_tables(human, scores, BASE).fingerprint != base
