from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Self

import numpy as np

from retrieval.exceptions import RunsUnfit
from retrieval.rankings.records import (
    ComparisonSettings,
    Kind,
    Row,
    agreement_record,
    overlap_record,
)
from retrieval.trec_files import RelevanceGrades
from stats.agreement import cohen_kappa, krippendorff_alpha
from stats.agreement.specific import relevant_overlap
from stats.arguments import Flags, Floats, Integers, pairs_within

RULES = {
    "union": "the highest grade that anybody gave",
    "intersection": "the lowest grade that anybody gave",
    "majority": "the middle grade of those given, the lower of two",
}


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

    def only(self, names: Sequence[str]) -> Self:
        pair, grade = ({name: of[name] for name in names} for of in (self.pair, self.grade))
        return replace(self, pair=pair, grade=grade)

    def most_judges(self) -> int:
        return int((~np.isnan(self._table[1])).sum(axis=0).max(initial=0))

    def topic_of(self, pair: Integers) -> Integers:
        return np.asarray(pair // max(1, len(self.documents)))

    def has_judged(self, name: str) -> Flags:
        """The topics of which the set has a grade that is not below 0."""
        judged = np.zeros(len(self.topics), dtype=bool)
        judged[self.topic_of(self.pair[name][self.grade[name] >= 0])] = True
        return judged

    @cached_property
    def _table(self) -> tuple[Integers, Floats]:
        every = np.unique(np.concatenate(list(self.pair.values())))
        table = np.full((len(self.pair), len(every)), np.nan)
        for row, name in enumerate(self.pair):
            judged = self.grade[name] >= 0
            table[row, np.searchsorted(every, self.pair[name][judged])] = self.grade[name][judged]
        return every, table

    def derived(self, rule: str) -> RelevanceGrades:
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
        return self._grades(name, self.pair[name], self.grade[name])

    def _grades(self, name: str, pair: Integers, grade: Integers) -> RelevanceGrades:
        n = max(1, len(self.documents))
        return RelevanceGrades(Path(name), self.topics, self.documents, pair // n, pair % n, grade)

    def shared(self, one: str, other: str) -> tuple[Integers, Integers, Integers]:
        (pair, grade), (other_pair, other_grade) = self._judged(one), self._judged(other)
        both, here, there = np.intersect1d(
            pair, other_pair, assume_unique=True, return_indices=True
        )
        return self.topic_of(both), grade[here], other_grade[there]

    def judgments(self) -> tuple[Integers, Integers, Integers]:
        """Of each judgment the document (of a topic), the set by number, and the grade."""
        judged = [self._judged(name) for name in self.names]
        pair, grade = (np.concatenate(each) for each in zip(*judged, strict=True))
        return pair, np.repeat(np.arange(len(judged)), [len(pairs) for pairs, _ in judged]), grade

    def _judged(self, name: str) -> tuple[Integers, Integers]:
        judged = self.grade[name] >= 0
        return self.pair[name][judged], self.grade[name][judged]


def label_sets(qrels: Mapping[str, RelevanceGrades], topics: Sequence[str]) -> LabelSets:
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


def labels_compared(sets: LabelSets, names: Sequence[str], confidence: float) -> Iterator[Row]:
    """Of every two sets the labels of documents that both judged, with intervals for new topics.

    `counts` are documents by the grade that the first set gives, a row each, and the second.
    """
    for first, second in combinations(names, 2):
        topic, one, other = sets.shared(first, second)
        relevant = one > 0, other > 0
        kappa = cohen_kappa(*relevant, clusters=topic, confidence=confidence)
        grades = np.union1d(one, other)
        overlap = relevant_overlap(*relevant, topic, confidence=confidence)
        of_grades = weighted = None
        if len(grades) > 2:
            of_grades = cohen_kappa(one, other, clusters=topic, confidence=confidence)
            weighted = cohen_kappa(
                one,
                other,
                weights="linear",
                # grades that neither gave are steps between those given, too
                categories=range(int(grades[0]), int(grades[-1]) + 1),
                clusters=topic,
                confidence=confidence,
            )
        yield {
            "first": first,
            "second": second,
            "n_topics": len(np.unique(topic)),
            "n_documents": overlap.n_items,
            "n_both_relevant": overlap.n_both,
            "n_either_relevant": overlap.n_either,
            "overlap": overlap_record(overlap),
            "kappa": agreement_record(kappa),
            "kappa_of_grades": of_grades and agreement_record(of_grades),
            "weighted_kappa": weighted and agreement_record(weighted),
            "grades": grades.tolist(),
            "counts": _counts(one, other, grades),
            "warnings": [*overlap.warnings, *kappa.warnings],
        }


def assessors_agree(sets: LabelSets, confidence: float) -> Row:
    """Agreement of any two assessors of a document; its overlap counts pairs of assessors."""
    pair, number, grade = sets.judgments()
    topic, relevant = sets.topic_of(pair), grade > 0
    one, other = pairs_within(np.unique(pair, return_inverse=True)[1], len(pair))
    pairs = relevant[one], relevant[other]
    overlap = relevant_overlap(*pairs, topic[one], confidence=confidence)
    alpha = krippendorff_alpha(pair, number, relevant, clusters=topic, confidence=confidence)
    return {
        "n_assessors": len(sets.names),
        "n_pairs_of_labels": overlap.n_items,
        "n_documents": alpha.n_items,
        "overlap": overlap_record(overlap),
        "alpha": agreement_record(alpha),
        "warnings": [*overlap.warnings, *alpha.warnings],
    }


def _counts(one: Integers, other: Integers, grades: Integers) -> list[list[int]]:
    table = np.zeros((len(grades), len(grades)), dtype=np.intp)
    np.add.at(table, (np.searchsorted(grades, one), np.searchsorted(grades, other)), 1)
    counts: list[list[int]] = table.tolist()
    return counts


MOST_SETS = 20


@dataclass(frozen=True)
class ComparedSets:
    """The sets by name.

    `judgments` are all that was handed in; `people` those of them of which others are derived;
    `kinds` name what systems are ranked under, in order, and `grades` hold the judgments of each.
    """

    topics: list[str]
    n_left_out: dict[str, int]
    judgments: LabelSets
    people: LabelSets
    kinds: dict[str, Kind]
    grades: dict[str, RelevanceGrades]

    @property
    def handed_in(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind != "derived"]

    def merged(self) -> str:
        return "majority" if "majority" in self.grades else "union"

    def described(self) -> Iterator[Row]:
        for name, kind in self.kinds.items():
            grade = self.grades[name].grade
            yield {
                "name": name,
                "kind": kind,
                "rule": RULES.get(name, "") if kind == "derived" else "",
                "n_topics": len(self.topics),
                "n_topics_left_out": self.n_left_out.get(name, 0),
                "n_judged": int((grade >= 0).sum()),
                "n_relevant": int((grade > 0).sum()),
                "n_unjudged": int((grade < 0).sum()),
            }


def compared_sets(
    qrels: Mapping[str, RelevanceGrades],
    assessors: Mapping[str, RelevanceGrades],
    settings: ComparisonSettings,
) -> ComparedSets:
    every = {**qrels, **assessors}
    _require_names(qrels, assessors, settings)
    topics = _topics(qrels, assessors)
    judgments = label_sets(every, topics)
    if settings.evaluation.leave_out_without_relevant:
        topics = _with_relevant(judgments, list(qrels) or list(assessors))
        judgments = label_sets(every, topics)
    n_left_out = {name: len(set(every[name].topics) - set(topics)) for name in every}
    complete = [name for name in assessors if judgments.has_judged(name).all()]
    if len(complete) > MOST_SETS:
        complete = []
    kinds: dict[str, Kind] = {
        name: "machine" if name in settings.machines else "given" for name in qrels
    }
    kinds |= dict.fromkeys(complete, "assessor")
    grades = {name: judgments.of(name) for name in kinds}
    people = judgments.only(list(assessors) or _independent(qrels, settings))
    for rule in _rules(people):
        kinds[rule], grades[rule] = "derived", people.derived(rule)
    if len(grades) < 2:
        raise RunsUnfit(
            "Rankings are compared under two sets of qrels or more.", code="too_few_qrels"
        )
    if settings.truth is not None and settings.truth not in grades:
        raise RunsUnfit(
            f"{settings.truth} names none of {', '.join(grades)}.", code="qrels_unknown"
        )
    return ComparedSets(topics, n_left_out, judgments, people, kinds, grades)


def _independent(qrels: Iterable[str], settings: ComparisonSettings) -> list[str]:
    """Qrels by people, of those that are made of the same judgments by other rules the first."""
    first: dict[str, str] = {}
    for name in qrels:
        if name not in settings.machines:
            first.setdefault(settings.judgments.get(name) or f"{name} itself", name)
    return list(first.values())


def _rules(people: LabelSets) -> list[str]:
    if len(people.names) < 2:
        return []
    return [rule for rule in RULES if rule != "majority" or people.most_judges() > 2]


def _require_names(
    qrels: Mapping[str, RelevanceGrades],
    assessors: Mapping[str, RelevanceGrades],
    settings: ComparisonSettings,
) -> None:
    if len(qrels) > MOST_SETS:
        raise RunsUnfit(f"At most {MOST_SETS} qrels are compared at a time, not {len(qrels)}.")
    taken = [name for name in qrels if name in RULES or name in assessors]
    taken += [name for name in assessors if name in RULES]
    if taken:
        raise RunsUnfit(f"Two sets are called {taken[0]}. Give the qrels another name.")
    if unknown := [name for name in settings.machines if name not in qrels]:
        raise RunsUnfit(f"{unknown[0]} names none of {', '.join(qrels)}.", code="qrels_unknown")


def _topics(
    qrels: Mapping[str, RelevanceGrades], assessors: Mapping[str, RelevanceGrades]
) -> list[str]:
    common = [set(grades.topics) for grades in qrels.values()]
    if assessors:
        common.append({topic for grades in assessors.values() for topic in grades.topics})
    topics = set.intersection(*common) if common else set()
    if not topics:
        raise RunsUnfit("The qrels have no topic in common.", code="no_common_topic")
    return sorted(topics, key=str.encode)


def _with_relevant(judgments: LabelSets, names: list[str]) -> list[str]:
    counted = np.ones(len(judgments.topics), dtype=bool)
    for name in names:
        has = np.zeros(len(judgments.topics), dtype=bool)
        has[judgments.topic_of(judgments.pair[name][judgments.grade[name] > 0])] = True
        counted &= has | ~judgments.has_judged(name)
    if not counted.any():
        raise RunsUnfit("There is no topic with a relevant document under all qrels.")
    return [topic for topic, counts in zip(judgments.topics, counted, strict=True) if counts]
