"""Which users and which recommenders differ, over targets, and how much of it is the qrels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import Any

from presentation.records import plain_values
from simulation.experiments import Experiment
from simulation.outcomes import Qrels
from stats.arguments import Floats
from stats.ranking import Measure
from stats.ranking.topic_means import TopicDifference, compare_over_topics
from stats.significance.adjustments import holm


@dataclass(frozen=True)
class Comparison:
    """A mean difference over targets of `a` less `b`, all else the same; p after Holm beside it."""

    what: str
    within: str
    a: str
    b: str
    measure: Measure
    turn: int
    difference: TopicDifference
    p_adjusted: float = nan

    def record(self) -> dict[str, Any]:
        one = self.difference
        return plain_values(
            {
                "compared": self.what,
                "within": self.within,
                "a": self.a,
                "b": self.b,
                "measure": self.measure.name,
                "turn": self.turn,
                "delta": one.delta,
                "ci_low": one.ci_low,
                "ci_high": one.ci_high,
                "test": one.test,
                "p": one.p,
                "p_adjusted": self.p_adjusted,
                "n_targets": one.n_topics,
                "n_better": one.n_better,
                "n_worse": one.n_worse,
                "reason": one.reason,
            }
        )


def compare_all(experiment: Experiment, *, turn: int | None = None) -> list[Comparison]:
    """Every user against the first, and every two recommenders under each user, at one turn.

    All tests of one report are one family of Holm's. Where each user is evaluated by what it
    accepts, a difference from SimBase is one of users and qrels together; `causes` parts them.
    """
    turn = turn or experiment.settings.n_turns
    rows = [*_users(experiment, turn), *_recommenders(experiment, turn)]
    adjusted = holm([row.difference.p for row in rows]).tolist() if rows else []
    return [replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)]


def _users(experiment: Experiment, turn: int) -> Iterator[Comparison]:
    base, *others = experiment.users
    for name, each in experiment.outcomes.items():
        for one in each.measures:
            for number, user in enumerate(others, 1):
                a, b = each.by_target(one, number, turn), each.by_target(one, 0, turn)
                difference = _compare(experiment, a, b)
                yield Comparison("users", name, user.name, base.name, one, turn, difference)


def _recommenders(experiment: Experiment, turn: int) -> Iterator[Comparison]:
    for (first, a), (second, b) in combinations(experiment.outcomes.items(), 2):
        for one in a.measures:
            for number, user in enumerate(experiment.users):
                difference = _compare(
                    experiment, a.by_target(one, number, turn), b.by_target(one, number, turn)
                )
                yield Comparison("recommenders", user.name, first, second, one, turn, difference)


def _compare(experiment: Experiment, a: Floats, b: Floats) -> TopicDifference:
    settings = experiment.settings
    return compare_over_topics(a, b, confidence=settings.confidence, rng=settings.seeds[0])


@dataclass(frozen=True)
class Causes:
    """Means by user and qrels, and what each of the two does to them.

    `means` are of (base, meta) x (target, target and alternatives). `user` is the change from the
    base to the meta user under the wider qrels, `qrels` that from the target alone to the wider
    qrels for the base user, which no user did anything for; `total` is their sum. `interaction` is
    how much more the user does under the wider qrels than under the target alone.
    """

    recommender: str
    user: str
    measure: Measure
    turn: int
    means: tuple[tuple[float, float], tuple[float, float]]
    of_user: TopicDifference
    of_qrels: TopicDifference
    total: TopicDifference
    interaction: TopicDifference

    def record(self) -> dict[str, Any]:
        (base_one, base_all), (meta_one, meta_all) = self.means
        cells = {
            "base, target": base_one,
            "base, target and alternatives": base_all,
            "meta, target": meta_one,
            "meta, target and alternatives": meta_all,
        }
        effects = {
            name: plain_values({"delta": one.delta, "ci_low": one.ci_low, "ci_high": one.ci_high})
            for name, one in (
                ("user", self.of_user),
                ("qrels", self.of_qrels),
                ("total", self.total),
                ("interaction", self.interaction),
            )
        }
        return {
            "recommender": self.recommender,
            "user": self.user,
            "measure": self.measure.name,
            "turn": self.turn,
            "means": plain_values(cells),
            "effects": effects,
        }


def causes(experiment: Experiment, *, turn: int | None = None) -> list[Causes]:
    """The 2 x 2 of user and qrels for each recommender, each user against the first, each measure.

    More relevant items raise measures by themselves; this tells that from what the user does.
    """
    turn = turn or experiment.settings.n_turns
    narrow, wide = (_evaluated(experiment, qrels) for qrels in _QRELS)
    rows = []
    for name, each in experiment.outcomes.items():
        for one in each.measures:
            base = [cells[name].by_target(one, 0, turn) for cells in (narrow, wide)]
            for number, user in enumerate(experiment.users[1:], 1):
                meta = [cells[name].by_target(one, number, turn) for cells in (narrow, wide)]
                means = tuple((float(low.mean()), float(high.mean())) for low, high in (base, meta))
                rows.append(
                    Causes(
                        recommender=name,
                        user=user.name,
                        measure=one,
                        turn=turn,
                        means=(means[0], means[1]),
                        of_user=_compare(experiment, meta[1], base[1]),
                        of_qrels=_compare(experiment, base[1], base[0]),
                        total=_compare(experiment, meta[1], base[0]),
                        interaction=_compare(experiment, meta[1] - base[1], meta[0] - base[0]),
                    )
                )
    return rows


_QRELS: tuple[Qrels, Qrels] = ("target", "target and alternatives")


def _evaluated(experiment: Experiment, qrels: Qrels) -> dict[str, Any]:
    return experiment.evaluated(qrels, experiment.settings.carry)
