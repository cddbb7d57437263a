import re

import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from stats.agreement import CiMethod, Reason, cohen_kappa, pairwise_kappa
from tests.codes import codes_of, refused
from tests.stats.conftest import from_counts, random_crowd

COHEN_1960 = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]


def pairs(frame: pd.DataFrame, **options) -> pd.DataFrame:
    return pairwise_kappa(frame["item"], frame["annotator"], frame["value"], **options)


def test_cohens_own_example_is_met():
    result = cohen_kappa(*from_counts(COHEN_1960))
    assert result.value == pytest.approx(0.492, abs=5e-4)
    assert (result.observed, result.expected) == (pytest.approx(0.7), pytest.approx(0.41))
    assert (result.n_items, result.n_labels, result.n_annotators) == (200, 400, 2)
    # Its standard error is the one of 1969, and not Cohen's.
    result = cohen_kappa(*from_counts(COHEN_1960), ci="analytic")
    assert result.se == pytest.approx(0.0510, abs=5e-5)
    assert result.ci_method is CiMethod.NORMAL
    assert result.ci_low == pytest.approx(result.value - 1.959964 * result.se)


def test_an_unused_category_changes_a_weighted_kappa_only():
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


def test_constant_annotators_and_perfect_agreement_have_notes_and_intervals_of_some_width():
    result = cohen_kappa([1, 1, 1, 1], [1, 2, 1, 2])
    assert result.value == 0
    assert codes_of(result.warnings).count("constant_annotator") == 1
    rare = cohen_kappa(*from_counts([[40, 3, 1], [3, 30, 0], [1, 0, 2]]))
    [note] = [text for text in rare.warnings if text.code == "rare_labels"]
    assert re.findall(r"\d+", note) == ["6", "3"]  # labels, and each annotator's
    common = cohen_kappa(*from_counts([[40, 3, 1], [3, 30, 0], [1, 0, 5]]))
    assert "rare_labels" not in codes_of(common.warnings)
    result = cohen_kappa([1, 2, 1, 2], [1, 2, 1, 2])
    assert (result.value, result.ci_high) == (1, 1)
    assert result.ci_low < 0.5
    analytic = cohen_kappa([1, 2, 1, 2], [1, 2, 1, 2], ci="analytic")
    assert np.isnan(analytic.ci_low)
    assert "no_spread" in codes_of(analytic.warnings)


@pytest.mark.parametrize(
    ("first", "second", "options", "code"),
    [
        ([1, 2], [1], {}, "unequal_lengths"),
        ([1, None], [1, 2], {}, "first_missing"),
        ([1, 2], [1, np.nan], {}, "second_missing"),
        ([1, 3], [1, 2], {"categories": [1, 2]}, "unknown_category"),
        ([1, 2], [1, 3], {"categories": [1, 2]}, "unknown_category"),
        ([1, 2], [1, 2], {"categories": [1, 2, 2]}, "repeated_categories"),
        ([1, 2], [1, 2], {"weights": "cubic"}, "unknown_weights"),
        ([1, 2], [1, 2], {"weights": [[0, 1], [1, 0]]}, "weights_not_of_agreement"),
        ([1, 2], [1, 2], {"confidence": 0}, "confidence_out_of_range"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(first, second, options, code):
    with refused(InvalidValue, code):
        cohen_kappa(first, second, **options)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"min_overlap": -1}, "min_overlap_out_of_range"),
        ({"weights": "cubic"}, "unknown_weights"),
        ({"categories": [1]}, "unknown_category"),
        ({"confidence": 2}, "confidence_out_of_range"),
        ({"annotators": ["a", "a"]}, "repeated_labels"),
    ],
)
def test_unusable_options_of_pairs_are_refused_by_name(options, code):
    with refused(InvalidValue, code):
        pairwise_kappa(**({"items": [1, 1], "annotators": ["a", "b"], "values": [1, 2]} | options))


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
    monkeypatch.setattr("stats.agreement.pairwise.CHUNK", 40)
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
    for columns in (([], [], []), ([1, 2], ["a", "a"], [1, 2])):
        table = pairwise_kappa(*columns, min_overlap=min_overlap)
        assert table.empty
        assert list(table.columns)[:3] == ["annotator_a", "annotator_b", "n_overlap"]
