"""How each annotator agrees or correlates with the others, themselves left out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stats.aggregation.result import Ratings, Votes, annotator_table, code_ratings, code_votes
from stats.arguments import Column, Floats, Integers, sum_by
from stats.correlation.coefficients import Coefficient, group_values
from stats.correlation.result import Reason as CorrelationReason
from stats.libraries import pd


class Reason(StrEnum):
    NO_OVERLAP = "no_overlap"
    TOO_FEW_LABELS = "too_few_labels"
    CONSTANT_RATINGS = "constant_ratings"
    CONSTANT_OTHERS = "constant_others"
    SINGLE_CATEGORY = "single_category"


_REASONS = {
    CorrelationReason.TOO_FEW: Reason.TOO_FEW_LABELS,
    CorrelationReason.CONSTANT_HUMAN: Reason.CONSTANT_RATINGS,
    CorrelationReason.CONSTANT_METRIC: Reason.CONSTANT_OTHERS,
}


def leave_one_out_agreement(items: Column, annotators: Column, values: Column) -> pd.DataFrame:
    """Agreement of each annotator's categories with those of the others.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. An annotator may label an item again; own labels are never peers.

    Returns
    -------
    DataFrame
        A row an annotator: ``annotator, n_labels, n_shared`` (labels of items that others
        labelled too), ``loo_agreement`` (mean share of the others' labels that are equal),
        ``loo_kappa`` and ``reason``. Without shared items both are NaN (``no_overlap``).

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value.

    Notes
    -----
    ``loo_kappa = (agreement - expected) / (1 - expected)``, where the expected agreement is
    that of the annotator's distribution of categories with the others' on the same items. It is
    NaN where that is 1.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and
    Psychological Measurement 20(1), 37-46.

    Examples
    --------
    >>> table = leave_one_out_agreement([1, 1, 1, 2, 2], list("abcab"), list("xxyxy"))
    >>> table.drop(columns="reason")
      annotator  n_labels  n_shared  loo_agreement  loo_kappa
    0         a         2         2           0.25        0.0
    1         b         2         2           0.25       -0.5
    2         c         1         1           0.00        0.0
    """
    return agreement_table(code_votes(items, annotators, values, "count"))


def agreement_table(votes: Votes) -> pd.DataFrame:
    peers = equal_share(votes)
    shared = peers.count > 0
    n_shared = votes.per_annotator(shared.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        agreement = votes.per_annotator(np.where(shared, peers.value, 0.0)) / n_shared
        expected = _chance(votes, peers, n_shared)
        kappa = (agreement - expected) / (1 - expected)
    kappa[np.isclose(expected, 1)] = np.nan
    table = annotator_table(votes)
    reason = [None if count else Reason.NO_OVERLAP for count in n_shared]
    return table.assign(
        n_shared=n_shared.astype(np.intp),
        loo_agreement=agreement,
        loo_kappa=kappa,
        reason=pd.Series(reason, dtype=object),
    )


def _chance(votes: Votes, peers: Peers, n_shared: Floats) -> Floats:
    """The agreement of each annotator's categories with the others' if they were unrelated."""
    shape = (len(votes.annotators), votes.n_categories)
    cell = votes.annotator * votes.n_categories + votes.value
    own = sum_by(cell, (peers.count > 0).astype(np.float64), shape[0] * shape[1]).reshape(shape)
    others = np.zeros(shape)
    weight = np.where(peers.count > 0, 1 / np.maximum(peers.count, 1), 0.0)
    counts = votes.per_category(np.ones(votes.n_labels))
    pair = votes.item * len(votes.annotators) + votes.annotator
    distinct, code = np.unique(pair, return_inverse=True)
    own_cell = code * votes.n_categories + votes.value
    own_counts = sum_by(own_cell, np.ones(len(code)), len(distinct) * votes.n_categories)
    own_counts = own_counts.reshape(len(distinct), votes.n_categories)
    for category in range(votes.n_categories):
        among_others = counts[votes.item, category] - own_counts[code, category]
        others[:, category] = votes.per_annotator(among_others * weight)
    return np.asarray((own * others).sum(axis=1) / n_shared**2)


def leave_one_out_correlation(
    items: Column, annotators: Column, values: Column, *, coefficient: Coefficient = "pearson"
) -> pd.DataFrame:
    """Correlation of each annotator's ratings with the mean of the others' ratings.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. An annotator may rate an item again; own ratings are never peers.
    values : array-like of float, shape (n_labels,)
        The ratings.
    coefficient : {"pearson", "spearman", "kendall"}
        Which correlation.

    Returns
    -------
    DataFrame
        A row an annotator: ``annotator, n_labels, n_shared, loo_correlation, bias, error_sd,
        reason``. ``bias`` and ``error_sd`` are mean and standard deviation of the differences
        from the others' means. An undefined correlation is NaN, and ``reason`` one of
        ``no_overlap``, ``too_few_labels``, ``constant_ratings``, ``constant_others``.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or the
        coefficient is unknown.

    References
    ----------
    R. Snow, B. O'Connor, D. Jurafsky and A. Y. Ng (2008). Cheap and fast - but is it good?
    EMNLP, 254-263 (section 4.1).

    Examples
    --------
    >>> table = leave_one_out_correlation([1, 2, 3] * 2, list("aaabbb"), [1, 2, 3, 2, 4, 6])
    >>> table[["annotator", "loo_correlation", "bias"]]
      annotator  loo_correlation  bias
    0         a              1.0  -2.0
    1         b              1.0   2.0
    """
    return correlation_table(code_ratings(items, annotators, values, "count"), coefficient)


def correlation_table(ratings: Ratings, coefficient: Coefficient) -> pd.DataFrame:
    peers = peer_mean(ratings)
    shared = peers.count > 0
    n_annotators = len(ratings.annotators)
    correlations = group_values(
        ratings.value, peers.value, ratings.annotator, n_annotators, coefficient
    )
    n_shared = ratings.per_annotator(shared.astype(np.float64))
    error = np.where(shared, ratings.value - peers.value, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = ratings.per_annotator(error) / n_shared
        squares = ratings.per_annotator(shared * (error - bias[ratings.annotator]) ** 2)
        error_sd = np.sqrt(squares / (n_shared - 1))
    reason = [
        Reason.NO_OVERLAP if not count else _REASONS.get(why)
        for count, why in zip(n_shared, correlations.reason, strict=True)
    ]
    return annotator_table(ratings).assign(
        n_shared=n_shared.astype(np.intp),
        loo_correlation=correlations.value,
        bias=bias,
        error_sd=error_sd,
        reason=pd.Series(reason, dtype=object),
    )


@dataclass(frozen=True)
class Peers:
    count: Floats
    value: Floats  # share of the others' labels that are equal, or mean of their ratings


def equal_share(votes: Votes) -> Peers:
    size = votes.labels_per_item[votes.item] - _own(votes)
    same = votes.per_category(np.ones(votes.n_labels))[votes.item, votes.value]
    cell = _pair(votes) * votes.n_categories + votes.value
    same = same - _group_totals(cell, np.ones(votes.n_labels))
    return _ratio(same, size)


def peer_mean(ratings: Ratings) -> Peers:
    size = ratings.labels_per_item[ratings.item] - _own(ratings)
    total = ratings.per_item(ratings.value)[ratings.item]
    others = total - _group_totals(_pair(ratings), ratings.value)
    return _ratio(others, size)


def _pair(crowd: Votes | Ratings) -> Integers:
    return crowd.item * len(crowd.annotators) + crowd.annotator


def _own(crowd: Votes | Ratings) -> Floats:
    return _group_totals(_pair(crowd), np.ones(crowd.n_labels))


def _group_totals(group: Integers, amounts: Floats) -> Floats:
    distinct, code = np.unique(group, return_inverse=True)
    return sum_by(code, amounts, len(distinct))[code]


def _ratio(total: Floats, count: Floats) -> Peers:
    with np.errstate(divide="ignore", invalid="ignore"):
        return Peers(count, np.where(count > 0, total / count, np.nan))
