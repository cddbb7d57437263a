import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from error_codes import InvalidValue
from stats.annotators import Reason, annotator_quality, near_duplicates
from tests.codes import refused
from tests.stats.conftest import columns, random_crowd


def skewed_crowd(seed: int) -> pd.DataFrame:
    """40 annotators, 10 % positive items; 0-4 always say no, 5-9 toss a coin."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(400) < 0.1).astype(int)
    annotator = rng.random((400, 40)).argpartition(5, axis=1)[:, :5].ravel()
    item = np.repeat(np.arange(400), 5)
    right = rng.random(len(item)) < rng.uniform(0.7, 0.95, 40)[annotator]
    value = np.where(right, truth[item], 1 - truth[item])
    value = np.where(annotator < 5, 0, value)
    coin = rng.integers(2, size=len(item))
    value = np.where((annotator >= 5) & (annotator < 10), coin, value)
    return pd.DataFrame({"item": item, "annotator": annotator, "value": value})


def test_under_skew_informedness_finds_the_guessers_that_agreement_hides():
    from sklearn.metrics import roc_auc_score

    qualities = {"loo_agreement": [], "informedness": [], "loo_kappa": []}
    for seed in range(10):
        table = annotator_quality(*columns(skewed_crowd(seed)), level="nominal")
        for name, areas in qualities.items():
            areas.append(roc_auc_score(table["annotator"] < 10, -table[name]))
    assert np.mean(qualities["informedness"]) > 0.9
    assert np.mean(qualities["loo_kappa"]) > 0.85
    assert np.mean(qualities["loo_agreement"]) < 0.7


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "least"), [("rte", 0.75), ("bluebirds", 0.9)])
def test_the_headline_ranks_real_annotators_as_gold_does(shared_data, name, least):
    labels = pd.read_csv(shared_data / "crowd" / name / "labels.csv")
    gold = pd.read_csv(shared_data / "crowd" / name / "gold.csv").set_index("item")["gold"]
    table = annotator_quality(
        labels["item"], labels["annotator"], labels["label"], level="nominal", gold=gold.to_dict()
    )
    right = labels["label"] == labels["item"].map(gold)
    by_class = right.groupby([labels["annotator"], labels["item"].map(gold)]).mean().unstack()
    youden = by_class.sum(axis=1).to_numpy() - 1
    assert spearmanr(table["quality"], youden, nan_policy="omit").statistic > least
    accuracy = right.groupby(labels["annotator"]).mean().to_numpy()
    assert table["gold_accuracy"].to_numpy() == pytest.approx(accuracy)


def test_agreement_correlation_bias_and_spread_equal_a_loop_over_the_others():
    frame = random_crowd(np.random.default_rng(0), n_items=20, n_annotators=6)
    table = annotator_quality(*columns(frame), level="nominal").set_index("annotator")
    for annotator, own in frame.groupby("annotator"):
        others = frame[frame["annotator"] != annotator]
        shares, chances = [], np.zeros(4)
        for _, row in own.iterrows():
            values = others.loc[others["item"] == row["item"], "value"]
            if len(values):
                shares.append((values == row["value"]).mean())
                chances += np.bincount(values, minlength=4) / len(values)
        assert table.loc[annotator, "loo_agreement"] == pytest.approx(np.mean(shares))
        shared = own[own["item"].isin(others["item"])]
        used = np.bincount(shared["value"], minlength=4) / len(shared)
        expected = float(used @ chances / len(shares))
        kappa = (np.mean(shares) - expected) / (1 - expected)
        assert table.loc[annotator, "loo_kappa"] == pytest.approx(kappa)
    rng = np.random.default_rng(1)
    frame = random_crowd(rng, n_items=30, n_annotators=6)
    frame["value"] = frame["value"] * 10 + frame["annotator"] + rng.normal(size=len(frame))
    table = annotator_quality(*columns(frame), level="interval").set_index("annotator")
    for annotator, own in frame.groupby("annotator"):
        others = frame[frame["annotator"] != annotator].groupby("item")["value"].mean()
        pair = own.set_index("item")["value"].to_frame().join(others.rename("other")).dropna()
        row = table.loc[annotator]
        error = pair["value"] - pair["other"]
        assert row["loo_correlation"] == pytest.approx(pair["value"].corr(pair["other"]))
        assert row["quality"] == row["loo_correlation"]
        assert row["bias"] == pytest.approx(error.mean())
        assert row["error_sd"] == pytest.approx(error.std())
        assert row["spread"] == pytest.approx(own["value"].std())
        assert row["n_shared"] == len(pair)


def test_ordinal_values_are_correlated_by_ranks_and_an_annotator_who_tires_drifts():
    items, annotators = [1, 2, 3, 4] * 2, list("aaaabbbb")
    values = [1, 2, 3, 4, 1, 2, 3, 1000]
    quality = annotator_quality(items, annotators, values, level="ordinal")["quality"]
    assert quality.tolist() == pytest.approx([1, 1])
    table = annotator_quality([1, 1, 1], list("aab"), list("xxy"), level="nominal")
    assert table["loo_agreement"].tolist() == [0.0, 0.0]
    ratings = annotator_quality([1, 1, 1], list("aab"), [10, 20, 30], level="interval")
    assert ratings["bias"].tolist() == [-15.0, 15.0]
    items = [1, 1, 2, 2, 1, 2]
    annotators = ["a", "a", "a", "a", "b", "b"]
    table = annotator_quality(items, annotators, list("xxxyxy"), level="nominal")
    assert table["n_repeats"].tolist() == [2, 0]
    assert table["self_consistency"][0] == 0.5
    assert np.isnan(table["self_consistency"][1])
    numbers = annotator_quality(items, annotators, [1, 1, 9, 9, 2, 8], level="interval")
    assert numbers["self_consistency"][0] == 1.0
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=200)
    item = np.tile(np.arange(200), 5)
    annotator = np.repeat(list("abcde"), 200)
    value = truth[item]
    slip = (annotator == "e") & (rng.random(len(item)) < item / 250)
    value = np.where(slip, 1 - value, value)
    table = annotator_quality(item, annotator, value, level="nominal", order=item)
    tired = table.set_index("annotator").loc["e"]
    assert tired["drift"] < -0.3
    assert tired["drift_p"] < 1e-4
    times = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(item, unit="min")
    timed = annotator_quality(item, annotator, value, level="nominal", order=times)
    assert timed["drift"].to_numpy() == pytest.approx(table["drift"].to_numpy(), nan_ok=True)
    # Ratings that rise drift up.
    item, annotator = np.tile(np.arange(50), 3), np.repeat(list("abc"), 50)
    value = 50 + rng.normal(size=150) + np.where(annotator == "c", item, 0)
    table = annotator_quality(item, annotator, value, level="interval", order=item)
    assert table["drift"][2] > 0.9


def test_what_is_undefined_has_a_reason_and_a_gap_in_the_gold_is_no_wrong_answer():
    items, annotators = [1, 2, 3] * 2, list("aaabbb")
    table = annotator_quality(
        items,
        annotators,
        [1, 2, 3, 4, 4, 4],
        level="interval",
        gold={1: 2, 2: 3, 3: 4},
        seconds=[5, 7, 60, 1, None, 3],
    )
    assert table["median_seconds"].tolist() == [7.0, 2.0]
    assert table["gold_correlation"][0] == pytest.approx(1)
    assert np.isnan(table["gold_correlation"][1])
    assert table["gold_bias"].tolist() == [-1.0, 1.0]
    assert table["n_gold"].tolist() == [3, 3]
    items, annotators, values = [1, 2, 3] * 2, list("aaabbb"), list("xyxxyy")
    gold = {1: "x", 2: "y", 3: np.nan}
    table = annotator_quality(items, annotators, values, level="nominal", gold=gold)
    assert table["n_gold"].tolist() == [2, 2]
    assert table["gold_accuracy"].tolist() == [1, 1]
    lonely = annotator_quality([1, 2, 3], ["a", "b", "b"], [1, 2, 3], level="interval")
    assert lonely["reason"].tolist() == [Reason.NO_OVERLAP, Reason.NO_OVERLAP]
    constant = annotator_quality([1, 2, 1, 2, 1], list("aabbc"), [5, 5, 1, 2, 3], level="interval")
    assert constant["reason"].tolist() == [
        Reason.CONSTANT_RATINGS,
        Reason.CONSTANT_OTHERS if constant["loo_correlation"].isna()[1] else None,
        Reason.TOO_FEW_LABELS,
    ]
    single = annotator_quality([1, 1], ["a", "b"], ["x", "x"], level="nominal")
    assert set(single["reason"]) == {Reason.SINGLE_CATEGORY}
    alone = annotator_quality([1, 2], ["a", "b"], ["x", "y"], level="nominal")
    assert set(alone["reason"]) == {Reason.NO_OVERLAP}
    for level in ("nominal", "interval"):
        assert annotator_quality([], [], [], level=level).empty


def test_a_copy_is_found_and_good_or_easy_work_is_not():
    rng = np.random.default_rng(4)
    truth = rng.integers(4, size=60)
    answers = np.where(rng.random((60, 10)) < 0.7, truth[:, None], rng.integers(4, size=(60, 10)))
    item, annotator = np.indices(answers.shape)
    honest = near_duplicates(item.ravel(), annotator.ravel(), answers.ravel())
    assert honest.empty
    answers[:, 9] = answers[:, 3]
    answers[0, 9] = (answers[0, 3] + 1) % 4
    pairs = near_duplicates(item.ravel(), annotator.ravel(), answers.ravel())
    assert pairs[["annotator_a", "annotator_b"]].to_numpy().tolist() == [[3, 9]]
    assert pairs["n_equal"].tolist() == [59]
    assert pairs["share_equal"][0] == pytest.approx(59 / 60)
    assert pairs["p_value"][0] < 0.01
    items = np.repeat(np.arange(50), 4)
    assert near_duplicates(items, list("abcd") * 50, ["same"] * 200).empty
    assert near_duplicates([], [], []).empty
    assert near_duplicates([1, 2], ["a", "b"], [1, 2]).empty


REPEATED = "repeated_labels"


def test_a_callers_mistakes_are_named():
    for call, options, code in (
        (annotator_quality, {"level": "binary"}, "unknown_level"),
        (annotator_quality, {"level": "interval"}, "values_not_numeric"),
        (annotator_quality, {"level": "nominal", "gold": {2: "x"}}, "gold_empty"),
        (annotator_quality, {"level": "nominal", "gold": {1: np.nan}}, "gold_empty"),
        (annotator_quality, {"level": "nominal", "order": [1, 2]}, "unequal_lengths"),
        (near_duplicates, {"min_equal": 90}, "min_equal_out_of_range"),
        (near_duplicates, {"min_overlap": 0}, "min_overlap_out_of_range"),
        (near_duplicates, {"items": [1, 1], "annotators": ["a"] * 2, "values": [1, 2]}, REPEATED),
    ):
        columns = {"items": [1], "annotators": ["a"], "values": ["x"]}
        with refused(InvalidValue, code):
            call(**(columns | options))
