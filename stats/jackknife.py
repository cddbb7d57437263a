"""Limits of a coefficient from its values without each item, on Fisher's scale."""

from math import nan

import numpy as np

from stats.arguments import Floats

TINY = 1e-12


def jackknife_limits(
    value: float, replicates: Floats, confidence: float, labels_per_item: float = 2.0
) -> tuple[float, float]:
    """Limits by Student's t and the delete-one jackknife, on Fisher's scale of a correlation.

    Parameters
    ----------
    value : float
        The estimate from all the data, which the interval holds.
    replicates : ndarray of float, shape (n_deletions,)
        The estimate with each item (or cluster) left out in turn.
    confidence : float
        Confidence level, between 0 and 1.
    labels_per_item : float
        Of an intraclass correlation, labels of an item on average, and 1 for the correlation of
        items' means; 2 for any other correlation.

    Returns
    -------
    low, high : float
        NaN where nothing varies, fewer than two were left out, or the scale has no place for an
        estimate: 1, for one.

    Notes
    -----
    The scale is ``z = log((1 + (k - 1) r) / (1 - r)) / 2``, which for two labels is ``atanh(r)``.
    Where a few items hold most of what moves r, the variance of the replicates is itself
    uncertain: with their kurtosis K and n of them the degrees of freedom are ``2 n / (K - 1)``,
    between 2 and ``n - 1``.

    References
    ----------
    R. A. Fisher (1921). On the probable error of a coefficient of correlation deduced from a
    small sample. Metron 1, 3-32 (the scale).
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2(6), 110-114 (degrees of freedom from the variance of a variance).

    Examples
    --------
    >>> low, high = jackknife_limits(0.5, np.array([0.4, 0.45, 0.5, 0.55, 0.6]), 0.95, 3)
    >>> round(low, 3), round(high, 3)
    (0.068, 0.802)
    """
    from scipy import stats

    values, count = np.append(replicates, value), len(replicates)
    inside = (values < 1 - TINY) & (1 + (labels_per_item - 1) * values > TINY)
    if count < 2 or not inside.all():
        return nan, nan
    scaled = np.log((1 + (labels_per_item - 1) * values) / (1 - values)) / 2
    squares = np.square(scaled[:-1] - scaled[:-1].mean())
    error = np.sqrt((count - 1) / count * squares.sum())
    if error <= TINY:
        return nan, nan
    kurtosis = np.square(squares).mean() / squares.mean() ** 2
    freedom = np.clip(2 * count / max(kurtosis - 1, TINY), min(2, count - 1), count - 1)
    reach = stats.t.ppf((1 + confidence) / 2, freedom) * error
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(2 * (scaled[-1] + np.array([-reach, reach])))
        limits = np.where(np.isinf(ratio), 1.0, (ratio - 1) / (ratio + labels_per_item - 1))
    return float(limits[0]), float(limits[1])
