"""What is said of which metric agrees with people best."""

from __future__ import annotations

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


def test_metrics_that_chance_explains_are_not_called_the_best_of_any():
    answer = answer_of(-0.1)
    assert answer.answer == "No metric agrees with people beyond chance."
    assert answer.explanation.startswith("Every interval holds 0 or lies below it.")


def test_one_that_follows_people_is_called_the_best():
    assert answer_of(2.0).answer == "near agrees with people best."
