from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from simulation import critics, plans
from simulation.catalogue import targets_of
from simulation.dialogues import simulate
from simulation.users import MetaUser, meta_sim_prob, meta_sim_tol, sim_base
from tests.codes import refused_naming
from tests.simulation.conftest import (
    Script,
    drawn_setting,
    drawn_shoes,
    line_catalogue,
    scripted_log,
    simulated_setting,
)

# The target is p5, whose annotator accepted p2 and then p7; squared distances to it in brackets.
# shown:  p8 (9)   p9 (16)   p9 (16)   p6 (1)   p10 (25)   p1 (16)
# delta:  none     -7        0         +15      -24        +9
SHOWN = ["p9", "p9", "p6", "p10", "p1", "p0"]
released = partial(meta_sim_prob, 2, 1.0, mode="released")


def line_dialogue(user, *, seeds=(0,), shown=SHOWN):
    return scripted_log([user], shown, {"p5": ["p2", "p7"]}, n_turns=6, seeds=seeds)


@pytest.mark.parametrize(
    ("user", "in_force"),
    [
        (sim_base(), "p5 p5 p5 p5 p5 p5"),
        # One turn of patience is the first critique, counted from 1, and the first two from 0.
        (meta_sim_tol(1), "p5 p7 p7 p7 p7 p2"),
        (meta_sim_tol(1, turn_base=0), "p5 p5 p7 p7 p7 p2"),
        (meta_sim_tol(1, sticky=True), "p5 p7 p7 p7 p7 p7"),
        # The item nearest to p6 is the target p5 as well as p7: the target is appended last.
        (meta_sim_tol(1, target_among=False), "p5 p7 p7 p7 p7 p2"),
        (meta_sim_tol(1, mode="released"), "p5 p5 p7 p7 p7 p2"),
        (meta_sim_tol(1, mode="released", turn_base=1), "p5 p7 p7 p7 p7 p2"),
        (meta_sim_tol(1, alternative="first"), "p5 p2 p2 p2 p2 p2"),
        # After a loss, to the nearest of what was shown.
        (meta_sim_prob(1, 1.0), "p5 p7 p5 p5 p7 p5"),
        (meta_sim_prob(1, 1.0, turn_base=0), "p5 p5 p5 p5 p7 p5"),
        (meta_sim_prob(1, 1.0, on_equal="switch"), "p5 p7 p7 p5 p7 p5"),
        (meta_sim_prob(1, 1.0, sticky=True), "p5 p7 p7 p7 p7 p7"),
        (meta_sim_prob(1, 0.0), "p5 p5 p5 p5 p5 p5"),
        # After a gain or the same item again, to the first that was judged.
        (released(), "p5 p5 p5 p2 p5 p2"),
        (released(turn_base=1), "p5 p5 p2 p2 p5 p2"),
        (released(turn_base=1, on_equal="keep"), "p5 p5 p5 p2 p5 p2"),
        (released(turn_base=1, alternative="nearest"), "p5 p5 p7 p7 p5 p2"),
        (released(turn_base=1, switches_on="loss"), "p5 p5 p2 p5 p2 p5"),
    ],
)
def test_a_user_has_in_mind_what_was_worked_out_by_hand(user, in_force):
    log = line_dialogue(user)
    ids = log.catalogue.ids
    assert [ids[item] for item in log.shown[0, 0, 0]] == ["p8", *SHOWN]
    assert " ".join(ids[item] for item in log.in_force[0, 0, 0]) == in_force
    assert log.switched[0, 0, 0].tolist() == [name != "p5" for name in in_force.split()]


@pytest.mark.parametrize(
    ("user", "in_force"),
    [
        # p4 is nearest to the target p5 (1), then p2 (2) and p7 (3): who has the target among the
        # alternatives goes back to it (section 4.1 of the article).
        (meta_sim_tol(1), "p5 p7 p7 p5 p7 p2"),
        (meta_sim_tol(1, mode="released", turn_base=1), "p5 p7 p7 p5 p7 p2"),
        (meta_sim_tol(1, target_among=False), "p5 p7 p7 p2 p7 p2"),
        (meta_sim_prob(1, 1.0, on_equal="switch"), "p5 p7 p7 p5 p7 p5"),
    ],
)
def test_the_target_is_among_the_alternatives_of_the_article(user, in_force):
    log = line_dialogue(user, shown=["p9", "p9", "p4", "p10", "p1", "p0"])
    assert " ".join(log.catalogue.ids[item] for item in log.in_force[0, 0, 0]) == in_force
    assert log.n_switches()[0] == sum(name != "p5" for name in in_force.split())


def test_a_loss_is_measured_to_the_original_target_after_a_switch_too():
    log = line_dialogue(meta_sim_prob(1, 1.0, sticky=True))
    assert np.isnan(log.delta[0, 0, 0, 0])
    # The line is scaled to a length of 1.
    deltas = log.delta[0, 0, 0, 1:] * 100
    assert deltas.tolist() == pytest.approx([-7, 0, 15, -24, 9], abs=1e-3)
    assert log.delta[0, 0, 0, 2] == 0


def test_a_user_switches_with_the_probability_named():
    log = line_dialogue(meta_sim_prob(1, 0.3), seeds=range(1500))
    shares = log.switched[0, :, 0].mean(axis=0)
    assert shares[[0, 2, 3, 5]].tolist() == [0, 0, 0, 0]
    # Four standard errors, and the two turns are drawn apart.
    assert shares[[1, 4]] == pytest.approx([0.3, 0.3], abs=4 * (0.21 / 1500) ** 0.5)
    both = (log.switched[0, :, 0, 1] & log.switched[0, :, 0, 4]).mean()
    assert both == pytest.approx(0.09, abs=4 * (0.09 * 0.91 / 1500) ** 0.5)


def test_targets_of_few_alternatives_are_kept():
    catalogue = line_catalogue()
    targets = targets_of(catalogue, {"p5": ["p5", "p7"]}, starts={"p5": "p8"})
    script, critic = Script(catalogue, SHOWN), critics.DirectionCritic(catalogue)
    user = meta_sim_prob(0, 1.0, mode="released")
    released = simulate(catalogue, targets, [user], script, critic, n_turns=6)
    assert not released.switched.any()
    cleaned = simulate(catalogue, targets.without_faults(), [user], script, critic, n_turns=6)
    assert cleaned.switched.sum() == 3
    users = [meta_sim_tol(0), meta_sim_prob(0, 1.0), user]
    log = scripted_log(users, SHOWN, {"p5": [], "p4": ["p7"]}, n_turns=6)
    assert not log.switched[:, :, 0].any()
    assert log.switched[:, :, 1].any(axis=(1, 2)).all()


def test_dialogues_are_the_same_one_by_one_in_any_order_and_in_another_batch():
    catalogue, targets, critic, recommender = drawn_setting(900, 40)
    users = [
        sim_base(),
        meta_sim_prob(0, 0.5, leave_hazard=0.1),
        meta_sim_prob(1, 0.5, mode="released"),
    ]
    whole = simulate(catalogue, targets, users, recommender, critic, seeds=[3, 4])
    order = np.random.default_rng(0).permutation(len(targets))
    shuffled = simulate(catalogue, targets.part(order), users[::-1], recommender, critic, seeds=[4])
    for name in ("shown", "in_force", "switched", "leaves_before"):
        of_whole, of_shuffled = getattr(whole, name), getattr(shuffled, name)
        assert (of_whole[::-1, 1][:, order] == of_shuffled[:, 0]).all(), name
    for row in range(5):
        alone = simulate(
            catalogue, targets.part(np.array([row])), users[1:2], recommender, critic, seeds=[3]
        )
        assert (alone.shown[0, 0, 0] == whole.shown[1, 0, row]).all()
        assert (alone.rankings(10)[0, 0, 0] == whole.rankings(10)[1, 0, row]).all()


@pytest.mark.parametrize("name", ["random", "embedding"])
def test_each_seed_draws_first_items_and_lists_of_its_own_whatever_other_seeds_there_are(name):
    catalogue, targets = drawn_shoes(900, 60)
    critic = critics.AttributeCritic(catalogue)
    recommender = plans.named_recommender(name, catalogue, critic)
    users = [sim_base(), meta_sim_tol(2)]
    both = simulate(catalogue, targets, users, recommender, critic, seeds=[1, 2])
    for column, seed in enumerate((1, 2)):
        alone = simulate(catalogue, targets, users, recommender, critic, seeds=[seed])
        assert (both.shown[:, column] == alone.shown[:, 0]).all()
        assert (both.rankings(7)[:, column] == alone.rankings(7)[:, 0]).all()
    assert (both.shown[:, 0, :, 0] != both.shown[:, 1, :, 0]).mean() > 0.9
    assert (both.rankings(1)[0, 0] != both.rankings(1)[0, 1]).any(axis=-1).mean() > 0.9
    named = replace(targets, start=targets.starts(catalogue, [1])[0])
    held = simulate(catalogue, named, users, recommender, critic, seeds=[1, 2])
    assert (held.shown[:, 0, :, 0] == held.shown[:, 1, :, 0]).all()
    differs = (held.rankings(1)[0, 0] != held.rankings(1)[0, 1]).any(axis=-1)
    assert differs.any() == (name == "random")


def test_dialogues_share_what_they_have_in_common():
    log = simulated_setting([sim_base(), *(meta_sim_tol(t) for t in range(10))], 900, 40)
    # Turn k is new to SimBase and for those of its tolerances that are spent.
    n_rankings = sum(len(lists) for lists in log.lists[1:])
    assert n_rankings <= 40 * sum(turn + 1 for turn in range(1, 11))
    assert n_rankings < log.n_dialogues * log.n_turns * 0.6


def test_the_release_switches_far_more_often_than_the_article():
    catalogue, targets, critic, recommender = drawn_setting(5000, 190, recency=0.9)
    users = [meta_sim_prob(1, 1.0), meta_sim_prob(1, 1.0, mode="released")]
    paper, released = simulate(catalogue, targets, users, recommender, critic).n_switches()
    assert paper > 10
    assert 5 < released / paper < 20
    # What makes the difference is the sign, and what the same item again counts for.
    mended = replace(users[1], switches_on="loss", on_equal="keep")
    [mended_count] = simulate(catalogue, targets, [mended], recommender, critic).n_switches()
    assert mended_count < released / 5


def test_patience_is_a_hazard_of_leaving():
    log = simulated_setting([sim_base(), sim_base(leave_hazard=0.2)], 900, 100, seeds=range(20))
    assert (log.leaves_before[0] > log.n_turns).all()
    stays_for_three = (log.leaves_before[1] > 3).mean()
    assert stays_for_three == pytest.approx(0.8**3, abs=4 * (0.25 / 2000) ** 0.5)
    found = log.ends_at() <= log.n_turns
    assert found[1].mean() < found[0].mean()
    assert (log.lasts_until()[1] < log.leaves_before[1]).all()


def test_what_ends_a_dialogue_is_the_users_own_rule():
    users = [sim_base(), meta_sim_tol(9), meta_sim_tol(9, accepts="target")]
    log = scripted_log(users, ["p9", "p9", "p6", "p10", "p5", "p0"], {"p5": ["p6"]}, n_turns=6)
    assert log.ends_at()[:, 0, 0].tolist() == [5, 3, 5]


def test_the_log_has_a_row_for_each_turn_until_the_end():
    log = simulated_setting([meta_sim_tol(1)], 900, 10)
    catalogue, targets = log.catalogue, log.targets
    rows = [row for row in log.rows() if row["target"] == catalogue.ids[targets.target[0]]]
    assert [row["turn"] for row in rows] == list(range(len(rows)))
    assert rows[0]["shown"] == catalogue.ids[targets.starts(catalogue, (0,))[0, 0]]
    assert rows[-1]["critique"] is None
    assert rows[0]["critique"].startswith(("is ", "has "))
    assert rows[1]["ranking"][0] == rows[1]["shown"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("tolerance", -1), ("p_switch", 1.2), ("turn_base", 2), ("switches_on", "both")],
)
def test_choices_that_mean_nothing_are_refused(field, value):
    with refused_naming(ValueError, field):
        MetaUser(**{"kind": "prob", field: value})
