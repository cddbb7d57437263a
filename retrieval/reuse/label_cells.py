"""Measures that are sums over documents, as cells of which people label some."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.ranking import JudgedLists, Measure
from stats.ranking.judged_lists import within

SUMS = ("P", "RBP")


@dataclass(frozen=True)
class Cells:
    """The documents of a run that the machine judged, where the measure looks.

    The mean of all cells is the run's mean over topics; `people` is NaN where they were not
    asked.
    """

    topic: Integers
    machine: Floats
    people: Floats
    n_topics: int

    def by_topic(self) -> tuple[Floats, Floats]:
        """Of the documents that both judged, whose means are those of the labelled cells."""
        both = ~np.isnan(self.people)
        topics = np.unique(self.topic)
        has = np.zeros(self.n_topics, dtype=bool)
        has[topics] = True
        share = has.sum() / max(int(both.sum()), 1)
        machine, people = (
            np.where(has, share * sum_by(self.topic[both], each[both], self.n_topics), np.nan)
            for each in (self.machine, self.people)
        )
        return machine, people


def is_sum_of_documents(one: Measure) -> bool:
    """Whether each document adds to the measure by its rank and grade alone."""
    return one.kind in SUMS and not dict(one.settings).get("judged_only", False)


def cells_of(
    lists: JudgedLists, one: Measure, people: Integers, *, of_missing: float = nan
) -> Cells:
    """The cells of lists with the machine's grades; `people` has theirs of its judgments.

    Topics without a list count where `of_missing` is 0, and not where it is NaN.
    """
    weights = _weights(lists, one)
    counted = (lists.grade >= 0) & (weights > 0)
    weight, topic = weights[counted], lists.topic[counted]
    grades = people[lists.judgment[counted]]
    n_topics = lists.n_topics if of_missing == 0 else int((lists.n_listed > 0).sum())
    scale = len(topic) / max(n_topics, 1)
    machine = scale * weight * _gains(lists.grade[counted], one)
    of_people = np.where(grades >= 0, scale * weight * _gains(grades, one), np.nan)
    return Cells(topic, machine, of_people, lists.n_topics)


def _weights(lists: JudgedLists, one: Measure) -> Floats:
    if one.kind == "P":
        assert one.cutoff is not None
        return np.asarray(within(lists.rank, one.cutoff) / np.float64(one.cutoff))
    p = dict(one.settings).get("p", 0.8)
    return np.asarray((1 - p) * p ** (lists.rank - 1.0))


def _gains(grades: Integers, one: Measure) -> Floats:
    settings = dict(one.settings)
    if "max_rel" in settings:
        return np.asarray(np.maximum(grades, 0) / settings["max_rel"])
    return np.asarray(grades >= settings.get("rel", 1), dtype=np.float64)
