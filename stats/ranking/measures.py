"""Measures of ranked lists against judgments: one value a topic.

Definitions are trec_eval's where it has the measure. A topic without a relevant document has 0,
and counts.
"""

from typing import Literal, get_args

import numpy as np

from stats.arguments import Floats, Integers, require_one_of
from stats.ranking.judged_lists import JudgedLists, shares, within

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
    gain = _discounted(lists.grade, lists.rank, cutoff, dcg)
    ideal = _discounted(lists.judged_grade, lists.judged_rank, cutoff, dcg)
    return shares(lists.sum(gain), lists.sum_judged(ideal))


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
    relevant = lists.relevant(relevant_from) * within(lists.rank, cutoff)
    is_first = (relevant > 0) & (lists.sum_to_here(relevant) == 1)
    return lists.sum(is_first / lists.rank)


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
    hits = lists.sum(lists.relevant(relevant_from) * within(lists.rank, cutoff))
    return (hits > 0).astype(np.float64)


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
    return lists.sum(lists.relevant(relevant_from) * within(lists.rank, cutoff)) / cutoff


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
    hits = lists.sum(lists.relevant(relevant_from) * within(lists.rank, cutoff))
    return shares(hits, lists.n_relevant(relevant_from))


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
    relevant = lists.relevant(relevant_from) * within(lists.rank, cutoff)
    precisions = relevant * lists.sum_to_here(relevant) / lists.rank
    return shares(lists.sum(precisions), lists.n_relevant(relevant_from))


def _discounted(grade: Integers, rank: Integers, cutoff: int | None, dcg: Gain) -> Floats:
    gain = np.maximum(grade, 0).astype(np.float64)
    if dcg == "exp-log2":
        gain = np.exp2(gain) - 1
    discounted: Floats = gain * within(rank, cutoff) / np.log2(rank + 1.0)
    return discounted
