"""P adjusted over all pairs of systems, where few annotators rated everything."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.inference.larger_studies import least_distinguishable
from stats.significance import holm
from validation.analysis.adjusted_pairs import adjusted_in_family
from validation.analysis.rated_systems import compare_rated_systems

N_ITEMS = 50


def equal_systems(rng, n_systems, n_annotators):
    """Ratings, shape (n_systems, n_items, n_annotators), of systems that differ in nothing."""
    shape = (n_systems, N_ITEMS, n_annotators)
    of_items = 0.3 * rng.normal(size=(n_systems, N_ITEMS, 1))
    of_annotators = 0.5 * rng.normal(size=(n_systems, 1, n_annotators))
    return of_items + of_annotators + rng.normal(size=shape)


def pairs_of(ratings):
    """Every two systems as a comparison has them, and the mean that it tests."""
    item, annotator = np.indices(ratings.shape[1:]).reshape(2, -1)
    for a, b in combinations(range(len(ratings)), 2):
        difference = (ratings[a] - ratings[b]).ravel()
        lead = mean_over_items_and_annotators(item, annotator, difference)
        yield {"a": str(a), "b": str(b), "p": lead.p}, lead


def test_of_two_systems_p_is_that_of_the_pair():
    [(row, lead)] = pairs_of(equal_systems(np.random.default_rng(0), 2, 4))
    [adjusted] = adjusted_in_family([(row, lead)], 0)
    assert adjusted["p_adjusted"] == adjusted["p_of_family"] == lead.p
    assert adjusted["freedom_of_family"] == pytest.approx(lead.freedom)


def test_no_pair_has_more_freedom_or_a_smaller_p_than_alone():
    ratings = equal_systems(np.random.default_rng(1), 5, 4)
    system, item, annotator = np.indices(ratings.shape).reshape(3, -1)
    frame = pd.DataFrame(
        {"system": system, "item": item, "annotator": annotator, "value": ratings.ravel()}
    ).astype({"system": str})
    rows = compare_rated_systems(frame, flips=False).comparisons
    assert all(row["freedom_of_family"] <= row["freedom"] for row in rows)
    assert all(row["p_of_family"] >= row["p"] for row in rows)
    assert any(row["p_of_family"] > row["p"] for row in rows)
    adjusted = holm([row["p_of_family"] for row in rows]).tolist()
    assert [row["p_adjusted"] for row in rows] == pytest.approx(adjusted)


def test_what_a_study_shows_goes_by_the_test_whose_p_is_adjusted():
    pairs = list(pairs_of(equal_systems(np.random.default_rng(1), 5, 4)))
    rows = adjusted_in_family(pairs, 0)
    least_freedom = min(row["freedom_of_family"] for row in rows)
    assert least_freedom < max(lead.freedom for _row, lead in pairs)
    for row, (_, lead) in zip(rows, pairs, strict=True):
        level = 0.05 / sum(one["p_of_family"] >= row["p_of_family"] for one in rows)
        least = least_distinguishable(lead.se, row["freedom_of_family"], alpha=level)
        assert row["least_shown"] == pytest.approx(least)
        # twice the items say no more of annotators than as many do
        assert row["least_shown_of_twice"] > least / np.sqrt(2)


def test_incomplete_tables_keep_their_degrees_of_freedom():
    ratings = equal_systems(np.random.default_rng(2), 4, 5)
    system, item, annotator = np.indices(ratings.shape).reshape(3, -1)
    frame = pd.DataFrame(
        {"system": system, "item": item, "annotator": annotator, "value": ratings.ravel()}
    ).astype({"system": str})
    rows = compare_rated_systems(frame[(item + annotator) % 3 > 0], flips=False).comparisons
    assert {row["test"] for row in rows} == {"two-way-clusters"}
    assert all(row["freedom_of_family"] == row["freedom"] for row in rows)
    assert all(row["p_of_family"] == row["p"] for row in rows)


def test_systems_without_a_common_item_are_compared_with_none():
    frame = pd.DataFrame(
        {"system": list("aabb"), "item": [1, 2, 3, 4], "annotator": "x", "value": [1.0, 2, 3, 4]}
    )
    [row] = compare_rated_systems(frame, flips=False).comparisons
    assert row["p"] is row["p_of_family"] is row["p_adjusted"] is None
