import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import expit, log_expit

from error_codes import InvalidValue
from stats.aggregation import (
    Reason,
    aggregate,
    best_worst,
    bias_precision,
    bradley_terry,
    mean,
    median,
    trimmed_mean,
    zscore,
)
from tests.codes import codes_of, refused
from tests.stats.conftest import columns

NUMERIC = ["mean", "trimmed_mean", "median", "zscore", "bias_precision"]


def ratings(rng: np.random.Generator, n_items: int = 30, n_annotators: int = 12) -> pd.DataFrame:
    """Items rated by about two thirds of annotators, each with a bias and a precision."""
    truth, bias = rng.normal(50, 10, n_items), rng.normal(0, 8, n_annotators)
    spread = np.linspace(2, 20, n_annotators)
    value = truth[:, None] + bias + spread * rng.normal(size=(n_items, n_annotators))
    item, annotator = np.nonzero(rng.random(value.shape) < 0.7)
    return pd.DataFrame({"item": item, "annotator": annotator, "value": value[item, annotator]})


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


def test_bias_and_precision_recover_what_was_planted_and_maximise_the_joint_normals():
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
    from stats.aggregation.result import code_ratings

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


@pytest.mark.parametrize("method", NUMERIC)
def test_equal_ratings_are_no_accident_and_text_is_refused(method):
    label = aggregate([1, 1, 2, 2], list("abab"), [7.0] * 4, method=method).labels["label"]
    assert np.isnan(label).all() if method == "zscore" else label.tolist() == pytest.approx([7, 7])
    with refused(InvalidValue, "values_not_numeric"):
        aggregate([1, 2], ["a", "b"], ["good", "bad"], method=method)
    with refused(InvalidValue, "confidence_out_of_range"):
        aggregate([1], [1], [1], method=method, confidence=95)


def matches(rng: np.random.Generator, strength: np.ndarray, n: int) -> tuple[list, list]:
    """Winners and losers of n comparisons of random candidates."""
    first = rng.integers(len(strength), size=n)
    second = (first + rng.integers(1, len(strength), size=n)) % len(strength)
    wins = rng.random(n) < expit(strength[first] - strength[second])
    return np.where(wins, first, second).tolist(), np.where(wins, second, first).tolist()


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_strengths_maximise_the_likelihood(smoothing):
    rng = np.random.default_rng(0)
    winners, losers = matches(rng, rng.normal(size=6), 200)
    result = bradley_terry(winners, losers, smoothing=smoothing)

    def loss(free: np.ndarray) -> float:
        value = free if smoothing else np.append(free, 0.0)
        prior = smoothing * (log_expit(value) + log_expit(-value)).sum()
        return -log_expit(value[winners] - value[losers]).sum() - prior

    optimum = optimize.minimize(loss, np.zeros(6 if smoothing else 5), tol=1e-12)
    expected = optimum.x if smoothing else np.append(optimum.x, 0.0)
    assert result.converged
    assert result.log_likelihood == pytest.approx(-optimum.fun, abs=1e-8)
    assert result.labels["label"].to_numpy() == pytest.approx(expected - expected.mean(), abs=1e-4)


@pytest.mark.slow
def test_standard_errors_are_those_of_experiments_and_not_less_for_judgments_said_twice():
    rng = np.random.default_rng(1)
    strength = np.array([-1.0, -0.3, 0.3, 1.0])
    fits = [bradley_terry(*matches(rng, strength, 300)).labels for _ in range(200)]
    spread = np.std([fit["label"] for fit in fits], axis=0)
    claimed = np.mean([fit["se"] for fit in fits], axis=0)
    assert claimed == pytest.approx(spread, rel=0.2)
    covered = [(fit["ci_low"] <= strength) & (strength <= fit["ci_high"]) for fit in fits]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    rng = np.random.default_rng(2)
    winners, losers = matches(rng, np.array([-0.5, 0.0, 0.5]), 200)
    once = bradley_terry(winners, losers).labels
    judgments = list(range(200)) * 2
    twice = bradley_terry(winners * 2, losers * 2, judgments=judgments).labels
    assert twice["label"].to_numpy() == pytest.approx(once["label"].to_numpy(), abs=1e-6)
    assert twice["se"].to_numpy() == pytest.approx(once["se"].to_numpy(), rel=0.15)


def test_a_candidate_that_never_loses_has_no_strength_without_smoothing():
    result = bradley_terry(["a", "a", "b", "c"], ["b", "c", "c", "b"])
    assert result.reason is Reason.NOT_CONNECTED
    assert result.labels["label"].isna().all()
    assert set(result.labels["reason"]) == {Reason.NOT_CONNECTED}
    assert codes_of(result.warnings) == ["not_connected"]
    smoothed = bradley_terry(["a", "a", "b", "c"], ["b", "c", "c", "b"], smoothing=0.5)
    assert smoothed.reason is None
    assert smoothed.labels["label"].idxmax() == 0


FORMS = {
    "orders": (["p", "q", "r", "s"], ["a>b", "b > a", "a>b", "a=b"]),
    "choices": (["a|b", "b|a", "a|b", "a|b"], ["a", "b", "a", "tie"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_preferences_are_read_from_a_long_frame(form):
    items, values = FORMS[form]
    result = aggregate(items, list("xyxy"), values, method="bradley_terry")
    expected = np.log(2.5 / 1.5) / 2
    assert result.label_by_item == {"a": pytest.approx(expected), "b": pytest.approx(-expected)}
    assert result.labels["wins"].tolist() == [2.5, 1.5]
    assert result.annotators["agreement"].tolist() == [1.0, 0.0]
    assert result.annotators["n_labels"].tolist() == [2, 2]


def test_numbers_orders_and_best_and_worst_are_read_as_preferences():
    items, annotators = ["a", "b"] * 4, [name for name in "wxyz" for _ in "ab"]
    ratings = [90, 10, 3, 2, 5, 6, 7, 7]
    result = aggregate(items, annotators, ratings, method="bradley_terry")
    assert result.label_by_item["a"] == pytest.approx(np.log(2.5 / 1.5) / 2)
    lonely = aggregate(["a", "b"], ["x", "y"], [1, 2], method="bradley_terry")
    assert lonely.reason is Reason.NO_COMPARISONS
    orders = aggregate(["p", "q"], ["x", "y"], ["a>b>c", "c>b>a"], method="bradley_terry")
    pairs = bradley_terry(list("aabccb"), list("bccbaa"))
    assert orders.labels["wins"].tolist() == pairs.labels["wins"].tolist() == [2, 2, 2]
    rng = np.random.default_rng(3)
    strength = np.linspace(-2, 2, 8)
    sets = [rng.choice(8, size=4, replace=False).tolist() for _ in range(400)]
    felt = [strength[names] + rng.gumbel(size=4) for names in sets]
    best = [names[int(np.argmax(x))] for names, x in zip(sets, felt, strict=True)]
    worst = [names[int(np.argmin(x))] for names, x in zip(sets, felt, strict=True)]
    result = best_worst(sets, best, worst)
    assert np.corrcoef(result.labels["label"], strength)[0, 1] > 0.98
    assert result.labels["score"].is_monotonic_increasing
    assert result.method == "best_worst"
    assert result.signature.startswith("best_worst|")


def preferred(item, value):
    return aggregate([item], ["x"], [value], method="bradley_terry")


NAMES, MANY = np.arange(10_001), np.arange(15_000)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: trimmed_mean([1], [1], [1], trim=0.5), "trim_out_of_range"),
        (lambda: bias_precision([1], [1], [1], prior_labels=0), "prior_labels_out_of_range"),
        (lambda: preferred("p", "good"), "not_a_preference"),
        (lambda: preferred("a|b", "c"), "unknown_candidate"),
        (lambda: preferred("p", "a>a"), "repeated_candidate"),
        (lambda: preferred("p", "a>"), "repeated_candidate"),
        (lambda: best_worst([["a", "b"]], ["a"], ["c"]), "not_in_set"),
        (lambda: best_worst([["a", "a"]], ["a"], ["a"]), "set_unfit"),
        (lambda: bradley_terry(["a"], ["a"]), "compared_with_itself"),
        (lambda: bradley_terry(["a"], ["b"], weights=[-1]), "weights_out_of_range"),
        (lambda: bradley_terry(["a", None], ["b", "a"]), "winners_missing"),
        (lambda: bradley_terry(pd.Series(["a"]), pd.Series(["b", "c"])), "unequal_lengths"),
        # More candidates, or pairs of them, than a table holds.
        (lambda: bradley_terry(NAMES, np.roll(NAMES, 1)), "table_too_large"),
        (
            lambda: aggregate(MANY, ["x"] * len(MANY), MANY, method="bradley_terry"),
            "table_too_large",
        ),
    ],
)
def test_impossible_comparisons_and_options_are_refused(call, code):
    with refused(InvalidValue, code):
        call()
    assert best_worst([], [], []).reason is Reason.NO_LABELS


def test_units_of_weights_do_not_matter_and_one_annotator_has_intervals_for_new_items():
    winners, losers = ["a", "a", "b", "c", "b"], ["b", "c", "a", "a", "c"]
    once = bradley_terry(winners, losers).labels
    thin = bradley_terry(winners, losers, weights=[1e-12] * 5).labels
    assert thin["label"].to_numpy() == pytest.approx(once["label"].to_numpy(), abs=1e-6)
    items, annotators = ["a", "b", "c"] * 3, ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    values = [1, 2, 3, 3, 1, 2, 2, 3, 1]
    once = aggregate(items, annotators, values, method="bradley_terry").labels
    # Nine comparisons, and as many annotators, of whom six rated one candidate each.
    idle = [f"before {n}" for n in range(6)]
    more = aggregate(
        ["a"] * 6 + items, idle + annotators, [1] * 6 + values, method="bradley_terry"
    ).labels
    assert more["se"].to_numpy() == pytest.approx(once["se"].to_numpy())
    rng = np.random.default_rng(12)
    won = rng.random(60) < 0.7
    winners, losers = np.where(won, "a", "b"), np.where(won, "b", "a")
    items = np.arange(60)
    alone = bradley_terry(winners, losers, items=items, annotators=["x"] * 60).labels
    assert alone["se"].tolist() == bradley_terry(winners, losers, items=items).labels["se"].tolist()
    # Of independent comparisons the sandwich is the inverse information but for a factor.
    plain = bradley_terry(winners, losers).labels["se"]
    assert alone["se"].to_numpy() == pytest.approx(plain.to_numpy() * np.sqrt(60 / 59))


@pytest.mark.slow
def test_of_several_systems_the_one_that_annotators_differ_on_has_an_interval_for_new_annotators():
    rng, n_studies, n_items, n_annotators, n_systems = np.random.default_rng(13), 120, 30, 5, 4
    first, second = np.triu_indices(n_systems, 1)
    item, annotator, pair = np.indices((n_items, n_annotators, len(first))).reshape(3, -1)
    held = 0
    for _study in range(n_studies):
        taste = rng.normal(size=(n_items, n_systems))
        of_first = rng.normal(size=n_annotators)  # of the first system alone
        strength = taste[item[:, None], np.stack([first[pair], second[pair]], axis=1)]
        strength[:, 0] += np.where(first[pair] == 0, of_first[annotator], 0.0)
        won = rng.random(len(item)) < expit(strength[:, 0] - strength[:, 1])
        winner = np.where(won, first[pair], second[pair])
        loser = np.where(won, second[pair], first[pair])
        fit = bradley_terry(winner, loser, items=item, annotators=annotator)
        row = fit.labels.set_index("item").loc[0]
        held += row["ci_low"] <= 0 <= row["ci_high"]
    assert held / n_studies >= 0.9
