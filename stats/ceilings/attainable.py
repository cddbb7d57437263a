from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isnan, nan
from typing import Any, get_args

from stats.arguments import Column, Floats, Integers, require_at_least, require_one_of
from stats.ceilings.cells import (
    MOST_TIED,
    CeilingWarning,
    RatingFacts,
    RowCodes,
    cell_means,
    cells_of_several,
    growth,
    mean_of_defined,
    means_of_others,
    random_halves,
)
from stats.ceilings.normal_scale import AllRatings, NormalScale, untied_share
from stats.correlation import Level, RowCoefficient
from stats.correlation.influence import cluster_variance, z_t_limits
from stats.correlation.item_limits import item_influences
from stats.correlation.levels import require_level
from stats.libraries import np, pd


class NoCeiling(StrEnum):
    NO_SECOND_RATING = "no_second_rating"
    NO_HALVES = "no_halves"
    TIED = "tied"
    NO_AGREEMENT = "no_agreement"


@dataclass(frozen=True)
class Ceiling:
    """What human ratings allow a metric to reach at one level, with one coefficient.

    Attributes
    ----------
    split_half : float
        Mean over random splits of the correlation of two halves of each unit's ratings.
    reliability : float
        The coefficient of two sets of as many ratings as there are: `split_half` stepped up to the
        mean of all ratings by Spearman and Brown.
    attainable : float
        What a perfect metric would reach: of Pearson's r the square root of `reliability`.
    leave_one_out : float
        Mean over annotators of the correlation of one's ratings with the mean of the others':
        how well one more annotator would do instead of a metric.
    by_annotator : Series of float
        That correlation for each annotator, NaN where undefined.
    n_splits, seed
        Random splits, and their seed (None where a generator was handed in).
    attainable_low, attainable_high : float
        The interval of `attainable` for new items (or clusters of them), these annotators; NaN
        for rank coefficients of systems, and where there are fewer than two items.
    n_units : int
        The items, or clusters of them, that it rests on.
    normal_reliability : float
        `reliability` on the scale of Pearson's r (`NormalScale`), on which it is stepped up.
    reason : NoCeiling or None
        Why `attainable` is NaN: no cell has two annotators, the halves have no correlation (one
        side is constant, or there are no two cells to compare), pairwise accuracy of ratings that
        are often tied, or halves that do not agree. None where it is known.
    warning : CeilingWarning or None
        Why the attainable and its interval are unreliable; None if nothing speaks against them.
    moved_by : Series of float
        By how much each item moves the attainable; what intervals of shares are made of.
    """

    level: Level
    coefficient: str
    split_half: float
    reliability: float
    attainable: float
    leave_one_out: float
    by_annotator: pd.Series[float]
    n_splits: int
    seed: int | None
    attainable_low: float = nan
    attainable_high: float = nan
    n_units: int = 0
    normal_reliability: float = nan
    reason: NoCeiling | None = None
    warning: CeilingWarning | None = None
    moved_by: pd.Series[float] | None = field(default=None, repr=False, compare=False)

    def share(self, value: float) -> float:
        """What share of the attainable a correlation is; NaN where nothing is attainable."""
        return value / self.attainable if self.attainable > 0 else nan


def ceiling(
    items: Column,
    systems: Column,
    annotators: Column,
    values: Column,
    *,
    level: Level,
    coefficient: RowCoefficient = "pearson",
    n_splits: int = 100,
    rng: int | np.random.Generator = 0,
) -> Ceiling:
    """How well annotators agree with each other at a level, and so what a metric could attain.

    Parameters
    ----------
    items, systems, annotators : array-like, shape (n_ratings,)
        The item, system (or candidate) and annotator of each rating.
    values : array-like of float, shape (n_ratings,)
        The ratings. Several of one annotator for one cell are averaged.
    level, coefficient
        As in `stats.correlation.correlation_at_level`.
    n_splits : int
        Random splits.
    rng : int or Generator
        Seed of the splits, recorded in the result, or a generator to draw from.

    Returns
    -------
    Ceiling
        Numbers are NaN where no cell has two annotators, or the halves have no correlation.

    Raises
    ------
    ValueError
        If the columns differ in length, have missing values, or `values` is not of finite
        numbers; or `level`, `coefficient` or `n_splits` is not usable.

    Notes
    -----
    Each cell's ratings are split into two halves of the same size, one left over where they are
    odd, so that annotators need not have rated the same cells. Whole annotators go into a half as
    far as they can: how severe somebody is moves all candidates of an item alike. Stepping up and
    the square root are right for Pearson's r of many values alone. Another coefficient, and
    Pearson's of few values, is turned into the r that normal variables have at that value, and back
    (`NormalScale`): the root of a rank coefficient itself would be too high, and even the truth
    would reach no more than nine tenths of it. Of ratings far from normal the way back is an
    approximation, and `warning` says so: docs/correlation.md says how near.

    References
    ----------
    C. Spearman (1904). The proof and measurement of association between two things. American
    Journal of Psychology 15(1), 72-101.
    R. Greiner (1909) and P. A. P. Moran (1948), as in `NormalScale`.
    H. Nili et al. (2014). A toolbox for representational similarity analysis. PLoS Computational
    Biology 10(4), e1003553: leave-one-out noise ceilings.

    Examples
    --------
    >>> items, systems = [1, 1, 2, 2, 3, 3, 4, 4], [0] * 8
    >>> found = ceiling(items, systems, [0, 1] * 4, [1, 1, 2, 3, 3, 2, 4, 4], level="pooled")
    >>> round(found.split_half, 2), round(found.attainable, 2), round(found.leave_one_out, 2)
    (0.8, 0.94, 0.8)
    """
    [result] = ceilings(
        items,
        systems,
        annotators,
        values,
        measures=[(level, coefficient)],
        n_splits=n_splits,
        rng=rng,
    )
    return result


def ceilings(
    items: Column,
    systems: Column,
    annotators: Column,
    values: Column,
    *,
    measures: Sequence[tuple[Level, RowCoefficient]],
    n_splits: int = 100,
    rng: int | np.random.Generator = 0,
    clusters: Column | None = None,
    confidence: float = 0.95,
) -> list[Ceiling]:
    """The ceilings of several coefficients and levels, from the same splits of the ratings.

    Parameters
    ----------
    items, systems, annotators : array-like, shape (n_ratings,)
        The item, system (or candidate) and annotator of each rating.
    values : array-like of float, shape (n_ratings,)
        The ratings. Several of one annotator for one cell are averaged.
    measures : sequence of (level, coefficient)
        As in `ceiling`.
    n_splits : int
        Random splits.
    rng : int or Generator
        Seed of the splits, recorded in the results, or a generator to draw from.
    clusters : array-like, shape (n_ratings,), optional
        The cluster of each rating's item, where items are not independent.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    list of Ceiling
        One for each of `measures`, each as `ceiling` gives it.

    Raises
    ------
    ValueError
        As `ceiling`.

    Notes
    -----
    Limits of the halves' correlation are Student's t on Fisher's scale, with the variance of what
    each item moves it by, on average over the splits; they are stepped up as it is.

    References
    ----------
    As `ceiling`.

    Examples
    --------
    >>> items, systems = [1, 1, 2, 2, 3, 3, 4, 4], [0] * 8
    >>> measures = [("pooled", "pearson"), ("pooled", "kendall")]
    >>> found = ceilings(
    ...     items, systems, [0, 1] * 4, [1, 1, 2, 3, 3, 2, 4, 4], measures=measures
    ... )
    >>> [round(one.leave_one_out, 2) for one in found]
    [0.8, 0.67]
    """
    for level, coefficient in measures:
        require_level(level, coefficient, items, systems)
        require_one_of(coefficient=(coefficient, get_args(RowCoefficient)))
    require_at_least(1, n_splits=n_splits)
    cells = cells_of_several(items, systems, annotators, values)
    generator = np.random.default_rng(rng)
    halves = [random_halves(cells, generator) for _ in range(n_splits)]
    codes = RowCodes.of(cells.drop_duplicates("cell"))
    parts = [
        (name, part.index.to_numpy(), RowCodes.of(part))
        for name, part in cells.groupby("annotator", sort=True)
    ]
    others = means_of_others(cells)
    factor = growth(cells)
    ties = _Ties(halves, cell_means(cells))
    seed = None if isinstance(rng, np.random.Generator) else int(rng)
    facts = RatingFacts.of(cells)
    names = pd.Index(cells.drop_duplicates("items").sort_values("items")["item_name"])
    unit = _units(cells, names, clusters, items)
    results = []
    for level, coefficient in measures:
        of_splits = [codes.correlation(*pair, level, coefficient) for pair in halves]
        by_annotator = {
            name: part.correlation(
                cells["value"].to_numpy()[rows], others[rows], level, coefficient
            )
            for name, rows, part in parts
        }
        whole = AllRatings(_scale(codes, level, coefficient, ties), factor)
        one = _ceiling(
            level, coefficient, mean_of_defined(of_splits), whole, by_annotator, n_splits, seed
        )
        if (reason := _reason(one, codes, ties)) is not None:
            results.append(replace(one, attainable=nan, reliability=nan, reason=reason))
            continue
        untied, _ = ties.shares(*_groups(codes, level))
        one = replace(one, warning=facts.warning(level, coefficient, untied, len(set(unit))))
        known = [pair for pair, value in zip(halves, of_splits, strict=True) if not isnan(value)]
        moved = np.mean(
            [item_influences(*pair, codes.item, codes.system, level, coefficient) for pair in known]
            or [np.full(1, nan)],
            axis=0,
        )
        results.append(_with_limits(one, moved, names, unit, whole, confidence))
    return results


def _units(
    cells: pd.DataFrame, names: pd.Index[Any], clusters: Column | None, items: Column
) -> Integers:
    if clusters is None:
        return np.arange(len(names))
    of_item = pd.Series(list(clusters), index=pd.Index(list(items), tupleize_cols=False))
    of_item = of_item[~of_item.index.duplicated()]
    return pd.factorize(of_item.reindex(names))[0]


def _with_limits(
    one: Ceiling,
    moved: Floats,
    names: pd.Index[Any],
    unit: Integers,
    whole: AllRatings,
    confidence: float,
) -> Ceiling:
    n_units = len(np.unique(unit))
    # Halves that disagree as two annotators can have no whole, and nothing that it moves by.
    if len(moved) != len(names) or np.isnan(moved).any() or isnan(one.reliability):
        return replace(one, n_units=n_units)
    limits = z_t_limits(one.split_half, cluster_variance(moved, unit), n_units - 1, confidence)
    low, high = (whole.attainable(limit) for limit in limits)
    return replace(
        one,
        attainable_low=low,
        attainable_high=high,
        n_units=n_units,
        moved_by=pd.Series(whole.slope(one.split_half) * moved, index=names),
    )


def _reason(one: Ceiling, codes: RowCodes, ties: _Ties) -> NoCeiling | None:
    if not len(codes.item):
        return NoCeiling.NO_SECOND_RATING
    if isnan(one.split_half):
        return NoCeiling.NO_HALVES
    if one.coefficient == "acc_eq" and one.level != "system":
        # of yes and no a metric without ties reached 58 to 105 % of what was said
        untied, _ = ties.shares(*_groups(codes, one.level))
        if untied < 1 - MOST_TIED:
            return NoCeiling.TIED
    return NoCeiling.NO_AGREEMENT if isnan(one.attainable) else None


def _scale(codes: RowCodes, level: Level, coefficient: RowCoefficient, ties: _Ties) -> NormalScale:
    if level == "system":
        return NormalScale(coefficient, np.array([codes.n_systems]))
    group, n_groups = _groups(codes, level)
    shares = ties.shares(group, n_groups) if coefficient == "kendall" else (1.0, 1.0)
    return NormalScale(coefficient, np.bincount(group, minlength=n_groups), *shares)


def _groups(codes: RowCodes, level: Level) -> tuple[Integers, int]:
    if level == "item":
        return codes.item, codes.n_items
    return np.zeros(len(codes.item), dtype=np.intp), 1


@dataclass(frozen=True)
class _Ties:
    halves: Sequence[tuple[Floats, Floats]]
    means: Floats

    def shares(self, group: Integers, n_groups: int) -> tuple[float, float]:
        of_halves = [untied_share(one, group, n_groups) for pair in self.halves for one in pair]
        return float(np.mean(of_halves)), untied_share(self.means, group, n_groups)


def _ceiling(
    level: Level,
    coefficient: RowCoefficient,
    split_half: float,
    whole: AllRatings,
    by_annotator: dict[Any, float],
    n_splits: int,
    seed: int | None,
) -> Ceiling:
    reliability = whole.reliability(split_half)
    return Ceiling(
        level=level,
        coefficient=coefficient,
        split_half=split_half,
        reliability=whole.scale.value(reliability, n_rated=2),
        attainable=whole.attainable(split_half) if reliability > 0 else nan,
        leave_one_out=mean_of_defined(list(by_annotator.values())),
        by_annotator=pd.Series(by_annotator, dtype="float64"),
        n_splits=n_splits,
        seed=seed,
        normal_reliability=reliability,
    )
