import numpy as np
import pandas as pd
import pytest
from scipy import stats as reference

from annotation.flag_rates import N_ON_ONE_DEVICE
from benchmarks.quality import simulated_counts
from benchmarks.quality_crowds import FAULTS, simulated_study
from benchmarks.shared_devices import named_shares
from error_codes import InvalidValue
from stats.quality import (
    Evidence,
    annotator_flags,
    colluding_pairs,
    degraded_failed,
    excess_hits,
    late_change,
)
from tests.codes import refused

pytestmark = pytest.mark.filterwarnings("error")


def test_simulated_faults_are_flagged_alike_for_one_seed_and_careful_annotators_are_not():
    counts = simulated_counts(5, first=5000)

    assert {fault: counts[fault]["any"] > 0 for fault in FAULTS} == dict.fromkeys(FAULTS, True)
    assert counts["careful"]["any"] <= 0.02 * counts["careful"]["all"]
    first, again = (annotator_flags(simulated_study(7).evidence) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)


def test_the_chance_of_hits_is_a_tail_that_hardly_ever_flags_a_handful():
    names = ["a"] * 10 + ["b"] * 30
    hits = [True] * 2 + [False] * 8 + [True] * 3 + [False] * 27

    table = excess_hits(names, hits, prior_rate=0.1, prior_weight=10).set_index("annotator")

    overall = (3 + 1) / (30 + 10)  # the others' hits, and one of ten by the prior
    rate = (3 + overall * 10) / (30 + 10)
    assert table.loc["a", "expected"] == pytest.approx(10 * rate)
    known = 30 + 10  # opportunities of the others, and of the prior
    tail = reference.betabinom.sf(1, 10, rate * known, (1 - rate) * known)
    assert table.loc["a", "p_value"] == pytest.approx(tail)
    # Their few checks leave open what is usual: as if it were known, .009 of them were.
    flagged = []
    for seed in range(300):
        hits = np.random.default_rng(seed).random((5, 10)) < (0.2, 0.5)[seed % 2]
        names, checks = (axis.ravel() for axis in np.indices(hits.shape))
        table = excess_hits(names, hits.ravel(), units=checks)
        flagged += (table["p_value"] <= 0.002).tolist()
    assert np.mean(flagged) < 0.006


def test_a_check_that_everybody_fails_speaks_against_the_check_and_degraded_ones_score_lower():
    names = [f"w{number}" for number in range(12) for _ in range(4)]
    checks = pd.DataFrame({"annotator": names, "check": list("abcd") * 12, "is_failed": True})

    assert annotator_flags(Evidence(checks=checks)).empty
    assert degraded_failed(50, 50, lowest=0)
    assert not degraded_failed(49, 50, lowest=0)
    assert not degraded_failed(1, 1, lowest=1)
    assert not degraded_failed(55, 50, lowest=0, tolerance=10)
    with refused(InvalidValue, "original_missing"):
        degraded_failed(1, float("nan"), lowest=0)


def test_a_page_says_how_often_honest_workers_look_as_on_one_device_as_it_is_simulated():
    shares = {key: 1000 * by_device for key, (by_device, _) in named_shares(25).items()}
    assert shares == pytest.approx(N_ON_ONE_DEVICE, rel=0.1, abs=10)


def test_experts_who_agree_with_each_other_are_no_copies_of_each_other():
    """On two categories and hard items a group that knows the answer agrees nearly always."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=80)
    experts = np.where(rng.random((8, 80)) < 0.97, truth, 1 - truth)
    beginners = np.where(rng.random((12, 80)) < 0.55, truth, 1 - truth)
    values = np.vstack([experts, beginners]).astype(float)
    annotator, unit = np.indices(values.shape)

    pairs = colluding_pairs(unit.ravel(), annotator.ravel(), values.ravel())

    assert pairs.empty


def test_a_change_is_dated_and_steady_work_has_none():
    rng = np.random.default_rng(0)
    steady, later = rng.random(40), np.concatenate([rng.random(25), 1.5 + rng.random(15)])
    table = late_change(
        ["steady"] * 40 + ["later"] * 40, [*range(40)] * 2, np.concatenate([steady, later])
    ).set_index("annotator")

    assert table.loc["later", "n_before"] == 25
    assert table.loc["later", "p_value"] < 1e-5
    assert table.loc["steady", "p_value"] > 0.05
