"""Which metric is said to agree with people best, by the codes of the sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from stats.ceilings import NoCeiling
from tests.codes import codes_of
from validation.analysis import Settings, report_from_tables
from validation.analysis.ceilings import REASONS
from validation.documents.metrics_answers import metrics_answers
from validation.results import TableResults

SETTINGS = Settings(levels=("item",), coefficients=("pearson",), n_resamples=200, n_splits=0)


def answer_of(strength):
    """Of a metric that follows the ratings so far, beside one that says nothing of them."""
    rng = np.random.default_rng(1)
    cells = pd.DataFrame(
        [{"item": f"i{i}", "system": f"s{s}"} for i in range(30) for s in range(4)]
    )
    truth = rng.normal(size=len(cells))
    human = cells.assign(question="q", annotator="a", value=truth)
    noise = rng.normal(size=(2, len(cells)))
    scores = pd.concat(
        cells.assign(metric=name, value=share * truth + noise[row])
        for row, (name, share) in enumerate((("near", strength), ("nothing", -0.2)))
    )
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, SETTINGS))
    )
    return answer


def ceiling_answer(coefficient, *, level="item", steps=False):
    """Of a metric that follows the truth from afar, where three annotators rate it nearly alike."""
    settings = replace(SETTINGS, levels=(level,), coefficients=(coefficient,), n_splits=10)
    rng = np.random.default_rng(1)
    rows = [(f"i{i}", f"s{s}") for i in range(40) for s in range(5)]
    cells = pd.DataFrame(rows, columns=["item", "system"])
    truth = rng.normal(size=len(cells)) + 2 * (cells["system"] == "s0").to_numpy()
    people = [truth + rng.normal(0, 0.3, len(cells)) for _ in range(3)]
    people = [(value > 0).astype(float) for value in people] if steps else people
    human = pd.concat(
        cells.assign(question="q", annotator=f"a{n}", value=value) for n, value in enumerate(people)
    )
    scores = cells.assign(metric="far", value=truth + rng.normal(0, 2, len(cells)))
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, settings))
    )
    return answer


def test_of_equal_ratings_is_spoken_only_where_there_may_be_some():
    assert ceiling_answer("pearson").below_ceiling.code == "below_ceiling"
    assert ceiling_answer("kendall").below_ceiling.code == "below_ceiling_of_ties"
    # Means of systems are not equal.
    of_systems = ceiling_answer("kendall", level="system").below_ceiling
    assert of_systems is None or of_systems.code == "below_ceiling"


def test_the_interval_of_the_ceiling_is_of_these_annotators():
    answer = ceiling_answer("pearson")
    assert answer.ceiling.attainable_low is not None
    assert "ceiling_interval" in codes_of(answer.ceiling_sentences)
    of_systems = ceiling_answer("kendall", level="system")  # which have no interval
    assert of_systems.ceiling.attainable is not None
    assert "ceiling_interval" not in codes_of(of_systems.ceiling_sentences)


def test_why_yes_and_no_have_no_ceiling_of_pairwise_accuracy_is_true():
    answer = ceiling_answer("acc_eq", steps=True)
    assert answer.ceiling.split_half > 0.6
    assert answer.ceiling.reason == REASONS[NoCeiling.TIED]
    assert codes_of(answer.ceiling_sentences) == ["ceiling_unknown"]


def test_only_a_metric_beyond_chance_is_called_the_best():
    assert answer_of(-0.1).answer.code == "chance"
    best = answer_of(2.0).answer
    assert best.code == "best"
    assert "near" in best
