"""The cells that several annotators rated, correlations over them, and what ceilings assume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import nan

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_same_length,
    sum_by,
)
from stats.correlation import Level, RowCoefficient
from stats.correlation.bootstrap import rounded_means, unit_range
from stats.correlation.coefficients import correlate_groups
from stats.correlation.result import renumbered
from stats.libraries import np, pd, scipy


def cells_of_several(
    items: Column, systems: Column, annotators: Column, values: Column
) -> pd.DataFrame:
    require_same_length(items=items, systems=systems, annotators=annotators, values=values)
    named = {"items": items, "systems": systems, "annotators": annotators}
    codes = {name: coded_in_order(column, name) for name, column in named.items()}
    frame = pd.DataFrame({name: code for name, (code, _) in codes.items()})
    frame["value"] = complete_numbers(values, "values")
    means: pd.DataFrame = frame.groupby(list(named), as_index=False)[["value"]].mean()
    n_systems = max(1, len(codes["systems"][1]))
    means["cell"] = pd.factorize(means["items"] * n_systems + means["systems"])[0]
    means["item_name"] = pd.Index(codes["items"][1], tupleize_cols=False).take(
        means["items"].to_numpy()
    )
    means = means[means.groupby("cell")["value"].transform("size") > 1].reset_index(drop=True)
    means["cell"] = pd.factorize(means["cell"])[0]
    means["annotator"] = pd.Index(codes["annotators"][1], tupleize_cols=False).take(
        means["annotators"].to_numpy()
    )
    means["items"] = pd.factorize(means["items"], sort=True)[0]
    return means


def random_halves(cells: pd.DataFrame, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The cells' means in two random halves of the same size; whole annotators go into a half as
    far as they can, for how severe somebody is moves all candidates of an item alike."""
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    annotator = cells["annotators"].to_numpy()
    # cells come in order, so that this orders the annotators within each
    order = np.argsort(cell + rng.random(int(annotator.max(initial=-1)) + 1)[annotator])
    size = np.bincount(cell)
    position = np.arange(len(cells)) - np.repeat(np.cumsum(size) - size, size)
    half = np.repeat(size // 2, size)
    first, second = order[position < half], order[(position >= half) & (position < 2 * half)]
    means = [sum_by(cell[side], value[side], len(size)) / (size // 2) for side in (first, second)]
    return means[0], means[1]


def cell_means(cells: pd.DataFrame) -> Floats:
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    size = np.bincount(cell)
    return np.asarray(sum_by(cell, value, len(size)) / size)


def growth(cells: pd.DataFrame) -> float:
    size = np.bincount(cells["cell"].to_numpy())
    return float(size.mean() / (size // 2).mean()) if len(size) else nan


def means_of_others(cells: pd.DataFrame) -> Floats:
    """For each rating, the mean of its cell's other ratings."""
    cell, value = cells["cell"].to_numpy(), cells["value"].to_numpy()
    n_cells = int(cell.max(initial=-1)) + 1
    size, total = np.bincount(cell, minlength=n_cells), sum_by(cell, value, n_cells)
    return np.asarray((total[cell] - value) / (size[cell] - 1))


@dataclass(frozen=True)
class RowCodes:
    item: Integers
    n_items: int
    system: Integers
    n_systems: int

    @classmethod
    def of(cls, rows: pd.DataFrame) -> RowCodes:
        item, system = (renumbered(rows[name].to_numpy()) for name in ("items", "systems"))
        return cls(*item, *system)

    def correlation(self, x: Floats, y: Floats, level: Level, coefficient: str) -> float:
        group, n_groups = np.zeros(len(x), dtype=np.intp), 1
        if level == "item":
            group, n_groups = self.item, self.n_items
        if level == "system":
            count = sum_by(self.system, np.ones(len(x)), self.n_systems)
            x, y = (
                rounded_means(sum_by(self.system, unit_range(side), self.n_systems), count)
                for side in (x, y)
            )
            group = np.zeros(self.n_systems, dtype=np.intp)
        return mean_of_defined(correlate_groups(x, y, group, n_groups, coefficient).value)


def mean_of_defined(values: Floats | Sequence[float]) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    defined = numbers[~np.isnan(numbers)]
    return float(defined.mean()) if len(defined) else nan


LEAST_SEVERITY = 0.05
SIGNIFICANT = 0.01
LARGEST_END = 0.3
LARGEST_POINT = 0.5
MOST_STEPS = 20
MOST_TIED = 0.1
LEAST_SHARED = 0.95
# Items, or clusters of them. Intervals of 12 items held the right Kendall's tau in .87.
FEW_UNITS = 20


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
