"""Self-consistency: what an annotator says when asked the same again."""

import numpy as np

from stats.aggregation.crowd import Crowd, Ratings, Votes
from stats.arguments import Floats
from stats.groups import pairs_within, sum_by


def self_agreement(votes: Votes) -> tuple[Floats, Floats]:
    """Pairs of repeated labels of each annotator, and the share of them that are equal."""
    owner, left, right = _repeated(votes)
    n = len(votes.annotators)
    n_pairs = sum_by(owner, np.ones(len(owner)), n)
    equal = sum_by(owner, (votes.value[left] == votes.value[right]) * 1.0, n)
    with np.errstate(invalid="ignore"):
        return n_pairs, equal / n_pairs


def self_reliability(ratings: Ratings) -> tuple[Floats, Floats]:
    """Pairs of repeated ratings of each annotator, and the reliability they show.

    One minus the mean squared difference of a pair over twice the variance of the annotator's
    ratings: 1 for the same ratings, about 0 for unrelated ones, NaN where all are equal.
    """
    owner, left, right = _repeated(ratings)
    n = len(ratings.annotators)
    n_pairs = sum_by(owner, np.ones(len(owner)), n)
    squares = sum_by(owner, (ratings.value[left] - ratings.value[right]) ** 2, n)
    count = ratings.labels_per_annotator
    mean = ratings.per_annotator(ratings.value) / count
    deviation = ratings.per_annotator((ratings.value - mean[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = deviation / (count - 1)
        return n_pairs, np.where(variance > 0, 1 - squares / n_pairs / (2 * variance), np.nan)


def _repeated(crowd: Crowd) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The annotator and the two rows of every pair of labels one annotator gave one item."""
    pair = crowd.item * len(crowd.annotators) + crowd.annotator
    distinct, code = np.unique(pair, return_inverse=True)
    left, right = pairs_within(code, len(distinct))
    return crowd.annotator[left], left, right
