from dataclasses import dataclass
from math import nan, tanh

from stats.arguments import Floats, Integers
from stats.jackknife import mean_left_out
from stats.libraries import np, scipy


@dataclass(frozen=True)
class Influences:
    """A coefficient, and by how much each cell moves it, shape (n_cells,); they sum to 0."""

    value: float
    of_cell: Floats


def kendall_influences(x: Floats, y: Floats) -> Influences:
    """Tau-b, and each cell's influence on it, without a table of pairs.

    Parameters
    ----------
    x, y : ndarray of float, shape (n_cells,)
        Values without a gap.

    Returns
    -------
    Influences
        NaN where a side is constant.

    Notes
    -----
    With ``s_i`` the sum over other cells of the products of signs, and ``tx_i, ty_i`` the cells
    not tied with cell i, ``tau = S / sqrt(Tx Ty)`` of their sums, and the influence is
    ``2 s_i / sqrt(Tx Ty) - tau (tx_i / Tx + ty_i / Ty)``.

    References
    ----------
    M. G. Kendall (1945). The treatment of ties in ranking problems. Biometrika 33(3), 239-251.
    W. Hoeffding (1948). A class of statistics with asymptotically normal distribution. Annals of
    Mathematical Statistics 19(3), 293-325.

    Examples
    --------
    >>> found = kendall_influences(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4]))
    >>> round(found.value, 3), abs(round(float(found.of_cell.sum()), 9))
    (0.667, 0.0)
    """
    signs = _signed_pairs(x, y)
    untied_x, untied_y = _untied(x), _untied(y)
    scale = float(np.sqrt(untied_x.sum()) * np.sqrt(untied_y.sum()))
    if not scale > 0:
        return Influences(nan, np.full(len(x), np.nan))
    value = float(signs.sum()) / scale
    share = untied_x / untied_x.sum() + untied_y / untied_y.sum()
    return Influences(value, 2 * signs / scale - value * share)


def pearson_influences(x: Floats, y: Floats) -> Influences:
    """Pearson's r, and each cell's influence on it.

    Parameters
    ----------
    x, y : ndarray of float, shape (n_cells,)
        Values without a gap.

    Returns
    -------
    Influences
        NaN where a side is constant.

    References
    ----------
    S. J. Devlin, R. Gnanadesikan and J. R. Kettenring (1975). Robust estimation and outlier
    detection with correlation coefficients. Biometrika 62(3), 531-545.

    Examples
    --------
    >>> found = pearson_influences(np.array([1.0, 2, 3]), np.array([1.0, 2, 4]))
    >>> round(found.value, 3)
    0.982
    """
    if len(x) < 2 or not (np.ptp(x) > 0 and np.ptp(y) > 0):
        return Influences(nan, np.full(len(x), np.nan))
    # First to numbers whose squares neither overflow nor vanish.
    sizes = (side / np.abs(side).max() for side in (x, y))
    zx, zy = ((side - side.mean()) / side.std() for side in sizes)
    value = float(np.clip((zx * zy).mean(), -1, 1))
    return Influences(value, (zx * zy - value * (zx**2 + zy**2) / 2) / len(x))


def cluster_variance(influence: Floats, cluster: Integers) -> float:
    """The variance of a statistic whose error is the sum of its cells' influences, by leaving out
    clusters.

    Parameters
    ----------
    influence : ndarray of float, shape (n_cells,)
        From `kendall_influences`, say, or the difference of two metrics'.
    cluster : ndarray of int, shape (n_cells,)
        The cluster of each cell.

    Returns
    -------
    float
        NaN with fewer than two clusters.

    Examples
    --------
    >>> round(cluster_variance(np.array([0.1, -0.1, 0.2, -0.2]), np.array([0, 1, 2, 3])), 3)
    0.133
    """
    codes = np.unique(cluster, return_inverse=True)[1]
    if not codes.any():
        return nan
    return float(mean_left_out(len(influence) * influence, codes).variance)


def two_way_variance(influence: Floats, item: Integers, system: Integers) -> float:
    """The variance where cells share items and systems; never below that of either alone.

    Parameters
    ----------
    influence : ndarray of float, shape (n_cells,)
        Of each cell.
    item, system : ndarray of int, shape (n_cells,)
        The item and the system of each cell.

    Returns
    -------
    float
        That by items and that by systems less that by cells; where this is not above 0, the
        larger of the first two.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011). Robust inference with multiway
    clustering. Journal of Business & Economic Statistics 29(2), 238-249.

    Examples
    --------
    >>> influence = np.array([0.1, -0.1, 0.2, -0.2])
    >>> round(two_way_variance(influence, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])), 3)
    0.227
    """
    by_item, by_system = cluster_variance(influence, item), cluster_variance(influence, system)
    by_cell = cluster_variance(influence, np.arange(len(influence)))
    both = by_item + by_system - by_cell
    return both if both > 0 else max(by_item, by_system)


def z_t_limits(
    value: float, variance: float, freedom: float, confidence: float
) -> tuple[float, float]:
    """Limits of a correlation by Student's t on Fisher's scale, inside -1 and 1.

    Parameters
    ----------
    value, variance : float
        The correlation and the variance of its estimate.
    freedom : float
        Degrees of freedom: clusters less 1.
    confidence : float
        Confidence level.

    Returns
    -------
    low, high : float
        NaN where nothing varies, or the correlation is perfect.

    References
    ----------
    R. A. Fisher (1921). On the probable error of a coefficient of correlation deduced from a
    small sample. Metron 1, 3-32 (the scale).

    Examples
    --------
    >>> low, high = z_t_limits(0.5, 0.01, 9, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.243, 0.692)
    """
    if not variance > 0 or freedom < 1 or not abs(value) < 1 - 1e-12:
        return nan, nan
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * variance**0.5 / (1 - value**2)
    centre = float(np.arctanh(value))
    return tanh(centre - half), tanh(centre + half)


def _untied(values: Floats) -> Floats:
    code, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
    return np.asarray(len(values) - counts[code], dtype=np.float64)


def _signed_pairs(x: Floats, y: Floats) -> Floats:
    """For each cell, the sum over others of the product of the signs of both differences.

    By halves of the cells in order of x: in each of log n rounds, the cells of a right half
    count how many of its left half are smaller and larger in y, and the other way round. Ties in
    x are counted within their blocks and taken off.
    """
    rank = np.unique(y, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((rank, x))
    total = _merged_counts(rank[order])
    _, block = np.unique(x[order], return_inverse=True)
    total -= _within_blocks(block, rank[order])
    signed = np.empty(len(x))
    signed[order] = total
    return signed


def _merged_counts(rank: Integers) -> Floats:
    """For each place, larger ranks after and smaller before it, less the reverse."""
    n = len(rank)
    total = np.zeros(n)
    width, span = 1, int(rank.max(initial=0)) + 1
    while width < n:
        place = np.arange(n)
        block = place // (2 * width)
        is_left = (place // width) % 2 == 0
        key = block * span + rank
        for side, sign in ((is_left, 1.0), (~is_left, -1.0)):
            others = np.sort(key[~side])
            own = key[side]
            low = np.searchsorted(others, block[side] * span)
            high = np.searchsorted(others, (block[side] + 1) * span)
            smaller = np.searchsorted(others, own, side="left") - low
            larger = high - np.searchsorted(others, own, side="right")
            total[side] += sign * (larger - smaller)
        width *= 2
    return total


def _within_blocks(block: Integers, rank: Integers) -> Floats:
    key = block.astype(np.int64) * (int(rank.max(initial=0)) + 1) + rank
    start = np.searchsorted(block, block, side="left")
    end = np.searchsorted(block, block, side="right")
    first, last = np.searchsorted(key, key, side="left"), np.searchsorted(key, key, side="right")
    # by rank within the block: all smaller ones lie before, all larger ones after
    return np.asarray((end - last) + (first - start), dtype=np.float64)
