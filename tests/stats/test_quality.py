from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats as reference

from benchmarks import quality
from benchmarks.quality_crowds import FAULTS, simulated_study
from error_codes import InvalidValue
from stats.quality import (
    Evidence,
    annotator_flags,
    colluding_pairs,
    degraded_failed,
    excess_hits,
    late_change,
    position_tests,
    unrelated_annotators,
)
from tests.codes import refused

pytestmark = pytest.mark.filterwarnings("error")


def test_simulated_faults_are_flagged_alike_for_one_seed_and_careful_annotators_are_not():
    counts = quality.simulated_counts(5, first=5000)
    assert {fault: counts[fault]["any"] > 0 for fault in FAULTS} == dict.fromkeys(FAULTS, True)
    assert counts["careful"]["any"] <= 0.02 * counts["careful"]["all"]
    first, again = (annotator_flags(simulated_study(7).evidence) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)


def test_a_tail_flags_no_handful_and_what_everybody_fails_speaks_against_the_check():
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
    names = [f"w{number}" for number in range(12) for _ in range(4)]
    checks = pd.DataFrame({"annotator": names, "check": list("abcd") * 12, "is_failed": True})
    assert annotator_flags(Evidence(checks=checks)).empty
    assert degraded_failed(50, 50, lowest=0)
    assert not degraded_failed(49, 50, lowest=0)
    assert not degraded_failed(1, 1, lowest=1)
    assert not degraded_failed(55, 50, lowest=0, tolerance=10)
    with refused(InvalidValue, "original_missing"):
        degraded_failed(1, float("nan"), lowest=0)


def test_experts_are_no_copies_and_a_change_is_dated_but_steady_work_has_none():
    """On two categories and hard items a group that knows the answer agrees nearly always."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=80)
    experts = np.where(rng.random((8, 80)) < 0.97, truth, 1 - truth)
    beginners = np.where(rng.random((12, 80)) < 0.55, truth, 1 - truth)
    values = np.vstack([experts, beginners]).astype(float)
    annotator, unit = np.indices(values.shape)
    pairs = colluding_pairs(unit.ravel(), annotator.ravel(), values.ravel())
    assert pairs.empty
    rng = np.random.default_rng(0)
    steady, later = rng.random(40), np.concatenate([rng.random(25), 1.5 + rng.random(15)])
    table = late_change(
        ["steady"] * 40 + ["later"] * 40, [*range(40)] * 2, np.concatenate([steady, later])
    ).set_index("annotator")
    assert table.loc["later", "n_before"] == 25
    assert table.loc["later", "p_value"] < 1e-5
    assert table.loc["steady", "p_value"] > 0.05


FIVE_POINTS = "five points"
FORTY_PAGES = "40 pages in all, 5 annotators each"


@pytest.mark.parametrize("name", [FIVE_POINTS, FORTY_PAGES, "yes or no", "one candidate"])
def test_two_random_clickers_of_twelve_are_found_without_checks(name):
    design = replace(quality.DESIGNS[name], n_faulty=2)
    assert design.n_checks == 0
    assert quality.found_share(design, 10) >= 0.8


def test_random_clickers_do_not_hide_each_other_nor_among_unordered_categories():
    assert quality.found_share(replace(quality.DESIGNS[FIVE_POINTS], n_faulty=6), 5) >= 0.8
    rng = np.random.default_rng(5)
    truth = rng.integers(4, size=60)
    values = np.where(rng.random((8, 60)) < 0.7, truth, rng.integers(4, size=(8, 60)))
    values[3] = rng.integers(4, size=60)
    annotator, unit = np.indices(values.shape)
    columns = {"annotator": annotator, "question": annotator * 0, "unit": unit, "value": values}
    choices = pd.DataFrame({name: column.ravel() for name, column in columns.items()})
    flags = annotator_flags(Evidence(choices=choices))
    assert flags[["annotator", "flag"]].to_numpy().tolist() == [[3, "unrelated"]]


def test_the_limit_of_random_agreement_is_that_of_permutations_and_little_agreement_flags_nobody():
    rng = np.random.default_rng(8)
    values = np.clip(rng.normal(0.5, 0.2, 30) + 0.2 * rng.normal(size=(4, 30)), 0, 1)
    block = np.repeat([0, 1, 2], 10)  # such as three questions
    annotator, unit = np.indices(values.shape)
    table = unrelated_annotators(
        annotator.ravel(), unit.ravel(), np.tile(block, 4), values.ravel()
    ).set_index("annotator")
    peers = values[1:].mean(axis=0)
    centered = [
        each - np.array([each[block == b].mean() for b in block]) for each in (*values, peers)
    ]
    own, others = centered[0], centered[-1]
    scale = sum(
        np.linalg.norm(own[block == b]) * np.linalg.norm(others[block == b]) for b in range(3)
    )
    assert table.loc[0, "agreement"] == pytest.approx(own @ others / scale)
    drawn = []
    for _ in range(4000):
        order = np.concatenate([rng.permutation(np.flatnonzero(block == b)) for b in range(3)])
        drawn.append(own[order] @ others / scale)
    z = reference.norm.isf(0.01)
    assert table.loc[0, "by_chance"] == pytest.approx(z * np.std(drawn), rel=0.04)
    design = replace(quality.Design(), noise=(3.0, 5.0))
    honest = quality.flag_counts(design, 10)[quality.HONEST]
    assert honest["unrelated"] == 0


def test_harsh_and_lenient_raters_draw_no_straight_lines_and_those_who_do_are_found():
    """Ratings far below or above the middle: more than half of the pages are constant."""
    flagged = []
    for seed in range(12):
        evidence, _ = quality.small_study(seed, replace(quality.Design(), n_severe=6))
        ratings = evidence.ratings
        is_severe = ratings["annotator"] < 6
        shift = np.where(ratings["annotator"] % 2, 0.25, -0.25)
        shifted = np.clip(ratings["value"] + np.where(is_severe, shift, 0), 0, 1)
        same = ratings.groupby(["annotator", "page"])["value"].transform("first")
        half = (ratings["annotator"] == 10) & (ratings["page"] % 3 > 0)
        fixed = np.where(ratings["annotator"] == 11, 0.5, np.where(half, same, shifted))
        flags = annotator_flags(replace(evidence, ratings=ratings.assign(value=fixed)))
        flagged += flags.loc[flags["flag"] == "straight_lines", "annotator"].tolist()
    assert flagged.count(11) == 12  # one place on all pages
    assert flagged.count(10) >= 11  # one rating per page on two of three pages, care on the rest
    assert len(flagged) - flagged.count(10) - flagged.count(11) <= 0.01 * 12 * 10


def test_positions_are_tested_as_friedman_does_and_ten_firsts_are_flagged_by_themselves():
    rng = np.random.default_rng(4)
    values = rng.permuted(np.tile(np.arange(4.0), (15, 1)), axis=1) + np.array([1, 0, 0, 0]) * 0.5
    ranks = values.argsort(axis=1).argsort(axis=1).astype(float)
    page, position = np.indices(ranks.shape)
    row = position_tests(
        ["a"] * 60, page.ravel(), ["q"] * 60, position.ravel(), ranks.ravel()
    ).iloc[0]
    expected = reference.friedmanchisquare(*ranks.T)
    assert row["p_value"] == pytest.approx(expected.pvalue)
    assert row["concordance"] == pytest.approx(expected.statistic / (15 * 3))
    assert (row["n"], row["expected"]) == (15, pytest.approx(15 / 4))
    ratings = pd.DataFrame(
        {
            "annotator": "w",
            "page": np.repeat(range(10), 2),
            "question": 0,
            "unit": range(20),
            "value": [1.0, 0.0] * 10,
            "order": np.repeat(range(10), 2),
            "position": [0.0, 1.0] * 10,
            "is_compared": True,
        }
    )
    [flag] = annotator_flags(Evidence(ratings=ratings)).to_dict("records")
    assert (flag["flag"], flag["n"], flag["n_hits"], flag["expected"]) == ("position", 10, 10, 5)
    fixed = ratings.assign(position=np.nan)
    assert annotator_flags(Evidence(ratings=fixed)).empty


@pytest.mark.parametrize(
    "by_place",
    [
        pytest.param([1, 0.5, 0.5, 0], id="best-worst"),
        pytest.param([0, 1 / 3, 2 / 3, 1], id="ranking from the bottom"),
        pytest.param([1, 1, 0, 0], id="selection"),
        pytest.param([0, 0, 1, 0], id="preference for the third"),
    ],
)
def test_answers_by_position_are_flagged_whatever_is_asked(by_place):
    rng = np.random.default_rng(2)
    position = rng.permuted(np.tile(np.arange(4), (10, 1)), axis=1)
    page, place = np.indices(position.shape)
    columns = {
        "page": page,
        "unit": page * 4 + place,
        "value": np.array(by_place)[position],
        "order": page,
        "position": position.astype(float),
    }
    ratings = pd.DataFrame({name: column.ravel() for name, column in columns.items()})
    ratings = ratings.assign(annotator="w", question=0, is_compared=True)
    [flag] = annotator_flags(Evidence(ratings=ratings)).to_dict("records")
    assert (flag["flag"], flag["n"], flag["value"]) == ("position", 10, pytest.approx(1))
