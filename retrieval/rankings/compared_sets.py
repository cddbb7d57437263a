"""Which sets of labels are compared, of which topics, and what is derived of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from retrieval.exceptions import RunsUnfit
from retrieval.rankings.label_sets import RULES, LabelSets, label_sets
from retrieval.rankings.records import ComparisonSettings, Kind, LabelSet
from retrieval.trec_files import RelevanceGrades

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
        """Those that are ranked under and not derived."""
        return [name for name, kind in self.kinds.items() if kind != "derived"]

    def merged(self) -> str:
        """The set that stands for all assessors together."""
        return "majority" if "majority" in self.grades else "union"

    def described(self) -> Iterator[LabelSet]:
        for name, kind in self.kinds.items():
            grade = self.grades[name].grade
            yield LabelSet(
                name=name,
                kind=kind,
                rule=RULES.get(name, "") if kind == "derived" else "",
                n_topics=len(self.topics),
                n_topics_left_out=self.n_left_out.get(name, 0),
                n_judged=int((grade >= 0).sum()),
                n_relevant=int((grade > 0).sum()),
                n_unjudged=int((grade < 0).sum()),
            )


def compared_sets(
    qrels: Mapping[str, RelevanceGrades],
    assessors: Mapping[str, RelevanceGrades],
    settings: ComparisonSettings,
) -> ComparedSets:
    """The sets of the topics that each of the qrels names and some assessor."""
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
    """The rules that say something: a majority is of three or more."""
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
    """The topics of which each set that judged them has a relevant document."""
    counted = np.ones(len(judgments.topics), dtype=bool)
    for name in names:
        has = np.zeros(len(judgments.topics), dtype=bool)
        has[judgments.topic_of(judgments.pair[name][judgments.grade[name] > 0])] = True
        counted &= has | ~judgments.has_judged(name)
    if not counted.any():
        raise RunsUnfit("There is no topic with a relevant document under all qrels.")
    return [topic for topic, counts in zip(judgments.topics, counted, strict=True) if counts]
