import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import expit, log_expit, logit

from error_codes import InvalidValue
from stats.aggregation import Reason, aggregate, best_worst, bradley_terry
from tests.codes import codes_of, refused


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


def test_numbers_are_preferences_within_each_annotator_and_orders_of_every_pair():
    items, annotators = ["a", "b"] * 4, [name for name in "wxyz" for _ in "ab"]
    ratings = [90, 10, 3, 2, 5, 6, 7, 7]
    result = aggregate(items, annotators, ratings, method="bradley_terry")
    assert result.label_by_item["a"] == pytest.approx(np.log(2.5 / 1.5) / 2)
    lonely = aggregate(["a", "b"], ["x", "y"], [1, 2], method="bradley_terry")
    assert lonely.reason is Reason.NO_COMPARISONS
    orders = aggregate(["p", "q"], ["x", "y"], ["a>b>c", "c>b>a"], method="bradley_terry")
    pairs = bradley_terry(list("aabccb"), list("bccbaa"))
    assert orders.labels["wins"].tolist() == pairs.labels["wins"].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("items", "values", "code"),
    [
        (["p"], ["good"], "not_a_preference"),
        (["a|b"], ["c"], "unknown_candidate"),
        (["p"], ["a>a"], "repeated_candidate"),
        (["p"], ["a>"], "repeated_candidate"),
    ],
)
def test_what_is_no_preference_is_refused(items, values, code):
    with refused(InvalidValue, code):
        aggregate(items, ["x"], values, method="bradley_terry")


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_neither_order_nor_names_matter(seed):
    rng = np.random.default_rng(seed)
    winners, losers = matches(rng, rng.normal(size=4), 40)
    result = bradley_terry(winners, losers, smoothing=0.1).labels["label"].to_numpy()
    order = rng.permutation(40)
    renamed = bradley_terry(
        [-winners[row] for row in order], [-losers[row] for row in order], smoothing=0.1
    )
    assert renamed.labels["label"].to_numpy()[::-1] == pytest.approx(result, abs=1e-6)


def test_best_and_worst_recover_planted_strengths():
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


NAMES, MANY = np.arange(10_001), np.arange(15_000)


@pytest.mark.parametrize(
    ("call", "code"),
    [
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
def test_impossible_comparisons_are_refused(call, code):
    with refused(InvalidValue, code):
        call()
    assert best_worst([], [], []).reason is Reason.NO_LABELS


def test_neither_the_unit_of_weights_nor_an_idle_annotator_matters():
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


def test_intervals_for_new_items_and_annotators_hold_where_items_have_a_taste_of_their_own():
    rng, n_studies, n_items, n_annotators = np.random.default_rng(11), 200, 20, 5
    item, annotator = np.indices((n_items, n_annotators)).reshape(2, -1)
    truth = expit(0.5 + 1.5 * rng.normal(size=10**6)).mean()
    held = {"drawn anew": 0, "each by itself": 0}
    for _study in range(n_studies):
        won = rng.random(len(item)) < expit(0.5 + 1.5 * rng.normal(size=n_items))[item]
        winners, losers = np.where(won, "a", "b"), np.where(won, "b", "a")
        for name, columns in (
            ("drawn anew", {"items": item, "annotators": annotator}),
            ("each by itself", {}),
        ):
            row = bradley_terry(winners, losers, **columns).labels.set_index("item").loc["a"]
            held[name] += row["ci_low"] <= logit(truth) / 2 <= row["ci_high"]
    assert held["each by itself"] / n_studies < 0.85
    assert 0.93 <= held["drawn anew"] / n_studies <= 0.995


def test_of_one_annotator_intervals_are_for_new_items_alone():
    rng = np.random.default_rng(12)
    won = rng.random(60) < 0.7
    winners, losers = np.where(won, "a", "b"), np.where(won, "b", "a")
    items = np.arange(60)
    alone = bradley_terry(winners, losers, items=items, annotators=["x"] * 60).labels
    assert alone["se"].tolist() == bradley_terry(winners, losers, items=items).labels["se"].tolist()
    # Of independent comparisons the sandwich is the inverse information but for a factor.
    plain = bradley_terry(winners, losers).labels["se"]
    assert alone["se"].to_numpy() == pytest.approx(plain.to_numpy() * np.sqrt(60 / 59))


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
