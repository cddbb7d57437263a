"""Measures of annotator quality, one row per annotator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import isnan
from typing import Any, Literal, get_args

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.dawid_skene import dawid_skene
from stats.aggregation.result import Crowd, Ratings, Votes, code_ratings, code_votes
from stats.annotators.leave_one_out import (
    Reason,
    agreement_table,
    correlation_table,
    equal_share,
    peer_mean,
)
from stats.arguments import (
    Column,
    Floats,
    numbers,
    pairs_within,
    require_one_of,
    require_same_length,
    series,
    sum_by,
)
from stats.correlation.coefficients import group_values
from stats.libraries import pd, scipy

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
    single = table["quality"].isna() & table["reason"].isna()
    table.loc[single, "reason"] = Reason.SINGLE_CATEGORY
    return votes, table, equal_share(votes).value


def _of_numbers(
    items: Column, annotators: Column, values: Column, level: Level, gold: Gold | None
) -> tuple[Crowd, pd.DataFrame, Floats]:
    ratings = code_ratings(items, annotators, values, "count")
    table = correlation_table(ratings, "spearman" if level == "ordinal" else "pearson")
    count = ratings.labels_per_annotator
    mean = ratings.per_annotator(ratings.value) / count
    squares = ratings.per_annotator((ratings.value - mean[ratings.annotator]) ** 2)
    n_repeats, reliability = self_reliability(ratings)
    accuracy = gold_correlation(ratings, gold) if gold is not None else (0, np.nan, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(squares / (count - 1))
    table = table.assign(
        quality=table["loo_correlation"],
        spread=spread,
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
        elapsed = column - column.min()
        return np.asarray(elapsed.dt.total_seconds(), dtype=np.float64)
    return numbers(order, "order")


def drift(crowd: Crowd, position: Floats, departure: Floats) -> tuple[Floats, Floats]:
    """Spearman's correlation of each annotator's departures with their position, and its p.

    Rows without a departure or a position do not count.
    """
    n = len(crowd.annotators)
    rho = group_values(position, departure, crowd.annotator, n, "spearman").value
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


def self_agreement(votes: Votes) -> tuple[Floats, Floats]:
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
    pair = crowd.item * len(crowd.annotators) + crowd.annotator
    distinct, code = np.unique(pair, return_inverse=True)
    left, right = pairs_within(code, len(distinct))
    return crowd.annotator[left], left, right
