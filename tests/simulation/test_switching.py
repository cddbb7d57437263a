import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from simulation.switching import compare_users, share_over_workers, switching_study
from simulation.users import meta_sim_prob, meta_sim_tol, sim_base
from tests.codes import refused_naming

WORKER_SD, TARGET_SD = 0.8, 0.4


def crowd(seed, *, n_workers=40, n_each=20, intercept=-3.0, loss=4.0, leaves=0.1, nearest=0.6):
    """Workers who switch after a loss with a probability, and sometimes leave."""
    rng = np.random.default_rng(seed)
    n, n_targets = n_workers * n_each, 40
    worker, target = np.repeat(np.arange(n_workers), n_each), rng.integers(0, n_targets, n)
    turn, delta = rng.integers(2, 9, n), rng.choice([-1.0, 1.0], n) * rng.uniform(0.05, 1, n)
    logit = intercept + loss * (delta < 0)
    logit = logit + rng.normal(0, WORKER_SD, n_workers)[worker]
    logit = logit + rng.normal(0, TARGET_SD, n_targets)[target]
    choice = np.where(rng.random(n) < expit(logit), "switch", "keep")
    choice = np.where(rng.random(n) < leaves, "leave", choice)
    columns = {"worker": worker, "target": target, "turn": turn, "delta": delta, "choice": choice}
    return pd.DataFrame(columns | {"n_alternatives": 4, "nearest": rng.random(n) < nearest})


def test_one_coefficient_decides_between_the_article_and_the_release():
    after_loss = switching_study(crowd(1)).model["loss"]
    after_gain = switching_study(crowd(1, intercept=1.0, loss=-4.0)).model["loss"]
    assert after_loss.ci_low > 0 > after_gain.ci_high


@pytest.mark.slow
def test_switchers_who_choose_at_random_take_the_nearest_by_chance():
    chance = switching_study(crowd(2, nearest=0.25, n_workers=80)).nearest_excess
    nearer = switching_study(crowd(2, nearest=0.6)).nearest_excess
    assert chance.ci_low < 0 < chance.ci_high
    assert nearer.ci_low > 0.2
    assert nearer.value == pytest.approx(0.35, abs=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        lambda d: d.assign(choice=np.where(d.delta < 0, d.choice, "keep")),
        lambda d: d[d.worker < 2],
        lambda d: d[d.target < 2],
        lambda d: d.assign(turn=np.where(d.delta < 0, 2, 3)),
    ],
)
def test_without_a_model_shares_of_decisions_are_reported_with_the_reason(changes):
    decisions = changes(crowd(0))
    study = switching_study(decisions)
    assert study.model.reason
    assert study.estimated_by == "shares of decisions"
    stayed = decisions[decisions.choice != "leave"]
    for one, is_loss in ((study.after_loss, True), (study.after_gain, False)):
        own = stayed[(stayed.delta < 0) == is_loss]
        assert one.value == pytest.approx((own.choice == "switch").mean())
        assert one.n == len(own)
        assert one.ci_low <= one.value <= one.ci_high
        assert one.ci_low < one.ci_high
    assert study.record()["p_switch_estimated_by"] == "shares of decisions"


def test_who_never_switched_after_a_gain_has_a_bound_over_workers():
    decisions = crowd(0)
    decisions.loc[decisions.delta > 0, "choice"] = "keep"
    gain = switching_study(decisions).after_gain
    assert (gain.value, gain.ci_low) == (0.0, 0.0)
    assert gain.ci_high == pytest.approx(1 - 0.025 ** (1 / 40))


def test_decisions_of_one_kind_of_turn_say_nothing_of_the_other():
    losses = switching_study(crowd(0).query("delta < 0"))
    assert losses.model.reason
    assert 0 < losses.after_loss.ci_low < losses.after_loss.ci_high < 1
    assert np.isnan(losses.after_gain.value)
    assert losses.after_gain.reason
    everybody_left = crowd(0).assign(choice="leave")
    study = switching_study(everybody_left)
    assert study.model.reason not in ("", None, losses.model.reason)
    assert study.leaves.value == 1
    assert compare_users(everybody_left, [sim_base()]) == []


def test_at_one_turn_alone_the_model_is_of_losses_alone():
    study = switching_study(crowd(0).assign(turn=3))
    assert [one.name for one in study.model.coefficients] == ["intercept", "loss"]
    assert study.model["loss"].ci_low < 4 < study.model["loss"].ci_high
    assert study.estimated_by == "the model"


def test_a_true_simulator_ranks_above_a_false_one():
    probable = [meta_sim_prob(1, 0.75, mode=mode) for mode in ("released", "paper")]
    users = [sim_base(), *probable, meta_sim_tol(1)]
    rows = compare_users(crowd(3), users)
    assert rows[0].user == "MetaSimProb tolerance 1, P 0.75"
    assert rows[0].gain.ci_low > 0
    assert rows[0].p_adjusted < 0.001
    [released] = [row for row in rows if "released" in row.user]
    assert released.gain.ci_high < 0
    # On people who switch after gains the order is the other way.
    turned = compare_users(crowd(3, intercept=1.0, loss=-4.0), users)
    assert turned[0].user == users[1].name


def test_few_who_left_have_limits_between_none_and_all():
    decisions = crowd(5, leaves=0.01, n_workers=7)
    left = switching_study(decisions).leaves
    assert 0 <= left.ci_low <= left.value <= left.ci_high <= 1
    nobody = switching_study(decisions[decisions["choice"] != "leave"]).leaves
    assert (nobody.value, nobody.ci_low) == (0, 0)
    assert 0 < nobody.ci_high < 0.5


def test_a_share_over_workers_is_not_that_of_independent_decisions():
    workers = pd.Series(np.repeat(np.arange(10), 50))
    values = np.repeat(np.arange(10) % 2, 50).astype(float)
    share = share_over_workers(workers, values, 0.95)
    # Ten workers who never change their mind are ten observations.
    assert share.ci_high - share.ci_low == pytest.approx(2 * 2.262 * 0.5 / 3, rel=0.01)
    few = share_over_workers(workers[:100], values[:100], 0.95)
    assert np.isnan(few.ci_low)
    assert few.reason


def test_decisions_that_cannot_be_read_are_refused():
    with refused_naming(ValueError, "choice", "'stay'"):
        switching_study(crowd(0).assign(choice="stay"))
    with refused_naming(ValueError, "delta"):
        switching_study(crowd(0).assign(delta=np.nan))
    with refused_naming(ValueError, "worker"):
        switching_study(crowd(0).drop(columns="worker"))
