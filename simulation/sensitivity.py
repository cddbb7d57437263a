"""How the order of recommenders moves with choices that nobody reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from presentation.records import plain_values
from simulation.catalogue import Catalogue
from simulation.draws import SHARE, uniform
from simulation.experiments import Experiment, Settings
from simulation.outcomes import Carry, Outcomes, Qrels, outcomes
from simulation.targets import NONE, Targets
from stats.arguments import Floats
from stats.ranking import Measure
from stats.ranking.rank_similarity import tau_b

SHARES = (0.75, 0.5, 0.25)
N_REPEATS = 20


@dataclass(frozen=True)
class Variant:
    """The recommenders' means under one choice, and how their order agrees with the report's own.

    `tau` is Kendall's tau-b, NaN with a reason where fewer than two recommenders differ; for a
    share of the judgments it is the mean over draws, with the lowest and the highest.
    """

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
        numbers = plain_values(
            {"tau": self.tau, "tau_low": self.tau_low, "tau_high": self.tau_high}
        )
        return {
            "choice": self.choice,
            "value": self.value,
            "user": self.user,
            "measure": self.measure.name,
            "means": plain_values(self.means),
            **numbers,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class _Choice:
    """Means by recommender, user and measure under a choice; several where judgments are drawn."""

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
    """Each evaluated once, for all users and measures."""
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
    """Each other user: another turn base, mode, tolerance or probability."""
    for number, other in enumerate(experiment.users):
        if number != user:
            as_other = np.broadcast_to(own[:, number : number + 1], own.shape)
            yield _Choice("user", other.name, (as_other,))


def _means(settings: Settings, evaluated: Mapping[str, Outcomes], turn: int) -> Floats:
    """By recommender, user and measure; of seeds and targets the mean."""
    means = []
    for each in evaluated.values():
        order = [each.measures.index(one) for one in settings.measures]
        means.append(each.values[order, ..., turn - 1].mean(axis=(2, 3)).T)
    return np.array(means)


def _judged_by(experiment: Experiment, kept: Targets) -> Floats:
    """The means where the qrels hold these judgments only."""
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
    """Each judgment of an alternative kept with a probability, by (seed, target, alternative)."""
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
