from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import get_args

from stats.arguments import (
    Column,
    Floats,
    numbers,
    require,
    require_at_least,
    require_one_of,
    require_shares,
)
from stats.ceilings import Reliability
from stats.ceilings.more_ratings import MoreRatings, present_ratings, stretches
from stats.correlation import Level, RowCoefficient, bootstrap
from stats.correlation.coefficients import correlate_groups
from stats.correlation.estimates import pooled_replicate
from stats.correlation.levels import require_level
from stats.correlation.result import Cells, complete_cells, renumbered
from stats.libraries import np, pd, scipy

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
        Of the pilot's ratings at this level, from `stats.ceilings.level_reliability`.
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
    metrics differ by luck plans for that luck. More ratings for each cell stretch Pearson's r of
    each metric by the attenuation formula, ``sqrt(reliability(k') / reliability(k))``; another
    coefficient on the scale of the r that normal variables of its value have
    (`stats.ceilings.normal_scale.NormalScale`), with fewer tied means the more ratings they are of.
    The spread over studies is taken as unchanged, and annotators as ones like the pilot's.

    Of systems all of that is rougher: resampled means have the pilot's noise beside their own, and
    rank coefficients of few systems move by jumps (docs/correlation.md has measures).

    References
    ----------
    D. Card et al. (2020). With little power comes great responsibility. EMNLP 2020, 9263-9274.
    C. Spearman (1910). Correlation calculated from faulty data. British Journal of Psychology 3.
    R. Greiner (1909) and P. A. P. Moran (1948), as in `NormalScale`.

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
    cells = [complete_cells(human, side + together, items, systems) for side in (a, b)]
    replicas = [_replicate(of_metric, level, coefficient) for of_metric in cells]
    present, n_pilot = _present(cells[0], level, coefficient), replicas[0][1]
    generator = np.random.default_rng(rng)
    rows = [
        _power(size, annotators, more, values, alpha)
        for size in n_items
        for values in [_values(replicas, size, n_studies, generator)]
        for annotators, more in _planned(
            n_annotators,
            reliability,
            present,
            size / n_pilot if level == "system" and n_pilot else 1,
        )
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
    >>> import pandas as pd
    >>> curve = pd.DataFrame(
    ...     {"n_items": [50, 100], "n_annotators": [3.0, 3.0], "power": [0.6, 0.9]}
    ... )
    >>> items_needed(curve)["n_items"].tolist()
    [100]
    """
    require_shares(power=power)
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
    require(
        n_items and min(n_items) >= 2,
        "n_items must be numbers from 2 up",
        code="n_items_out_of_range",
    )
    require(
        not n_annotators or (reliability is not None and min(n_annotators) > 0),
        "n_annotators must be positive, and needs the pilot's reliability",
        code="reliability_missing",
    )
    require_shares(alpha=alpha)
    require_at_least(2, n_studies=n_studies)


def _replicate(
    cells: Cells, level: Level, coefficient: RowCoefficient
) -> tuple[bootstrap.Replicate, int, int]:
    assert cells.item is not None
    assert cells.system is not None
    item, n_items = renumbered(cells.item)
    x, y = cells.human, cells.metric
    if level == "item":
        values = correlate_groups(x, y, item, n_items, coefficient).value
        return bootstrap.mean_of_defined(values), n_items, n_items
    if level == "system":
        system, n_systems = renumbered(cells.system)
        x, y = bootstrap.unit_range(x), bootstrap.unit_range(y)
        means = bootstrap.of_system_means(x, y, item, system, (n_items, n_systems), coefficient)
        return means, n_items, max(n_items, n_systems)
    of_pairs = coefficient not in ("pearson", "spearman")
    require(
        not of_pairs or cells.n_rows <= POOLED_PAIRS_UP_TO_CELLS,
        f"human has {cells.n_rows} cells, and {POOLED_PAIRS_UP_TO_CELLS} are the most for "
        f"pooled {coefficient!r}; use another level",
        code="too_many_cells",
    )
    return pooled_replicate(x, y, item, n_items, coefficient), n_items, max(n_items, cells.n_rows)


def _present(cells: Cells, level: Level, coefficient: RowCoefficient) -> MoreRatings:
    """The pilot's ratings, in groups as the level has them; means of systems are never tied."""
    assert cells.item is not None
    assert cells.system is not None
    if level == "system":
        return MoreRatings(coefficient, np.array([len(np.unique(cells.system))]), 1.0)
    if level == "item":
        return present_ratings(cells.human, *renumbered(cells.item), coefficient)
    return present_ratings(cells.human, np.zeros(cells.n_rows, dtype=np.intp), 1, coefficient)


def _values(
    replicas: Sequence[tuple[bootstrap.Replicate, int, int]],
    size: int,
    n_studies: int,
    rng: np.random.Generator,
) -> Floats:
    (of_a, n_items, width), (of_b, _, _) = replicas
    step = max(1, bootstrap.CHUNK // max(1, width, size))
    counts = [min(step, n_studies - start) for start in range(0, n_studies, step)]
    if not n_items:
        return np.empty((2, 0))
    drawn = (bootstrap.drawn_weights(n_items, count, rng, size=size) for count in counts)
    values = np.concatenate([np.stack([of_a(w), of_b(w)]) for w in drawn], axis=1)
    return values[:, ~np.isnan(values).any(axis=0)]


def _planned(
    n_annotators: Sequence[float],
    reliability: Reliability | None,
    present: MoreRatings,
    times_items: float,
) -> list[tuple[float, MoreRatings]]:
    if reliability is None or not n_annotators:
        pilot = nan if reliability is None else reliability.ratings_per_unit
        return [(pilot, present)]
    planned = stretches(n_annotators, reliability, items=times_items)
    return [
        (number, replace(present, times=times, stretch=stretch))
        for number, (times, stretch) in zip(n_annotators, planned, strict=True)
    ]


def _power(
    n_items: int, n_annotators: float, more: MoreRatings, values: Floats, alpha: float
) -> tuple[float, ...]:
    deltas = values[0] - values[1]
    if len(deltas) < 2 or np.isnan(more.stretch):
        return n_items, n_annotators, nan, nan, nan
    se = float(deltas.std(ddof=1))
    a, b = (more.value(float(mean)) for mean in values.mean(axis=1))
    stretched = deltas - deltas.mean() + (a - b)
    beyond = np.sign(a - b) * stretched > float(scipy.special.ndtri(1 - alpha / 2)) * se
    return n_items, n_annotators, a - b, se, float(beyond.mean()) if se > 0 else nan
