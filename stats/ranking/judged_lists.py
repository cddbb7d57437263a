"""Ranked lists of documents with the grades that their topics' judgments give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from stats.arguments import Floats, Integers, require_one_of, require_same_length
from stats.groups import sum_by

Ties = Literal["falling", "rising"]
UNPOOLED = -128
"""The grade of a document that its topic's judgments do not name; grades are -127 to 127."""
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
    judged_topic, judged_rank, judged_grade : ndarray of int, shape (n_judgments,)
        The judgments by topic, highest grade first; `judged_rank` counts them within a topic.
    """

    n_topics: int
    topic: Integers
    rank: Integers
    grade: Integers
    judged_topic: Integers
    judged_rank: Integers
    judged_grade: Integers

    @cached_property
    def n_listed(self) -> Floats:
        """Documents in each topic's list."""
        return self.sum(np.ones(len(self.topic)))

    def sum(self, values: Floats) -> Floats:
        """The sum of a value of each ranked document, by topic."""
        return sum_by(self.topic, values, self.n_topics)

    def sum_judged(self, values: Floats) -> Floats:
        """The sum of a value of each judgment, by topic."""
        return sum_by(self.judged_topic, values, self.n_topics)

    def sum_to_here(self, values: Floats) -> Floats:
        """The sum of a value over each document and those above it in its list."""
        of_topics = self.sum(values)
        before = np.cumsum(of_topics) - of_topics
        to_here: Floats = np.cumsum(values) - before[self.topic]
        return to_here

    def relevant(self, least: int) -> Floats:
        """1 for each ranked document of at least a grade, 0 for others."""
        return (self.grade >= least).astype(np.float64)

    def n_relevant(self, least: int) -> Floats:
        """Judgments of at least a grade, by topic."""
        return self.sum_judged((self.judged_grade >= least).astype(np.float64))

    def n_nonrelevant(self, least: int) -> Floats:
        """Judgments below that grade, by topic; what was pooled and not judged is none."""
        low = (self.judged_grade >= 0) & (self.judged_grade < least)
        return self.sum_judged(low.astype(np.float64))

    @cached_property
    def condensed(self) -> JudgedLists:
        """The same lists without documents that nobody judged."""
        judged = self.grade >= 0
        topic = self.topic[judged]
        return replace(
            self, topic=topic, rank=_ranks(topic, self.n_topics), grade=self.grade[judged]
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
    if np.isnan(scores).any():
        raise ValueError("scores must not be NaN")
    if len(grades) and not LOWEST_GRADE <= int(grades.min()) <= int(grades.max()) <= HIGHEST_GRADE:
        raise ValueError(f"grades must lie between {LOWEST_GRADE} and {HIGHEST_GRADE}")
    span = 1 + max(
        (int(each.max()) for each in (documents, judged_documents) if len(each)), default=0
    )
    pairs, judged_pairs = topics * span + documents, judged_topics * span + judged_documents
    by_pair = np.argsort(judged_pairs, kind="stable")
    _require_once("judged_documents", judged_pairs[by_pair])
    compared = scores.astype(np.float32) if single_precision else scores
    order = np.lexsort((documents if ties == "rising" else -documents, -compared, topics))
    _require_once("documents", np.sort(pairs))
    judged_order = np.lexsort((-grades, judged_topics))
    return JudgedLists(
        n_topics=n_topics,
        topic=topics[order],
        rank=_ranks(topics[order], n_topics),
        grade=_grades(pairs[order], judged_pairs[by_pair], grades[by_pair]),
        judged_topic=judged_topics[judged_order],
        judged_rank=_ranks(judged_topics[judged_order], n_topics),
        judged_grade=grades[judged_order],
    )


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
        rank=_ranks(topic, n_topics),
        grade=grade,
        judged_topic=judged_topic,
        judged_rank=_ranks(judged_topic, n_topics),
        judged_grade=judged_grade,
    )


def _flat(grades: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """The topic and the grade of each document."""
    topic = np.repeat(np.arange(len(grades)), [len(each) for each in grades])
    flat = [grade for each in grades for grade in each]
    return topic.astype(np.intp), np.array(flat, dtype=np.intp)


def _grades(pairs: Integers, judged: Integers, grades: Integers) -> Integers:
    """The grade of each pair of topic and document, of judged ones in ascending order."""
    if not len(judged):
        return np.full(len(pairs), UNPOOLED, dtype=np.intp)
    position = np.minimum(np.searchsorted(judged, pairs), len(judged) - 1)
    return np.where(judged[position] == pairs, grades[position], UNPOOLED)


def _ranks(topic: Integers, n_topics: int) -> Integers:
    """1, 2, 3 … within each topic, whose rows are together."""
    count = np.bincount(topic, minlength=n_topics)
    start = np.cumsum(count) - count
    return np.arange(1, len(topic) + 1) - start[topic]


def _require_codes(n: int | None, **codes: Integers) -> None:
    for name, code in codes.items():
        if code.dtype.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers, not {code.dtype}")
        if len(code) and (int(code.min()) < 0 or (n is not None and int(code.max()) >= n)):
            raise ValueError(
                f"{name} must be numbers from 0" + ("" if n is None else f" to {n - 1}")
            )


def _require_once(name: str, ascending: Integers) -> None:
    if (ascending[1:] == ascending[:-1]).any():
        raise ValueError(f"{name} must not name a document twice for the same topic")


def within(rank: Integers, cutoff: int | None) -> Floats | float:
    """1 for each row down to the cutoff, 0 below it."""
    if cutoff is None:
        return 1.0
    if cutoff < 1:
        raise ValueError(f"cutoff must be at least 1, not {cutoff}")
    return (rank <= cutoff).astype(np.float64)


def shares(part: Floats, whole: Floats) -> Floats:
    """Each part of its whole; 0 of nothing."""
    shares: Floats = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return shares
