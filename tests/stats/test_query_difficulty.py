"""Predictors of difficulty against their definitions, list by list."""

from math import log, sqrt
from statistics import fmean, pstdev

import numpy as np
import pytest

from error_codes import InvalidValue
from stats.ranking.query_difficulty import (
    n_sigma,
    nqc,
    query_difficulty,
    sigma_k,
    sigma_max,
    smv,
    wig,
)
from tests.codes import refused


@pytest.fixture(scope="module")
def lists():
    """Lists of 3 to 60 positive scores, in no order, and what the corpus scores."""
    rng = np.random.default_rng(3)
    lists = [rng.gamma(2, 3, size=int(n)) for n in rng.integers(3, 61, size=40)]
    return lists, rng.uniform(0.2, 2, size=40) * rng.choice([-1, 1], size=40)


def padded(lists):
    table = np.full((len(lists), max(map(len, lists))), np.nan)
    for row, scores in zip(table, lists, strict=True):
        row[: len(scores)] = scores
    return table


def test_each_predictor_is_its_formula(lists):
    scores, corpus = lists
    table, k = padded(scores), 10
    falling = [sorted(each.tolist(), reverse=True) for each in scores]
    expected = {
        "max": [each[0] for each in falling],
        "mean": [fmean(each[:k]) for each in falling],
        "sigma_k": [pstdev(each[:k]) for each in falling],
        "sigma_max": [max(pstdev(each[:n]) for n in range(1, len(each) + 1)) for each in falling],
        "n_sigma": [pstdev([s for s in each if s >= 0.3 * each[0]]) / sqrt(2) for each in falling],
        "nqc": [pstdev(e[:k]) / abs(c) for e, c in zip(falling, corpus, strict=True)],
        "wig": [
            fmean([s - c for s in e[:k]]) / sqrt(2) for e, c in zip(falling, corpus, strict=True)
        ],
        "smv": [
            fmean([s * abs(log(s / fmean(e[:k]))) for s in e[:k]]) / abs(c)
            for e, c in zip(falling, corpus, strict=True)
        ],
    }
    for name, values in expected.items():
        found = query_difficulty(
            name, table, corpus_score=corpus, cutoff=k, share=0.3, query_terms=2
        )
        np.testing.assert_allclose(found, values, rtol=1e-10, err_msg=name)


def test_a_topic_without_a_list_has_no_difficulty():
    table = np.array([[1.0, 2.0], [np.nan, np.nan]])
    for name in ("nqc", "wig", "smv", "sigma_k", "sigma_max", "n_sigma", "max", "mean"):
        found = query_difficulty(name, table, corpus_score=[1.0, 1.0])
        assert np.isnan(found).tolist() == [False, True], name


def test_a_corpus_score_of_0_and_a_large_mean_leave_what_there_is():
    assert np.isnan(nqc([[1.0, 2.0]], [0.0])).all()
    assert np.isnan(smv([[1.0, 2.0]], [0.0])).all()
    assert wig([[1.0, 2.0]], [0.0]).tolist() == [1.5]
    small = np.array([[0.3, 0.2, 0.1, 0.0]])
    np.testing.assert_allclose(sigma_max(small + 1e6), sigma_max(small), rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: n_sigma([[1.0, -1.0]]), "scores_not_positive"),
        (lambda: smv([[-1.0, -4.0]], [1.0]), "scores_not_positive"),
        (lambda: n_sigma([[1.0]], share=0), "share_out_of_range"),
        (lambda: sigma_k([1.0, 2.0]), "scores_shape"),
        (lambda: sigma_k([[1.0, np.inf]]), "scores_not_finite"),
        (lambda: sigma_k([[1.0]], cutoff=0), "cutoff_out_of_range"),
        (lambda: wig([[1.0]], [0.0], query_terms=0), "query_terms_out_of_range"),
        (lambda: query_difficulty("nqc", [[1.0]]), "corpus_score_missing"),
        (lambda: query_difficulty("clarity", [[1.0]]), "unknown_predictor"),
    ],
)
def test_arguments_out_of_range_are_refused(call, code):
    with refused(InvalidValue, code):
        call()
