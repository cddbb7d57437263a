from itertools import combinations
from math import isnan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from error_codes import InvalidValue
from stats import agreement
from stats.agreement import Agreement, CiMethod, Reason, coefficients_at_level
from tests.codes import refused
from tests.stats.conftest import columns, random_crowd

NAMES = [
    *("percent_agreement", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"),
    *("scott_pi", "fleiss_kappa", "conger_kappa", "krippendorff_alpha", "gwet_ac1"),
    *("gwet_ac2_quadratic", "brennan_prediger"),
    *("icc1", "icc1k", "icc2", "icc2k", "icc3", "icc3k"),
]
LEVELS = ["nominal", "ordinal", "interval", "ratio"]
close = {"abs": 1e-9, "nan_ok": True}


def bundle(frame: pd.DataFrame, level: str = "nominal", **options) -> dict[str, Agreement]:
    coefficients = coefficients_at_level(*columns(frame), level=level, **options)
    assert [result.name for result in coefficients] == NAMES
    return {result.name: result for result in coefficients}


def complete(seed: int, n_annotators: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return random_crowd(rng, n_annotators=n_annotators, share=1.0)


def tasks(frame: pd.DataFrame) -> list[tuple[str, str, object]]:
    return [(str(who), str(item), value) for item, who, value in zip(*columns(frame), strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_two_annotators_agree_with_scikit_learn_statsmodels_and_nltk(seed):
    from nltk.metrics import agreement as nltk_agreement
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    frame = complete(seed, 2)
    first, second = (rows["value"].to_numpy() for _, rows in frame.groupby("annotator"))
    coefficients = bundle(frame, "ordinal")
    for name, weights in (("", None), ("_linear", "linear"), ("_quadratic", "quadratic")):
        expected = cohen_kappa_score(first, second, weights=weights)
        assert coefficients[f"cohen_kappa{name}"].value == pytest.approx(expected, **close)
    table = pd.crosstab(first, second).to_numpy()
    for weights in (None, "linear", "quadratic"):
        theirs = cohens_kappa(table, wt=weights)
        ours = agreement.cohen_kappa(first, second, weights=weights, ci="analytic")
        assert ours.value == pytest.approx(theirs.kappa, **close)
        assert ours.se == pytest.approx(theirs.std_kappa, **close)
    assert coefficients["scott_pi"].value == pytest.approx(
        nltk_agreement.AnnotationTask(data=tasks(frame)).pi(), **close
    )


@pytest.mark.parametrize("seed", range(4))
def test_complete_crowds_agree_with_statsmodels_and_with_conger_by_definition(seed):
    from statsmodels.stats.inter_rater import fleiss_kappa

    frame = complete(seed)
    counts = pd.crosstab(frame["item"], frame["value"]).to_numpy()
    coefficients = bundle(frame)
    assert coefficients["fleiss_kappa"].value == pytest.approx(fleiss_kappa(counts), **close)
    randolph = fleiss_kappa(counts, method="randolph")
    assert coefficients["brennan_prediger"].value == pytest.approx(randolph, **close)
    table = frame.pivot(index="item", columns="annotator", values="value")
    shares = [table[who].value_counts(normalize=True) for who in table]
    observed = np.mean([(table[a] == table[b]).mean() for a, b in combinations(table, 2)])
    expected = np.mean([a.mul(b, fill_value=0).sum() for a, b in combinations(shares, 2)])
    conger = (observed - expected) / (1 - expected)
    assert coefficients["conger_kappa"].value == pytest.approx(conger, **close)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(5))
def test_alpha_agrees_with_krippendorff_and_nltk(level, seed):
    import krippendorff
    from nltk.metrics import agreement as nltk_agreement, distance as nltk_distance

    frame = random_crowd(np.random.default_rng(seed), n_categories=seed + 2)
    table = frame.pivot(index="annotator", columns="item", values="value").to_numpy(float)
    theirs = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
    ours = bundle(frame, level)["krippendorff_alpha"].value
    assert ours == pytest.approx(theirs, **close)
    if level in ("nominal", "interval"):
        name = {"nominal": "binary"}.get(level, level)
        distance = getattr(nltk_distance, f"{name}_distance")
        task = nltk_agreement.AnnotationTask(data=tasks(frame), distance=distance)
        assert ours == pytest.approx(task.alpha(), **close)


@pytest.mark.parametrize("name", ["masi", "jaccard"])
def test_alpha_of_sets_agrees_with_nltk(name):
    from nltk.metrics import agreement as nltk_agreement, distance as nltk_distance

    frame = random_crowd(np.random.default_rng(1), n_categories=7)
    frame["value"] = [
        frozenset(bit for bit in range(3) if (code + 1) >> bit & 1) for code in frame["value"]
    ]
    distance = getattr(nltk_distance, f"{name}_distance")
    task = nltk_agreement.AnnotationTask(data=tasks(frame), distance=distance)
    alpha = agreement.krippendorff_alpha(*columns(frame), level="set", distance=name)
    assert alpha.value == pytest.approx(task.alpha(), **close)


def test_an_empty_set_is_like_itself_and_unlike_any_other():
    empty, other = frozenset(), frozenset("a")
    for distance in (agreement.masi, agreement.jaccard):
        assert (distance(empty, empty), distance(empty, other)) == (0, 1)
    alpha = agreement.krippendorff_alpha(
        [1, 1, 2, 2, 3, 3], list("ababab"), [[], [], ["a"], [], ["a"], ["a"]], level="set"
    )
    binary = agreement.krippendorff_alpha([1, 1, 2, 2, 3, 3], list("ababab"), [0, 0, 1, 0, 1, 1])
    assert alpha.value == pytest.approx(binary.value)


def test_one_way_icc_of_rotating_annotators_is_that_of_the_random_effects():
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng = np.random.default_rng(4)
    item = np.arange(300).repeat(4)
    value = rng.normal(size=300).repeat(4) + rng.normal(size=1200)
    icc = agreement.icc(item, np.tile(range(8), 150), value)
    model = MixedLM(value, np.ones(1200), item).fit(reml=True)
    between = float(np.asarray(model.cov_re)[0, 0])
    assert icc.value == pytest.approx(between / (between + model.scale), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("n_annotators", "clustered"), [(2, False), (5, True)])
def test_jackknife_errors_are_those_of_deleting_one_by_one(level, clustered, n_annotators):
    share = 1.0 if n_annotators == 2 else 0.7
    rng = np.random.default_rng(6)
    frame = random_crowd(rng, n_items=24, n_annotators=n_annotators, share=share)
    frame = frame[frame.groupby("item")["item"].transform("size") >= 2].copy()
    frame["value"] += 1
    group = frame["item"] // (2 if clustered else 1)
    options = {"categories": [1, 2, 3, 4]}
    icc = bundle(frame, level, clusters=group if clustered else None, **options)
    parts = [frame[group != one] for one in group.unique()]
    left = [bundle(part, level, **options) for part in parts]
    for name, result in icc.items():
        if result.is_defined and result.ci_method.startswith("jackknife"):
            values = np.array([part[name].value for part in left])
            expected = np.sqrt((len(values) - 1) * np.var(values))
            assert result.se == pytest.approx(expected, rel=1e-7), name


@pytest.mark.parametrize("level", LEVELS)
def test_bootstrap_errors_are_near_jackknife_errors_and_the_seed_is_recorded(level):
    frame = random_crowd(np.random.default_rng(7), n_items=200, n_annotators=3, share=1.0)
    frame["value"] += 1
    jackknife, bootstrap = bundle(frame, level), bundle(frame, level, ci="bootstrap", rng=11)
    again = bundle(frame, level, ci="bootstrap", rng=11)
    compared = [name for name in NAMES if jackknife[name].is_defined]
    assert len(compared) >= 6
    for name in compared:
        assert bootstrap[name].se == pytest.approx(jackknife[name].se, rel=0.12), name
        assert bootstrap[name].ci_method is CiMethod.BOOTSTRAP_ITEMS
        assert (bootstrap[name].seed, bootstrap[name].n_resamples) == (11, 1000)
        assert again[name].ci_low == bootstrap[name].ci_low
        assert bootstrap[name].value == jackknife[name].value


def test_analytic_errors_are_near_jackknife_errors():
    frame = random_crowd(np.random.default_rng(8), n_items=300, n_annotators=4, share=1.0)
    for clusters in (None, frame["item"] // 3):
        jackknife = bundle(frame, clusters=clusters)
        analytic = bundle(frame, clusters=clusters, ci="analytic")
        for name in ("fleiss_kappa", "conger_kappa", "gwet_ac1", "krippendorff_alpha"):
            assert analytic[name].se == pytest.approx(jackknife[name].se, rel=0.03), name


crowds = st.builds(
    random_crowd,
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    n_items=st.integers(4, 12),
    n_annotators=st.integers(2, 5),
    n_categories=st.integers(2, 6),
    share=st.floats(0.6, 1.0),
)


def same(before: dict[str, Agreement], after: dict[str, Agreement], names=NAMES) -> None:
    for name in names:
        assert after[name].value == pytest.approx(before[name].value, **close), name
        # A posterior's is of 20,000 draws, which are others where the categories are in another
        # order.
        is_drawn = after[name].ci_method is CiMethod.POSTERIOR
        near = {"rel": 0.05} if is_drawn else {"abs": 1e-7}
        assert after[name].se == pytest.approx(before[name].se, nan_ok=True, **near), name
        assert after[name].reason is before[name].reason, name


@pytest.mark.slow
@settings(max_examples=15)
@given(crowds, st.integers(0, 2**32 - 1), st.sampled_from(LEVELS))
def test_neither_the_order_of_rows_nor_names_matter(frame, seed, level):
    shuffled = frame.sample(frac=1, random_state=seed)
    renamed = shuffled.assign(
        item="item " + shuffled["item"].astype(str), annotator=-shuffled["annotator"]
    )
    same(bundle(frame, level), bundle(renamed, level))
    categories = [f"category {9 - value}" for value in frame["value"]]
    same(bundle(frame), bundle(frame.assign(value=categories)))


@settings(max_examples=15)
@given(crowds, st.floats(0.01, 100), st.floats(-1000, 1000))
def test_intervals_ignore_an_affine_change_and_ranks_a_monotone_one(frame, scale, shift):
    moved = frame.assign(value=frame["value"] * scale + shift)
    names = ["krippendorff_alpha", "gwet_ac2_quadratic", *NAMES[-6:]]
    same(bundle(frame, "interval"), bundle(moved, "interval"), names)
    moved = frame.assign(value=np.exp(frame["value"]))
    names = ["cohen_kappa_linear", "cohen_kappa_quadratic", "krippendorff_alpha"]
    same(bundle(frame, "ordinal"), bundle(moved, "ordinal"), names)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], Reason.NO_LABELS),
        ([(1, "a", 1), (2, "a", 2)], Reason.ONE_ANNOTATOR),
        ([(1, "a", 1), (2, "b", 2)], Reason.NO_PAIRABLE_UNITS),
        ([(1, "a", 1), (1, "b", 2)], Reason.SINGLE_ITEM),
        ([(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 1)], Reason.SINGLE_CATEGORY),
    ],
)
def test_nothing_is_undefined_in_silence(rows, reason, level):
    frame = pd.DataFrame(rows, columns=["item", "annotator", "value"])
    coefficients, others = bundle(frame, level), set()
    if reason is Reason.SINGLE_CATEGORY:
        assert coefficients.pop("percent_agreement").value == 1
        others = {Reason.NEEDS_ORDER, Reason.NEEDS_NUMBERS}
    for result in coefficients.values():
        assert isnan(result.value)
        assert result.ci_method is CiMethod.NONE
    assert reason in (reasons := {result.reason for result in coefficients.values()})
    assert reasons <= {reason} | others


@pytest.mark.parametrize("level", [*LEVELS, "set"])
@pytest.mark.parametrize("ci", ["jackknife", "analytic", "bootstrap"])
def test_every_coefficient_has_a_value_or_a_reason(level, ci):
    frame = random_crowd(np.random.default_rng(2), n_annotators=4)
    if level == "set":
        frame["value"] = [frozenset([value]) for value in frame["value"]]
    for result in bundle(frame, level, ci=ci, n_resamples=50).values():
        assert result.is_defined == (result.reason is None)
    assert bundle(frame, level)["icc2"].reason in (Reason.INCOMPLETE_DESIGN, Reason.NEEDS_NUMBERS)
    assert bundle(frame, level)["cohen_kappa"].reason is Reason.NOT_TWO_ANNOTATORS


def test_equal_items_leave_icc_undefined_and_a_callers_mistake_is_refused_by_name():
    frame = random_crowd(np.random.default_rng(2), n_categories=101)
    coefficients = bundle(frame, "interval")
    for name in ("percent_agreement", "fleiss_kappa", "gwet_ac1"):
        assert coefficients[name].reason is Reason.TOO_MANY_CATEGORIES
    assert coefficients["krippendorff_alpha"].is_defined
    assert coefficients["icc1"].is_defined
    icc = agreement.icc([1, 1, 2, 2], list("abab"), [1, 2, 1, 2], model="icc1k")
    assert icc.reason is Reason.NO_ITEM_VARIANCE
    for change, options, code in (
        ({"value": [1, -1, 2, 3]}, {"level": "ratio"}, "values_out_of_range"),
        ({"value": ["ab", "b", "a", "a"]}, {"level": "set"}, "values_not_sets"),
        ({}, {"ci": "exact"}, "unknown_ci"),
        ({}, {"ci": "bootstrap", "n_resamples": 1}, "n_resamples_out_of_range"),
        ({}, {"categories": [1]}, "unknown_category"),
    ):
        rows = {"item": [1, 1, 2, 2], "annotator": list("abab"), "value": [1, 2, 2, 2]} | change
        with refused(InvalidValue, code):
            coefficients_at_level(*rows.values(), **({"level": "nominal"} | options))


def test_each_item_and_category_reports_its_agreement_and_items_further_apart_agree_less():
    items, annotators = [1, 1, 1, 2, 2, 3], list("abcaba")
    table = agreement.item_agreement(items, annotators, list("xxyxxy"))
    assert table["agreement"].tolist() == pytest.approx([1 / 3, 1, np.nan], nan_ok=True)
    assert table["n_labels"].tolist() == [3, 2, 1]
    assert table["reason"].tolist() == [None, None, Reason.NO_PAIRABLE_UNITS]
    categories = agreement.category_agreement(items, annotators, list("xxyxxy"))
    # of the x labels, two have the pairs xx and xy, two the pair xx
    assert categories["agreement"].tolist() == pytest.approx([4 / 6, 0])
    items, annotators = [1, 1, 2, 2, 3, 3], list("ababab")
    for level in ("ordinal", "interval", "ratio"):
        table = agreement.item_agreement(items, annotators, [1, 1, 1, 2, 1, 9], level=level)
        assert table["agreement"].iloc[0] == 1
        assert table["agreement"].is_monotonic_decreasing
    frame = random_crowd(np.random.default_rng(3))
    mean = agreement.item_agreement(*columns(frame))["agreement"].mean()
    assert mean == pytest.approx(bundle(frame)["percent_agreement"].value)
