from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan

from stats.arguments import (
    Column,
    Flags,
    Integers,
    coded,
    complete_numbers,
    require,
    require_at_least,
    require_confidence,
    sum_by,
)
from stats.libraries import np, scipy
from stats.ranking.judged_lists import JudgedLists, grades_of, ranks_within

# The rank of a document that a run does not have.
NOT_LISTED = int(np.iinfo(np.int32).max)
# Of fewer left out nothing is said of the next; below `FEW_GROUPS` only roughly.
LEAST_GROUPS = 4
FEW_GROUPS = 6


@dataclass(frozen=True)
class OutsideEstimate:
    """By how much a system outside the pool is expected to be underestimated.

    Attributes
    ----------
    value, ci_low, ci_high : float
        In the measure's units, above 0 where the collection is too low for an outside system;
        the limits are those of one further system (or group). NaN with the `reason`.
    n : int
        Systems or groups that were left out.
    reason : str or None
    """

    value: float
    ci_low: float
    ci_high: float
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class Share:
    value: float
    ci_low: float
    ci_high: float
    reason: str | None = None


def pool_ranks(lists: Sequence[JudgedLists], n_judgments: int) -> Integers:
    """The rank at which each run has each judged document.

    Parameters
    ----------
    lists : sequence of JudgedLists
        Of the runs, with the same judgments.
    n_judgments : int

    Returns
    -------
    ndarray of int, shape (n_runs, n_judgments)
        `NOT_LISTED` where a run does not have the document.

    Examples
    --------
    >>> from stats.ranking import judged_lists
    >>> one = np.zeros(2, dtype=int)
    >>> pool_ranks([judged_lists(one, one + [0, 1], 1.0 - one, one[:1], one[:1] + 1, one[:1] + 3,
    ...     n_topics=1)], 1).tolist()
    [[1]]
    """
    ranks = np.full((len(lists), n_judgments), NOT_LISTED, dtype=np.int32)
    for row, one in zip(ranks, lists, strict=True):
        known = one.judgment >= 0
        row[one.judgment[known]] = one.rank[known]
    return ranks.astype(np.intp)


def depth_in_pool(lists: Sequence[JudgedLists]) -> int:
    """The depth to which all documents of all runs are in the pool.

    Parameters
    ----------
    lists : sequence of JudgedLists

    Returns
    -------
    int
        0 where a first document is in none.

    Examples
    --------
    >>> from stats.ranking import judged_lists
    >>> one = np.zeros(2, dtype=int)
    >>> depth_in_pool([judged_lists(one, one + [0, 1], -1.0 * one.cumsum(), one[:1], one[:1],
    ...     one[:1] + 3, n_topics=1)])
    0
    """
    deepest, first_missing = 0, NOT_LISTED
    for one in lists:
        deepest = max(deepest, int(one.rank.max(initial=0)))
        first_missing = min(first_missing, int(one.rank[one.judgment < 0].min(initial=NOT_LISTED)))
    return min(deepest, first_missing - 1)


def judgments_only_of(ranks: Integers, members: Flags, depth: int) -> Flags:
    """Which documents no run has within the depth but the members of a group.

    Parameters
    ----------
    ranks : ndarray of int, shape (n_runs, n_judgments)
        From `pool_ranks`, of the runs that were pooled.
    members : ndarray of bool, shape (n_runs,)
    depth : int
        To which the runs were pooled.

    Returns
    -------
    ndarray of bool, shape (n_judgments,)

    Raises
    ------
    ValueError
        If the depth is below 1.

    References
    ----------
    J. Zobel (1998). How reliable are the results of large-scale information retrieval
    experiments? SIGIR 1998, 307-314.

    Examples
    --------
    >>> ranks = np.array([[1, 2, 9], [NOT_LISTED, 1, 3]])
    >>> judgments_only_of(ranks, np.array([True, False]), 5).tolist()
    [True, False, False]
    """
    require_at_least(1, depth=depth)
    within = ranks <= depth
    return np.asarray(within[members].any(axis=0) & ~within[~members].any(axis=0))


def lists_without(
    lists: Sequence[JudgedLists], topics: Integers, grades: Integers, taken: Flags
) -> Iterator[JudgedLists]:
    """The same lists as if some documents were in no pool.

    Parameters
    ----------
    lists : sequence of JudgedLists
    topics, grades : ndarray of int, shape (n_judgments,)
        All judgments, as they were given to the lists.
    taken : ndarray of bool, shape (n_judgments,)
        Those that are taken away.

    Yields
    ------
    JudgedLists
        Ranked as before, with the judgments that are left.

    Examples
    --------
    >>> from stats.ranking import judged_lists
    >>> one, two = np.zeros(2, dtype=int), np.arange(2)
    >>> lists = judged_lists(one, two, -1.0 * two, one, two, two + 1, n_topics=1)
    >>> [less] = lists_without([lists], one, two + 1, np.array([True, False]))
    >>> less.grade.tolist(), less.judged_grade.tolist()
    ([-128, 2], [2])
    """
    left = np.flatnonzero(~taken)
    order = left[np.lexsort((-grades[left], topics[left]))]
    new = np.full(len(taken) + 1, -1, dtype=np.intp)
    new[order] = np.arange(len(order))
    for one in lists:
        judgment = new[one.judgment]
        yield replace(
            one,
            judgment=judgment,
            grade=grades_of(judgment, grades[order]),
            judged_topic=topics[order],
            judged_rank=ranks_within(topics[order], one.n_topics),
            judged_grade=grades[order],
        )


def new_by_depth(ranks: Integers, relevant: Flags, depth: int) -> tuple[Integers, Integers]:
    """What each rank adds to the pool of all above it.

    Parameters
    ----------
    ranks : ndarray of int, shape (n_runs, n_judgments)
        From `pool_ranks`.
    relevant : ndarray of bool, shape (n_judgments,)
    depth : int

    Returns
    -------
    documents, relevant : ndarray of int, shape (depth,)
        Documents, and relevant ones, that the runs have first at rank 1, 2, …

    Examples
    --------
    >>> ranks = np.array([[1, 2, 9], [NOT_LISTED, 1, 3]])
    >>> [counts.tolist() for counts in new_by_depth(ranks, np.array([True, False, True]), 3)]
    [[2, 0, 1], [1, 0, 1]]
    """
    first = ranks.min(axis=0)
    pooled = first <= depth
    documents = np.bincount(first[pooled] - 1, minlength=depth)
    return documents, np.bincount(first[pooled & relevant] - 1, minlength=depth)


def share_over_topics(counted: Flags, topics: Integers, *, confidence: float = 0.95) -> Share:
    """A share of documents, such as the relevant ones of a source, over topics of this kind.

    Parameters
    ----------
    counted : ndarray of bool, shape (n_documents,)
    topics : ndarray of int, shape (n_documents,)
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    Share
        Of all documents together: a ratio of two sums over topics, whose interval is Student's t
        of the topics' linearised residuals, cut at 0 and 1.

    Raises
    ------
    ValueError
        If `confidence` is out of range.

    References
    ----------
    W. G. Cochran (1977). Sampling Techniques, 3rd ed. Wiley, chapter 6 (ratio estimators).

    Examples
    --------
    >>> share = share_over_topics(np.array([1, 0, 1, 1, 0, 0]) > 0, np.array([0, 0, 1, 1, 2, 2]))
    >>> share.value, share.ci_low
    (0.5, 0.0)
    """
    require_confidence(confidence)
    if not len(counted):
        return Share(nan, nan, nan, "no documents")
    value = float(counted.mean())
    codes = np.unique(topics, return_inverse=True)[1]
    n = int(codes.max()) + 1
    if n < 2:
        return Share(value, nan, nan, "fewer than two topics")
    residual = sum_by(codes, counted.astype(np.float64) - value, n)
    variance = n / (n - 1) * float(np.square(residual).sum()) / len(counted) ** 2
    if variance < 1e-24:
        return Share(value, nan, nan, "all topics have the same share")
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * variance**0.5
    return Share(value, max(value - half, 0.0), min(value + half, 1.0))


def expected_underestimate(drops: Column, *, confidence: float = 0.95) -> OutsideEstimate:
    """By how much the collection underestimates a system that was not pooled.

    Parameters
    ----------
    drops : array-like of float, shape (n_groups,)
        For each system (or group) left out, by how much its value fell when the judgments went
        that it alone brought.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    OutsideEstimate
        The mean, with Student's t interval for one further system (or group) of this kind,
        ``mean -+ t sd sqrt(1 + 1 / n)``. Below four there is none.

    Raises
    ------
    ValueError
        If a value is missing or `confidence` is out of range.

    Notes
    -----
    The reference is the value that the system had if it were pooled like the others. The pool that
    a system is left out of has one group fewer than the pool that an outside system meets, so
    that the estimate errs towards too much. It says something of systems that differ from the
    pooled ones as these differ from each other, and nothing of others.

    References
    ----------
    W. Webber and L. A. F. Park (2009). Score adjustment for correction of pooling bias. SIGIR
    2009, 444-451.
    C. Buckley, D. Dimmick, I. Soboroff and E. Voorhees (2007). Bias and the limits of pooling for
    large collections. Information Retrieval 10, 491-508 (leave one group out).

    Examples
    --------
    >>> estimate = expected_underestimate([0.02, 0.05, 0.03, 0.06])
    >>> round(estimate.value, 3), round(estimate.ci_low, 3), round(estimate.ci_high, 3)
    (0.04, -0.025, 0.105)
    """
    require_confidence(confidence)
    values = complete_numbers(drops, "drops")
    n = len(values)
    value = float(values.mean()) if n else nan
    if n < LEAST_GROUPS:
        return OutsideEstimate(value, nan, nan, n, f"fewer than {LEAST_GROUPS} left out")
    spread = float(values.std(ddof=1))
    if np.ptp(values) < 1e-12:
        return OutsideEstimate(value, nan, nan, n, "all left out lose the same")
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * spread * (1 + 1 / n) ** 0.5
    return OutsideEstimate(value, value - half, value + half, n)


HUB_SHARE = 0.1


@dataclass(frozen=True)
class Hubness:
    """How unevenly lists are filled.

    Attributes
    ----------
    n_lists, n_documents : int
        Lists; documents that could stand in them.
    skewness : float
        Of the k-occurrence: in how many lists each document stands. NaN with the `reason` where
        undefined.
    n_hubs : int
        Documents that stand in at least `hub_share` of the lists.
    hub_slots : float
        The share of all places in lists that hubs take.
    anti_hubs : float
        The share of documents that stand in no list.
    most : int
        The greatest k-occurrence.
    hub_share : float
    reason : str or None
        Why what is NaN is undefined.
    """

    n_lists: int
    n_documents: int
    skewness: float
    n_hubs: int
    hub_slots: float
    anti_hubs: float
    most: int
    hub_share: float
    reason: str | None = None


def hubness(
    document: Column, *, n_lists: int, n_documents: int | None = None, hub_share: float = HUB_SHARE
) -> Hubness:
    """How unevenly documents stand in lists of neighbours, or in pools.

    Parameters
    ----------
    document : array-like, shape (n_places,)
        The document in each place of all lists together, each once a list.
    n_lists : int
    n_documents : int, optional
        Documents that could stand in a list; by default those that do.
    hub_share : float
        From which share of the lists on a document is a hub.

    Returns
    -------
    Hubness

    Raises
    ------
    ValueError
        If there is no list, fewer documents than stand in lists, or `hub_share` is not above 0
        and at most 1.

    References
    ----------
    M. Radovanović, A. Nanopoulos and M. Ivanović (2010). Hubs in space: Popular nearest neighbors
    in high-dimensional data. Journal of Machine Learning Research 11, 2487-2531.

    Examples
    --------
    >>> lists = [["a", "b"], ["a", "c"], ["a", "d"]]
    >>> found = hubness([name for each in lists for name in each], n_lists=3, n_documents=5,
    ...                 hub_share=0.5)
    >>> found.n_hubs, found.hub_slots, found.anti_hubs, round(found.skewness, 3)
    (1, 0.5, 0.2, 0.868)
    """
    require(n_lists >= 1, f"n_lists must be positive, got {n_lists}", code="n_lists_out_of_range")
    require(
        0 < hub_share <= 1,
        f"hub_share must be above 0 and at most 1, got {hub_share}",
        code="hub_share_out_of_range",
    )
    codes, distinct = coded(document, "document")
    n = len(distinct) if n_documents is None else n_documents
    require(
        n >= len(distinct),
        f"n_documents must be at least {len(distinct)}, got {n}",
        code="n_documents_out_of_range",
    )
    if not len(codes):
        return Hubness(n_lists, n, nan, 0, nan, 1.0 if n else nan, 0, hub_share, "empty lists")
    occurrence = np.zeros(n)
    occurrence[: len(distinct)] = np.bincount(codes)
    # A share of the lists as a count: 20 of 200 is 10 %, whatever 0.1 is in binary.
    is_hub = occurrence >= round(hub_share * n_lists, 9)
    has_spread = bool(np.ptp(occurrence))
    return Hubness(
        n_lists=n_lists,
        n_documents=n,
        skewness=float(scipy.stats.skew(occurrence)) if has_spread else nan,
        n_hubs=int(is_hub.sum()),
        hub_slots=float(occurrence[is_hub].sum() / len(codes)),
        anti_hubs=float((occurrence == 0).mean()),
        most=int(occurrence.max()),
        hub_share=hub_share,
        reason=None if has_spread else "all documents stand in the same number of lists",
    )
