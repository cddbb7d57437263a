"""Whether ratings have what ceilings assume: annotators alike, a scale used evenly."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stats.arguments import Floats, Integers
from stats.correlation import Level, RowCoefficient
from stats.groups import sum_by
from stats.libraries import pd, scipy

LEAST_SEVERITY = 0.05
SIGNIFICANT = 0.01
LARGEST_END = 0.3
LARGEST_POINT = 0.5
MOST_STEPS = 20
MOST_TIED = 0.1
LEAST_SHARED = 0.95
FEW_UNITS = 20
"""Items, or clusters of them. Intervals of 12 items held the right Kendall's tau in .87."""


class CeilingWarning(StrEnum):
    """Why a ceiling is unreliable: its interval held the right value in .5 to .9 of studies."""

    SEVERE_ANNOTATORS = "severe_annotators"
    TOP_HEAVY = "top_heavy_scale"
    ONE_POINT = "one_point_heavy_scale"
    TIED = "tied_ratings"
    FEW_UNITS = "few_items"


@dataclass(frozen=True)
class RatingFacts:
    """What decides whether ceilings are reliable.

    Attributes
    ----------
    are_severe : bool
        Whether annotators' severity makes a significant (p < .01) and adjusted share over .05 of
        the variance within cells.
    is_shared_within_items, is_shared : bool
        Whether the same annotators rated (almost) all cells of an item, or all cells. Then their
        severity takes nothing from the ceiling.
    end_share : float
        The share of ratings at the more frequent end of a scale of at most 20 steps; 0 of others.
    point_share : float
        The share of ratings at the most frequent point of such a scale; 0 of others.
    """

    are_severe: bool
    is_shared_within_items: bool
    is_shared: bool
    end_share: float
    point_share: float

    @classmethod
    def of(cls, cells: pd.DataFrame) -> RatingFacts:
        """Those of the cells that `cells_of_several` returns."""
        if not len(cells):
            return cls(False, True, True, 0.0, 0.0)
        value, who = cells["value"].to_numpy(), cells["annotators"].to_numpy()
        of_item = cells.groupby("items")["cell"].transform("nunique")
        in_item = cells.groupby(["items", "annotators"])["cell"].transform("nunique")
        of_all = np.bincount(who)[who]
        points, counts = np.unique(value, return_counts=True)
        has_steps = len(points) <= MOST_STEPS
        shares = counts / len(value)
        return cls(
            are_severe=_are_severe(value, cells["cell"].to_numpy(), who),
            is_shared_within_items=bool((in_item == of_item).mean() > LEAST_SHARED),
            is_shared=bool((of_all == cells["cell"].nunique()).mean() > LEAST_SHARED),
            end_share=float(max(shares[0], shares[-1])) if has_steps else 0.0,
            point_share=float(shares.max()) if has_steps else 0.0,
        )

    def warning(
        self, level: Level, coefficient: RowCoefficient, untied_share: float, n_units: int
    ) -> CeilingWarning | None:
        """The first reason against a ceiling of that level and coefficient; None if there is none.

        `untied_share` is that of pairs within the halves that the ceiling is made of; `n_units`
        counts its items, or clusters of them.
        """
        is_shared = self.is_shared if level == "pooled" else self.is_shared_within_items
        if self.are_severe and not is_shared:
            return CeilingWarning.SEVERE_ANNOTATORS
        if level == "item" and self.end_share > LARGEST_END:
            return CeilingWarning.TOP_HEAVY
        if level == "item" and self.point_share > LARGEST_POINT:
            return CeilingWarning.ONE_POINT
        if level != "system" and coefficient != "pearson" and untied_share < 1 - MOST_TIED:
            return CeilingWarning.TIED
        return CeilingWarning.FEW_UNITS if n_units < FEW_UNITS else None


def _are_severe(value: Floats, cell: Integers, who: Integers) -> bool:
    """An analysis of variance of ratings, less their cell's mean, by annotator."""
    size = np.bincount(cell)
    residual = value - (sum_by(cell, value, len(size)) / size)[cell]
    count = np.bincount(who)
    n_annotators, total = int((count > 0).sum()), float(residual @ residual)
    between = float((np.square(sum_by(who, residual, len(count))) / np.maximum(count, 1)).sum())
    spare = len(value) - len(size)
    left = spare - (n_annotators - 1)
    if not total > 0 or n_annotators < 2 or left < 1 or not total > between:
        return False
    ratio = between / (n_annotators - 1) / ((total - between) / left)
    share = 1 - (total - between) / left / (total / spare)
    return bool(
        scipy.stats.f.sf(ratio, n_annotators - 1, left) < SIGNIFICANT and share > LEAST_SEVERITY
    )
