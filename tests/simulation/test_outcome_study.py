import json

import numpy as np
import pytest

from simulation.outcome_study import biases, ceiling, counterfactual, orders
from stats.correlation import correlation_at_level
from stats.ranking.resampled_topics import UNMOVED
from tests.codes import refused_naming

N_RECOMMENDERS, N_TARGETS = 10, 200
NAMES = [f"r{number}" for number in range(N_RECOMMENDERS)]


def quality(seed=0):
    """How probable it is that people would take each recommender's final item for each target."""
    rng = np.random.default_rng(seed)
    level = np.linspace(0.2, 0.7, N_RECOMMENDERS)[:, None]
    return np.clip(level + rng.normal(0, 0.15, (1, N_TARGETS)), 0.02, 0.98)


def ratings(seed, n_annotators=6):
    rng = np.random.default_rng([seed, 1])
    chance = rng.random((N_RECOMMENDERS, N_TARGETS, n_annotators))
    return (chance < quality(seed)[..., None]).astype(float)


def outcomes_of_users(seed):
    """A false user, who errs by recommender, and a true one."""
    rng = np.random.default_rng([seed, 2])
    false = quality(seed) + 0.4 * np.sin(7 * np.arange(N_RECOMMENDERS))[:, None]
    return {
        name: (rng.random((N_RECOMMENDERS, N_TARGETS)) < chance).astype(float)
        for name, chance in (("SimBase", false), ("true", quality(seed)))
    }


def test_the_truer_user_has_the_order_that_people_have():
    false, true = orders(ratings(0).mean(axis=2), outcomes_of_users(0), NAMES)
    assert true.values["tau_b"] > 0.8 > false.values["tau_b"]
    assert true.gain_limits[0] > 0
    assert true.p_adjusted < 0.05
    assert np.isnan(false.p)
    assert true.opposite == 0 < false.opposite
    assert true.alike > false.alike
    for low, high in true.limits.values():
        assert low <= high <= 1


def test_soft_pairwise_accuracy_is_that_of_sign_flips():
    human, simulated = ratings(1).mean(axis=2), outcomes_of_users(1)["true"]
    [row] = orders(human, {"one": simulated}, NAMES, n_draws=10)
    cells = np.indices(human.shape).reshape(2, -1)
    columns = {"items": cells[1], "systems": cells[0]}
    flipped = correlation_at_level(
        human.ravel(), simulated.ravel(), level="system", coefficient="spa", **columns
    )
    assert row.values["spa"] == pytest.approx(flipped.value, abs=0.02)


def test_recommenders_that_do_alike_on_every_target_are_not_decided():
    rng = np.random.default_rng(0)
    good, bad = (rng.binomial(3, share, 190) / 3 for share in (0.4, 0.2))
    nothing = {"SimBase": np.zeros((2, 190))}
    for human in (np.array([good, bad]), np.array([bad, good])):
        [row] = orders(human, nothing, ["a", "b"], n_draws=50)
        assert row.values["spa"] == pytest.approx(0.5, abs=0.01)
        assert (row.alike, row.opposite, row.undecided) == (0, 0, 1)
    [row] = orders(np.array([good, good]), {"one": np.array([bad, good])}, ["a", "b"], n_draws=50)
    assert (row.alike, row.opposite, row.undecided) == (0, 0, 0)


def test_which_user_is_truer_does_not_depend_on_the_order_in_which_recommenders_are_named():
    human, users = ratings(0).mean(axis=2), outcomes_of_users(0)
    users["SimBase"] = users["true"] * (np.arange(N_RECOMMENDERS) > 5)[:, None]
    one = orders(human, users, NAMES)[1]
    turned = {name: values[::-1] for name, values in users.items()}
    other = orders(human[::-1], turned, NAMES[::-1])[1]
    assert other.spa_gain == pytest.approx(one.spa_gain)
    assert other.p == pytest.approx(one.p)


def test_records_are_json_where_limits_are_undefined():
    rng = np.random.default_rng(0)
    human = np.stack([0.1 * rng.random(30), 0.8 + 0.1 * rng.random(30)])
    [row] = orders(human, {"SimBase": human}, ["a", "b"], n_draws=50)
    record = row.record()
    assert record["limits"]["tau_b"] == record["gain_limits"] == [None, None]
    assert record["reasons"] == {"tau_b": UNMOVED, "tau_ap": UNMOVED}
    json.dumps(record, allow_nan=False)


def test_only_bias_that_differs_changes_the_order():
    rng = np.random.default_rng(5)
    human = ratings(2, 30).mean(axis=2)
    higher = human + 0.2 + rng.normal(0, 0.02, human.shape)
    equal = human + rng.normal(0, 0.02, human.shape)
    for row in biases(human, {"higher": higher, "equal": equal}, NAMES):
        assert row.equivalent == (row.user == "equal")
        if row.user == "higher":
            assert row.bias == pytest.approx(0.2, abs=0.02)
            assert abs(row.apart) < 0.02


def test_equivalence_at_the_margin_is_concluded_as_rarely_as_said():
    rng, human = np.random.default_rng(6), np.zeros((2, 200))
    n_equivalent = 0
    for _ in range(300):
        simulated = human + rng.normal(0.05, 0.2, human.shape)
        rows = biases(human, {"at the margin": simulated}, ["a", "b"])
        n_equivalent += sum(row.equivalent for row in rows)
    assert 0.02 < n_equivalent / 600 < 0.08


def test_equivalence_is_not_tested_where_few_targets_differ_from_all_others():
    rng, human = np.random.default_rng(7), np.zeros((2, 100))
    said = []
    for _ in range(200):
        simulated = (rng.random(human.shape) < 0.05).astype(float)
        rows = biases(human, {"at the margin": simulated}, ["a", "b"])
        said += [row.equivalent for row in rows]
        for row in rows:
            assert (row.equivalent is None) == bool(row.reason) == np.isnan(row.p_equivalence)
    assert sum(one is None for one in said) > 350
    assert said.count(True) / len(said) < 0.01
    [alike, _] = biases(human, {"as people": human}, ["a", "b"])
    assert alike.equivalent is None
    assert alike.reason


def test_what_is_attainable_is_about_what_a_user_has_who_knows_what_people_would_say():
    found: dict[str, list[float]] = {"halves": [], "user": [], "attainable": []}
    for seed in range(25):
        rng = np.random.default_rng([seed, 3])
        level = np.linspace(0.3, 0.42, 6)[:, None]
        noise = rng.normal(0, 0.2, (1, 100)) + rng.normal(0, 0.1, (6, 100))
        chance = np.clip(level + noise, 0.02, 0.98)
        answers = (rng.random((6, 100, 3)) < chance[..., None]).astype(float)
        one = ceiling(answers, n_splits=20, seed=seed)
        [row] = orders(answers.mean(axis=2), {"true": chance}, NAMES[:6], n_draws=10, seed=seed)
        found["halves"].append(one.halves["tau_b"])
        found["user"].append(row.values["tau_b"])
        found["attainable"].append(one.attainable["tau_b"])
    means = {name: np.mean(values) for name, values in found.items()}
    assert means["halves"] < means["user"] - 0.2
    assert means["attainable"] == pytest.approx(means["user"], abs=0.06)


def test_annotators_agree_better_with_each_other_where_there_are_more():
    few, many = ceiling(ratings(3, 2)), ceiling(ratings(3, 20))
    for name in ("spa", "tau_b", "tau_ap"):
        assert few.halves[name] < many.halves[name] <= 1 + 1e-12
        assert few.halves[name] < few.attainable[name]
    with_gaps = ratings(3, 5)
    with_gaps[:, :50, 4] = np.nan
    assert ceiling(with_gaps).halves["spa"] > few.halves["spa"]


def test_a_user_chosen_on_some_recommenders_predicts_the_others():
    human = ratings(4).mean(axis=2)
    found = counterfactual(human, outcomes_of_users(4), NAMES, NAMES[:3])
    assert found.chosen == "true"
    assert found.chosen_in["true"] > 0.95
    assert found.gain == pytest.approx(found.base_error**2 - found.error**2)
    assert found.gain_limits[0] > 0
    # Bias that is another on those recommenders misleads, and the test on the others says so.
    fitted = outcomes_of_users(4)
    fitted["true"][:3] = 1.0
    fitted["SimBase"][:3] = human[:3]
    misled = counterfactual(human, fitted, NAMES, NAMES[:3])
    assert misled.chosen == "SimBase"
    assert misled.gain == 0
    with refused_naming(ValueError, "chosen_on"):
        counterfactual(human, fitted, NAMES, NAMES)


def test_outcomes_that_do_not_fit_are_refused():
    human = ratings(0).mean(axis=2)
    with refused_naming(ValueError, " u "):
        orders(human, {"u": human[:, :50]}, NAMES)
    with refused_naming(ValueError, "human", 20):
        orders(human[:, :5], {"u": human[:, :5]}, NAMES)
    with refused_naming(ValueError, "ratings"):
        ceiling(ratings(0, 1))
    for margin in (-0.05, 0.0, 1.0, 2.0, float("nan")):
        with refused_naming(ValueError, "margin"):
            biases(human, {"same": human}, NAMES, margin=margin)


def test_the_error_of_a_true_user_has_nothing_of_chance_in_it():
    rng = np.random.default_rng(5)
    means = np.linspace(0.3, 0.7, 4)[:, None]
    gains, held, errors = [], [], []
    for _ in range(200):
        human = rng.binomial(5, means, (4, 60)) / 5
        users = {
            "generous": rng.binomial(1, means + 0.15, (4, 60)).astype(float),
            "true": rng.binomial(1, means, (4, 60)).astype(float),
        }
        found = counterfactual(human, users, list("abcd"), ["a", "b"], n_draws=20)
        gains.append(found.gain)
        errors.append(found.base_error)
        truth = 0.15**2 if found.chosen == "true" else 0.0
        held.append(found.gain_limits[0] <= truth <= found.gain_limits[1])
    assert np.mean(errors) == pytest.approx(0.15, abs=0.01)
    assert np.mean(held) > 0.92
