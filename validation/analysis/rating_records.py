"""What people's ratings say of systems, alone or with the scores of all: rows of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RatedSystemRecord:
    """What people rate a system on average, for new items and annotators; the best first.
    `n_items_off_end`: items most of whose ratings are not at the end of the scale that has more.
    `busiest_share`: the share of the ratings that one annotator gave, the busiest."""

    question: str
    system: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    method: str
    rank_low: int
    rank_high: int
    n_items: int
    n_annotators: int
    n_ratings: int
    n_items_off_end: int | None = None
    busiest_share: float | None = None


@dataclass(frozen=True, slots=True)
class RatedPairRecord:
    """Two systems as people rate them, and what would tell them apart.

    `freedom` and `p` are of the pair alone; `p_adjusted` is Holm's, of p with at most the degrees
    of freedom that all pairs together give.
    `items_needed` and `annotators_needed` are how many in all would show a difference as large
    as the one seen four times in five: either the one or the other; None where none would.
    `least_shown` is the least difference that the study shows so often as it is, and
    `least_shown_of_twice` with twice the items, by the same annotators; each by a test whose p is
    adjusted as here.
    """

    question: str
    a: str
    b: str
    delta: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    test: str
    freedom: float | None
    p: float | None
    p_adjusted: float | None
    estimand: str
    n_items: int
    n_annotators: int
    items_needed: int | None
    annotators_needed: int | None
    least_shown: float | None = None
    least_shown_of_twice: float | None = None


@dataclass(frozen=True, slots=True)
class EstimatedMeanRecord:
    """A system's mean rating over all scored items, from the rated ones and a metric's scores;
    `look` counts the drawn batches that have ratings, `confidence` is this look's own level."""

    question: str
    metric: str
    signature: str
    system: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    confidence: float
    look: int
    weight: float | None
    n_labelled: int
    n: int
    effective_n: float | None
    people: float | None
    people_low: float | None
    people_high: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class EstimatedDifferenceRecord:
    """Two systems' mean ratings over all items scored of both; `p_adjusted` over the pairs of a
    question and metric, for this look."""

    question: str
    metric: str
    signature: str
    a: str
    b: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None
    confidence: float
    look: int
    n_labelled: int
    n: int
    reason: str
