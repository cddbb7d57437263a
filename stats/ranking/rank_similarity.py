from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

import numpy as np

from stats.arguments import (
    Column,
    Floats,
    Integers,
    Signs,
    complete_numbers,
    require,
    require_same_length,
)
from stats.correlation.coefficients import row_values, signs

# Pairs of systems compared at a time, in all rows together.
BLOCK = 1 << 22


def tau_b(first: Column, second: Column) -> float:
    """Kendall's tau-b of two rankings, from the systems' values.

    Parameters
    ----------
    first, second : array-like of float, shape (n_systems,)
        The systems' values under either; systems of the same value tie.

    Returns
    -------
    float
        ``(C - D) / sqrt((n0 - t1) (n0 - t2))``: concordant less discordant pairs, n0 pairs in
        all, t1 and t2 tied. NaN with fewer than two systems, or where all tie.

    Raises
    ------
    ValueError
        If the columns differ in length or a value is missing.

    References
    ----------
    M. G. Kendall (1945). The treatment of ties in ranking problems. Biometrika 33(3), 239-251.

    Examples
    --------
    >>> round(tau_b([0.9, 0.8, 0.5], [0.7, 0.4, 0.6]), 4)
    0.3333
    """
    return float(tau_b_rows(*_two_rows(first, second))[0])


def tau_b_rows(first: Floats, second: Floats) -> Floats:
    """`tau_b` of each row of two tables of systems' values.

    Parameters
    ----------
    first, second : ndarray of float, shape (n_rows, n_systems)

    Returns
    -------
    ndarray of float, shape (n_rows,)
        NaN where all systems of a row tie on a side.

    Examples
    --------
    >>> tau_b_rows(np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]]), np.eye(3)[:2]).round(3).tolist()
    [0.816, nan]
    """
    if first.shape[1] < 2:
        return np.full(len(first), nan)
    # A product of square roots makes 1 a little less.
    return np.asarray(np.round(row_values(first, second, "kendall")[0], 14))


def tau_ap_a(truth: Column, estimate: Column) -> float:
    """The AP correlation of an estimated ranking with the true one, which has no ties.

    Swaps near the top weigh more than in Kendall's tau. Not symmetric: one ranking is the truth.

    Parameters
    ----------
    truth, estimate : array-like of float, shape (n_systems,)
        The systems' values; higher comes first.

    Returns
    -------
    float
        ``2 / (n - 1) sum C(i) / (i - 1) - 1`` over ranks i > 1 of the estimate, C(i) of the
        systems above rank i being above its system in truth too; of ties in the estimate, the
        mean over all their orders. NaN with fewer than two systems.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing, or systems tie in truth.

    References
    ----------
    E. Yilmaz, J. A. Aslam and S. Robertson (2008). A new rank correlation coefficient for
    information retrieval. SIGIR 2008, 587-594.
    J. Urbano and M. Marrero (2017). The treatment of ties in AP correlation. ICTIR 2017, 321-324.

    Examples
    --------
    >>> round(tau_ap_a([4, 3, 2, 1], [4, 2, 3, 1]), 4)
    0.6667
    """
    rows = _two_rows(truth, estimate)
    require(
        len(np.unique(rows[0])) >= rows[0].shape[1],
        "truth must not tie systems; tau_ap_b takes ties on both sides",
        code="truth_tied",
    )
    return float(tau_ap_a_rows(*rows)[0])


def tau_ap_a_rows(truth: Floats, estimate: Floats) -> Floats:
    """`tau_ap_a` of each row of two tables of systems' values.

    Parameters
    ----------
    truth, estimate : ndarray of float, shape (n_rows, n_systems)

    Returns
    -------
    ndarray of float, shape (n_rows,)
        NaN where systems of a row tie in truth.

    Examples
    --------
    >>> truth = np.array([[4.0, 3, 2, 1], [2, 2, 1, 0]])
    >>> tau_ap_a_rows(truth, truth[[0, 0]]).tolist()
    [1.0, nan]
    """
    n = truth.shape[1]
    if n < 2:
        return np.full(len(truth), nan)
    found = []
    for true, seen in _blocks(truth, estimate):
        of_truth, of_seen = _pair_signs(true), _pair_signs(seen)
        above = (of_seen > 0).sum(axis=1)
        tied = (of_seen == 0).sum(axis=1)
        concordant = ((of_seen > 0) & (of_truth > 0)).sum(axis=1)
        total = concordant * _mean_reciprocal(above, tied) + _within_ties(above, tied)
        value = 2 / (n - 1) * total.sum(axis=1) - 1
        found.append(np.where((of_truth == 0).sum(axis=(1, 2)) > n, nan, value))
    return np.concatenate(found)


def tau_ap_b(first: Column, second: Column) -> float:
    """The AP correlation of two rankings neither of which is the truth, averaged both ways.

    Parameters
    ----------
    first, second : array-like of float, shape (n_systems,)
        The systems' values; higher comes first, and either side may tie systems.

    Returns
    -------
    float
        The mean of two directions: of each system not tied with the best of one side, the share
        of those above it there that are above it on the other side too, scaled to -1 to 1. NaN
        with fewer than two systems, or where a side ties all.

    Raises
    ------
    ValueError
        If the columns differ in length or a value is missing.

    References
    ----------
    J. Urbano and M. Marrero (2017). The treatment of ties in AP correlation. ICTIR 2017, 321-324.

    Examples
    --------
    >>> tau_ap_b([3, 2, 2, 1], [3, 2, 2, 1])
    1.0
    >>> round(tau_ap_b([4, 3, 2, 1], [4, 2, 3, 1]), 4)
    0.6667
    """
    return float(tau_ap_b_rows(*_two_rows(first, second))[0])


def tau_ap_b_rows(first: Floats, second: Floats) -> Floats:
    """`tau_ap_b` of each row of two tables of systems' values.

    Parameters
    ----------
    first, second : ndarray of float, shape (n_rows, n_systems)

    Returns
    -------
    ndarray of float, shape (n_rows,)
        NaN where a side ties all systems of a row.

    Examples
    --------
    >>> tau_ap_b_rows(np.array([[3.0, 2, 1]]), np.array([[3.0, 1, 2]])).tolist()
    [0.5]
    """
    found = []
    for one, other in _blocks(first, second):
        signs_one, signs_other = _pair_signs(one), _pair_signs(other)
        concordant = ((signs_one > 0) & (signs_other > 0)).sum(axis=1)
        directions = [_shares_above(concordant, side) for side in (signs_one, signs_other)]
        found.append(sum(directions) / 2)
    return np.concatenate(found)


def _two_rows(first: Column, second: Column) -> tuple[Floats, Floats]:
    require_same_length(first=first, second=second)
    return complete_numbers(first, "first")[None], complete_numbers(second, "second")[None]


def _blocks(first: Floats, second: Floats) -> Iterator[tuple[Floats, Floats]]:
    step = max(1, BLOCK // max(1, first.shape[1] ** 2))
    for at in range(0, len(first), step):
        yield first[at : at + step], second[at : at + step]


def _pair_signs(values: Floats) -> Signs:
    """Of each row, 1 where the system of the middle axis is above that of the last; -1 below."""
    return np.asarray(signs(values[:, :, None], values[:, None, :]))


def _mean_reciprocal(above: Integers, tied: Integers) -> Floats:
    """The mean of 1 / (rank - 1) over the ranks of a group of ties; 0 for the first group."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, above.shape[1] + 1))])
    over_ranks = harmonic[np.maximum(above + tied - 1, 0)] - harmonic[np.maximum(above - 1, 0)]
    return np.where(above > 0, over_ranks / tied, 0.0)


def _within_ties(above: Integers, tied: Integers) -> Floats:
    """Half of the others of a system's group that are above it, over their ranks, on average.

    The sum of k / (above + k) over k from 1 to tied - 1, which is tied - 1 less above times the
    sum of 1 / (above + k).
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, above.shape[1] + 1))])
    total = tied - 1 - above * (harmonic[above + tied - 1] - harmonic[above])
    return np.asarray(total / 2 / tied)


def _shares_above(concordant: Integers, of_side: Signs) -> Floats:
    """The mean share of concordant systems among those above, of systems below the first group."""
    above = (of_side > 0).sum(axis=1)
    counted = (above > 0).sum(axis=1)
    shares = np.where(above > 0, concordant / np.maximum(above, 1), 0.0).sum(axis=1)
    return np.where(counted > 0, 2 * shares / np.maximum(counted, 1) - 1, nan)


@dataclass(frozen=True)
class RandomAssessors:
    """Rankings of systems by assessors drawn topic by topic, held against a merged ranking.

    Attributes
    ----------
    tau : ndarray of float, shape (n_draws,)
        Tau-b of each draw's ranking to the merged one; NaN where a draw ties all systems.
    means : ndarray of float, shape (n_draws, n_systems)
    swapped : ndarray of float, shape (n_systems, n_systems)
        The share of draws that put the system of the row below that of the column, where the
        merged ranking puts it above; 0 elsewhere.
    n_topics_with_choice : int
        Topics that more than one assessor judged.
    """

    tau: Floats
    means: Floats
    swapped: Floats
    n_topics_with_choice: int


def random_assessors(
    values: Floats,
    has_judged: Floats,
    merged: Floats,
    *,
    n_draws: int = 1000,
    rng: int | np.random.Generator = 0,
) -> RandomAssessors:
    """Draw one assessor a topic at random, again and again, and rank the systems.

    Parameters
    ----------
    values : ndarray of float, shape (n_assessors, n_systems, n_topics)
        The systems' values by each assessor's judgments; NaN where a system lacks a topic, or
        the assessor did not judge it.
    has_judged : ndarray of bool, shape (n_assessors, n_topics)
        Which topics each assessor judged; somebody judged each.
    merged : ndarray of float, shape (n_systems,)
        The systems' means by the merged judgments.
    n_draws : int
    rng : int or Generator

    Returns
    -------
    RandomAssessors

    Raises
    ------
    ValueError
        If shapes do not fit, or nobody judged a topic.

    References
    ----------
    E. M. Voorhees (2000). Variations in relevance judgments and the measurement of retrieval
    effectiveness. Information Processing and Management 36(5), 697-716.

    Examples
    --------
    >>> values = np.array([[[0.9, 0.8], [0.5, 0.4]], [[0.9, 0.3], [0.5, 0.8]]])
    >>> drawn = random_assessors(values, np.ones((2, 2), bool), np.array([0.9, 0.5]), n_draws=50)
    >>> drawn.n_topics_with_choice, sorted(set(drawn.tau.tolist()))
    (2, [-1.0, 1.0])
    """
    n_assessors, n_systems, n_topics = values.shape
    require(
        has_judged.shape == (n_assessors, n_topics) and merged.shape == (n_systems,),
        f"has_judged and merged must fit values of shape {values.shape}, and have shapes "
        f"{has_judged.shape} and {merged.shape}",
        code="has_judged_shape",
    )
    n_judges = has_judged.sum(axis=0)
    require(
        n_judges.all(),
        f"has_judged must have an assessor for each topic; topic {np.argmin(n_judges)} has none",
        code="has_judged_empty",
    )
    # The assessors of each topic first, by number: a draw below their count is one of them.
    order = np.argsort(~has_judged.astype(bool), axis=0, kind="stable")
    generator = np.random.default_rng(rng)
    drawn = order[generator.integers(n_judges, size=(n_draws, n_topics)), np.arange(n_topics)]
    means = np.empty((n_draws, n_systems))
    step = max(1, BLOCK // (n_systems * n_topics))
    for at in range(0, n_draws, step):
        means[at : at + step] = _means(values[drawn[at : at + step], :, np.arange(n_topics)])
    merged = np.round(merged, 12)
    tau = tau_b_rows(np.broadcast_to(merged, means.shape), means)
    return RandomAssessors(tau, means, _swapped(means, merged), int((n_judges > 1).sum()))


def _means(chosen: Floats) -> Floats:
    total, count = np.nan_to_num(chosen).sum(axis=1), (~np.isnan(chosen)).sum(axis=1)
    means = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return np.asarray(np.round(means, 12))


def _swapped(means: Floats, merged: Floats) -> Floats:
    n_systems = len(merged)
    below = np.zeros((n_systems, n_systems))
    step = max(1, BLOCK // n_systems**2)
    for at in range(0, len(means), step):
        rows = means[at : at + step]
        below += (rows[:, :, None] < rows[:, None, :]).sum(axis=0)
    return np.where(merged[:, None] > merged, below / len(means), 0.0)
