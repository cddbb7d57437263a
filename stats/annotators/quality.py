"""Measures of annotator quality, one row per annotator."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.crowd import Crowd, code_ratings, code_votes
from stats.aggregation.dawid_skene import dawid_skene
from stats.annotators.drift import drift, position_of
from stats.annotators.gold import Gold, gold_accuracy, gold_correlation
from stats.annotators.leave_one_out import Reason, agreement_table, correlation_table
from stats.annotators.peers import equal_share, peer_mean
from stats.annotators.repeats import self_agreement, self_reliability
from stats.arguments import Column, Floats, numbers, require_same_length
from stats.libraries import pd

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
    if level not in get_args(Level):
        raise InvalidValue(
            f"level must be one of {', '.join(get_args(Level))}, not {level!r}",
            code="unknown_level",
        )
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
