"""Variances and limits by leaving out items, annotators or other clusters, one at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TypeAlias

from error_codes import CodedText, note_if
from stats.arguments import Floats, Integers, sum_by
from stats.libraries import np, scipy

TINY = 1e-12
# Added to the information, as a share of it: parameters that one cluster alone determines do not
# move without it, as with a generalized inverse.
RIDGE = 1e-7
# Numbers of clusters' information matrices that are held at a time, 32 MB.
CELLS_AT_ONCE = 4_000_000
LARGE_SHARE = 0.2
# An annotator's share matters if it is large, and as many times an equal share.
UNEVEN = 1.5

# From rows, their group and the number of groups, the information of each group of rows.
InformationBy: TypeAlias = Callable[[Integers, Integers, int], Floats]


@dataclass(frozen=True)
class LeftOut:
    """How an estimate varies over clusters, from what it is without each of them.

    Attributes
    ----------
    variance : float or ndarray of float
        Of the estimate, or the covariance of several; NaN with one cluster.
    effective : float
        The number of equally large clusters that would vary as much: 1 / sum(share ** 2).
    """

    variance: Floats
    effective: float


def effective_number(sizes: Floats | Integers) -> float:
    """How many equally large clusters have the same sum of squared shares; 0 without any.

    Examples
    --------
    >>> effective_number(np.array([5.0, 5.0])), round(effective_number(np.array([8.0, 1, 1])), 2)
    (2.0, 1.52)
    """
    squares = float(np.square(sizes).sum())
    return float(sizes.sum()) ** 2 / squares if squares else 0.0


def effective_freedom(*effective: float) -> float:
    """Degrees of freedom of a variance over clusters: the fewest effective ones less 1.

    At least 1: a cluster that holds nearly all data leaves one contrast, with the others.

    Examples
    --------
    >>> effective_freedom(50.0, 5.9), effective_freedom(1.2)
    (4.9, 1.0)
    """
    return max(min(effective) - 1.0, 1.0)


def mean_left_out(residuals: Floats, code: Integers, part: Integers | None = None) -> LeftOut:
    """The variance of a mean, or of a difference of means, by leaving out whole clusters.

    Parameters
    ----------
    residuals : ndarray of float, shape (n,)
        From the mean; of a difference from the mean of each part, those of one part negative.
    code : ndarray of int, shape (n,)
        The cluster of each, from 0 without a gap.
    part : ndarray of int, shape (n,), optional
        Which of the means a residual is from.

    Returns
    -------
    LeftOut

    Notes
    -----
    ``(G - 1) / G * sum(d ** 2)`` of G clusters, where ``d = sum(residuals of a cluster) / (number
    of residuals of others)`` is by how much the mean moves without the cluster (CV3). If all are
    equally large, this is the variance by sums over clusters with the factor ``G / (G - 1)``
    (CV1), which is too small if a few hold most of the data. If one cluster holds a whole part,
    nothing shows how other clusters differ there, and the clusters count as one.

    References
    ----------
    J. G. MacKinnon, M. O. Nielsen and M. D. Webb (2023). Fast and reliable jackknife and bootstrap
    methods for cluster-robust inference. Journal of Applied Econometrics 38(5), 671-694.

    Examples
    --------
    >>> found = mean_left_out(np.array([1.0, 1, 1, -3]), np.array([0, 0, 0, 1]))
    >>> float(found.variance), found.effective
    (5.0, 1.6)
    """
    n_clusters = int(code.max()) + 1
    moves, shares = np.zeros(n_clusters), np.zeros(n_clusters)
    holds_part = False
    parts = (
        [np.ones(len(code), dtype=bool)] if part is None else [part == k for k in np.unique(part)]
    )
    for rows in parts:
        sizes = np.bincount(code[rows], minlength=n_clusters)
        sums = sum_by(code[rows], residuals[rows], n_clusters)
        others = sizes.sum() - sizes
        # A part that one cluster holds has no mean without it; its residuals sum to 0.
        moves += np.divide(sums, others, out=np.zeros(n_clusters), where=others > 0)
        shares += sizes / sizes.sum()
        holds_part = holds_part or not others.all()
    return LeftOut(_over_deletions(moves), 1.0 if holds_part else effective_number(shares))


def maximum_left_out(
    scores: Floats,
    information: Floats,
    information_by: InformationBy,
    code: Integers,
    weight: Floats,
) -> LeftOut:
    """The covariance of maximum likelihood estimates by leaving out whole clusters.

    Parameters
    ----------
    scores : ndarray of float, shape (n, n_parameters)
        Each row's score at the maximum.
    information : ndarray of float, shape (n_parameters, n_parameters)
        Of all rows, positive definite.
    information_by : callable
        The information of groups of rows, shape (n_groups, n_parameters, n_parameters).
    code : ndarray of int, shape (n,)
        The cluster of each row, from 0 without a gap.
    weight : ndarray of float, shape (n,)
        How much each row counts.

    Returns
    -------
    LeftOut

    Notes
    -----
    Without a cluster the estimates move by one Newton step from the maximum of all, which is
    ``mean_left_out`` if the likelihood is normal.

    References
    ----------
    J. G. MacKinnon, M. O. Nielsen and M. D. Webb (2023). Cluster-robust jackknife and bootstrap
    inference for logistic regression models. arXiv:2306.12597.

    Examples
    --------
    >>> scores, one = np.array([[1.0], [1], [1], [-3]]), np.ones(4)
    >>> count = lambda rows, group, n: np.bincount(group, minlength=n)[:, None, None]
    >>> code = np.array([0, 0, 0, 1])
    >>> maximum_left_out(scores, np.array([[4.0]]), count, code, one).variance.round(2).tolist()
    [[5.0]]
    """
    n_clusters = int(code.max()) + 1
    sums = np.stack([sum_by(code, column, n_clusters) for column in scores.T], axis=1)
    order = np.argsort(code, kind="stable")
    start = np.searchsorted(code[order], np.arange(n_clusters + 1))
    at_once = max(1, CELLS_AT_ONCE // information.size)
    moves = np.empty_like(sums)
    for first in range(0, n_clusters, at_once):
        last = min(first + at_once, n_clusters)
        rows = order[start[first] : start[last]]
        own = information_by(rows, code[rows] - first, last - first)
        rest = (1 + RIDGE) * information - own
        moves[first:last] = np.linalg.solve(rest, sums[first:last, :, None])[..., 0]
    return LeftOut(_over_deletions(moves), effective_number(sum_by(code, weight, n_clusters)))


def _over_deletions(moves: Floats) -> Floats:
    n_clusters = len(moves)
    if n_clusters < 2:
        return np.full(moves.shape[1:] * 2, nan)
    return np.asarray((n_clusters - 1) / n_clusters * (moves.T @ moves))


def variance_of_both(
    of_items: Floats | float, of_annotators: Floats | float, of_cells: Floats | float
) -> Floats:
    """The variance over items and annotators: that by either, less that by both together.

    Never below the larger of the first two.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011). Robust inference with multiway
    clustering. Journal of Business & Economic Statistics 29(2), 238-249.

    Examples
    --------
    >>> float(variance_of_both(2.0, 3.0, 1.0)), float(variance_of_both(2.0, 1.0, 3.0))
    (4.0, 2.0)
    """
    larger = np.maximum(of_items, of_annotators)
    return np.asarray(np.maximum(np.asarray(of_items) + of_annotators - of_cells, larger))


def is_uneven(share: float, n_annotators: int) -> bool:
    """Whether the busiest annotator's share of the judgments matters for other annotators.

    Examples
    --------
    >>> is_uneven(0.43, 30), is_uneven(0.33, 3), is_uneven(0.1, 38)
    (True, False, False)
    """
    return share >= LARGE_SHARE and share * n_annotators >= UNEVEN


def uneven_notes(share: float, n_annotators: int) -> tuple[CodedText, ...]:
    """A note with the busiest annotator's share, if it matters.

    Examples
    --------
    >>> [note.code for note in uneven_notes(0.43, 30)]
    ['uneven_annotators']
    """
    return note_if(
        is_uneven(share, n_annotators),
        f"one of {n_annotators} annotators gave {100 * share:.0f} % of the judgments, so that "
        "less can be said of other annotators",
        "uneven_annotators",
    )


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
    reach = scipy.stats.t.ppf((1 + confidence) / 2, freedom) * error
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(2 * (scaled[-1] + np.array([-reach, reach])))
        limits = np.where(np.isinf(ratio), 1.0, (ratio - 1) / (ratio + labels_per_item - 1))
    return float(limits[0]), float(limits[1])
