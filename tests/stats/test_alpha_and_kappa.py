import re

import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from stats.agreement import (
    Agreement,
    CiMethod,
    Reason,
    cohen_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from tests.codes import codes_of, refused
from tests.stats.conftest import columns, from_counts, long_frame, random_crowd

LEVELS = ["nominal", "ordinal", "interval", "ratio"]
N = None
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]


def alpha(frame: pd.DataFrame, **options) -> Agreement:
    return krippendorff_alpha(*columns(frame), **options)


def deleted_one_by_one(frame: pd.DataFrame, by: str, level: str) -> np.ndarray:
    """Alpha of the frame without each group, computed anew each time."""
    groups = frame[by].unique()
    return np.array([alpha(frame[frame[by] != group], level=level).value for group in groups])


@pytest.mark.parametrize(
    ("level", "published"),
    [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)],
)
def test_it_gives_the_alphas_of_krippendorffs_own_example(level, published):
    result = alpha(long_frame(KRIPPENDORFF_2011), level=level)
    assert result.value == pytest.approx(published, abs=5e-4)
    assert (result.n_items, result.n_items_dropped, result.n_annotators) == (11, 1, 4)
    assert (result.n_labels, result.n_pairable) == (41, 40)
    assert result.reason is None
    corrected = (result.observed - result.expected) / (1 - result.expected)
    assert result.value == pytest.approx(corrected, abs=1e-12)
    assert np.isnan(result.prevalence) == (level in ("interval", "ratio"))


@pytest.mark.slow
def test_its_ordinal_standard_error_barely_changes_where_values_are_binned():
    frame = random_crowd(np.random.default_rng(4), n_items=110, n_annotators=10)
    frame = frame.assign(value=frame["value"] + np.random.default_rng(5).random(len(frame)))
    frame = frame[frame.groupby("item")["item"].transform("size") >= 2]
    assert frame["value"].nunique() > 512
    replicates = deleted_one_by_one(frame, "item", "ordinal")
    expected = np.sqrt((len(replicates) - 1) * np.var(replicates))
    assert alpha(frame, level="ordinal").se == pytest.approx(expected, rel=1e-5)


def test_its_interval_is_students_t_and_wider_for_clusters_of_alike_items():
    result = alpha(random_crowd(np.random.default_rng(0), share=0.9), confidence=0.9)
    assert result.ci_method is CiMethod.JACKKNIFE_ITEMS
    assert result.confidence == 0.9
    assert (result.ci_low + result.ci_high) / 2 == pytest.approx(result.value)
    # Student's t with 39 degrees of freedom, from printed tables
    assert result.ci_high - result.value == pytest.approx(1.6849 * result.se, rel=1e-4)
    one = random_crowd(np.random.default_rng(2), share=0.8)
    copies = [one.assign(item=one["item"] + 1000 * copy, cluster=one["item"]) for copy in range(4)]
    frame = pd.concat(copies)
    by_item, by_cluster = alpha(frame), alpha(frame, clusters=frame["cluster"])
    assert by_cluster.value == pytest.approx(by_item.value)
    assert by_cluster.se > 1.5 * by_item.se
    assert by_cluster.ci_method is CiMethod.JACKKNIFE_CLUSTERS


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ([[0.1, 0.7, 0.7, 0.3]] * 4, "no_spread"),
        ([[1, 1, 1, 2]] * 2, "no_interval"),  # no variation outside one unit
        ([[1, 2], [1, 1]], "no_interval"),  # two units are too few
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_without_variation_there_is_a_value_but_no_interval_and_a_reason(table, code, level):
    result = alpha(long_frame(table), level=level)
    assert (result.value == 1) == (table[0] == table[1])
    assert np.isnan([result.se, result.ci_low, result.ci_high]).all()
    assert result.ci_method is CiMethod.NONE
    assert code in codes_of(result.warnings)


def test_labels_of_one_category_have_a_reason_and_unusable_ones_are_refused_by_name():
    result = alpha(long_frame([[1, 1, 2], [1, 1, N]]))
    assert np.isnan([result.value, result.se, result.ci_low, result.ci_high]).all()
    assert result.reason is Reason.SINGLE_CATEGORY
    result = alpha(long_frame([[1] * 18 + [2, 1], [1] * 18 + [1, 2]]))
    assert result.prevalence == pytest.approx(0.95)
    assert "prevalence" in codes_of(result.warnings)
    assert alpha(long_frame([[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]])).value < 0
    for function, options, code in (
        (krippendorff_alpha, {"values": [1, None, 1, 2]}, "values_missing"),
        (krippendorff_alpha, {"items": [0, None, 1, 1]}, "items_missing"),
        (krippendorff_alpha, {"annotators": ["a", None, "a", "b"]}, "annotators_missing"),
        (krippendorff_alpha, {"annotators": ["a", "a", "a", "b"]}, "repeated_labels"),
        (krippendorff_alpha, {"values": [{}, 1, 1, 2]}, "values_not_hashable"),
        (krippendorff_alpha, {"values": [1, 2, 3]}, "unequal_lengths"),
        (krippendorff_alpha, {"level": "ordinal", "values": list("1212")}, "values_not_numeric"),
        (krippendorff_alpha, {"level": "interval", "values": [np.inf] * 4}, "values_not_finite"),
        (krippendorff_alpha, {"level": "interval", "values": [1, 2, np.nan, 2]}, "values_missing"),
        (krippendorff_alpha, {"level": "cardinal"}, "unknown_level"),
        (krippendorff_alpha, {"confidence": 1.0}, "confidence_out_of_range"),
        (krippendorff_alpha, {"clusters": [0, 1, 1, 1]}, "clusters_split_items"),
        (krippendorff_alpha, {"clusters": [0, 0, 1]}, "unequal_lengths"),
        (pairwise_kappa, {"min_overlap": -1}, "min_overlap_out_of_range"),
        (pairwise_kappa, {"weights": "cubic"}, "unknown_weights"),
        (pairwise_kappa, {"categories": [1]}, "unknown_category"),
        (pairwise_kappa, {"confidence": 2}, "confidence_out_of_range"),
        (pairwise_kappa, {"annotators": list("aaab")}, "repeated_labels"),
    ):
        rows = {"items": [0, 0, 1, 1], "annotators": list("abab"), "values": [1, 2, 1, 2]}
        with refused(InvalidValue, code):
            function(**(rows | options))
    values = [frozenset("a"), ("a", 1), 3, "x", ("a", 1), ("a", 1)]
    codes = [0, 1, 2, 3, 1, 1]
    items, annotators = [0, 0, 1, 1, 2, 2], list("ababab")
    by_value = krippendorff_alpha(items, annotators, values)
    assert by_value.value == krippendorff_alpha(items, annotators, codes).value


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_integers_may_be_of_a_type_too_narrow_for_their_differences(level):
    frame = random_crowd(np.random.default_rng(4), n_items=150)
    frame["value"] = frame["value"] * 60 - 100
    narrow = frame.assign(value=frame["value"].astype(np.int8))
    assert alpha(narrow, level=level) == alpha(frame, level=level)


COHEN_1960 = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]


def pairs(frame: pd.DataFrame, **options) -> pd.DataFrame:
    return pairwise_kappa(*columns(frame), **options)


def test_cohens_own_example_is_met_and_an_unused_category_changes_a_weighted_kappa_only():
    result = cohen_kappa(*from_counts(COHEN_1960))
    assert result.value == pytest.approx(0.492, abs=5e-4)
    assert (result.observed, result.expected) == (pytest.approx(0.7), pytest.approx(0.41))
    assert (result.n_items, result.n_labels, result.n_annotators) == (200, 400, 2)
    # Its standard error is the one of 1969, and not Cohen's.
    result = cohen_kappa(*from_counts(COHEN_1960), ci="analytic")
    assert result.se == pytest.approx(0.0510, abs=5e-5)
    assert result.ci_method is CiMethod.NORMAL
    assert result.ci_low == pytest.approx(result.value - 1.959964 * result.se)
    first, second = [1, 1, 1, 1, 3, 4], [1, 1, 1, 3, 4, 4]
    scale = [1, 2, 3, 4]
    plain = cohen_kappa(first, second)
    assert cohen_kappa(first, second, categories=scale).value == pytest.approx(plain.value)
    with_scale = cohen_kappa(first, second, weights="linear", categories=scale)
    guessed = cohen_kappa(first, second, weights="linear")
    assert with_scale.value != pytest.approx(guessed.value, abs=0.01)
    assert "guessed_categories" in codes_of(guessed.warnings)
    assert "guessed_categories" not in codes_of(with_scale.warnings)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([], [], Reason.NO_OVERLAP),
        ([1], [1], Reason.SINGLE_ITEM),
        ([1], [2], Reason.SINGLE_ITEM),
        ([1, 1, 1], [1, 1, 1], Reason.SINGLE_CATEGORY),
    ],
)
@pytest.mark.parametrize("weights", [None, "linear"])
def test_an_undefined_kappa_is_nan_with_its_reason(first, second, reason, weights):
    result = cohen_kappa(first, second, weights=weights)
    assert np.isnan([result.value, result.se, result.ci_low, result.ci_high]).all()
    assert result.reason is reason
    assert result.ci_method is CiMethod.NONE


def test_constant_annotators_have_notes_and_unusable_arguments_of_kappa_are_refused():
    result = cohen_kappa([1, 1, 1, 1], [1, 2, 1, 2])
    assert result.value == 0
    assert codes_of(result.warnings).count("constant_annotator") == 1
    rare = cohen_kappa(*from_counts([[40, 3, 1], [3, 30, 0], [1, 0, 2]]))
    [note] = [text for text in rare.warnings if text.code == "rare_labels"]
    assert re.findall(r"\d+", note) == ["6", "3"]  # labels, and each annotator's
    common = cohen_kappa(*from_counts([[40, 3, 1], [3, 30, 0], [1, 0, 5]]))
    assert "rare_labels" not in codes_of(common.warnings)
    analytic = cohen_kappa([1, 2, 1, 2], [1, 2, 1, 2], ci="analytic")
    assert np.isnan(analytic.ci_low)
    assert "no_spread" in codes_of(analytic.warnings)
    for first, second, options, code in (
        ([1, 2], [1], {}, "unequal_lengths"),
        ([1, None], [1, 2], {}, "first_missing"),
        ([1, 2], [1, np.nan], {}, "second_missing"),
        ([1, 3], [1, 2], {"categories": [1, 2]}, "unknown_category"),
        ([1, 2], [1, 3], {"categories": [1, 2]}, "unknown_category"),
        ([1, 2], [1, 2], {"categories": [1, 2, 2]}, "repeated_categories"),
        ([1, 2], [1, 2], {"weights": "cubic"}, "unknown_weights"),
        ([1, 2], [1, 2], {"weights": [[0, 1], [1, 0]]}, "weights_not_of_agreement"),
        ([1, 2], [1, 2], {"confidence": 0}, "confidence_out_of_range"),
    ):
        with refused(InvalidValue, code):
            cohen_kappa(first, second, **options)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_pairs_are_what_two_annotators_alone_would_give(weights, share):
    frame = random_crowd(np.random.default_rng(8), n_annotators=9, share=share)
    table = frame.pivot(index="item", columns="annotator", values="value")
    agreements = pairs(frame, weights=weights, min_overlap=0, categories=range(4))
    assert len(agreements) == 9 * 8 / 2
    for row in agreements.itertuples():
        both = table[[row.annotator_a, row.annotator_b]].dropna().astype(int)
        first, second = both.to_numpy().T
        alone = cohen_kappa(first, second, weights=weights, categories=range(4), ci="analytic")
        assert row.n_overlap == alone.n_items
        assert row.reason is alone.reason
        numbers = [row.observed, row.expected, row.kappa, row.se, row.ci_low, row.ci_high]
        alone_numbers = [
            *(alone.observed, alone.expected, alone.value),
            *(alone.se, alone.ci_low, alone.ci_high),
        ]
        assert numbers == pytest.approx(alone_numbers, abs=1e-9, nan_ok=True)


def test_pairs_may_be_divided_left_out_and_undefined(monkeypatch):
    frame = random_crowd(np.random.default_rng(9), n_annotators=12)
    undivided = pairs(frame)
    monkeypatch.setattr("stats.agreement.kappa.CHUNK", 40)
    pd.testing.assert_frame_equal(pairs(frame), undivided)
    frame = random_crowd(np.random.default_rng(9), share=0.3)
    everyone, some = pairs(frame, min_overlap=0), pairs(frame, min_overlap=5)
    assert (some["n_overlap"] >= 5).all()
    assert len(some) == (everyone["n_overlap"] >= 5).sum()
    assert 0 < len(some) < len(everyone)
    items = [1, 1, 2, 2, 1, 2, 3]
    annotators = ["a", "b", "a", "b", "c", "d", "e"]
    table = pairwise_kappa(items, annotators, list("xxxxxyy"), min_overlap=0)
    reasons = {(row.annotator_a, row.annotator_b): row.reason for row in table.itertuples()}
    assert reasons["a", "b"] is Reason.SINGLE_CATEGORY
    assert reasons["a", "c"] is Reason.SINGLE_ITEM
    assert reasons["a", "e"] is Reason.NO_OVERLAP
    assert table["kappa"].isna().all()


@pytest.mark.parametrize("min_overlap", [0, 1])
def test_no_labels_and_no_pairs_give_an_empty_table(min_overlap):
    for rows in (([], [], []), ([1, 2], ["a", "a"], [1, 2])):
        table = pairwise_kappa(*rows, min_overlap=min_overlap)
        assert table.empty
        assert list(table.columns)[:3] == ["annotator_a", "annotator_b", "n_overlap"]
