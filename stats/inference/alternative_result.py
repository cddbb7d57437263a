"""What the alternative annotator test returns."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from math import nan


class Undecided(StrEnum):
    """Why the test could not be done."""

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

    winning_rate: float
    passes: bool
    advantage_probability: float
    advantage_low: float
    advantage_high: float
    least_epsilon: float
    epsilon: float
    n_items: int
    annotators: tuple[AnnotatorTest, ...]
    skipped: tuple[Hashable, ...] = ()
    controls: dict[str, Control] = field(default_factory=dict)
    rounded: bool = False
    reason: Undecided | None = None
    notes: tuple[str, ...] = ()
