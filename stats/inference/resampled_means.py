from collections.abc import Iterator
from functools import lru_cache
from math import nan

import numpy as np

from stats.arguments import (
    Column,
    Floats,
    coded_in_order,
    complete_numbers,
    require,
    require_confidence,
    require_same_length,
    sum_by,
)

# Units whose sign flips are all tried, 65,536 at this number.
ENUMERATED_UP_TO = 16
# With fewer units no set of sign flips can be significant at .05.
LEAST_FLIPPED = 6
ROUNDING = 1e-12
# Signs drawn at a time, 80 MB.
CELLS_AT_ONCE = 10_000_000
# Signs of a seed kept for the next test, 32 MB.
CELLS_REMEMBERED = 4_000_000


def sign_flip_test(
    units: Column,
    values: Column,
    *,
    n_permutations: int = 10_000,
    rng: int | np.random.Generator = 0,
) -> float:
    """Two-sided p of two interchangeable systems, by flipping whole units (items or annotators).

    Parameters
    ----------
    units : array-like, shape (n_cells,)
        The unit of each difference: its item, or its annotator.
    values : array-like of float, shape (n_cells,)
        Differences of two systems.
    n_permutations : int
        Sign flips drawn where there are more than 16 units; with fewer all are tried.
    rng : int or Generator
        Seed or generator of the draws.

    Returns
    -------
    float
        It cannot be below ``2 / 2**n_units``: with fewer than 6 units never below .05.

    Raises
    ------
    ValueError
        If the columns differ in length, are empty or hold a missing value.

    Notes
    -----
    It is exact where each unit's difference is as likely with either sign, as that of two systems
    whose outputs could be swapped. Of differences that are skewed about a mean of 0, which is
    another hypothesis, it rejects too often at .05: in 600 simulated studies each .07 to .08 of
    exponential ones, .15 of lognormal ones of 20 units.

    References
    ----------
    R. A. Fisher (1935). The Design of Experiments, section 21.

    Examples
    --------
    >>> sign_flip_test([1, 2, 3, 4], [0.5, 1.0, 0.2, 0.7])
    0.125
    """
    n = require_same_length(units=units, values=values)
    require(n > 0, "values must not be empty", code="values_empty")
    code, distinct = coded_in_order(units, "units")
    sums = sum_by(code, complete_numbers(values, "values"), len(distinct))
    count = len(sums)
    if count <= ENUMERATED_UP_TO:
        flips = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(flips @ sums) >= abs(sums.sum()) - _slack(sums)).mean())
    beyond = 0
    for flips in _drawn_flips(n_permutations, count, rng):
        beyond += int((np.abs(flips @ sums) >= abs(sums.sum()) - _slack(sums)).sum())
    return (beyond + 1) / (n_permutations + 1)


def _drawn_flips(
    n_permutations: int, count: int, rng: int | np.random.Generator
) -> Iterator[Floats]:
    if isinstance(rng, int) and n_permutations * count <= CELLS_REMEMBERED:
        yield _flips_of_seed(n_permutations, count, rng)
        return
    generator = np.random.default_rng(rng)
    step = max(1, CELLS_AT_ONCE // count)
    for start in range(0, n_permutations, step):
        yield generator.choice([-1.0, 1.0], size=(min(step, n_permutations - start), count))


@lru_cache(maxsize=1)
def _flips_of_seed(n_permutations: int, count: int, seed: int) -> Floats:
    """Drawn once for the tests of all pairs of systems, which take most of a test's time."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(n_permutations, count))


def _slack(sums: Floats) -> float:
    return ROUNDING * float(np.abs(sums).sum())


MOST_UNDEFINED = 0.05
# With fewer, the limits are too narrow: the part `rankings` of docs/coverage.md.
LEAST_ASSESSORS = 10


def two_way_bootstrap(
    values: Floats,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> tuple[float, float]:
    """Percentile limits of the mean of a table's cells, its rows and its columns resampled.

    Parameters
    ----------
    values : ndarray of float, shape (n_assessors, n_topics)
        NaN where an assessor did not judge a topic.
    n_resamples : int
    confidence : float
    rng : int or Generator

    Returns
    -------
    low, high : float
        NaN with fewer than two assessors or topics, or where over one in twenty samples has no
        cell.

    Raises
    ------
    ValueError
        If `values` is no table or `confidence` is out of range.

    Notes
    -----
    A cell counts as often as its topic was drawn times its assessor was (the pigeonhole
    bootstrap). With few assessors there are few samples of them, and the limits are too narrow.

    References
    ----------
    A. B. Owen (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1(2), 386-411.

    Examples
    --------
    >>> low, high = two_way_bootstrap(np.array([[0.1, 0.5, 0.9], [0.2, 0.4, 0.8]]), rng=1)
    >>> 0.1 < low < 0.5 < high < 0.9
    True
    """
    require_confidence(confidence)
    require(
        values.ndim == 2,
        f"values must be a table, not of shape {values.shape}",
        code="values_shape",
    )
    n_assessors, n_topics = values.shape
    if min(n_assessors, n_topics) < 2:
        return nan, nan
    generator = np.random.default_rng(rng)
    of_assessors, of_topics = (
        generator.multinomial(n, np.full(n, 1 / n), n_resamples).astype(np.float64)
        for n in (n_assessors, n_topics)
    )
    total = np.einsum("bt,bt->b", of_assessors @ np.nan_to_num(values), of_topics)
    weight = np.einsum("bt,bt->b", of_assessors @ ~np.isnan(values), of_topics)
    means = total[weight > 0] / weight[weight > 0]
    if len(means) < (1 - MOST_UNDEFINED) * n_resamples:
        return nan, nan
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
