"""Whether an annotator changes over time."""

import numpy as np

from stats.aggregation.crowd import Crowd
from stats.arguments import Column, Floats, numbers, require_same_length, series
from stats.correlation.coefficients import group_values
from stats.libraries import scipy


def position_of(order: Column, crowd: Crowd) -> Floats:
    """The order as numbers; times count as seconds."""
    require_same_length(items=crowd.item, order=order)
    column = series(order, "order")
    if column.dtype.kind == "M" or hasattr(column.dtype, "tz"):
        elapsed = column - column.min()
        return np.asarray(elapsed.dt.total_seconds(), dtype=np.float64)
    return numbers(order, "order")


def drift(crowd: Crowd, position: Floats, departure: Floats) -> tuple[Floats, Floats]:
    """Spearman's correlation of each annotator's departures with their position, and its p.

    Rows without a departure or a position do not count.
    """
    n = len(crowd.annotators)
    rho = group_values(position, departure, crowd.annotator, n, "spearman").value
    complete = ~(np.isnan(position) | np.isnan(departure))
    freedom = crowd.per_annotator(complete.astype(np.float64)) - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(rho) * np.sqrt(freedom / (1 - rho**2))
        p = 2 * scipy.stats.t.sf(t, np.where(freedom > 0, freedom, np.nan))
    return rho, np.asarray(p)
