from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np

from stats.arguments import Column, Floats, Integers
from stats.ceilings.attainable import ceiling
from stats.ceilings.cells import cells_of_several
from stats.ceilings.normal_scale import NormalScale, Reliability, spearman_brown, untied_share
from stats.correlation import Level, RowCoefficient

# Tau-b counts ties out, which other coefficients of pairs take for disagreement or for answers.
OF_HALVES: dict[RowCoefficient, RowCoefficient] = {"kendall_c": "kendall", "acc_eq": "kendall"}


def level_reliability(
    items: Column,
    systems: Column,
    annotators: Column,
    values: Column,
    *,
    level: Level,
    coefficient: RowCoefficient = "pearson",
    n_splits: int = 100,
    rng: int | np.random.Generator = 0,
) -> Reliability:
    """The reliability of what a coefficient correlates at a level, on the scale of Pearson's r.

    Parameters
    ----------
    items, systems, annotators, values, level, coefficient, n_splits, rng
        As in `stats.ceilings.ceiling`.

    Returns
    -------
    Reliability
        Of one rating and of the mean of a cell's: by item of the differences between the candidates
        of an item, of systems of their means over these items. It is what the split halves of
        `ceiling` are stepped up to; not positive, or NaN, where they do not agree.

    Raises
    ------
    ValueError
        As `stats.ceilings.ceiling`.

    Notes
    -----
    The ICC of all candidates is another number: how items differ makes it greater, and how severe
    annotators are makes it smaller, without any effect on differences within an item. In the
    example these have .5.

    References
    ----------
    As `stats.ceilings.ceiling`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items, systems, annotators = (axis.ravel() for axis in np.indices((200, 5, 4)))
    >>> truth, of_item = rng.normal(size=(200, 5)), 3 * rng.normal(size=200)
    >>> values = truth[items, systems] + of_item[items] + rng.normal(size=4000)
    >>> columns = items, systems, annotators, values
    >>> by_item, pooled = (level_reliability(*columns, level=level) for level in ("item", "pooled"))
    >>> round(by_item.icc_single, 2), round(pooled.icc_single, 2)
    (0.46, 0.9)
    """
    measured = ceiling(
        items, systems, annotators, values, level=level,
        coefficient=OF_HALVES.get(coefficient, coefficient), n_splits=n_splits, rng=rng,
    )  # fmt: skip
    cell = cells_of_several(items, systems, annotators, values)["cell"].to_numpy()
    n_cells = int(cell.max(initial=-1)) + 1
    of_mean, each = measured.normal_reliability, len(cell) / n_cells if n_cells else nan
    single = nan if isnan(of_mean) else spearman_brown(of_mean, 1 / each)
    return Reliability(single, of_mean, each, n_cells, len(cell))


@dataclass(frozen=True)
class MoreRatings:
    """From a coefficient beside means of some ratings to that beside means of others.

    Attributes
    ----------
    coefficient : str
        One of `stats.correlation.RowCoefficient`.
    sizes : array of int
        How many cells each correlation is of.
    untied : float
        The share of pairs of cells whose means are not tied now.
    times : float
        How many times as many ratings.
    stretch : float
        By what that multiplies Pearson's r; NaN where it is unknown.
    of_classes : float
        Stuart's tau-c over tau without correction for ties, for as many distinct means as now.
    """

    coefficient: RowCoefficient
    sizes: Integers
    untied: float
    times: float = 1.0
    stretch: float = 1.0
    of_classes: float = 1.0

    def value(self, value: float) -> float:
        """What the coefficient of a metric without ties that has this value now would be."""
        if self.stretch == 1 or isnan(self.stretch):
            return value if self.stretch == 1 else nan
        if self.coefficient == "pearson":
            return value * self.stretch
        if self.coefficient == "spearman":
            scale = NormalScale("spearman", self.sizes)
            return scale.value(scale.correlation(value) * self.stretch)
        scale = NormalScale("kendall", self.sizes)
        r = scale.correlation(max(-1.0, min(1.0, self._tau_a(value))))
        return self._of_tau_a(scale.value(r * self.stretch))

    def _tau_a(self, value: float) -> float:
        """Pairs ordered alike less pairs ordered otherwise, of all pairs."""
        if self.coefficient == "acc_eq":
            return 2 * value - self.untied
        return value / (self.of_classes if self.coefficient == "kendall_c" else self.untied**-0.5)

    def _of_tau_a(self, tau: float) -> float:
        # Means lie on a grid as much finer, over a spread that shrinks as they grow reliable.
        tied = (1 - self.untied) / self.times * self.stretch
        untied = max(1 - tied, self.untied * min(1.0, self.times))
        if self.coefficient == "acc_eq":
            return (tau + untied) / 2
        if self.coefficient == "kendall_c":
            # Distinct means are the more the fewer are tied.
            return tau * (1 + (self.of_classes - 1) * (1 - untied) / max(1 - self.untied, 1e-9))
        return tau / sqrt(untied)


def present_ratings(
    human: Floats, group: Integers, n_groups: int, coefficient: RowCoefficient
) -> MoreRatings:
    sizes = np.bincount(group, minlength=n_groups)
    untied = untied_share(human, group, n_groups) if len(human) else 1.0
    distinct = np.bincount(np.unique(np.stack([group, human]), axis=1)[0].astype(np.intp))
    n, m = (count[distinct > 1] for count in (sizes[: len(distinct)], distinct))
    of_classes = float(np.mean((n - 1) / n * m / (m - 1))) if len(n) else 1.0
    return MoreRatings(coefficient, sizes, untied, of_classes=of_classes)


def stretches(
    n_annotators: Sequence[float], reliability: Reliability, *, items: float = 1.0
) -> list[tuple[float, float]]:
    """How many times as many ratings each number is, and by what it multiplies Pearson's r; of
    means over so many times as many `items`."""
    pilot = reliability.ratings_per_unit
    now = spearman_brown(reliability.icc_mean, items)
    planned = [
        (number, spearman_brown(reliability.icc_single, number * items)) for number in n_annotators
    ]
    # Without agreement in the pilot nothing says what more ratings would show.
    return [
        (number / pilot, sqrt(then / now) if now > 0 and then > 0 else nan)
        for number, then in planned
    ]
