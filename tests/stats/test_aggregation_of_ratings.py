import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from error_codes import InvalidValue
from stats.aggregation import Reason, aggregate, bias_precision, mean, median, trimmed_mean, zscore
from tests.codes import codes_of, refused

NUMERIC = ["mean", "trimmed_mean", "median", "zscore", "bias_precision"]


def ratings(rng: np.random.Generator, n_items: int = 30, n_annotators: int = 12) -> pd.DataFrame:
    """Items rated by about two thirds of annotators, each with a bias and a precision."""
    truth, bias = rng.normal(50, 10, n_items), rng.normal(0, 8, n_annotators)
    spread = np.linspace(2, 20, n_annotators)
    value = truth[:, None] + bias + spread * rng.normal(size=(n_items, n_annotators))
    item, annotator = np.nonzero(rng.random(value.shape) < 0.7)
    return pd.DataFrame({"item": item, "annotator": annotator, "value": value[item, annotator]})


def columns(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    return frame["item"], frame["annotator"], frame["value"]


def test_the_mean_and_its_interval_are_those_of_scipy():
    frame = ratings(np.random.default_rng(0))
    labels = mean(*columns(frame)).labels.set_index("item")
    for item, rows in frame.groupby("item")["value"]:
        expected = stats.ttest_1samp(rows, 0)
        limits = expected.confidence_interval(0.95)
        assert labels.loc[item, "label"] == pytest.approx(rows.mean())
        assert labels.loc[item, "se"] == pytest.approx(stats.sem(rows))
        assert labels.loc[item, ["ci_low", "ci_high"]].tolist() == pytest.approx(list(limits))


@pytest.mark.parametrize("trim", [0.0, 0.1, 0.25])
def test_the_trimmed_mean_is_that_of_scipy(trim):
    frame = ratings(np.random.default_rng(1))
    labels = trimmed_mean(*columns(frame), trim=trim).labels.set_index("item")
    for item, rows in frame.groupby("item")["value"]:
        assert labels.loc[item, "label"] == pytest.approx(stats.trim_mean(rows, trim))
        winsorised = np.asarray(stats.mstats.winsorize(rows.to_numpy(), (trim, trim)))
        n = len(rows) - 2 * int(trim * len(rows))
        squares = ((winsorised - winsorised.mean()) ** 2).sum()
        assert labels.loc[item, "se"] == pytest.approx(np.sqrt(squares / (n * (n - 1))))


def test_the_median_has_the_limits_of_the_sign_test():
    frame = ratings(np.random.default_rng(2))
    labels = median(*columns(frame)).labels.set_index("item")
    for item, rows in frame.groupby("item")["value"]:
        assert labels.loc[item, "label"] == pytest.approx(np.median(rows))
        inside = stats.quantile_test(rows, p=0.5).confidence_interval(0.95)
        assert labels.loc[item, "ci_low"] == pytest.approx(inside.low, nan_ok=True)
        assert labels.loc[item, "ci_high"] == pytest.approx(inside.high, nan_ok=True)

    assert labels["ci_low"].notna().sum() > len(labels) / 2


@pytest.mark.parametrize("method", ["mean", "trimmed_mean", "median"])
def test_one_rating_has_a_label_and_no_interval_nor_has_a_median_of_five(method):
    labels = aggregate([1, 2, 2], list("aab"), [5, 1, 3], method=method).labels
    assert labels["label"].tolist() == [5.0, 2.0]
    assert labels["reason"][0] is Reason.ONE_LABEL
    assert labels.loc[0, ["se", "ci_low", "ci_high"]].isna().all()
    five = median([1] * 5 + [2], list("abcdea"), [1, 2, 3, 4, 5, 9]).labels
    assert five["label"].tolist() == [3.0, 9.0]
    assert five[["ci_low", "ci_high"]].isna().all().all()
    assert five["reason"].tolist() == [Reason.TOO_FEW_LABELS, Reason.ONE_LABEL]


def test_z_scores_are_taken_within_annotators_and_leave_out_those_without_a_scale():
    frame = ratings(np.random.default_rng(3))
    scaled = frame.groupby("annotator")["value"].transform(lambda x: (x - x.mean()) / x.std())
    expected = scaled.groupby(frame["item"]).mean()
    result = zscore(*columns(frame))
    assert result.labels["label"].to_numpy() == pytest.approx(expected.to_numpy())
    assert result.annotators["sd"].to_numpy() == pytest.approx(
        frame.groupby("annotator")["value"].std().to_numpy()
    )
    result = zscore([1, 2, 1, 2, 3], list("aabbb"), [1, 3, 0.1, 0.1, 0.1])
    assert result.labels["n_used"].tolist() == [1, 1, 0]
    reasons = [Reason.ONE_LABEL, Reason.ONE_LABEL, Reason.NO_USABLE_LABELS]
    assert result.labels["reason"].tolist() == reasons
    assert np.isnan(result.label_by_item[3])
    assert codes_of(result.warnings) == ["no_scale"]


def test_bias_and_precision_recover_what_was_planted_and_warn_of_separate_groups():
    rng = np.random.default_rng(4)
    truth, bias = rng.normal(50, 15, 400), np.linspace(-10, 10, 8)
    spread = np.linspace(3, 24, 8)
    value = truth[:, None] + bias + spread * rng.normal(size=(400, 8))
    item, annotator = np.indices(value.shape)
    result = bias_precision(item.ravel(), annotator.ravel(), value.ravel())
    assert result.converged
    assert result.annotators["bias"].to_numpy() == pytest.approx(bias, abs=2.5)
    assert result.annotators["error_sd"].to_numpy() == pytest.approx(spread, rel=0.25)
    labels = result.labels
    plain = np.abs(value.mean(axis=1) - truth).mean()
    assert np.abs(labels["label"] - truth).mean() < 0.8 * plain
    covered = (labels["ci_low"] <= truth) & (truth <= labels["ci_high"])
    assert 0.9 < covered.mean() < 0.99
    together = bias_precision([1, 1, 2, 2], list("abbc"), [1, 2, 5, 6])
    apart = bias_precision([1, 1, 2, 2], list("abcd"), [1, 2, 5, 6])
    assert "separate_groups" not in codes_of(together.warnings)
    assert "separate_groups" in codes_of(apart.warnings)


def test_the_likelihood_of_bias_and_precision_is_the_joint_normals_and_never_falls():
    frame = ratings(np.random.default_rng(5))
    reached = [
        bias_precision(*columns(frame), tolerance=0, max_iterations=n).log_likelihood
        for n in range(1, 30)
    ]
    assert (np.diff(reached) >= -1e-9).all()
    assert reached[-1] > reached[0]
    frame = ratings(np.random.default_rng(6), n_items=5, n_annotators=4)
    prior_labels = 1e-9
    result = bias_precision(*columns(frame), prior_labels=prior_labels, max_iterations=3)
    from stats.aggregation.bias_precision import _Model, _Parameters
    from stats.aggregation.crowd import code_ratings

    model = _Model(code_ratings(*columns(frame), "refuse"), prior_labels)
    rng = np.random.default_rng(7)
    parameters = _Parameters(rng.normal(size=4), rng.uniform(1, 5, 4), 50.0, 30.0)
    _, reached = model.expect(parameters)
    expected = 0.0
    for _, rows in frame.groupby("item"):
        centre = 50.0 + parameters.bias[rows["annotator"]]
        covariance = 30.0 + np.diag(parameters.error_variance[rows["annotator"]])
        expected += stats.multivariate_normal(centre, covariance).logpdf(rows["value"])
    assert reached == pytest.approx(expected, abs=1e-6)
    assert result.iterations == 3


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    method=st.sampled_from(NUMERIC),
    scale=st.floats(0.1, 10),
    shift=st.floats(-100, 100),
)
def test_labels_follow_the_scale_and_not_the_order_of_rows(seed, method, scale, shift):
    frame = ratings(np.random.default_rng(seed), n_items=8, n_annotators=5)
    result = aggregate(*columns(frame), method=method).labels["label"].to_numpy()
    other = frame.assign(value=scale * frame["value"] + shift).sample(frac=1, random_state=seed)
    moved = aggregate(*columns(other), method=method).labels["label"].to_numpy()
    expected = result if method == "zscore" else scale * result + shift
    assert moved == pytest.approx(expected, abs=1e-3 * max(scale, 1), nan_ok=True)


@pytest.mark.parametrize("method", NUMERIC)
def test_equal_ratings_are_no_accident_and_text_is_refused(method):
    label = aggregate([1, 1, 2, 2], list("abab"), [7.0] * 4, method=method).labels["label"]
    assert np.isnan(label).all() if method == "zscore" else label.tolist() == pytest.approx([7, 7])
    with refused(InvalidValue, "values_not_numeric"):
        aggregate([1, 2], ["a", "b"], ["good", "bad"], method=method)
    with refused(InvalidValue, "confidence_out_of_range"):
        aggregate([1], [1], [1], method=method, confidence=95)


def test_options_out_of_range_are_refused():
    with refused(InvalidValue, "trim_out_of_range"):
        trimmed_mean([1], [1], [1], trim=0.5)
    with refused(InvalidValue, "prior_labels_out_of_range"):
        bias_precision([1], [1], [1], prior_labels=0)


@pytest.mark.shared_data
def test_aggregated_affect_ratings_come_near_the_experts(shared_data):
    folder = shared_data / "crowd" / "affect"
    labels = pd.read_csv(folder / "labels.csv")
    gold = pd.read_csv(folder / "gold.csv").set_index("item")["gold"]
    valence = labels[labels["emotion"] == "valence"].rename(columns={"label": "value"})
    one = valence.merge(gold.rename("gold"), left_on="item", right_index=True)
    alone = one.groupby("annotator").apply(lambda rows: rows["value"].corr(rows["gold"]))
    result = mean(*columns(valence))
    crowd = np.corrcoef(result.labels["label"], gold[result.labels["item"]])[0, 1]
    assert crowd > 0.84
    assert crowd > alone.mean() + 0.1
