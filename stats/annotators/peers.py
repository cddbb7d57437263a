"""Each label beside the labels that other annotators gave the same item."""

from dataclasses import dataclass

import numpy as np

from stats.aggregation.crowd import Ratings, Votes
from stats.arguments import Floats, Integers
from stats.groups import sum_by


@dataclass(frozen=True)
class Peers:
    """One entry a label: how many labels others gave its item, and what is made of them."""

    count: Floats
    value: Floats  # share of the others' labels that are equal, or mean of their ratings


def equal_share(votes: Votes) -> Peers:
    """The share of the other annotators' labels of the item that equal the label."""
    size = votes.labels_per_item[votes.item] - _own(votes)
    same = votes.per_category(np.ones(votes.n_labels))[votes.item, votes.value]
    cell = _pair(votes) * votes.n_categories + votes.value
    same = same - _group_totals(cell, np.ones(votes.n_labels))
    return _ratio(same, size)


def peer_mean(ratings: Ratings) -> Peers:
    """The mean of the other annotators' ratings of the item."""
    size = ratings.labels_per_item[ratings.item] - _own(ratings)
    total = ratings.per_item(ratings.value)[ratings.item]
    others = total - _group_totals(_pair(ratings), ratings.value)
    return _ratio(others, size)


def _pair(crowd: Votes | Ratings) -> Integers:
    return crowd.item * len(crowd.annotators) + crowd.annotator


def _own(crowd: Votes | Ratings) -> Floats:
    return _group_totals(_pair(crowd), np.ones(crowd.n_labels))


def _group_totals(group: Integers, amounts: Floats) -> Floats:
    """For each row, the total of the amounts of its group."""
    distinct, code = np.unique(group, return_inverse=True)
    return sum_by(code, amounts, len(distinct))[code]


def _ratio(total: Floats, count: Floats) -> Peers:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Peers(count, np.where(count > 0, total / count, np.nan))
