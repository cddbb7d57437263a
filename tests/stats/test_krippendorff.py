import numpy as np
import pandas as pd
import pytest

from error_codes import InvalidValue
from stats.agreement import Agreement, CiMethod, Reason, krippendorff_alpha
from tests.codes import codes_of, refused
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
    corrected = (result.observed - result.expected) / (1 - result.expected)
    assert result.value == pytest.approx(corrected, abs=1e-12)
    assert np.isnan(result.prevalence) == (level in ("interval", "ratio"))


def test_it_gives_the_alphas_of_two_large_crowds(shared_data):
    labels = pd.read_csv(shared_data / "crowd" / "rte" / "labels.csv")
    result = alpha(labels.rename(columns={"label": "value"}))
    assert result.value == pytest.approx(0.2415, abs=5e-5)
    assert (result.n_items, result.n_annotators, result.n_labels) == (800, 164, 8000)
    labels = pd.read_csv(shared_data / "crowd" / "affect" / "labels.csv")
    anger = labels[labels["emotion"] == "anger"].rename(columns={"label": "value"})
    result = alpha(anger, level="interval")
    assert result.value == pytest.approx(0.353, abs=5e-4)
    assert result.n_items == 100


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("by", ["item", "cluster"])
def test_its_standard_error_is_that_of_deleting_units_one_by_one(level, by):
    frame = random_crowd(np.random.default_rng(3), n_categories=1500)
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
def test_an_undefined_alpha_is_nan_with_its_reason(table, reason):
    for result in (alpha(long_frame(table), level=level) for level in LEVELS):
        assert np.isnan([result.value, result.se, result.ci_low, result.ci_high]).all()
        assert result.reason is reason
        assert not result.is_defined
        assert result.ci_method is CiMethod.NONE


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


def test_it_warns_where_one_category_prevails_and_is_below_0_where_an_annotator_never_varies():
    result = alpha(long_frame([[1] * 18 + [2, 1], [1] * 18 + [1, 2]]))
    assert result.prevalence == pytest.approx(0.95)
    assert "prevalence" in codes_of(result.warnings)
    assert alpha(long_frame([[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]])).value < 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"values": [1, None, 1, 2]}, "values_missing"),
        ({"items": [0, None, 1, 1]}, "items_missing"),
        ({"annotators": ["a", None, "a", "b"]}, "annotators_missing"),
        ({"annotators": ["a", "a", "a", "b"]}, "repeated_labels"),
        ({"values": [{}, 1, 1, 2]}, "values_not_hashable"),
        ({"values": [1, 2, 3]}, "unequal_lengths"),
        ({"level": "ordinal", "values": ["1", "2", "1", "2"]}, "values_not_numeric"),
        ({"level": "interval", "values": [1, 2, np.inf, 2]}, "values_not_finite"),
        ({"level": "interval", "values": [1, 2, np.nan, 2]}, "values_missing"),
        ({"level": "cardinal"}, "unknown_level"),
        ({"confidence": 1.0}, "confidence_out_of_range"),
        ({"clusters": [0, 1, 1, 1]}, "clusters_split_items"),
        ({"clusters": [0, 0, 1]}, "unequal_lengths"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(options, code):
    columns = {"items": [0, 0, 1, 1], "annotators": list("abab"), "values": [1, 2, 1, 2]}
    with refused(InvalidValue, code):
        krippendorff_alpha(**(columns | options))


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
