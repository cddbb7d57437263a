"""Krippendorff's alpha: published values, other implementations, and what must hold."""

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.agreement import Agreement, CiMethod, Reason, krippendorff_alpha
from tests.stats.conftest import long_frame, random_crowd

LEVELS = ["nominal", "ordinal", "interval", "ratio"]
N = None
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, N],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 3],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]


def alpha(frame: pd.DataFrame, **options) -> Agreement:
    return krippendorff_alpha(frame["item"], frame["annotator"], frame["value"], **options)


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


@pytest.mark.parametrize(
    "name", ["krippendorff2011", "gwet_cont3x3abstractors", "artstein_poesio2008_p568"]
)
def test_it_gives_the_published_alphas(worked_example, name):
    frame, published = worked_example(name)
    for level in LEVELS:
        if f"alpha_{level}" in published:
            result = alpha(frame.rename(columns={"label": "value"}), level=level)
            assert result.value == pytest.approx(published[f"alpha_{level}"], abs=6e-4)


def test_its_standard_error_is_near_gwets_analytic_one(worked_example):
    frame, published = worked_example("gwet_cont3x3abstractors")
    result = alpha(frame.rename(columns={"label": "value"}))
    assert result.se == pytest.approx(published["alpha_se"], rel=0.01)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(5))
def test_it_equals_the_krippendorff_package_on_random_crowds(level, seed):
    frame = random_crowd(np.random.default_rng(seed), n_categories=seed + 2)
    table = frame.pivot(index="annotator", columns="item", values="value").to_numpy(float)
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
    assert alpha(frame, level=level).value == pytest.approx(expected, abs=1e-9)


def test_it_gives_the_alpha_of_the_textual_entailment_crowd(shared_data):
    labels = pd.read_csv(shared_data / "crowd" / "rte" / "labels.csv")
    result = alpha(labels.rename(columns={"label": "value"}))
    assert result.value == pytest.approx(0.2415, abs=5e-5)
    assert (result.n_items, result.n_annotators, result.n_labels) == (800, 164, 8000)


def test_it_gives_the_alpha_of_anger_in_the_affect_crowd(shared_data):
    labels = pd.read_csv(shared_data / "crowd" / "affect" / "labels.csv")
    anger = labels[labels["emotion"] == "anger"].rename(columns={"label": "value"})
    result = alpha(anger, level="interval")
    assert result.value == pytest.approx(0.353, abs=5e-4)
    assert result.n_items == 100


@pytest.mark.parametrize("level", LEVELS)
def test_observed_and_expected_agreement_make_up_the_coefficient(level):
    result = alpha(long_frame(KRIPPENDORFF_2011), level=level)
    corrected = (result.observed - result.expected) / (1 - result.expected)
    assert result.value == pytest.approx(corrected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_categories", [2, 5, 1500])
@pytest.mark.parametrize("by", ["item", "cluster"])
def test_its_standard_error_is_that_of_deleting_units_one_by_one(level, n_categories, by):
    frame = random_crowd(np.random.default_rng(3), n_categories=n_categories)
    frame = frame[frame.groupby("item")["item"].transform("size") >= 2]
    frame = frame.assign(cluster=frame["item"] // 3)
    clusters = frame["cluster"] if by == "cluster" else None
    replicates = deleted_one_by_one(frame, by, level)
    count = len(replicates)
    expected = np.sqrt((count - 1) * np.var(replicates))
    assert alpha(frame, level=level, clusters=clusters).se == pytest.approx(expected, rel=1e-9)


def test_its_ordinal_standard_error_barely_changes_where_values_are_binned():
    frame = random_crowd(np.random.default_rng(4), n_items=110, n_annotators=10)
    frame = frame.assign(value=frame["value"] + np.random.default_rng(5).random(len(frame)))
    frame = frame[frame.groupby("item")["item"].transform("size") >= 2]
    assert frame["value"].nunique() > 512
    replicates = deleted_one_by_one(frame, "item", "ordinal")
    expected = np.sqrt((len(replicates) - 1) * np.var(replicates))
    assert alpha(frame, level="ordinal").se == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_its_jackknife_error_is_close_to_the_bootstrap_error(level):
    rng = np.random.default_rng(11)
    frame = random_crowd(rng, n_items=120, n_annotators=6)
    rows_of_item = list(frame.groupby("item").indices.values())
    estimates = []
    for _ in range(200):
        drawn = [rows_of_item[draw] for draw in rng.integers(len(rows_of_item), size=120)]
        copy = np.repeat(np.arange(120), [len(rows) for rows in drawn])
        resample = frame.iloc[np.concatenate(drawn)].assign(item=copy)
        estimates.append(alpha(resample, level=level).value)
    assert alpha(frame, level=level).se == pytest.approx(np.std(estimates), rel=0.2)


def test_its_interval_is_students_t_around_the_estimate():
    result = alpha(random_crowd(np.random.default_rng(0), share=0.9), confidence=0.9)
    assert result.ci_method is CiMethod.JACKKNIFE_ITEMS
    assert result.confidence == 0.9
    assert (result.ci_low + result.ci_high) / 2 == pytest.approx(result.value)
    # Student's t with 39 degrees of freedom, from printed tables
    assert result.ci_high - result.value == pytest.approx(1.6849 * result.se, rel=1e-4)


def test_clusters_of_alike_items_widen_the_interval():
    one = random_crowd(np.random.default_rng(2), share=0.8)
    copies = [one.assign(item=one["item"] + 1000 * copy, cluster=one["item"]) for copy in range(4)]
    frame = pd.concat(copies)
    by_item, by_cluster = alpha(frame), alpha(frame, clusters=frame["cluster"])
    assert by_cluster.value == pytest.approx(by_item.value)
    assert by_cluster.se > 1.5 * by_item.se
    assert by_cluster.ci_method is CiMethod.JACKKNIFE_CLUSTERS


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[], []], Reason.NO_LABELS),
        ([[1, 2, 1]], Reason.ONE_ANNOTATOR),
        ([[1, 2, N, N], [N, N, 1, 2]], Reason.NO_PAIRABLE_UNITS),
        ([[1, 2, N], [2, N, 1]], Reason.SINGLE_ITEM),
        ([[1, 1, 1], [1, 1, 1]], Reason.SINGLE_CATEGORY),
        ([[1, 1, 2], [1, 1, N]], Reason.SINGLE_CATEGORY),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_an_undefined_alpha_is_nan_with_its_reason(table, reason, level):
    result = alpha(long_frame(table), level=level)
    assert np.isnan([result.value, result.se, result.ci_low, result.ci_high]).all()
    assert result.reason is reason
    assert not result.is_defined
    assert result.ci_method is CiMethod.NONE


def test_an_annotator_who_never_varies_leaves_alpha_defined():
    result = alpha(long_frame([[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]]))
    assert result.is_defined
    assert result.value < 0


def test_without_variation_outside_one_unit_there_is_a_value_but_no_interval():
    result = alpha(long_frame([[1, 1, 1, 2], [1, 1, 1, 2]]))
    assert result.value == 1
    assert np.isnan(result.se)
    assert result.ci_method is CiMethod.NONE
    assert any("no interval" in warning for warning in result.warnings)


def test_two_units_are_too_few_for_an_interval():
    result = alpha(long_frame([[1, 2], [1, 1]]))
    assert result.is_defined
    assert np.isnan(result.se)


@pytest.mark.parametrize("level", LEVELS)
def test_perfect_agreement_is_one_without_an_interval_and_says_why(level):
    result = alpha(long_frame([[0.1, 0.7, 0.7, 0.3], [0.1, 0.7, 0.7, 0.3]] * 2), level=level)
    assert result.value == 1
    assert np.isnan([result.se, result.ci_low, result.ci_high]).all()
    assert any("no disagreement" in warning for warning in result.warnings)


def test_it_warns_where_one_category_prevails():
    result = alpha(long_frame([[1] * 18 + [2, 1], [1] * 18 + [1, 2]]))
    assert result.prevalence == pytest.approx(0.95)
    assert any("95%" in warning for warning in result.warnings)


def test_prevalence_is_undefined_for_interval_values():
    assert np.isnan(alpha(long_frame(KRIPPENDORFF_2011), level="interval").prevalence)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"value": [1, None, 1, 2]}, "values"),
        ({"item": [0, None, 1, 1]}, "items"),
        ({"annotator": ["a", None, "a", "b"]}, "annotators"),
        ({"annotator": ["a", "a", "a", "b"]}, "annotators"),
        ({"value": [{}, 1, 1, 2]}, "values"),
    ],
)
def test_unusable_columns_are_refused_by_name(change, argument):
    columns = {"item": [0, 0, 1, 1], "annotator": ["a", "b", "a", "b"], "value": [1, 2, 1, 2]}
    columns |= change
    with pytest.raises(ValueError, match=argument):
        krippendorff_alpha(columns["item"], columns["annotator"], columns["value"])


@pytest.mark.parametrize("values", [["1", "2", "1", "2"], [1, 2, np.inf, 2], [1, 2, np.nan, 2]])
@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_values_beyond_nominal_must_be_finite_numbers(values, level):
    with pytest.raises(ValueError, match="values"):
        krippendorff_alpha([0, 0, 1, 1], list("abab"), values, level=level)


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="values has 3"):
        krippendorff_alpha([0, 0], ["a", "b"], [1, 2, 3])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"level": "cardinal"}, "level"),
        ({"confidence": 1.0}, "confidence"),
        ({"clusters": [0, 1, 1, 1]}, "clusters"),
        ({"clusters": [0, 0, 1]}, "clusters"),
    ],
)
def test_unusable_options_are_refused_by_name(options, argument):
    with pytest.raises(ValueError, match=argument):
        krippendorff_alpha([0, 0, 1, 1], list("abab"), [1, 2, 1, 2], **options)


def test_nominal_values_may_be_anything_hashable():
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


crowds = st.builds(
    random_crowd,
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    n_items=st.integers(4, 12),
    n_annotators=st.integers(2, 5),
    n_categories=st.integers(2, 6),
    share=st.floats(0.6, 1.0),
)
same = {"abs": 1e-9, "nan_ok": True}


@settings(max_examples=25)
@given(crowds, st.integers(0, 2**32 - 1), st.sampled_from(LEVELS))
def test_the_order_of_rows_and_the_names_do_not_matter(frame, seed, level):
    shuffled = frame.sample(frac=1, random_state=seed)
    renamed = shuffled.assign(
        item="item " + shuffled["item"].astype(str), annotator=-shuffled["annotator"]
    )
    before, after = alpha(frame, level=level), alpha(renamed, level=level)
    assert after.value == pytest.approx(before.value, **same)
    assert after.se == pytest.approx(before.se, **same)
    assert after.reason is before.reason


@settings(max_examples=25)
@given(crowds)
def test_names_of_nominal_categories_do_not_matter(frame):
    renamed = frame.assign(value=frame["value"].map(lambda value: "zyxwvu"[value]))
    assert alpha(renamed).value == pytest.approx(alpha(frame).value, **same)


@settings(max_examples=25)
@given(crowds, st.floats(0.01, 100), st.floats(-1000, 1000))
def test_interval_alpha_ignores_an_affine_change(frame, scale, shift):
    moved = frame.assign(value=frame["value"] * scale + shift)
    before, after = alpha(frame, level="interval"), alpha(moved, level="interval")
    assert after.value == pytest.approx(before.value, **same)
    assert after.se == pytest.approx(before.se, **same)


@settings(max_examples=25)
@given(crowds)
def test_ordinal_alpha_ignores_a_monotone_change(frame):
    moved = frame.assign(value=np.exp(frame["value"]))
    before, after = alpha(frame, level="ordinal"), alpha(moved, level="ordinal")
    assert after.value == pytest.approx(before.value, **same)
    assert after.se == pytest.approx(before.se, **same)


@settings(max_examples=25)
@given(crowds)
def test_the_levels_agree_on_two_categories(frame):
    binary = frame.assign(value=frame["value"] % 2)
    results = [alpha(binary, level=level) for level in LEVELS]
    for result in results[1:]:
        assert result.value == pytest.approx(results[0].value, **same)
        assert result.se == pytest.approx(results[0].se, **same)
        assert result.observed == pytest.approx(results[0].observed, **same)
