import json
import math

import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from metrics.scorers.judges.readings import read_rating
from stats import ceilings, correlation, significance
from tests.codes import refused
from tests.validation.validation_tables import (
    content_of,
    correlations_of,
    judged_table,
    random_tables,
    row_of,
    score_table,
)
from validation.analysis import Material, Settings, report_from_tables
from validation.analysis.ceilings import NO_SECOND_RATING
from validation.analysis.replicates import kendall_replicates, spearman_replicates

EVERY = ("pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star", "spa")


def panel_of(human, scores, settings):
    return next(Material(human, scores).panels(settings, scopes=("all",)))


def by_itself(panel, row, settings):
    scores, cells = panel.scores[int(row.metric[1:])], panel.candidates
    where = {"level": row.level, "items": cells["item"], "systems": cells["system"]}
    rules = {name: getattr(settings, name) for name in ("resample", "n_resamples")}
    where |= rules | {"coefficient": row.coefficient, "rng": settings.seed}
    return correlation.correlation_at_level(panel.human, scores, **where)


@pytest.mark.parametrize(
    ("resample", "coefficients", "n_rows"),
    [("items", EVERY, 3 * (7 + 6 + 6)), ("systems", ("pearson",), 9), ("both", ("pearson",), 9)],
)
def test_values_and_intervals_are_those_of_each_metric_alone(resample, coefficients, n_rows):
    settings = Settings(coefficients=coefficients, n_resamples=60, resample=resample, seed=3)
    human, scores = random_tables()
    report = report_from_tables(human, scores, settings)
    panel = panel_of(human, scores, settings)
    assert len(report.correlations) == n_rows
    for row in report.correlations:
        alone = by_itself(panel, row, settings)
        assert (row.value, row.n_used) == (alone.value, alone.n_used)
        assert (row.ci_low, row.ci_high) == pytest.approx((alone.ci_low, alone.ci_high))
        assert (row.ci_method, row.seed) == (alone.ci_method, alone.seed)


def biased_tables():
    """Two metrics that each favour systems of their own."""
    rng = np.random.default_rng(1)
    quality, bias = rng.normal(size=8), rng.normal(size=(2, 8))
    human = judged_table(quality + rng.normal(size=(40, 8)))
    metrics = [quality + favour + rng.normal(size=(40, 8)) for favour in bias]
    scores = [score_table(values, name) for name, values in zip("AB", metrics, strict=True)]
    return human, pd.concat(scores)


def test_what_is_resampled_reaches_the_comparisons_and_five_new_systems_have_no_p():
    pairs = {}
    for resample in ("items", "systems", "both"):
        settings = Settings(levels=("system",), coefficients=("pearson",), resample=resample)
        [pairs[resample]] = report_from_tables(*biased_tables(), settings).comparisons
    width = {name: pair.ci_high - pair.ci_low for name, pair in pairs.items()}
    assert width["both"] > 3 * width["items"]
    # a two-way bootstrap by hand gives [-.63, .93]; the draws have a long tail
    assert pairs["both"].ci_low < -0.4
    assert pairs["both"].ci_high > 0.7
    assert len({pair.p for pair in pairs.values()}) == 3
    human, scores = biased_tables()
    human, scores = (table[table["system"] < "s5"] for table in (human, scores))
    settings = Settings(levels=("system",), coefficients=("pearson",), resample="both")
    [pair] = report_from_tables(human, scores, settings).comparisons
    assert (pair.p, pair.reason) == (None, "too_few_systems")
    assert pair.ci_low < pair.delta < pair.ci_high


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_pooled_rank_correlations_of_resamples_are_those_of_the_copied_cells(gaps):
    rng = np.random.default_rng(1)
    item = np.arange(12).repeat(3)[rng.random(36) >= gaps]
    human = rng.integers(0, 4, size=len(item)).astype(float)
    scores = np.stack([np.round(rng.normal(size=len(item)), 1), rng.normal(size=len(item))])
    weights = correlation.bootstrap.drawn_weights(12, 20, rng)
    for coefficient, replicates in (
        ("spearman", spearman_replicates),
        ("kendall", kendall_replicates),
    ):
        for row, values in zip(scores, replicates(human, scores, item, weights), strict=True):
            for weight, value in zip(weights, values, strict=True):
                times = weight[item].astype(int)
                copies, rules = (human.repeat(times), row.repeat(times)), {"n_resamples": 0}
                copied = correlation.correlation_at_level(
                    *copies, level="pooled", coefficient=coefficient, **rules
                )
                assert value == pytest.approx(copied.value, abs=1e-12)


def test_more_cells_an_item_than_slots_give_the_same_replicates(monkeypatch):
    rng = np.random.default_rng(2)
    item, human = np.arange(5).repeat(4), rng.integers(0, 3, size=20).astype(float)
    scores, weights = rng.normal(size=(2, 20)), correlation.bootstrap.drawn_weights(5, 10, rng)
    slots = kendall_replicates(human, scores, item, weights)
    monkeypatch.setattr("validation.analysis.replicates.SLOTS_UP_TO", 3)
    assert kendall_replicates(human, scores, item, weights) == pytest.approx(slots)


def test_gaps_leave_each_metric_its_own_cells():
    human, scores = random_tables(gaps=0.3)
    report = report_from_tables(human, scores, Settings(n_resamples=50))
    panel = panel_of(human, scores, Settings())
    for row in report.correlations:
        n_scored = np.count_nonzero(~np.isnan(panel.scores[int(row.metric[1:])]))
        assert row.n_rows == n_scored < 120
        assert row.n_undefined_scores == row.n_missing > 0
        assert row.ci_low < row.value < row.ci_high


def test_swapped_items_give_the_same_p_as_one_test_of_what_both_scored():
    human, scores = random_tables(n_items=12)
    settings = Settings(
        levels=("item",), n_resamples=20, n_permutations=300, seed=5, test="perm_items"
    )
    report = report_from_tables(human, scores, settings)
    panel = panel_of(human, scores, settings)
    named = {f"m{number}": row for number, row in enumerate(panel.scores)}
    rules = {"level": "item", "test": "perm_items", "n_permutations": 300, "rng": 5}
    rules |= {"items": panel.item, "systems": panel.system}
    for coefficient in settings.coefficients:
        alone = significance.compare_metrics(panel.human, named, coefficient=coefficient, **rules)
        tests = [pair for pair in report.comparisons if pair.coefficient == coefficient]
        assert [(t.metric_a, t.metric_b) for t in tests] == list(
            zip(alone["metric_a"], alone["metric_b"], strict=True)
        )
        for name in ("delta", "p", "p_holm", "p_bh"):
            assert [getattr(t, name) for t in tests] == pytest.approx(list(alone[name])), name
    human, scores = random_tables(n_items=12, n_metrics=2, gaps=0.2)
    settings = Settings(
        levels=("item",), coefficients=("pearson",), n_permutations=200, test="perm_items"
    )
    [test] = report_from_tables(human, scores, settings).comparisons
    panel = panel_of(human, scores, settings)
    rules = {"level": "item", "coefficient": "pearson", "swap": "items", "n_permutations": 200}
    cells = {"items": panel.item, "systems": panel.system}
    alone = significance.permutation_test(panel.human, *panel.scores, **rules, **cells)
    assert test.p == pytest.approx(alone.p)


@pytest.mark.parametrize("test", ["perm_both", "perm_items", "perm_systems", "williams"])
def test_any_test_of_stats_may_be_named(test):
    human, scores = random_tables(n_items=8, n_metrics=2)
    settings = Settings(
        test=test, coefficients=("pearson",), levels=("pooled",), n_permutations=50, n_resamples=9
    )
    [pair] = report_from_tables(human, scores, settings).comparisons
    assert pair.test == test
    assert 0 < pair.p <= 1


def test_a_metric_that_follows_annotators_ranks_above_noise_and_a_copy_differs_by_nothing():
    human, scores = random_tables(n_items=60, n_metrics=2)
    noise = score_table(np.random.default_rng(9).normal(size=(60, 4)), "noise")
    report = report_from_tables(human, pd.concat([scores, noise]), Settings(n_resamples=200))
    for level in ("item", "pooled"):
        rows = [row for row in correlations_of(report) if row["level"] == level]
        for row in rows:
            assert (row["cluster"] == 1) == (row["rank"] == 1)
        assert {row["rank"] for row in rows if row["metric"] == "noise"} == {3.0}
    p = {
        (pair.level, pair.coefficient): pair.p_holm
        for pair in report.comparisons
        if (pair.metric_a, pair.metric_b) == ("m0", "noise") and pair.level != "system"
    }
    assert len(p) == 6
    assert max(p.values()) < 0.01
    human, scores = random_tables(n_metrics=1)
    both = pd.concat([scores, scores.assign(metric="copy")])
    for pair in report_from_tables(human, both, Settings(n_resamples=50)).comparisons:
        assert (pair.delta, pair.p, pair.reason) == (0, None, "same_metric")
    human, scores = random_tables(n_metrics=2)

    def reasons(coefficient, **settings):
        report = report_from_tables(human, scores, Settings(coefficients=coefficient, **settings))
        return {pair.reason for pair in report.comparisons if pair.test == "paired_bootstrap"}

    assert reasons(("kendall",), n_resamples=0) == {"no_resamples"}
    assert reasons(("acc_star", "spa"), n_resamples=20) == {"no_such_test"}
    assert reasons(("kendall",), n_resamples=20) == {None}


@pytest.mark.parametrize("test", ["auto", "paired_bootstrap"])
def test_one_scored_item_of_many_has_neither_intervals_nor_tests_of_resamples(test):
    human, scores = random_tables(n_items=8, n_metrics=2)
    scores.loc[scores["item"] != "i3", "value"] = math.nan
    content = content_of(report_from_tables(human, scores, Settings(test=test)))
    values = [row["value"] for row in content["correlations"]]
    assert None not in values
    assert {row["ci_low"] for row in content["correlations"]} == {None}
    for row in content["comparisons"]:
        by_swaps = row["test"] == "perm_items"
        assert (row["p"], row["reason"]) == ((1, None) if by_swaps else (None, "too_few"))
        assert row["ci_low"] is None


@pytest.mark.parametrize("resample", ["items", "systems"])
def test_a_paired_bootstrap_states_the_seed_its_items_were_drawn_with(resample):
    human, scores = random_tables(n_systems=8, n_metrics=2)
    human = human.assign(condition=human["item"].isin(["i0", "i1", "i2"]).map(str))
    scores = scores.assign(candidate=scores["system"])
    human = human.assign(candidate=human["system"])
    if resample == "items":  # whole systems are drawn where each has one candidate an item
        human = human.assign(system=human["system"].replace("s1", "s0"))
    settings = Settings(levels=("pooled",), resample=resample, n_resamples=20, seed=4)
    pairs = report_from_tables(human, scores.drop(columns="system"), settings).comparisons
    assert {(pair.scope, pair.by): pair.seed for pair in pairs} == {
        ("all", ""): 4,
        ("condition", "True"): 5,
        ("condition", "False"): 6,
        ("mean_of_conditions", ""): 4,
    }


def test_ceilings_are_those_of_the_same_ratings_and_scores_are_turned_round():
    human, scores = random_tables()
    settings = Settings(n_splits=7, seed=2, n_resamples=0)
    report = report_from_tables(human, scores, settings)
    assert len(report.ceilings) == 9
    for one in report.ceilings:
        columns = (human[name] for name in ("item", "system", "annotator", "value"))
        measure = {"level": one.level, "coefficient": one.coefficient}
        alone = ceilings.ceiling(*columns, **measure, n_splits=7, rng=2)
        assert one.leave_one_out == pytest.approx(alone.leave_one_out)
        assert one.split_half == pytest.approx(alone.split_half, abs=0.1)
        row = row_of(report, metric="m0", level=one.level, coefficient=one.coefficient)
        assert row["share_of_ceiling"] == pytest.approx(row["value"] / one.attainable)
    human, scores = random_tables(n_annotators=1)
    report = report_from_tables(human, scores, Settings(n_resamples=0))
    assert {one.reason for one in report.ceilings} == {NO_SECOND_RATING}
    assert {row["share_of_ceiling"] for row in correlations_of(report)} == {None}
    human = judged_table([[1, 2, 3], [3, 2, 1]])
    loss = score_table([[9, 8, 7], [7, 8, 9]], "loss", higher_is_better=False)
    report = report_from_tables(human, loss, Settings(n_resamples=0))
    row = row_of(report, level="item", coefficient="pearson")
    assert (row["value"], row["higher_is_better"]) == (pytest.approx(1), False)
    [first, *_] = report.systems
    assert first.metrics[0].mean == 8
    assert report.worst[0].score in (7, 8, 9)
    human = judged_table([[1, 2, 3], [3, 1, 2]])
    scores = score_table([[1, math.nan, 3], [math.nan, 1, 2]])
    scores["reason"] = ["", "no reference", "", "no number in the reply", "", ""]
    report = report_from_tables(human, scores.iloc[:5], Settings(n_resamples=0))
    row = row_of(report, level="pooled", coefficient="pearson")
    names = ("n_candidates", "n_scored", "n_unscored", "n_undefined_scores", "n_unparsed")
    assert [row[name] for name in names] == [6, 3, 1, 1, 1]


def test_conditions_count_alike_in_their_mean_whatever_their_size():
    calm = judged_table([[1, 2, 3], [3, 1, 2], [1, 3, 2]], condition="calm")
    angry = judged_table([[3, 2, 1]], condition="angry").replace({"i0": "i9"})
    scores = pd.concat(
        [score_table([[1, 2, 3]] * 3), score_table([[1, 2, 3]]).replace({"i0": "i9"})]
    )
    report = report_from_tables(pd.concat([calm, angry]), scores, Settings(n_resamples=30))
    measure = {"level": "item", "coefficient": "pearson"}
    by = {row["by"]: row for row in correlations_of(report) if measure.items() <= row.items()}
    calm_value, angry_value = by["calm"]["value"], by["angry"]["value"]
    assert calm_value == pytest.approx((1 - 0.5 + 0.5) / 3)
    assert angry_value == pytest.approx(-1)
    mean = row_of(report, scope="mean_of_conditions", **measure)
    assert mean["value"] == pytest.approx((calm_value + angry_value) / 2)
    assert (mean["n_groups"], mean["n_used"]) == (4, 4)
    of_all = row_of(report, scope="all", **measure)
    assert of_all["value"] == pytest.approx((1 - 0.5 + 0.5 - 1) / 4)


@pytest.mark.parametrize("level", ["item", "system", "pooled"])
def test_the_mean_of_conditions_counts_the_systems_of_them_all_once(level):
    calm = judged_table([[1, 2, 3], [3, 1, 2]], condition="calm")
    angry = judged_table([[3, 2, 1]], condition="angry").replace({"i0": "i9", "s0": "s7"})
    scores = [
        score_table([[1, 2, 3]] * 2),
        score_table([[1, 2, 3]]).replace({"i0": "i9", "s0": "s7"}),
    ]
    tables = pd.concat([calm, angry]), pd.concat(scores)
    report = report_from_tables(*tables, Settings(n_resamples=0))
    measure = {"level": level, "coefficient": "pearson"}
    counts = {
        (row["scope"], row["by"]): (row["n_items"], row["n_systems"])
        for row in correlations_of(report)
        if measure.items() <= row.items()
    }
    assert counts == {
        ("all", ""): (3, 4),
        ("condition", "calm"): (2, 3),
        ("condition", "angry"): (1, 3),
        ("mean_of_conditions", ""): (3, 4),
    }


def test_the_interval_of_a_mean_of_conditions_is_narrower_than_those_it_is_made_of():
    parts = []
    for number in range(3):
        human, scores = random_tables(seed=number, n_metrics=1)
        names = {f"i{position}": f"{number}-{position}" for position in range(30)}
        parts.append((human.assign(condition=f"c{number}").replace(names), scores.replace(names)))
    human, scores = (pd.concat(side) for side in zip(*parts, strict=True))
    widths = {
        (row["scope"], row["by"]): row["ci_high"] - row["ci_low"]
        for row in correlations_of(report_from_tables(human, scores, Settings(n_resamples=300)))
        if (row["level"], row["coefficient"]) == ("item", "kendall")
    }
    mean = widths.pop(("mean_of_conditions", ""))
    width_of_all = widths.pop(("all", ""))
    assert len(widths) == 3
    assert mean < min(widths.values())
    assert mean == pytest.approx(width_of_all, rel=0.25)


@pytest.mark.parametrize(
    "reply", ["no number", "7 of 5", "two", "4 or 5", "8/10", "Style (1-5):", "it has 3 errors"]
)
def test_what_a_judge_says_of_an_unreadable_reply_is_known(reply):
    reading = read_rating(reply, "style", 1, 5)
    scores = score_table([[1, math.nan]], reason="")
    scores.loc[1, "reason"] = reading.reason
    report = report_from_tables(judged_table([[1, 2]]), scores, Settings(n_resamples=0))
    assert {row.n_unparsed for row in report.correlations} == {1}


def test_tables_that_do_not_fit_are_refused():
    human, scores = judged_table([[1, 2]]), score_table([[1, 2]])
    for tables, code in (
        ((human.drop(columns="annotator"), scores), "missing_column"),
        ((human, scores.drop(columns="metric")), "missing_column"),
        ((human, pd.concat([scores, scores])), "score_twice"),
        ((pd.concat([human, human.assign(condition="other")]), scores), "several_conditions"),
    ):
        with refused(InvalidValue, code):
            report_from_tables(*tables)


ODD = {
    "one item": lambda human, scores: (human[human["item"] == "i0"], scores),
    "one system": lambda human, scores: (human[human["system"] == "s0"], scores),
    "no systems": lambda human, scores: (
        human.assign(candidate=human["system"], system=""),
        scores.assign(candidate=scores["system"]),
    ),
    "some candidates of no system": lambda human, scores: (
        human.assign(candidate=human["system"], system=human["system"].replace("s1", "")),
        scores.assign(candidate=scores["system"]),
    ),
    "several candidates of a system": lambda human, scores: (
        human.assign(candidate=human["system"], system=human["system"].replace("s1", "s0")),
        scores.assign(candidate=scores["system"]),
    ),
    "constant people": lambda human, scores: (human.assign(value=3.0), scores),
    "constant metrics": lambda human, scores: (human, scores.assign(value=3.0)),
    "undefined scores": lambda human, scores: (human, scores.assign(value=math.nan)),
    "a condition for each item": lambda human, scores: (
        human.assign(condition=human["item"]),
        scores,
    ),
    "no scores": lambda human, scores: (human, scores.iloc[:0]),
    "no judgments": lambda human, scores: (human.iloc[:0], scores),
}


@pytest.mark.slow
@pytest.mark.parametrize("test", ["auto", "perm_systems"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_undefined_has_a_reason_whatever_the_tables_are(odd, test):
    human, scores = ODD[odd](*random_tables(n_items=5))
    settings = Settings(coefficients=EVERY, n_resamples=9, n_permutations=5, n_splits=2, test=test)
    content = content_of(report_from_tables(human, scores, settings))
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert bool(content["correlations"]) == (odd not in ("no scores", "no judgments"))
    for row in content["correlations"]:
        assert (row["value"] is None) == (row["reason"] is not None)
        assert (row["rank"] is None) == (row["cluster"] is None) == (row["value"] is None)
    for row in content["comparisons"]:
        assert (row["p"] is None) == (row["reason"] is not None)


@pytest.mark.parametrize("resample", ["items", "systems", "both"])
def test_an_item_that_a_metric_did_not_score_is_left_out_of_its_rows(resample):
    human, scores = biased_tables()
    gap = (scores["metric"] == "A") & (scores["item"] == scores["item"].iloc[0])
    settings = Settings(coefficients=EVERY, n_resamples=20, resample=resample)
    report = report_from_tables(human, scores[~gap], settings)
    rows = {(row.metric, row.level, row.coefficient): row for row in report.correlations}
    assert len(rows) == 2 * (7 + 6 + 6)
    for (metric, _level, _coefficient), row in rows.items():
        assert row.value is not None
        assert row.n_items == (39 if metric == "A" else 40)
