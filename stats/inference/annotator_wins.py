from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan
from typing import Literal

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_same_length,
)

Level = Literal["nominal", "interval"]
# Of an item, besides the judge: one to be left out, and another to be compared with.
LEAST_HUMANS = 2
ROUNDING = 1e-9


@dataclass(frozen=True)
class AnnotatorLabels:
    """The annotators' labels, shape (n_items, n_annotators), and the judge's; NaN for none."""

    humans: Floats
    judge: Floats
    annotators: list[Hashable]
    cluster: Integers
    level: Level
    domain: list[Hashable]
    rounded: bool


def labels_of(
    items: Column,
    annotators: Column,
    values: Column,
    judge: Hashable,
    level: Level,
    clusters: Column | None,
) -> AnnotatorLabels:
    """The labels, an item a row and an annotator a column; ValueError for what cannot be used."""
    require_same_length(items=items, annotators=annotators, values=values)
    item, distinct = coded_in_order(items, "items")
    annotator, names = coded_in_order(annotators, "annotators")
    if judge not in names:
        known = ", ".join(str(name) for name in names[:8])
        raise InvalidValue(
            f"judge must be one of the annotators ({known}), not {judge!r}", code="unknown_judge"
        )
    require(
        len(np.unique(item * len(names) + annotator)) >= len(item),
        "annotators must not label an item twice",
        code="repeated_labels",
    )
    value, domain = _coded_values(values, level)
    table = np.full((len(distinct), len(names)), np.nan)
    table[item, annotator] = value
    at = names.index(judge)
    humans, of_judge = np.delete(table, at, axis=1), table[:, at]
    rounded = level == "interval" and is_whole(humans) and not is_whole(of_judge)
    return AnnotatorLabels(
        humans=humans,
        judge=np.round(of_judge) if rounded else of_judge,
        annotators=[name for name in names if name != judge],
        cluster=_clusters(item, len(distinct), clusters),
        level=level,
        domain=domain,
        rounded=rounded,
    )


def _coded_values(values: Column, level: Level) -> tuple[Floats, list[Hashable]]:
    if level == "interval":
        return complete_numbers(values, "values"), []
    codes, domain = coded_in_order(values, "values")
    return codes.astype(np.float64), domain


def is_whole(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return bool((known == np.round(known)).all())


def _clusters(item: Integers, n_items: int, clusters: Column | None) -> Integers:
    if clusters is None:
        return np.arange(n_items)
    require_same_length(items=item, clusters=clusters)
    codes, _ = coded_in_order(clusters, "clusters")
    of_item = np.zeros(n_items, dtype=np.intp)
    of_item[item] = codes
    require(
        not (of_item[item] != codes).any(),
        "clusters must hold whole items: an item is in two of them",
        code="clusters_split_items",
    )
    return of_item


def wins(ratings: AnnotatorLabels, judge: Floats) -> tuple[Floats, Floats]:
    """Whether the judge, and whether each annotator, is at least as near to the others.

    Shape (n_items, n_annotators) each, NaN where the annotator has no such item.
    """
    humans = ratings.humans
    known = ~np.isnan(humans)
    others = known.sum(axis=1, keepdims=True) - known
    usable = known & (others >= LEAST_HUMANS - 1) & ~np.isnan(judge)[:, None]
    of_judge = np.full(humans.shape, np.nan)
    of_annotator = np.full(humans.shape, np.nan)
    for at in range(humans.shape[1]):
        rest = np.delete(humans, at, axis=1)
        of_judge[:, at] = _score(judge, rest, ratings.level)
        of_annotator[:, at] = _score(humans[:, at], rest, ratings.level)
    nearer = np.where(usable, of_judge >= of_annotator - ROUNDING, np.nan)
    farther = np.where(usable, of_annotator >= of_judge - ROUNDING, np.nan)
    return nearer, farther


def _score(one: Floats, others: Floats, level: Level) -> Floats:
    """How near a label is to the others of its item: share equal, or less the distance."""
    known = ~np.isnan(others)
    count = np.maximum(known.sum(axis=1), 1)
    if level == "nominal":
        return np.asarray(((others == one[:, None]) & known).sum(axis=1) / count)
    squares = np.where(known, np.square(others - one[:, None]), 0.0)
    return np.asarray(-np.sqrt(squares.sum(axis=1) / count))


class Undecided(StrEnum):
    NO_JUDGE = "no_items_with_judge"
    TOO_FEW_ANNOTATORS = "too_few_annotators"


@dataclass(frozen=True, kw_only=True)
class AnnotatorTest:
    """How the judge fares where one annotator is left out.

    Attributes
    ----------
    annotator : Hashable
        The annotator left out.
    n, n_clusters : int
        Items with the annotator, the judge and another annotator; clusters of them.
    judge_wins, annotator_wins : float
        Shares of items on which the judge (the annotator) is at least as near to the others.
    mean_difference : float
        `annotator_wins` less `judge_wins`, with its two-sided interval.
    p, p_adjusted : float
        One-sided p against a difference of at least epsilon; adjusted over annotators by
        Benjamini and Yekutieli. NaN where the annotator has too few items.
    no_spread : bool
        Every item gave the same difference, so that p is 0 or 1 whatever the number of items.
    """

    annotator: Hashable
    n: int
    n_clusters: int
    judge_wins: float
    annotator_wins: float
    mean_difference: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float = nan
    no_spread: bool = False


@dataclass(frozen=True, kw_only=True)
class Control:
    """The same test of a judge that knows nothing: how often it passes, and what it scores."""

    winning_rate: float
    advantage_probability: float
    share_passing: float
    passes: bool
    value: object = None


@dataclass(frozen=True, kw_only=True)
class AlternativeTest:
    """The result of the test, with its controls.

    Attributes
    ----------
    winning_rate : float
        Share of tested annotators whose adjusted p is at most `q`.
    passes : bool
        Whether the winning rate reaches one half. Worth nothing where a control passes too.
    advantage_probability, advantage_low, advantage_high : float
        Mean over annotators of the share of items on which the judge is at least as near to
        the others as they are, and its bootstrap interval. Use it to rank judges.
    least_epsilon : float
        The least epsilon at which the judge passes; NaN where none up to 1 does.
    annotators : tuple of AnnotatorTest
        Those with enough items.
    skipped : tuple of Hashable
        Annotators with too few items, who do not count.
    controls : dict
        ``constant`` (always says the commonest value, or the median) and ``shuffled`` (the
        judge's own labels among the items).
    reason : Undecided or None
        Why there is no result.
    """

    winning_rate: float = nan
    passes: bool = False
    advantage_probability: float = nan
    advantage_low: float = nan
    advantage_high: float = nan
    least_epsilon: float = nan
    epsilon: float
    n_items: int
    annotators: tuple[AnnotatorTest, ...] = ()
    skipped: tuple[Hashable, ...] = ()
    controls: dict[str, Control] = field(default_factory=dict)
    rounded: bool = False
    reason: Undecided | None = None
    notes: tuple[str, ...] = ()
