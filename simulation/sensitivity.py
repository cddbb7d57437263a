"""How the order of recommenders moves with choices that nobody reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from presentation.records import plain_values
from simulation.catalogue import Catalogue
from simulation.draws import SHARE, uniform
from simulation.experiments import Experiment
from simulation.outcomes import Carry, Qrels, outcomes
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


def sensitivity(
    experiment: Experiment, *, judged_otherwise: Mapping[str, Targets] | None = None, seed: int = 0
) -> list[Variant]:
    """The order under other qrels, rules of carrying, turns, users and shares of the judgments.

    `judged_otherwise` are the same targets with other judgments, such as another round's, by name.
    """
    for name, targets in (judged_otherwise or {}).items():
        if not np.array_equal(targets.target, experiment.targets.target):
            raise ValueError(f"judged_otherwise must be of the same targets; {name} is not")
    rows = []
    for number in range(len(experiment.users)):
        for measure in experiment.settings.measures:
            own = _means(experiment, measure, number, experiment.settings.n_turns)
            rows += list(_variants(experiment, measure, number, own, seed))
            rows += list(_of_other_users(experiment, measure, number, own))
            rows += [
                _variant(
                    experiment,
                    "judgments",
                    name,
                    number,
                    measure,
                    own,
                    [_judged_by(experiment, measure, number, targets)],
                )
                for name, targets in (judged_otherwise or {}).items()
            ]
    return rows


def _variants(
    experiment: Experiment, measure: Measure, user: int, own: Floats, seed: int
) -> Iterator[Variant]:
    settings, last = experiment.settings, experiment.settings.n_turns
    all_qrels: tuple[Qrels, ...] = ("target", "target and alternatives", "alternatives")
    carries: tuple[Carry, ...] = ("same list", "found alone", "one", "none")
    for qrels in all_qrels:
        here = replace(experiment, outcomes=experiment.evaluated(qrels, settings.carry))
        yield _variant(
            experiment, "qrels", qrels, user, measure, own, [_means(here, measure, user, last)]
        )
    for carry in carries:
        here = replace(experiment, outcomes=experiment.evaluated(settings.qrels, carry))
        yield _variant(
            experiment, "carry", carry, user, measure, own, [_means(here, measure, user, last)]
        )
    for turn in range(1, last + 1):
        means = _means(experiment, measure, user, turn)
        yield _variant(experiment, "turn", str(turn), user, measure, own, [means])
    for share in SHARES:
        draws = [
            _with_share(experiment, measure, user, share, seed + repeat)
            for repeat in range(N_REPEATS)
        ]
        yield _variant(experiment, "share judged", f"{share:g}", user, measure, own, draws)


def _of_other_users(
    experiment: Experiment, measure: Measure, user: int, own: Floats
) -> Iterator[Variant]:
    """The order under each other user: another turn base, mode, tolerance or probability."""
    for number, other in enumerate(experiment.users):
        if number != user:
            means = _means(experiment, measure, number, experiment.settings.n_turns)
            yield _variant(experiment, "user", other.name, user, measure, own, [means])


def _means(experiment: Experiment, measure: Measure, user: int, turn: int) -> Floats:
    return np.array(
        [each.by_target(measure, user, turn).mean() for each in experiment.outcomes.values()]
    )


def _with_share(
    experiment: Experiment, measure: Measure, user: int, share: float, seed: int
) -> Floats:
    """The means where the qrels hold each alternative with this probability only."""
    kept = with_share_judged(experiment.catalogue, experiment.targets, share, seed=seed)
    return _judged_by(experiment, measure, user, kept)


def _judged_by(experiment: Experiment, measure: Measure, user: int, kept: Targets) -> Floats:
    settings = experiment.settings
    values = [
        outcomes(each.log, (measure,), qrels=settings.qrels, carry=settings.carry, kept=kept)
        for each in experiment.outcomes.values()
    ]
    return np.array([each.by_target(measure, user, settings.n_turns).mean() for each in values])


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
    experiment: Experiment,
    choice: str,
    value: str,
    user: int,
    measure: Measure,
    own: Floats,
    draws: Sequence[Floats],
) -> Variant:
    taus = np.array([tau_b(own, means) for means in draws])
    defined = taus[~np.isnan(taus)]
    has = len(defined) > 0
    return Variant(
        choice=choice,
        value=value,
        user=experiment.users[user].name,
        measure=measure,
        means=dict(zip(experiment.outcomes, np.mean(draws, axis=0).tolist(), strict=True)),
        tau=float(defined.mean()) if has else np.nan,
        tau_low=float(defined.min()) if has else np.nan,
        tau_high=float(defined.max()) if has else np.nan,
        reason=None if has else "fewer than two recommenders with different means",
    )
