"""What is said of which metric agrees with people best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from validation.analysis import Settings, report_from_tables
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
    stays = "It stays below what a perfect metric could reach here"
    assert f"{stays}." in ceiling_answer("pearson").explanation
    of_pairs = ceiling_answer("kendall").explanation
    assert f"{stays}; where people's ratings are often equal" in of_pairs
    assert "gives equal scores" not in of_pairs
    # Means of systems are not equal.
    assert "often equal" not in ceiling_answer("kendall", level="system").explanation


def test_the_interval_of_the_ceiling_is_of_these_annotators():
    text = "Its interval is for new items rated by these very annotators."
    answer = ceiling_answer("pearson")
    assert answer.ceiling.attainable_low is not None
    assert text in answer.ceiling_text
    of_systems = ceiling_answer("kendall", level="system")  # which have no interval
    assert of_systems.ceiling.attainable is not None
    assert text not in of_systems.ceiling_text


def test_why_yes_and_no_have_no_ceiling_of_pairwise_accuracy_is_true():
    answer = ceiling_answer("acc_eq", steps=True)
    assert answer.ceiling.split_half > 0.6
    assert "do not agree" not in answer.ceiling_text
    assert (
        "not known: ratings are often equal, of which no ceiling of pairwise accuracy is known"
        in answer.ceiling_text
    )


def test_metrics_that_chance_explains_are_not_called_the_best_of_any():
    answer = answer_of(-0.1)
    assert answer.answer == "No metric agrees with people beyond chance."
    assert answer.explanation.startswith("Every interval holds 0 or lies below it.")


def test_one_that_follows_people_is_called_the_best():
    assert answer_of(2.0).answer == "near agrees with people best."
