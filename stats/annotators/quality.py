from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Any, Literal, get_args

from stats.aggregation.dawid_skene import dawid_skene
from stats.aggregation.result import (
    Crowd,
    Ratings,
    Votes,
    annotator_table,
    code_ratings,
    code_votes,
)
from stats.arguments import (
    Column,
    Floats,
    Integers,
    numbers,
    pairs_within,
    require,
    require_one_of,
    require_same_length,
    series,
    sum_by,
)
from stats.correlation.coefficients import Coefficient, correlate_groups
from stats.correlation.result import Reason as CorrelationReason
from stats.libraries import np, pd, scipy


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


def agreement_table(votes: Votes) -> pd.DataFrame:
    """Agreement with the others, and kappa: (agreement - expected) / (1 - expected).

    The expected agreement is that of the annotator's distribution of categories with the others'
    on the same items; kappa is NaN where that is 1.
    """
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
    shape = (len(votes.annotators), votes.n_categories)
    cell = votes.annotator * votes.n_categories + votes.value
    own = sum_by(cell, (peers.count > 0).astype(np.float64), shape[0] * shape[1]).reshape(shape)
    others = np.zeros(shape)
    weight = np.where(peers.count > 0, 1 / np.maximum(peers.count, 1), 0.0)
    counts = votes.per_category(np.ones(votes.n_labels))
    distinct, code = np.unique(_pair(votes), return_inverse=True)
    own_cell = code * votes.n_categories + votes.value
    own_counts = sum_by(own_cell, np.ones(len(code)), len(distinct) * votes.n_categories)
    own_counts = own_counts.reshape(len(distinct), votes.n_categories)
    for category in range(votes.n_categories):
        among_others = counts[votes.item, category] - own_counts[code, category]
        others[:, category] = votes.per_annotator(among_others * weight)
    return np.asarray((own * others).sum(axis=1) / n_shared**2)


def correlation_table(ratings: Ratings, coefficient: Coefficient) -> pd.DataFrame:
    peers = peer_mean(ratings)
    shared = peers.count > 0
    correlations = correlate_groups(
        ratings.value, peers.value, ratings.annotator, len(ratings.annotators), coefficient
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
    return _ratio(total - _group_totals(_pair(ratings), ratings.value), size)


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


Level = Literal["nominal", "ordinal", "interval", "ratio"]
SMOOTHING = 0.1


def annotator_quality(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    level: Level,
    gold: Gold | None = None,
    order: Column | None = None,
    seconds: Column | None = None,
) -> pd.DataFrame:
    """How good each annotator is, by every measure the data allow.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are numbers unless `level` is nominal. An annotator may label
        an item more than once, which shows self-consistency.
    level : {"nominal", "ordinal", "interval", "ratio"}
        The level of measurement of the values.
    gold : mapping of item to value, optional
        Known answers of some items.
    order : array-like of float or time, shape (n_labels,), optional
        When each label was given; only the order within an annotator counts.
    seconds : array-like of float, shape (n_labels,), optional
        How long each label took; NaN where unknown.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator. Always ``annotator, n_labels, n_shared`` (labels of
        items that others labelled too), ``quality`` (the headline: see Notes), ``reason``
        (None, or why ``quality`` is undefined), ``self_consistency``, ``n_repeats`` (pairs of
        labels it rests on), ``drift`` and ``drift_p``, ``median_seconds``, ``n_gold``.
        Nominal: ``loo_agreement, loo_kappa, informedness, gold_accuracy``, and ``drift`` is
        Spearman's correlation of order with agreement. Else: ``loo_correlation, bias, error_sd,
        spread, gold_correlation, gold_bias``; ``bias`` and ``error_sd`` are about the others'
        means, ``spread`` is the standard deviation of the ratings, and ``drift`` the
        correlation of order with the difference from the others. What was not asked for, or is
        undefined, is NaN.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers though
        `level` wants them, `level` is unknown, or `gold` knows none of the items.

    Notes
    -----
    ``quality`` is ``informedness`` for nominal values: the mean chance, over true classes, of
    labelling an item of the class correctly, by Dawid and Skene's model with 0.1 pseudo-labels,
    rescaled so that guessing, or always giving one answer, is 0. Agreement with others rewards
    an annotator who always answers with a frequent class; this does not. For other levels it is
    ``loo_correlation``, by ranks for ordinal values.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates
    using the EM algorithm. Applied Statistics 28(1), 20-28.
    V. C. Raykar and S. Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. JMLR 13, 491-518.

    Examples
    --------
    >>> items, annotators = [1, 2, 3, 4] * 3, list("aaaabbbbcccc")
    >>> table = annotator_quality(items, annotators, list("xyxyxyxyxxxx"), level="nominal")
    >>> table[["annotator", "loo_agreement", "quality"]].round(1)
      annotator  loo_agreement  quality
    0         a            0.8      0.9
    1         b            0.8      0.9
    2         c            0.5      0.0
    """
    require_one_of(level=(level, get_args(Level)))
    if level == "nominal":
        crowd, table, departure = _of_categories(items, annotators, values, gold)
    else:
        crowd, table, departure = _of_numbers(items, annotators, values, level, gold)
    return table.assign(
        **_change(crowd, order, departure), median_seconds=_median_seconds(crowd, seconds)
    )


def _of_categories(
    items: Column, annotators: Column, values: Column, gold: Gold | None
) -> tuple[Crowd, pd.DataFrame, Floats]:
    votes = code_votes(items, annotators, values, "count")
    table = agreement_table(votes)
    fit = dawid_skene(items, annotators, values, smoothing=SMOOTHING)
    informedness: Any = fit.annotators["informedness"].to_numpy() if votes.n_labels else np.nan
    informedness = np.where(table["n_shared"] > 0, informedness, np.nan)
    n_repeats, consistency = self_agreement(votes)
    n_gold, accuracy = gold_accuracy(votes, gold) if gold is not None else (0, np.nan)
    table = table.assign(
        informedness=informedness,
        quality=informedness,
        n_repeats=n_repeats.astype(np.intp),
        self_consistency=consistency,
        n_gold=np.asarray(n_gold, dtype=np.intp),
        gold_accuracy=accuracy,
    )
    table.loc[table["quality"].isna() & table["reason"].isna(), "reason"] = Reason.SINGLE_CATEGORY
    return votes, table, equal_share(votes).value


def _of_numbers(
    items: Column, annotators: Column, values: Column, level: Level, gold: Gold | None
) -> tuple[Crowd, pd.DataFrame, Floats]:
    ratings = code_ratings(items, annotators, values, "count")
    table = correlation_table(ratings, "spearman" if level == "ordinal" else "pearson")
    n_repeats, reliability = self_reliability(ratings)
    accuracy = gold_correlation(ratings, gold) if gold is not None else (0, np.nan, np.nan)
    table = table.assign(
        quality=table["loo_correlation"],
        spread=np.sqrt(_variance(ratings)),
        n_repeats=n_repeats.astype(np.intp),
        self_consistency=reliability,
        n_gold=np.asarray(accuracy[0], dtype=np.intp),
        gold_correlation=accuracy[1],
        gold_bias=accuracy[2],
    )
    return ratings, table, ratings.value - peer_mean(ratings).value


def _change(crowd: Crowd, order: Column | None, departure: Floats) -> dict[str, Any]:
    if order is None:
        return {"drift": np.nan, "drift_p": np.nan}
    rho, p = drift(crowd, position_of(order, crowd), departure)
    return {"drift": rho, "drift_p": p}


def _median_seconds(crowd: Crowd, seconds: Column | None) -> Any:
    if seconds is None:
        return np.nan
    require_same_length(items=crowd.item, seconds=seconds)
    by_annotator = pd.Series(numbers(seconds, "seconds")).groupby(crowd.annotator).median()
    return by_annotator.reindex(range(len(crowd.annotators))).to_numpy()


def position_of(order: Column, crowd: Crowd) -> Floats:
    require_same_length(items=crowd.item, order=order)
    column = series(order, "order")
    if column.dtype.kind == "M" or hasattr(column.dtype, "tz"):
        return np.asarray((column - column.min()).dt.total_seconds(), dtype=np.float64)
    return numbers(order, "order")


def drift(crowd: Crowd, position: Floats, departure: Floats) -> tuple[Floats, Floats]:
    """Spearman's correlation of each annotator's departures with their position, and its p.

    Rows without a departure or a position do not count.
    """
    n = len(crowd.annotators)
    rho = correlate_groups(position, departure, crowd.annotator, n, "spearman").value
    complete = ~(np.isnan(position) | np.isnan(departure))
    freedom = crowd.per_annotator(complete.astype(np.float64)) - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(rho) * np.sqrt(freedom / (1 - rho**2))
        p = 2 * scipy.stats.t.sf(t, np.where(freedom > 0, freedom, np.nan))
    return rho, np.asarray(p)


Gold = Mapping[Hashable, Any]


def gold_accuracy(votes: Votes, gold: Gold) -> tuple[Floats, Floats]:
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
    truth = numbers(pd.Series(_answers(ratings, gold), dtype=object), "gold")[ratings.item]
    has_gold = ~np.isnan(truth)
    n = len(ratings.annotators)
    r = correlate_groups(ratings.value, truth, ratings.annotator, n, "pearson").value
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
    require(
        any(answer is not None for answer in answers),
        "gold has no answer for any of the items",
        code="gold_empty",
    )
    return answers


def self_agreement(votes: Votes) -> tuple[Floats, Floats]:
    n_pairs, equal = _repeated(votes, lambda left, right: (left == right) * 1.0)
    with np.errstate(invalid="ignore"):
        return n_pairs, equal / n_pairs


def self_reliability(ratings: Ratings) -> tuple[Floats, Floats]:
    """Pairs of repeated ratings of each annotator, and the reliability they show.

    One minus the mean squared difference of a pair over twice the variance of the annotator's
    ratings: 1 for the same ratings, about 0 for unrelated ones, NaN where all are equal.
    """
    n_pairs, squares = _repeated(ratings, lambda left, right: (left - right) ** 2)
    variance = _variance(ratings)
    with np.errstate(divide="ignore", invalid="ignore"):
        return n_pairs, np.where(variance > 0, 1 - squares / n_pairs / (2 * variance), np.nan)


def _variance(ratings: Ratings) -> Floats:
    count = ratings.labels_per_annotator
    mean = ratings.per_annotator(ratings.value) / count
    squares = ratings.per_annotator((ratings.value - mean[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(squares / (count - 1))


def _repeated(
    crowd: Votes | Ratings, compared: Callable[[Any, Any], Floats]
) -> tuple[Floats, Floats]:
    distinct, code = np.unique(_pair(crowd), return_inverse=True)
    left, right = pairs_within(code, len(distinct))
    owner, n = crowd.annotator[left], len(crowd.annotators)
    total = sum_by(owner, compared(crowd.value[left], crowd.value[right]), n)
    return sum_by(owner, np.ones(len(owner)), n), total
