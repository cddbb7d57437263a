"""Annotators beside known answers."""

from collections.abc import Hashable, Mapping
from math import isnan
from typing import Any

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.crowd import Crowd, Ratings, Votes
from stats.arguments import Floats, numbers
from stats.correlation.coefficients import group_values
from stats.libraries import pd

Gold = Mapping[Hashable, Any]


def gold_accuracy(votes: Votes, gold: Gold) -> tuple[Floats, Floats]:
    """How many labels of each annotator have a known answer, and the share that meet it."""
    answers = _answers(votes, gold)
    code = {category: index for index, category in enumerate(votes.categories)}
    has_gold = np.array([answer is not None for answer in answers])[votes.item]
    # An answer that no annotator gave is a category of its own, which no label meets.
    truth = np.array([code.get(answer, -1) for answer in answers], dtype=np.intp)[votes.item]
    n_gold = votes.per_annotator(has_gold * 1.0)
    right = votes.per_annotator((has_gold & (truth == votes.value)) * 1.0)
    with np.errstate(invalid="ignore"):
        return n_gold, right / n_gold


def gold_correlation(ratings: Ratings, gold: Gold) -> tuple[Floats, Floats, Floats]:
    """How many ratings of each annotator have a known value, Pearson's r and bias beside it."""
    truth = numbers(pd.Series(_answers(ratings, gold), dtype=object), "gold")[ratings.item]
    has_gold = ~np.isnan(truth)
    n = len(ratings.annotators)
    r = group_values(ratings.value, truth, ratings.annotator, n, "pearson").value
    n_gold = ratings.per_annotator(has_gold * 1.0)
    error = ratings.per_annotator(np.where(has_gold, ratings.value - truth, 0.0))
    with np.errstate(invalid="ignore"):
        return n_gold, r, error / n_gold


def _answers(crowd: Crowd, gold: Gold) -> list[Any]:
    """The known answer of each item; None without one, as where a table of gold has a gap."""
    entries = [gold.get(item) for item in crowd.items]
    answers = [
        None if isinstance(answer, float) and isnan(answer) else answer for answer in entries
    ]
    if not any(answer is not None for answer in answers):
        raise InvalidValue("gold has no answer for any of the items", code="gold_empty")
    return answers
