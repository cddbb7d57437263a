"""How many more items, or annotators, would distinguish two metrics."""

from collections.abc import Sequence
from math import nan, sqrt
from typing import get_args

import numpy as np
import pandas as pd
from scipy.special import ndtri

from stats.arguments import Column, Floats, numbers, require_one_of
from stats.ceilings import Reliability
from stats.correlation import Level, RowCoefficient, bootstrap
from stats.correlation.cells import Cells, complete_cells, renumbered
from stats.correlation.coefficients import group_values
from stats.correlation.estimates import pooled_replicate
from stats.correlation.levels import require_level

COLUMNS = ["n_items", "n_annotators", "delta", "se", "power"]
POOLED_PAIRS_UP_TO_CELLS = bootstrap.PAIRS_UP_TO_CELLS


def sample_size_curve(
    human: Column,
    metric_a: Column,
    metric_b: Column,
    *,
    items: Column,
    systems: Column,
    level: Level,
    coefficient: RowCoefficient,
    n_items: Sequence[int],
    n_annotators: Sequence[float] = (),
    reliability: Reliability | None = None,
    alpha: float = 0.05,
    n_studies: int = 1000,
    rng: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The power to distinguish metric a from metric b, by the number of items and annotators.

    Parameters
    ----------
    human, metric_a, metric_b : array-like of float, shape (n_cells,)
        A pilot: one row a cell. Cells where any is NaN are left out.
    items, systems : array-like, shape (n_cells,)
        The item and the system of each cell; the systems stay as they are.
    level, coefficient
        As in `stats.correlation.correlation_at_level`, of Pearson, Spearman, tau-b, tau-c and
        pairwise accuracy.
    n_items : sequence of int
        Numbers of items of the studies to plan.
    n_annotators : sequence of float
        Ratings for each cell to plan, beside as many as the pilot has; needs `reliability`.
    reliability : Reliability, optional
        Of the pilot's ratings, from `stats.ceilings.reliability`.
    alpha : float
        Two-sided level of the test.
    n_studies : int
        Studies resampled for each number of items.
    rng : int or Generator
        Seed of the resamples, or a generator to draw from.

    Returns
    -------
    DataFrame
        A row for each number of items and of annotators, with columns n_items, n_annotators
        (the pilot's mean where `n_annotators` is empty, NaN where that is unknown), delta (the
        mean difference of the coefficients, a less b), se (its standard deviation over
        studies), and power: the share of studies in which the difference has the sign of
        `delta` and lies beyond ``z[1 - alpha / 2] * se``. NaN where fewer than two studies have
        both coefficients, or annotators are planned from a pilot whose raters do not agree.

    Raises
    ------
    ValueError
        If a column, level or coefficient is not usable, a number is not positive,
        `n_annotators` is given without `reliability`, or there are too many cells for a pooled
        pairwise coefficient (5,000).

    Notes
    -----
    A study of n items draws n items of the pilot with replacement, so a pilot in which the
    metrics differ by luck plans for that luck. More ratings for each cell stretch both
    correlations by the attenuation formula, ``sqrt(reliability(k') / reliability(k))``, with
    the spread over items taken as unchanged: exact in expectation for Pearson's r, pooled,
    and an approximation otherwise.

    References
    ----------
    D. Card et al. (2020). With little power comes great responsibility. EMNLP 2020, 9263-9274.
    C. Spearman (1910). Correlation calculated from faulty data. British Journal of Psychology 3.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> items, systems = np.arange(40).repeat(5), np.tile(np.arange(5), 40)
    >>> human = rng.normal(size=200)
    >>> good, bad = human + rng.normal(size=200), human + 3 * rng.normal(size=200)
    >>> curve = sample_size_curve(
    ...     human, good, bad, items=items, systems=systems, level="item",
    ...     coefficient="pearson", n_items=[5, 20, 80],
    ... )
    >>> curve["power"].is_monotonic_increasing
    True
    """
    require_level(level, coefficient, items, systems)
    require_one_of(coefficient=(coefficient, get_args(RowCoefficient)))
    _require_numbers(n_items, n_annotators, reliability, alpha, n_studies)
    a, b = numbers(metric_a, "metric_a"), numbers(metric_b, "metric_b")
    together = np.where(np.isnan(a + b), np.nan, 0.0)
    replicas = [
        _replicate(complete_cells(human, side + together, items, systems), level, coefficient)
        for side in (a, b)
    ]
    generator = np.random.default_rng(rng)
    rows = [
        _power(size, annotators, stretch, deltas, alpha)
        for size in n_items
        for deltas in [_deltas(replicas, size, n_studies, generator)]
        for annotators, stretch in _stretches(n_annotators, reliability)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def items_needed(curve: pd.DataFrame, power: float = 0.8) -> pd.DataFrame:
    """The least number of items of a curve that reaches a power, by number of annotators.

    Parameters
    ----------
    curve : DataFrame
        From `sample_size_curve`.
    power : float
        Between 0 and 1.

    Returns
    -------
    DataFrame
        Columns n_annotators and n_items, which is missing where no number reaches the power.

    Raises
    ------
    ValueError
        If `power` does not lie between 0 and 1.

    Examples
    --------
    >>> curve = pd.DataFrame(
    ...     {"n_items": [50, 100], "n_annotators": [3.0, 3.0], "power": [0.6, 0.9]}
    ... )
    >>> items_needed(curve)["n_items"].tolist()
    [100]
    """
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, not {power}")
    reached = curve["n_items"].where(curve["power"] >= power).astype("Int64")
    least = reached.groupby(curve["n_annotators"], dropna=False).min()
    return least.rename("n_items").reset_index()


def _require_numbers(
    n_items: Sequence[int],
    n_annotators: Sequence[float],
    reliability: Reliability | None,
    alpha: float,
    n_studies: int,
) -> None:
    if not n_items or min(n_items) < 2:
        raise ValueError("n_items must be numbers from 2 up")
    if n_annotators and (reliability is None or min(n_annotators) <= 0):
        raise ValueError("n_annotators must be positive, and needs the pilot's reliability")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    if n_studies < 2:
        raise ValueError(f"n_studies must be at least 2, not {n_studies}")


def _replicate(
    cells: Cells, level: Level, coefficient: RowCoefficient
) -> tuple[bootstrap.Replicate, int, int]:
    """From item weights to the coefficient; how many items, and numbers a resample takes."""
    assert cells.item is not None
    assert cells.system is not None
    item, n_items = renumbered(cells.item)
    x, y = cells.human, cells.metric
    if level == "item":
        values = group_values(x, y, item, n_items, coefficient).value
        return bootstrap.mean_of_defined(values), n_items, n_items
    if level == "system":
        system, n_systems = renumbered(cells.system)
        x, y = bootstrap.unit_range(x), bootstrap.unit_range(y)
        shape = (n_items, n_systems)
        means = bootstrap.of_system_means(x, y, item, system, shape, coefficient)
        return means, n_items, max(n_items, n_systems)
    of_pairs = coefficient not in ("pearson", "spearman")
    if of_pairs and cells.n_rows > POOLED_PAIRS_UP_TO_CELLS:
        raise ValueError(
            f"human has {cells.n_rows} cells, and {POOLED_PAIRS_UP_TO_CELLS} are the most for "
            f"pooled {coefficient!r}; use another level"
        )
    return pooled_replicate(x, y, item, n_items, coefficient), n_items, max(n_items, cells.n_rows)


def _deltas(
    replicas: Sequence[tuple[bootstrap.Replicate, int, int]],
    size: int,
    n_studies: int,
    rng: np.random.Generator,
) -> Floats:
    """The difference of the coefficients in studies of `size` items."""
    (of_a, n_items, width), (of_b, _, _) = replicas
    step = max(1, bootstrap.CHUNK // max(1, width, size))
    counts = [min(step, n_studies - start) for start in range(0, n_studies, step)]
    if not n_items:
        return np.full(n_studies, np.nan)
    drawn = (bootstrap.drawn_weights(n_items, count, rng, size=size) for count in counts)
    return np.concatenate([of_a(weights) - of_b(weights) for weights in drawn])


def _stretches(
    n_annotators: Sequence[float], reliability: Reliability | None
) -> list[tuple[float, float]]:
    """Numbers of annotators, and by what their reliability multiplies correlations."""
    if reliability is None:
        return [(nan, 1.0)]
    pilot = reliability.ratings_per_unit
    now = reliability.icc_mean
    planned = [(number, reliability.of_mean(number)) for number in n_annotators]
    # without agreement in the pilot nothing says what more ratings would show
    stretched = [
        (number, sqrt(then / now) if now > 0 and then > 0 else nan) for number, then in planned
    ]
    return stretched or [(pilot, 1.0)]


def _power(
    n_items: int, n_annotators: float, stretch: float, deltas: Floats, alpha: float
) -> tuple[float, ...]:
    defined = deltas[~np.isnan(deltas)]
    if len(defined) < 2 or np.isnan(stretch):
        return n_items, n_annotators, nan, nan, nan
    se = float(defined.std(ddof=1))
    stretched = defined + (stretch - 1) * defined.mean()
    mean = float(stretched.mean())
    beyond = np.sign(mean) * stretched > float(ndtri(1 - alpha / 2)) * se
    return n_items, n_annotators, mean, se, float(beyond.mean()) if se > 0 else nan
