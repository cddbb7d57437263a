"""Measures of ranked lists against judgments: one value a topic.

Definitions are trec_eval's where it has the measure. A topic without a relevant document has 0,
and counts.
"""

from typing import Literal, get_args

import numpy as np

from stats.arguments import Floats, Integers, require_one_of, sum_by
from stats.ranking.judged_lists import JudgedLists, ranks_within, shares, within

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
    precisions = ranks_within(topics, lists.n_topics) / lists.rank[rows]
    total = sum_by(topics, precisions, lists.n_topics)
    return shares(total, lists.n_relevant(relevant_from))


def _discounted(
    topic: Integers,
    grade: Integers,
    rank: Integers,
    n_topics: int,
    cutoff: int | None,
    dcg: Gain,
) -> Floats:
    """The discounted gain of each topic, of the rows that have any."""
    rows = np.flatnonzero(grade > 0)
    gain = grade[rows].astype(np.float64)
    if dcg == "exp-log2":
        gain = np.exp2(gain) - 1
    discounted = gain * within(rank[rows], cutoff) / np.log2(rank[rows] + 1.0)
    return sum_by(topic[rows], discounted, n_topics)
