"""A mean over topics and assessors, both resampled."""

from math import nan

import numpy as np

from error_codes import InvalidValue
from stats.arguments import Floats, require_confidence

MOST_UNDEFINED = 0.05
LEAST_ASSESSORS = 10
"""With fewer, the limits are too narrow: the part `rankings` of docs/coverage.md."""


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
    if values.ndim != 2:
        raise InvalidValue(
            f"values must be a table, not of shape {values.shape}", code="values_shape"
        )
    n_assessors, n_topics = values.shape
    if min(n_assessors, n_topics) < 2:
        return nan, nan
    generator = np.random.default_rng(rng)
    of_assessors, of_topics = (
        generator.multinomial(n, np.full(n, 1 / n), n_resamples).astype(np.float64)
        for n in (n_assessors, n_topics)
    )
    present = ~np.isnan(values)
    total = np.einsum("bt,bt->b", of_assessors @ np.nan_to_num(values), of_topics)
    weight = np.einsum("bt,bt->b", of_assessors @ present, of_topics)
    means = total[weight > 0] / weight[weight > 0]
    if len(means) < (1 - MOST_UNDEFINED) * n_resamples:
        return nan, nan
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
