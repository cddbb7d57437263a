"""Measures of ranked lists against complete or incomplete judgments: one value a topic.

Definitions are trec_eval's where it has the measure. A topic without a relevant document has 0,
and counts.
"""

from typing import Literal, get_args

import numpy as np

from stats.arguments import Floats, Integers, require, require_one_of, require_shares, sum_by
from stats.ranking.judged_lists import LOWEST_GRADE, JudgedLists, ranks_within, shares, within

Gain = Literal["log2", "exp-log2"]


def ndcg(lists: JudgedLists, *, cutoff: int | None = None, dcg: Gain = "log2") -> Floats:
    """Normalised discounted cumulative gain.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int, optional
        Ranks that count, of the list and of the ideal one; all by default.
    dcg : {"log2", "exp-log2"}
        The gain of a grade g above 0: g, or ``2**g - 1``. They are two measures.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        The sum of ``gain / log2(rank + 1)`` over that of the topic's judgments in the best order.

    Raises
    ------
    ValueError
        If the cutoff is not positive or the gain unknown.

    References
    ----------
    K. Järvelin and J. Kekäläinen (2002). Cumulated gain-based evaluation of IR techniques. ACM
    TOIS 20(4), 422-446, with the discount from rank 1 on; C. Burges et al. (2005) for 2**g - 1.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> ndcg(lists, cutoff=3).round(4).tolist()
    [0.6388]
    """
    require_one_of(dcg=(dcg, get_args(Gain)))
    n = lists.n_topics
    gain = _discounted(lists.topic, lists.grade, lists.rank, n, cutoff, dcg)
    ideal = _discounted(lists.judged_topic, lists.judged_grade, lists.judged_rank, n, cutoff, dcg)
    return shares(gain, ideal)


def reciprocal_rank(
    lists: JudgedLists, *, cutoff: int | None = None, relevant_from: int = 1
) -> Floats:
    """1 over the rank of the first relevant document, 0 where there is none.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int, optional
        Ranks that count; all by default, as in trec_eval.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    P. Kantor and E. Voorhees (2000). The TREC-5 confusion track. Information Retrieval 2, 165-176.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> reciprocal_rank(lists, relevant_from=2).round(4).tolist()
    [0.3333]
    """
    rows = lists.hits(relevant_from, cutoff)
    topics, first = np.unique(lists.topic[rows], return_index=True)
    values = np.zeros(lists.n_topics)
    values[topics] = 1 / lists.rank[rows[first]]
    return values


def success(lists: JudgedLists, *, cutoff: int, relevant_from: int = 1) -> Floats:
    """1 where a relevant document is among the first, 0 elsewhere.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int
        Ranks that count.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    trec_eval, m_success.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> success(lists, cutoff=1).tolist()
    [1.0]
    """
    return (lists.n_hits(relevant_from, cutoff) > 0).astype(np.float64)


def precision(lists: JudgedLists, *, cutoff: int, relevant_from: int = 1) -> Floats:
    """The share of relevant documents among the first; a short list is divided by `cutoff` too.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int
        Ranks that count.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    trec_eval, m_P.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> precision(lists, cutoff=5).tolist()
    [0.4]
    """
    return lists.n_hits(relevant_from, cutoff) / cutoff


def recall(lists: JudgedLists, *, cutoff: int | None = None, relevant_from: int = 1) -> Floats:
    """The share of the relevant documents that is among the first.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int, optional
        Ranks that count; all by default.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    trec_eval, m_recall.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> recall(lists, cutoff=1).round(4).tolist()
    [0.3333]
    """
    return shares(lists.n_hits(relevant_from, cutoff), lists.n_relevant(relevant_from))


def r_precision(lists: JudgedLists, *, relevant_from: int = 1) -> Floats:
    """Precision at as many ranks as the topic has relevant documents.

    Parameters
    ----------
    lists : JudgedLists
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    References
    ----------
    trec_eval, m_Rprec.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> r_precision(lists).round(4).tolist()
    [0.6667]
    """
    total = lists.n_relevant(relevant_from)
    within = lists.rank <= total[lists.topic]
    return shares(lists.sum(lists.relevant(relevant_from) * within), total)


def average_precision(
    lists: JudgedLists, *, cutoff: int | None = None, relevant_from: int = 1
) -> Floats:
    """The mean, over the topic's relevant documents, of the precision where each stands.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int, optional
        Ranks that count; all by default. All relevant documents divide, whatever it is.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    trec_eval, m_map.c and m_map_cut.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> average_precision(lists).round(4).tolist()
    [0.5556]
    """
    rows = lists.hits(relevant_from, cutoff)
    topics = lists.topic[rows]
    total = sum_by(topics, ranks_within(topics, lists.n_topics) / lists.rank[rows], lists.n_topics)
    return shares(total, lists.n_relevant(relevant_from))


def _discounted(
    topic: Integers,
    grade: Integers,
    rank: Integers,
    n_topics: int,
    cutoff: int | None,
    dcg: Gain,
) -> Floats:
    rows = np.flatnonzero(grade > 0)
    gain = grade[rows].astype(np.float64)
    if dcg == "exp-log2":
        gain = np.exp2(gain) - 1
    discounted = gain * within(rank[rows], cutoff) / np.log2(rank[rows] + 1.0)
    return sum_by(topic[rows], discounted, n_topics)


# trec_eval's, which keeps shares of nothing judged defined.
INFERRED_EPSILON = 1e-5


def binary_preference(lists: JudgedLists, *, relevant_from: int = 1) -> Floats:
    """bpref: how often judged nonrelevant documents stand above relevant ones.

    Parameters
    ----------
    lists : JudgedLists
    relevant_from : int
        The least grade that is relevant; grades from 0 to below it are nonrelevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        The mean over the R relevant documents of ``1 - min(above, R) / min(N, R)``, 0 for those
        not in the list, where N documents are judged nonrelevant and `above` of them are above.

    References
    ----------
    C. Buckley and E. M. Voorhees (2004). Retrieval evaluation with incomplete information.
    SIGIR 2004, 25-32; as in trec_eval, m_bpref.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> binary_preference(lists).round(4).tolist()
    [0.6667]
    """
    relevant = lists.relevant(relevant_from)
    nonrelevant = ((lists.grade >= 0) & (lists.grade < relevant_from)).astype(np.float64)
    total = lists.n_relevant(relevant_from)
    bound = np.minimum(lists.n_nonrelevant(relevant_from), total)[lists.topic]
    above = np.minimum(lists.sum_to_here(nonrelevant), total[lists.topic])
    with np.errstate(invalid="ignore", divide="ignore"):
        penalty = np.where(above > 0, above / bound, 0.0)
    return shares(lists.sum(relevant * (1 - np.where(relevant > 0, penalty, 0.0))), total)


def inferred_average_precision(lists: JudgedLists, *, relevant_from: int = 1) -> Floats:
    """Average precision as a uniform sample of the pool lets it be inferred.

    Parameters
    ----------
    lists : JudgedLists
        Grades below 0 mark what was pooled and not drawn. Without any it is average precision.
    relevant_from : int
        The least grade that is relevant.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    References
    ----------
    E. Yilmaz and J. A. Aslam (2006). Estimating average precision with incomplete and imperfect
    judgments. CIKM 2006, 102-111; as in trec_eval, m_infap.c.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> inferred_average_precision(lists).round(3).tolist()
    [0.556]
    """
    relevant = lists.relevant(relevant_from)
    judged = (lists.grade >= 0).astype(np.float64)
    pooled = (lists.grade >= LOWEST_GRADE).astype(np.float64)
    relevant_above = lists.sum_to_here(relevant) - relevant
    judged_above = lists.sum_to_here(judged) - judged
    pooled_above = lists.sum_to_here(pooled) - pooled
    share = (relevant_above + INFERRED_EPSILON) / (judged_above + 2 * INFERRED_EPSILON)
    expected = 1 / lists.rank + pooled_above / lists.rank * share
    expected = np.where(lists.rank == 1, 1.0, expected)
    return shares(lists.sum(relevant * expected), lists.n_relevant(relevant_from))


def rank_biased_precision(
    lists: JudgedLists, *, p: float = 0.8, relevant_from: int = 1, highest_grade: int | None = None
) -> Floats:
    """Rank-biased precision: a reader goes from each document to the next with probability p.

    Parameters
    ----------
    lists : JudgedLists
    p : float
        Persistence, between 0 and 1.
    relevant_from : int
        The least grade that is relevant, where there is no `highest_grade`.
    highest_grade : int, optional
        Of the scale: a grade g above 0 then gains ``g / highest_grade``.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        ``(1 - p)`` times the sum of ``gain * p**(rank - 1)``: what it is at least. What it may be
        more is `rank_biased_residual`.

    Raises
    ------
    ValueError
        If `p` does not lie between 0 and 1, or `highest_grade` is below a grade or 1.

    References
    ----------
    A. Moffat and J. Zobel (2008). Rank-biased precision for measurement of retrieval
    effectiveness. ACM TOIS 27(1), 2:1-27.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> rank_biased_precision(lists, p=0.5).tolist()
    [0.625]
    """
    require_shares(p=p)
    gain = lists.relevant(relevant_from)
    if highest_grade is not None:
        require(
            highest_grade >= max(1, int(lists.judged_grade.max(initial=1))),
            f"highest_grade must be no lower than any grade, not {highest_grade}",
            code="highest_grade_out_of_range",
        )
        gain = np.maximum(lists.grade, 0) / highest_grade
    return (1 - p) * lists.sum(gain * p ** (lists.rank - 1.0))


def rank_biased_residual(lists: JudgedLists, *, p: float = 0.8) -> Floats:
    """What rank-biased precision would be more if all that nobody judged were relevant.

    Parameters
    ----------
    lists : JudgedLists
    p : float
        Persistence, between 0 and 1.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        ``(1 - p)`` times the sum of ``p**(rank - 1)`` over unjudged documents, and ``p**n`` for
        what comes after the n documents of the list.

    Raises
    ------
    ValueError
        If `p` does not lie between 0 and 1.

    References
    ----------
    As `rank_biased_precision`.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> rank_biased_residual(lists, p=0.5).tolist()
    [0.375]
    """
    require_shares(p=p)
    unjudged = (lists.grade < 0).astype(np.float64)
    return (1 - p) * lists.sum(unjudged * p ** (lists.rank - 1.0)) + p**lists.n_listed


def judged(lists: JudgedLists, *, cutoff: int, pooled: bool = False) -> Floats:
    """The share of the first documents that somebody judged, or that are in the pool.

    Parameters
    ----------
    lists : JudgedLists
    cutoff : int
        Ranks that count.
    pooled : bool
        Whether documents that were pooled and not judged (grades below 0) count too.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        Of the list's documents where it is shorter; 0 where it is empty.

    Raises
    ------
    ValueError
        If the cutoff is not positive.

    References
    ----------
    S. MacAvaney, C. Macdonald and I. Ounis (2022). Streamlining evaluation with ir-measures.
    ECIR 2022; there, Judged@k counts all that is in the pool.

    Examples
    --------
    >>> from stats.ranking import graded_lists
    >>> lists = graded_lists([[1, None, 2]], [[2, 1, 1]])
    >>> judged(lists, cutoff=3).round(4).tolist()
    [0.6667]
    """
    known = (lists.grade >= (LOWEST_GRADE if pooled else 0)).astype(np.float64)
    return shares(lists.sum(known * within(lists.rank, cutoff)), np.minimum(lists.n_listed, cutoff))
