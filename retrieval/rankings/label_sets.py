"""Several assessors' grades of the same topics as sets of labels, and sets derived of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.trec_files import RelevanceGrades
from stats.arguments import Integers

RULES = {
    "union": "the highest grade that anybody gave",
    "intersection": "the lowest grade that anybody gave",
    "majority": "the middle grade of those given, the lower of two",
}
"""Of each document, over those who judged it."""


@dataclass(frozen=True)
class LabelSets:
    """The grades of several sets, of topics and documents numbered alike.

    `pair` of a set are its judged or pooled documents as ``topic * len(documents) + document``,
    ascending, and `grade` their grades.
    """

    topics: list[str]
    documents: list[str]
    pair: dict[str, Integers]
    grade: dict[str, Integers]

    @property
    def names(self) -> list[str]:
        return list(self.pair)

    def only(self, names: Sequence[str]) -> LabelSets:
        """The same with these sets alone."""
        pair, grade = ({name: of[name] for name in names} for of in (self.pair, self.grade))
        return LabelSets(self.topics, self.documents, pair, grade)

    def most_judges(self) -> int:
        """The most sets that judged a document."""
        return int((~np.isnan(self._table[1])).sum(axis=0).max(initial=0))

    def topic_of(self, pair: Integers) -> Integers:
        return np.asarray(pair // max(1, len(self.documents)))

    def has_judged(self, name: str) -> NDArray[np.bool_]:
        """The topics of which the set has a grade that is not below 0."""
        judged = np.zeros(len(self.topics), dtype=bool)
        judged[self.topic_of(self.pair[name][self.grade[name] >= 0])] = True
        return judged

    @cached_property
    def _table(self) -> tuple[Integers, NDArray[np.float64]]:
        """All documents, and the grade of each set; NaN where it did not judge one."""
        every = np.unique(np.concatenate(list(self.pair.values())))
        table = np.full((len(self.pair), len(every)), np.nan)
        for row, name in enumerate(self.pair):
            judged = self.grade[name] >= 0
            at = np.searchsorted(every, self.pair[name][judged])
            table[row, at] = self.grade[name][judged]
        return every, table

    def derived(self, rule: str) -> RelevanceGrades:
        """Union, intersection or majority of the sets, over those who judged a document."""
        every, table = self._table
        ascending = np.sort(table, axis=0)  # NaN last
        n_judges = (~np.isnan(table)).sum(axis=0)
        rank = {
            "union": n_judges - 1,
            "intersection": np.zeros_like(n_judges),
            "majority": (n_judges - 1) // 2,
        }[rule]
        grade = ascending[np.maximum(rank, 0), np.arange(len(every))]
        # What everybody left unjudged stays pooled and not judged.
        return self._grades(rule, every, np.nan_to_num(grade, nan=-1).astype(np.intp))

    def of(self, name: str) -> RelevanceGrades:
        """A set as qrels, of all topics, with those documents that it names."""
        return self._grades(name, self.pair[name], self.grade[name])

    def _grades(self, name: str, pair: Integers, grade: Integers) -> RelevanceGrades:
        n = max(1, len(self.documents))
        return RelevanceGrades(Path(name), self.topics, self.documents, pair // n, pair % n, grade)

    def shared(self, one: str, other: str) -> tuple[Integers, Integers, Integers]:
        """Topic and both grades of each document that both sets judged."""
        (pair, grade), (other_pair, other_grade) = self._judged(one), self._judged(other)
        both, here, there = np.intersect1d(
            pair, other_pair, assume_unique=True, return_indices=True
        )
        return self.topic_of(both), grade[here], other_grade[there]

    def judgments(self) -> tuple[Integers, Integers, Integers]:
        """Of each judgment the document (of a topic), the set by number, and the grade."""
        judged = [self._judged(name) for name in self.names]
        pair, grade = (np.concatenate(each) for each in zip(*judged, strict=True))
        number = np.repeat(np.arange(len(judged)), [len(pairs) for pairs, _ in judged])
        return pair, number, grade

    def _judged(self, name: str) -> tuple[Integers, Integers]:
        judged = self.grade[name] >= 0
        return self.pair[name][judged], self.grade[name][judged]


def label_sets(qrels: Mapping[str, RelevanceGrades], topics: Sequence[str]) -> LabelSets:
    """The sets' grades of these topics."""
    documents = sorted({d for grades in qrels.values() for d in grades.documents}, key=str.encode)
    number = {name: at for at, name in enumerate(topics)}
    code = {name: at for at, name in enumerate(documents)}
    pair, grade = {}, {}
    for name, grades in qrels.items():
        topic = np.array([number.get(each, -1) for each in grades.topics], np.intp)[grades.topic]
        document = np.array([code[each] for each in grades.documents], np.intp)[grades.document]
        counted = topic >= 0
        pairs = topic[counted] * len(documents) + document[counted]
        order = np.argsort(pairs, kind="stable")
        pair[name], grade[name] = pairs[order], grades.grade[counted][order]
    return LabelSets(list(topics), documents, pair, grade)
