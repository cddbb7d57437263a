from math import log2

import numpy as np
import pytest

from simulation import dialogues, experiments, recommenders
from simulation.users import meta_sim_prob, meta_sim_tol, sim_base
from stats.ranking import measure
from tests.codes import refused_naming
from tests.simulation.conftest import drawn_setting, scripted_log, simulated_setting

NDCG, RR, SUCCESS = (measure(name) for name in ("nDCG@3", "RR@3", "Success@1"))
IDEAL = 1 + 1 / log2(3)


def script_log():
    """Target p5, whose alternative p6 is shown at turn 3; lists hold what follows on the line."""
    shown, users = ["p9", "p4", "p6", "p10"], [sim_base(), meta_sim_tol(9)]
    rejected = {"p5": ["p9"]}
    return scripted_log(users, shown, {"p5": ["p6"]}, rejected=rejected, n_turns=4, depth=3)


# Lists: p9 p10 p0 | p4 p5 p6 | p6 p7 p8 | p10 p0 p1. MetaSimTol ends at turn 3, SimBase never.
SECOND = (1 / log2(3) + 1 / 2) / IDEAL
BOTH = "target and alternatives"


@pytest.mark.parametrize(
    ("qrels", "carry", "user", "ndcg", "rr", "success"),
    [
        ("target", "none", 0, [0, 1 / log2(3), 0, 0], [0, 1 / 2, 0, 0], [0, 0, 0, 0]),
        (BOTH, "none", 1, [0, SECOND, 1 / IDEAL, 0], [0, 1 / 2, 1, 0], [0, 0, 1, 0]),
        (BOTH, "same list", 1, [0, SECOND, 1 / IDEAL, 1 / IDEAL], [0, 1 / 2, 1, 1], [0, 0, 1, 1]),
        (BOTH, "found alone", 1, [0, SECOND, 1 / IDEAL, 1 / IDEAL], [0, 1 / 2, 1, 1], [0, 0, 1, 1]),
        (BOTH, "one", 1, [0, SECOND, 1, 1], [0, 1 / 2, 1, 1], [0, 0, 1, 1]),
        # The base user does not stop at an alternative.
        (BOTH, "same list", 0, [0, SECOND, 1 / IDEAL, 0], [0, 1 / 2, 1, 0], [0, 0, 1, 0]),
        # Each by what it accepts: the base user as by the target alone, the other as by all.
        ("accepted", "one", 0, [0, 1 / log2(3), 0, 0], [0, 1 / 2, 0, 0], [0, 0, 0, 0]),
        ("accepted", "one", 1, [0, SECOND, 1, 1], [0, 1 / 2, 1, 1], [0, 0, 1, 1]),
        # Content with an alternative that the qrels do not hold.
        ("target", "one", 1, [0, 1 / log2(3), 0, 0], [0, 1 / 2, 0, 0], [0, 0, 0, 0]),
        ("alternatives", "same list", 1, [0, 1 / 2, 1, 1], [0, 1 / 3, 1, 1], [0, 0, 1, 1]),
    ],
)
def test_measures_by_turn_are_those_worked_out_by_hand(qrels, carry, user, ndcg, rr, success):
    result = experiments.outcomes(script_log(), (NDCG, RR, SUCCESS), qrels=qrels, carry=carry)
    values = result.values[:, user, 0, 0]
    assert values.tolist() == [pytest.approx(each) for each in (ndcg, rr, success)]


def test_the_share_judged_counts_what_was_rejected():
    result = experiments.outcomes(script_log(), (NDCG,), carry="none")
    # p9 was rejected, p5 and p6 accepted; lists have three items.
    assert result.judged[0].tolist() == pytest.approx([1 / 3, 2 / 3, 1 / 3, 0])


@pytest.mark.parametrize("carry", ["same list", "found alone", "one"])
def test_success_and_reciprocal_rank_do_not_fall_once_found(carry):
    log = simulated_setting([sim_base(), meta_sim_prob(1, 0.75), meta_sim_tol(2)], 900, 60)
    result = experiments.outcomes(log, (measure("RR@10"), SUCCESS), carry=carry)
    ends = log.ends_at()[..., None] <= np.arange(1, log.n_turns + 1)
    assert (result.values[:, ends] == 1).all()
    # A list of one item of several relevant ones has less than all the gain there is.
    several = experiments.outcomes(log, (measure("nDCG@10"),), carry="found alone").values[0]
    n_relevant = (log.targets.accepted >= 0).sum(axis=1)
    ideal = np.array([sum(1 / log2(rank + 1) for rank in range(1, n + 1)) for n in n_relevant])
    expected = np.broadcast_to((1 / ideal)[:, None], several.shape)
    assert several[ends] == pytest.approx(expected[ends])


def test_lists_are_evaluated_as_each_by_itself():
    catalogue, targets, critic, recommender = drawn_setting(900, 25, recency=0.2)
    users = [sim_base(), meta_sim_prob(0, 0.5, leave_hazard=0.05)]
    log = dialogues.simulate(catalogue, targets, users, recommender, critic, seeds=[1, 2])
    result = experiments.outcomes(log, (measure("nDCG@10"), measure("RR@10")), carry="same list")
    until = log.lasts_until()
    for index in np.ndindex(*until.shape):
        relevant = set(targets.accepted[index[2]].tolist()) - {-1}
        for turn in (1, 4, 10):
            ranked = log.rankings(min(turn, int(until[index])))[index].tolist()
            hits = [rank for rank, item in enumerate(ranked, 1) if item in relevant]
            gain = sum(1 / log2(rank + 1) for rank in hits)
            ideal = sum(1 / log2(rank + 1) for rank in range(1, len(relevant) + 1))
            assert result.values[(0, *index, turn - 1)] == pytest.approx(gain / ideal)
            assert result.values[(1, *index, turn - 1)] == (1 / hits[0] if hits else 0)


def test_leaving_keeps_the_last_list():
    log = simulated_setting([sim_base(leave_hazard=0.5)], 900, 60)
    values = experiments.outcomes(log, (measure("nDCG@10"),)).values[0, 0, 0]
    still = (log.leaves_before[0, 0] == 4) & (log.ends_at()[0, 0] > log.n_turns)
    assert still.any()
    assert (values[still, 3:] == values[still, 2:3]).all()


def test_a_measure_that_looks_further_than_was_ranked_is_refused():
    with refused_naming(ValueError, "measures", 3):
        experiments.outcomes(script_log(), (measure("nDCG@10"),))


def test_the_belief_beats_chance_by_a_wide_margin_and_learns_over_turns():
    catalogue, targets, critic, belief = drawn_setting(1200, 120)
    means = {}
    for recommender in (recommenders.RandomRecommender(catalogue), belief):
        log = dialogues.simulate(catalogue, targets, [sim_base()], recommender, critic)
        result = experiments.outcomes(log, (measure("nDCG@10"),), qrels="target")
        means[recommender.name] = result.values[0, 0, 0].mean(axis=0)
    assert means["random"].max() < 0.03
    assert means["embedding"][9] > 0.6
    assert means["embedding"][9] > means["embedding"][0] + 0.3
