"""What the annotators' agreement with each other allows a metric to reach."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Any, get_args

import numpy as np
import pandas as pd

from stats.arguments import Column, require_one_of
from stats.ceilings.attenuation import spearman_brown
from stats.ceilings.cells import cells_of_several, growth, means_of_others, random_halves
from stats.ceilings.row_codes import RowCodes, mean_of_defined
from stats.correlation import Level, RowCoefficient
from stats.correlation.levels import require_level


@dataclass(frozen=True)
class Ceiling:
    """What human ratings allow a metric to reach at one level, with one coefficient.

    Attributes
    ----------
    split_half : float
        Mean over random splits of the correlation of two halves of each unit's ratings.
    reliability : float
        `split_half` stepped up to the mean of all ratings by Spearman and Brown.
    attainable : float
        The square root of `reliability`: what a perfect metric would reach.
    leave_one_out : float
        Mean over annotators of the correlation of one's ratings with the mean of the others':
        how well one more annotator would do instead of a metric.
    by_annotator : Series of float
        That correlation for each annotator, NaN where undefined.
    n_splits, seed
        Random splits, and their seed (None where a generator was handed in).
    """

    level: Level
    coefficient: str
    split_half: float
    reliability: float
    attainable: float
    leave_one_out: float
    by_annotator: "pd.Series[float]"
    n_splits: int
    seed: int | None

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
    odd, so that annotators need not have rated the same cells. Stepping up and the square root
    are exact for Pearson's r; for rank coefficients they are the customary approximation.

    References
    ----------
    C. Spearman (1904). The proof and measurement of association between two things. American
    Journal of Psychology 15(1), 72-101.
    H. Nili et al. (2014). A toolbox for representational similarity analysis. PLoS Computational
    Biology 10(4), e1003553: leave-one-out noise ceilings.

    Examples
    --------
    >>> items, systems = [1, 1, 2, 2, 3, 3, 4, 4], [0] * 8
    >>> found = ceiling(items, systems, [0, 1] * 4, [1, 1, 2, 3, 3, 2, 4, 4], level="pooled")
    >>> round(found.split_half, 2), round(found.attainable, 2), round(found.leave_one_out, 2)
    (0.84, 0.96, 0.8)
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

    Returns
    -------
    list of Ceiling
        One for each of `measures`, each as `ceiling` gives it.

    Raises
    ------
    ValueError
        As `ceiling`.

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
    if n_splits < 1:
        raise ValueError(f"n_splits must be at least 1, not {n_splits}")
    cells = cells_of_several(items, systems, annotators, values)
    generator = np.random.default_rng(rng)
    halves = [random_halves(cells, generator) for _ in range(n_splits)]
    of_cell = cells.drop_duplicates("cell")
    codes = RowCodes.of(of_cell)
    parts = [
        (name, part.index.to_numpy(), RowCodes.of(part))
        for name, part in cells.groupby("annotator", sort=True)
    ]
    others = means_of_others(cells)
    factor = growth(cells)
    seed = None if isinstance(rng, np.random.Generator) else int(rng)
    return [
        _ceiling(
            level,
            coefficient,
            mean_of_defined([codes.correlation(*pair, level, coefficient) for pair in halves]),
            factor,
            {
                name: part.correlation(
                    cells["value"].to_numpy()[rows], others[rows], level, coefficient
                )
                for name, rows, part in parts
            },
            n_splits,
            seed,
        )
        for level, coefficient in measures
    ]


def _ceiling(
    level: Level,
    coefficient: str,
    split_half: float,
    factor: float,
    by_annotator: dict[Any, float],
    n_splits: int,
    seed: int | None,
) -> Ceiling:
    full_length = spearman_brown(split_half, factor) if not isnan(split_half) else nan
    return Ceiling(
        level=level,
        coefficient=coefficient,
        split_half=split_half,
        reliability=full_length,
        attainable=sqrt(full_length) if full_length > 0 else nan,
        leave_one_out=mean_of_defined(list(by_annotator.values())),
        by_annotator=pd.Series(by_annotator, dtype="float64"),
        n_splits=n_splits,
        seed=seed,
    )
