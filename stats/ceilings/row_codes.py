"""Correlations over the same rows again and again, their items and systems coded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from stats.arguments import Floats, Integers
from stats.correlation import Level
from stats.correlation.bootstrap import rounded_means, unit_range
from stats.correlation.cells import renumbered
from stats.correlation.coefficients import group_values
from stats.correlation.item_limits import item_influences
from stats.groups import sum_by
from stats.libraries import pd


@dataclass(frozen=True)
class RowCodes:
    """The items and systems of rows that are each another cell, coded once."""

    item: Integers
    n_items: int
    system: Integers
    n_systems: int

    @classmethod
    def of(cls, rows: pd.DataFrame) -> RowCodes:
        """Those of rows with columns `items` and `systems`."""
        item, system = (renumbered(rows[name].to_numpy()) for name in ("items", "systems"))
        return cls(*item, *system)

    def correlation(self, x: Floats, y: Floats, level: Level, coefficient: str) -> float:
        """As `correlation_at_level` finds it in complete cells."""
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
        return mean_of_defined(group_values(x, y, group, n_groups, coefficient).value)

    def influences(self, x: Floats, y: Floats, level: Level, coefficient: str) -> Floats:
        """By how much each item moves that correlation."""
        return item_influences(x, y, self.item, self.system, level, coefficient)


def mean_of_defined(values: Floats | Sequence[float]) -> float:
    """The mean of the values that are not NaN; NaN where none is."""
    numbers = np.asarray(values, dtype=np.float64)
    defined = numbers[~np.isnan(numbers)]
    return float(defined.mean()) if len(defined) else nan
