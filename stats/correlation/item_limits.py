"""Limits of correlations from what each item, or cluster of items, says of them.

Percentiles of resamples are too narrow where items are few, and too low at the system level,
where means of few items blur the order of the systems.
"""

from collections.abc import Callable
from math import isnan

from stats.arguments import Floats, Integers, sum_by
from stats.correlation.coefficients import correlate_groups, row_values
from stats.correlation.influence import (
    Influences,
    cluster_variance,
    kendall_influences,
    pearson_influences,
    z_t_limits,
)
from stats.correlation.result import (
    NO_INTERVAL,
    PERFECT_WITHIN,
    CiMethod,
    Interval,
    Level,
    share_of_order,
)
from stats.jackknife import effective_freedom, effective_number, jackknife_limits
from stats.libraries import np, scipy

FARTHEST = 0.98
# A jackknifed correlation beyond it is cut off there, where Fisher's scale ends.
NEARLY_ONE = 1 - 1e-6


def spearman_influences(x: Floats, y: Floats) -> Influences:
    """Spearman's rho, and about how much each cell moves it, taking the ranks for values.

    Examples
    --------
    >>> round(spearman_influences(np.array([1.0, 2, 3]), np.array([1.0, 2, 4])).value, 6)
    1.0
    """
    return pearson_influences(scipy.stats.rankdata(x), scipy.stats.rankdata(y))


INFLUENCES: dict[str, Callable[[Floats, Floats], Influences]] = {
    "pearson": pearson_influences,
    "spearman": spearman_influences,
    "kendall": kendall_influences,
}


def limits_of_mean(values: Floats, cluster: Integers | None, confidence: float) -> Interval:
    """The interval of a mean of items' coefficients, by Student's t on Fisher's scale.

    Parameters
    ----------
    values : ndarray of float, shape (n_items,)
        Each item's coefficient, NaN where it does not count.
    cluster : ndarray of int, shape (n_items,), or None
        The cluster of each item.
    confidence : float
        Confidence level.

    Returns
    -------
    Interval
        That of the share of items ordered alike where the coefficients are 1 and -1 only, or
        all the same; none of fewer than two items or clusters.

    References
    ----------
    R. A. Fisher (1921). On the probable error of a coefficient of correlation deduced from a
    small sample. Metron 1, 3-32 (the scale).

    Examples
    --------
    >>> interval = limits_of_mean(np.array([0.2, 0.5, 0.8, 0.1]), None, 0.95)
    >>> round(interval.low, 2), round(interval.high, 2), interval.n_units
    (-0.17, 0.77, 4)
    """
    known = ~np.isnan(values)
    of_item = values[known]
    unit = np.arange(len(of_item)) if cluster is None else cluster[known]
    n_units = len(np.unique(unit))
    if n_units < 2:
        return NO_INTERVAL
    mean = float(of_item.mean())
    variance = cluster_variance((of_item - mean) / len(of_item), unit)
    of_order = bool((np.abs(of_item) >= 1 - PERFECT_WITHIN).all())
    if of_order or not variance > PERFECT_WITHIN**2:
        low, high = share_of_order(mean, n_units, confidence)
        return Interval(low, high, CiMethod.ORDER_ITEMS, n_units=n_units)
    low, high = jackknife_limits(mean, _means_without_each(of_item, unit), confidence)
    if isnan(low):  # as where without one item all the others are 1
        low, high = z_t_limits(mean, variance, n_units - 1, confidence)
    return Interval(low, high, CiMethod.T_ITEMS, n_units=n_units)


def _means_without_each(values: Floats, unit: Integers) -> Floats:
    code = np.unique(unit, return_inverse=True)[1]
    total, count = np.bincount(code, values), np.bincount(code)
    return np.asarray((values.sum() - total) / (len(values) - count))


def limits_of_cells(
    x: Floats, y: Floats, unit: Integers, coefficient: str, confidence: float
) -> Interval:
    """The interval of a correlation of all cells, by what their items or clusters move it by.

    Examples
    --------
    >>> x, y = np.arange(12.0), np.array([1.0, 0, 3, 2, 6, 5, 4, 8, 11, 9, 7, 10])
    >>> interval = limits_of_cells(x, y, np.arange(12) // 2, "kendall", 0.95)
    >>> str(interval.method), interval.n_units
    ('cluster-z-t-items', 6)
    """
    if coefficient not in INFLUENCES:
        return NO_INTERVAL
    influences = INFLUENCES[coefficient](x, y)
    n_units = len(np.unique(unit))
    # as if each unit were left out in turn: what a unit moves is larger without its own pull
    variance = cluster_variance(influences.of_cell, unit) * n_units / max(1, n_units - 1)
    freedom = effective_freedom(effective_number(np.bincount(unit))) if n_units > 1 else 0.0
    low, high = z_t_limits(influences.value, variance, freedom, confidence)
    if np.isnan(low):
        return NO_INTERVAL
    return Interval(low, high, CiMethod.CLUSTERS_ITEMS, n_units=n_units)


def limits_of_system_means(
    x: Floats,
    y: Floats,
    unit: Integers,
    system: Integers,
    shape: tuple[int, int],
    confidence: float,
) -> Interval:
    """The interval of Pearson's r of the systems' means, jackknifed over items or clusters.

    Parameters
    ----------
    x, y : ndarray of float, shape (n_cells,)
        Human and metric values.
    unit, system : ndarray of int, shape (n_cells,)
        The item (or its cluster) and the system of each cell.
    shape : (int, int)
        How many there are of each.
    confidence : float
        Confidence level.

    Returns
    -------
    Interval
        Centred on the jackknifed value: r of means of few items is nearer to 0 than that of the
        systems' true means, by about as much as the jackknife adds. None where r is perfect or
        a system has cells of one unit only.

    References
    ----------
    M. H. Quenouille (1956). Notes on bias in estimation. Biometrika 43, 353-360.
    R. G. Miller (1974). The jackknife: a review. Biometrika 61(1), 1-15.

    Examples
    --------
    >>> item, system = np.indices((6, 4)).reshape(2, -1)
    >>> rng = np.random.default_rng(0)
    >>> x, y = system + rng.normal(size=24), system + rng.normal(size=24)
    >>> str(limits_of_system_means(x, y, item, system, (6, 4), 0.95).method)
    'jackknife-z-t-items'
    """
    n_units = shape[0]
    left_out = _without_each(x, y, unit, system, shape)
    if left_out is None:
        return NO_INTERVAL
    values = row_values(*left_out, "pearson")[0]
    value, without = float(values[-1]), values[:-1]
    if np.isnan(values).any() or abs(value) >= 1 - PERFECT_WITHIN:
        return NO_INTERVAL
    variance = (n_units - 1) / n_units * float(np.square(without - without.mean()).sum())
    unbiased = n_units * value - (n_units - 1) * float(without.mean())
    centre = float(np.clip(unbiased, -NEARLY_ONE, NEARLY_ONE))
    # Fisher's scale stretches without end towards 1, where few items may put the centre
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n_units - 1)) * variance**0.5
    half /= 1 - min(max(abs(value), abs(centre)), FARTHEST) ** 2
    if not half > 0:
        return NO_INTERVAL
    low, high = (float(np.tanh(np.arctanh(centre) + side)) for side in (-half, half))
    return Interval(min(low, value), max(high, value), CiMethod.JACKKNIFE_ITEMS, n_units=n_units)


def _without_each(
    x: Floats, y: Floats, unit: Integers, system: Integers, shape: tuple[int, int]
) -> tuple[Floats, Floats] | None:
    """The systems' means without each unit, and with all of them in a last row."""
    counts = np.zeros(shape)
    np.add.at(counts, (unit, system), 1.0)
    count = counts.sum(axis=0)
    rest = np.concatenate([count - counts, count[None]])
    if (rest == 0).any():
        return None
    means = []
    for column in (x, y):
        sums = np.zeros(shape)
        np.add.at(sums, (unit, system), column)
        total = sums.sum(axis=0)
        means.append(np.concatenate([total - sums, total[None]]) / rest)
    return means[0], means[1]


def item_influences(
    x: Floats, y: Floats, item: Integers, system: Integers, level: Level, coefficient: str
) -> Floats:
    """By how much each item moves a correlation at a level; shape (n_items,), 0 for no cell.

    Parameters
    ----------
    x, y : ndarray of float, shape (n_cells,)
        Values without a gap.
    item, system : ndarray of int, shape (n_cells,)
        Codes of the item and the system of each cell.
    level, coefficient
        As in `stats.correlation.correlation_at_level`; Pearson's r, Spearman's rho or tau-b.

    Returns
    -------
    ndarray of float
        All NaN where it is unknown: rank coefficients of systems move by jumps, and a system
        with cells of one item only cannot be without it.

    References
    ----------
    B. Efron (1982). The Jackknife, the Bootstrap and Other Resampling Plans. SIAM, chapter 6.

    Examples
    --------
    >>> item, system = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2] * 2)
    >>> x, y = np.array([1.0, 2, 3, 1, 2, 3]), np.array([1.0, 2, 3, 3, 1, 2])
    >>> item_influences(x, y, item, system, "item", "pearson").round(3).tolist()
    [0.375, -0.375]
    """
    n_items = int(item.max(initial=-1)) + 1
    if level == "pooled" and coefficient not in INFLUENCES:
        return np.full(n_items, np.nan)
    if level == "pooled":
        return sum_by(item, INFLUENCES[coefficient](x, y).of_cell, n_items)
    if level == "item":
        values = correlate_groups(x, y, item, n_items, coefficient).value
        known = ~np.isnan(values)
        centred = np.where(known, values, 0.0) - (values[known].mean() if known.any() else np.nan)
        return np.where(known, centred, 0.0) / max(1, int(known.sum()))
    without = _without_each(x, y, item, system, (n_items, int(system.max(initial=-1)) + 1))
    if coefficient != "pearson" or without is None:
        return np.full(n_items, np.nan)
    values = row_values(*without, "pearson")[0][:-1]
    return np.asarray((n_items - 1) / n_items * (values.mean() - values))
