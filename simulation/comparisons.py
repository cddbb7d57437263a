from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import Any, get_args

import numpy as np

from presentation.numbers import plain_values
from simulation.catalogue import NONE, SHARE, Catalogue, Targets, uniform
from simulation.experiments import Carry, Experiment, Outcomes, Qrels, Settings, outcomes
from stats.arguments import Floats
from stats.ranking import Measure
from stats.ranking.rank_similarity import tau_b
from stats.ranking.topic_means import TopicDifference, compare_over_topics
from stats.significance.adjustments import holm


@dataclass(frozen=True)
class Comparison:
    """A mean difference over targets, `a` minus `b`, with p after Holm."""

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
    carry = experiment.settings.carry
    narrow = experiment.evaluated("target", carry)
    wide = experiment.evaluated("target and alternatives", carry)
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


SHARES = (0.75, 0.5, 0.25)
N_REPEATS = 20


@dataclass(frozen=True)
class Variant:
    """The recommenders' means under one choice. `tau` is Kendall's tau-b with the report's own
    order, NaN with a reason if fewer than two recommenders differ; for a share of the judgments it
    is the mean over draws, with the lowest and the highest."""

    choice: str
    value: str
    user: str
    measure: Measure
    means: dict[str, float]
    tau: float
    tau_low: float
    tau_high: float
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        return {
            "choice": self.choice,
            "value": self.value,
            "user": self.user,
            "measure": self.measure.name,
            "means": plain_values(self.means),
            **plain_values({"tau": self.tau, "tau_low": self.tau_low, "tau_high": self.tau_high}),
            "reason": self.reason,
        }


@dataclass(frozen=True)
class _Choice:
    name: str
    value: str
    draws: tuple[Floats, ...]


def sensitivity(
    experiment: Experiment,
    *,
    judged_otherwise: Mapping[str, Targets] | None = None,
    seed: int = 0,
    n_repeats: int = N_REPEATS,
) -> list[Variant]:
    """The order under other qrels, rules of carrying, turns, users and shares of the judgments.

    `judged_otherwise` are the same targets with other judgments, such as another round's, by name;
    `n_repeats` is how often each share of the judgments is drawn.
    """
    for name, targets in (judged_otherwise or {}).items():
        if not np.array_equal(targets.target, experiment.targets.target):
            raise ValueError(f"judged_otherwise must be of the same targets; {name} is not")
    own = _means(experiment.settings, experiment.outcomes, experiment.settings.n_turns)
    choices = [
        *_choices(experiment, seed, n_repeats),
        *_other_judgments(experiment, judged_otherwise or {}),
    ]
    return [
        _variant(experiment, choice, user, measure, own)
        for user in range(len(experiment.users))
        for measure in range(len(experiment.settings.measures))
        for choice in (*choices, *_other_users(experiment, user, own))
    ]


def _choices(experiment: Experiment, seed: int, n_repeats: int) -> Iterator[_Choice]:
    settings, last = experiment.settings, experiment.settings.n_turns
    for qrels in get_args(Qrels):
        evaluated = experiment.evaluated(qrels, settings.carry)
        yield _Choice("qrels", qrels, (_means(settings, evaluated, last),))
    for carry in get_args(Carry):
        evaluated = experiment.evaluated(settings.qrels, carry)
        yield _Choice("carry", carry, (_means(settings, evaluated, last),))
    for turn in range(1, last + 1):
        yield _Choice("turn", str(turn), (_means(settings, experiment.outcomes, turn),))
    for share in SHARES:
        draws = (
            with_share_judged(experiment.catalogue, experiment.targets, share, seed=seed + repeat)
            for repeat in range(n_repeats)
        )
        means = tuple(_judged_by(experiment, targets) for targets in draws)
        yield _Choice("share judged", f"{share:g}", means)


def _other_judgments(
    experiment: Experiment, judged_otherwise: Mapping[str, Targets]
) -> Iterator[_Choice]:
    for name, targets in judged_otherwise.items():
        yield _Choice("judgments", name, (_judged_by(experiment, targets),))


def _other_users(experiment: Experiment, user: int, own: Floats) -> Iterator[_Choice]:
    for number, other in enumerate(experiment.users):
        if number != user:
            as_other = np.broadcast_to(own[:, number : number + 1], own.shape)
            yield _Choice("user", other.name, (as_other,))


def _means(settings: Settings, evaluated: Mapping[str, Outcomes], turn: int) -> Floats:
    """Means of seeds and targets by recommender, user and measure."""
    means = []
    for each in evaluated.values():
        order = [each.measures.index(one) for one in settings.measures]
        means.append(each.values[order, ..., turn - 1].mean(axis=(2, 3)).T)
    return np.array(means)


def _judged_by(experiment: Experiment, kept: Targets) -> Floats:
    settings = experiment.settings
    evaluated = {
        name: outcomes(
            each.log, settings.measures, qrels=settings.qrels, carry=settings.carry, kept=kept
        )
        for name, each in experiment.outcomes.items()
    }
    return _means(settings, evaluated, settings.n_turns)


def with_share_judged(
    catalogue: Catalogue, targets: Targets, share: float, *, seed: int
) -> Targets:
    """Keep each judgment of an alternative with a probability, drawn by (seed, target,
    alternative)."""
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, not {share}")
    columns = []
    keys = catalogue.keys[targets.target][:, None]
    for items in (targets.alternatives, targets.rejected):
        draw = uniform(SHARE, seed, keys, catalogue.keys[items])
        columns.append(np.where(draw < share, items, NONE))
    return replace(targets, alternatives=columns[0], rejected=columns[1])


def _variant(
    experiment: Experiment, choice: _Choice, user: int, measure: int, own: Floats
) -> Variant:
    draws = [means[:, user, measure] for means in choice.draws]
    taus = np.array([tau_b(own[:, user, measure], means) for means in draws])
    defined = taus[~np.isnan(taus)]
    has = len(defined) > 0
    return Variant(
        choice=choice.name,
        value=choice.value,
        user=experiment.users[user].name,
        measure=experiment.settings.measures[measure],
        means=dict(zip(experiment.outcomes, np.mean(draws, axis=0).tolist(), strict=True)),
        tau=float(defined.mean()) if has else np.nan,
        tau_low=float(defined.min()) if has else np.nan,
        tau_high=float(defined.max()) if has else np.nan,
        reason=None if has else "fewer than two recommenders with different means",
    )
