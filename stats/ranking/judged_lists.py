from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from error_codes import InvalidValue
from stats.arguments import (
    Floats,
    Integers,
    require,
    require_at_least,
    require_one_of,
    require_same_length,
    sum_by,
)

Ties = Literal["falling", "rising"]
Scores = NDArray[np.float32] | Floats
# The grade of a document that its topic's judgments do not name; grades are -127 to 127.
UNPOOLED = -128
LOWEST_GRADE, HIGHEST_GRADE = -127, 127


@dataclass(frozen=True)
class JudgedLists:
    """One ranked list a topic, flat, and all that was judged of each topic.

    Attributes
    ----------
    n_topics : int
        Topics are numbered from 0; one may have an empty list, or no judgment.
    topic, rank, grade : ndarray of int, shape (n_documents,)
        Of each ranked document, by topic and rank, which counts from 1. A grade below 0 says
        pooled and not judged, `UNPOOLED` says in no pool.
    judgment : ndarray of int, shape (n_documents,)
        Of each ranked document, where among the judgments as they were given its own is; -1
        where there is none, or lists were made of grades alone.
    judged_topic, judged_rank, judged_grade : ndarray of int, shape (n_judgments,)
        The judgments by topic, highest grade first; `judged_rank` counts them within a topic.
    has_ties : bool
        Whether names decided which of two documents with the same score comes first.
    """

    n_topics: int
    topic: Integers
    rank: Integers
    grade: Integers
    judgment: Integers
    judged_topic: Integers
    judged_rank: Integers
    judged_grade: Integers
    has_ties: bool = False

    @cached_property
    def n_listed(self) -> Floats:
        return self.sum(np.ones(len(self.topic)))

    def sum(self, values: Floats) -> Floats:
        return sum_by(self.topic, values, self.n_topics)

    def sum_to_here(self, values: Floats) -> Floats:
        of_topics = self.sum(values)
        before = np.cumsum(of_topics) - of_topics
        to_here: Floats = np.cumsum(values) - before[self.topic]
        return to_here

    def relevant(self, least: int) -> Floats:
        return (self.grade >= least).astype(np.float64)

    def hits(self, least: int, cutoff: int | None = None) -> Integers:
        """The rows of ranked documents of at least a grade, down to the cutoff: few of all."""
        rows = np.flatnonzero(self.grade >= least)
        return rows if cutoff is None else rows[within(self.rank[rows], cutoff) > 0]

    def n_hits(self, least: int, cutoff: int | None = None) -> Floats:
        count = np.bincount(self.topic[self.hits(least, cutoff)], minlength=self.n_topics)
        return count.astype(np.float64)

    def n_relevant(self, least: int) -> Floats:
        relevant = self.judged_topic[self.judged_grade >= least]
        return np.bincount(relevant, minlength=self.n_topics).astype(np.float64)

    def n_nonrelevant(self, least: int) -> Floats:
        """Judgments below that grade, by topic; what was pooled and not judged is none."""
        low = (self.judged_grade >= 0) & (self.judged_grade < least)
        return sum_by(self.judged_topic, low.astype(np.float64), self.n_topics)

    @cached_property
    def condensed(self) -> JudgedLists:
        judged = self.grade >= 0
        topic = self.topic[judged]
        return replace(
            self,
            topic=topic,
            rank=ranks_within(topic, self.n_topics),
            grade=self.grade[judged],
            judgment=self.judgment[judged],
        )


def judged_lists(
    topics: Integers,
    documents: Integers,
    scores: Floats,
    judged_topics: Integers,
    judged_documents: Integers,
    grades: Integers,
    *,
    n_topics: int,
    ties: Ties = "falling",
    single_precision: bool = True,
) -> JudgedLists:
    """Rank each topic's documents by score, and look their grades up.

    Parameters
    ----------
    topics, documents : ndarray of int, shape (n_documents,)
        Of each scored document: its topic, 0 to `n_topics` - 1, and its number, from 0, in the
        order of the documents' names as bytes.
    scores : ndarray of float, shape (n_documents,)
        Higher comes first; not NaN.
    judged_topics, judged_documents, grades : ndarray of int, shape (n_judgments,)
        The judgments, numbered alike; grades are -127 to 127.
    n_topics : int
    ties : {"falling", "rising"}
        Which document comes first of those with the same score, by number. trec_eval takes the
        highest first.
    single_precision : bool
        Whether scores that are the same as 32-bit floats are tied, as in trec_eval before 10.0.

    Returns
    -------
    JudgedLists

    Raises
    ------
    ValueError
        If columns differ in length, a number is out of range, a score is NaN, or a document
        comes twice in a topic's list or judgments.

    References
    ----------
    E. M. Voorhees and D. K. Harman (eds., 2005). TREC: Experiment and Evaluation in Information
    Retrieval. MIT Press (qrels, runs, trec_eval's order: the rank column is not read).

    Examples
    --------
    >>> one = np.zeros(3, dtype=int)
    >>> lists = judged_lists(
    ...     one, np.array([0, 1, 2]), np.array([1.0, 2.0, 2.0]), one[:1], one[:1] + 1, one[:1] + 3,
    ...     n_topics=1,
    ... )
    >>> lists.grade.tolist()
    [-128, 3, -128]
    """
    require_one_of(ties=(ties, get_args(Ties)))
    require_same_length(topics=topics, documents=documents, scores=scores)
    require_same_length(
        judged_topics=judged_topics, judged_documents=judged_documents, grades=grades
    )
    _require_codes(n_topics, topics=topics, judged_topics=judged_topics)
    _require_codes(None, documents=documents, judged_documents=judged_documents)
    require(not np.isnan(scores).any(), "scores must not be NaN", code="scores_missing")
    require(
        not len(grades) or LOWEST_GRADE <= int(grades.min()) <= int(grades.max()) <= HIGHEST_GRADE,
        f"grades must lie between {LOWEST_GRADE} and {HIGHEST_GRADE}",
        code="grades_out_of_range",
    )
    span = 1 + max(
        (int(each.max()) for each in (documents, judged_documents) if len(each)), default=0
    )
    pairs, judged_pairs = topics * span + documents, judged_topics * span + judged_documents
    by_pair = np.argsort(judged_pairs)
    _require_once("judged_documents", judged_pairs[by_pair])
    compared = in_single_precision(scores) if single_precision else scores
    order, has_ties = _ranking(topics, documents if ties == "rising" else -documents, compared)
    _require_once("documents", np.sort(pairs))
    judged_order = np.lexsort((-grades, judged_topics))
    judgment = _judgments(pairs[order], judged_pairs[by_pair], by_pair)
    return JudgedLists(
        n_topics=n_topics,
        topic=topics[order],
        rank=ranks_within(topics[order], n_topics),
        grade=grades_of(judgment, grades),
        judgment=judgment,
        judged_topic=judged_topics[judged_order],
        judged_rank=ranks_within(judged_topics[judged_order], n_topics),
        judged_grade=grades[judged_order],
        has_ties=has_ties,
    )


def in_single_precision(scores: Floats) -> NDArray[np.float32]:
    """Scores as trec_eval holds them: what lies beyond 3.4e38 is infinite there, and ties.

    Parameters
    ----------
    scores : array of float, (n,)

    Returns
    -------
    array of float32, (n,)
    """
    with np.errstate(over="ignore"):
        return np.asarray(scores, dtype=np.float64).astype(np.float32)


def graded_lists(
    ranked: Sequence[Sequence[int | None]], judged: Sequence[Sequence[int]]
) -> JudgedLists:
    """Lists whose documents' grades are known already.

    Parameters
    ----------
    ranked : sequence of sequences of int or None
        For each topic the grades of its list, from the first rank on; None of what is in no pool.
    judged : sequence of sequences of int
        For each topic the grades of all that was judged of it, those of the list among them.

    Returns
    -------
    JudgedLists

    Raises
    ------
    ValueError
        If there are not as many lists as topics with judgments.

    Examples
    --------
    >>> graded_lists([[1, None]], [[2, 1]]).n_relevant(1).tolist()
    [2.0]
    """
    n_topics = require_same_length(ranked=ranked, judged=judged)
    topic, grade = _flat([[UNPOOLED if g is None else g for g in each] for each in ranked])
    judged_topic, judged_grade = _flat([sorted(each, reverse=True) for each in judged])
    return JudgedLists(
        n_topics=n_topics,
        topic=topic,
        rank=ranks_within(topic, n_topics),
        grade=grade,
        judgment=np.full(len(grade), -1, dtype=np.intp),
        judged_topic=judged_topic,
        judged_rank=ranks_within(judged_topic, n_topics),
        judged_grade=judged_grade,
    )


def _flat(grades: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    topic = np.repeat(np.arange(len(grades)), [len(each) for each in grades])
    flat = [grade for each in grades for grade in each]
    return topic.astype(np.intp), np.array(flat, dtype=np.intp)


def _ranking(topics: Integers, by_name: Integers, scores: Scores) -> tuple[Integers, bool]:
    """The order by topic, falling score and name, and whether a name decided."""
    keys = score_keys(topics, scores)
    if keys is None:
        order = np.lexsort((by_name, -scores, topics))
        same = (np.diff(topics[order]) == 0) & (np.diff(scores[order]) == 0)
        return order, bool(same.any())
    order = np.arange(len(keys)) if (keys[1:] > keys[:-1]).all() else np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    if has_ties := bool(same.any()):
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows = order[tied]
        order[tied] = rows[np.lexsort((by_name[rows], keys[rows]))]
    return order, has_ties


def score_keys(topics: Integers, scores: Scores) -> NDArray[np.uint64] | None:
    """One number a document that rises by topic and falling score, where both fit into one.

    It is one number for both that sorts many times as fast as two columns do. Scores that are not
    32-bit floats have none.

    >>> score_keys(np.zeros(3, dtype=int), np.array([-1, 0, 2], np.float32)).argsort().tolist()
    [2, 1, 0]
    """
    if scores.dtype != np.float32 or (len(topics) and int(topics.max()) >= 2**32):
        return None
    bits = (scores + np.float32(0)).view(np.uint32)  # -0 is 0
    falling = np.where(bits >> 31, bits, ~(bits | np.uint32(2**31)))
    return (topics.astype(np.uint64) << np.uint64(32)) | falling


def _judgments(pairs: Integers, judged: Integers, positions: Integers) -> Integers:
    """The judgment of each pair of topic and document, of judged pairs in ascending order."""
    if not len(judged):
        return np.full(len(pairs), -1, dtype=np.intp)
    nearest = np.minimum(np.searchsorted(judged, pairs), len(judged) - 1)
    return np.where(judged[nearest] == pairs, positions[nearest], -1)


def grades_of(judgment: Integers, grades: Integers) -> Integers:
    """The grade of each judgment, `UNPOOLED` where there is none.

    >>> grades_of(np.array([1, -1]), np.array([0, 3])).tolist()
    [3, -128]
    """
    return np.append(grades, UNPOOLED)[judgment]


def ranks_within(topic: Integers, n_topics: int) -> Integers:
    """1, 2, 3 … within each topic, whose rows are together.

    >>> ranks_within(np.array([0, 0, 2]), 3).tolist()
    [1, 2, 1]
    """
    count = np.bincount(topic, minlength=n_topics)
    start = np.cumsum(count) - count
    return np.arange(1, len(topic) + 1) - start[topic]


def _require_codes(n: int | None, **codes: Integers) -> None:
    for name, code in codes.items():
        require(
            code.dtype.kind in "iu",
            f"{name} must be whole numbers, not {code.dtype}",
            code=f"{name}_not_whole",
        )
        if len(code) and (int(code.min()) < 0 or (n is not None and int(code.max()) >= n)):
            raise InvalidValue(
                f"{name} must be numbers from 0" + ("" if n is None else f" to {n - 1}"),
                code=f"{name}_out_of_range",
            )


def _require_once(name: str, ascending: Integers) -> None:
    require(
        not (ascending[1:] == ascending[:-1]).any(),
        f"{name} must not name a document twice for the same topic",
        code="repeated_documents",
    )


def within(rank: Integers, cutoff: int | None) -> Floats | float:
    if cutoff is None:
        return 1.0
    require_at_least(1, cutoff=cutoff)
    return (rank <= cutoff).astype(np.float64)


def shares(part: Floats, whole: Floats) -> Floats:
    shares: Floats = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return shares
