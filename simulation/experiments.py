from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from presentation.progress import Progress, silently
from presentation.records import plain_values
from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.dialogues import DEPTH, simulate
from simulation.recommenders.protocol import Recommender
from simulation.targets import Targets
from simulation.turn_log import DialogueLog
from simulation.turn_measures import EVALUATION_BY_MODE, Carry, Outcomes, Qrels, outcomes
from simulation.users import UserSimulator
from stats.ranking import Measure, measure
from stats.ranking.topic_means import TopicMean, mean_over_topics

MEASURES = tuple(measure(name) for name in ("nDCG@10", "RR@10", "Success@1"))


@dataclass(frozen=True, kw_only=True)
class Settings:
    n_turns: int = 10
    seeds: tuple[int, ...] = (0,)
    depth: int = DEPTH
    repeats: bool = True
    measures: tuple[Measure, ...] = MEASURES
    qrels: Qrels = "accepted"
    carry: Carry = "one"
    confidence: float = 0.95

    @property
    def is_articles(self) -> bool:
        """Whether lists are evaluated as in Fashion-AlterEval's Table 3."""
        return (self.qrels, self.carry) == EVALUATION_BY_MODE["paper"]

    def record(self) -> dict[str, Any]:
        names = ("n_turns", "depth", "repeats", "qrels", "carry", "confidence")
        return {name: getattr(self, name) for name in names} | {
            "seeds": list(self.seeds),
            "measures": [one.name for one in self.measures],
        }


@dataclass(frozen=True)
class Row:
    """The mean over targets at a turn, and the share judged of the first ten."""

    recommender: str
    user: str
    measure: Measure
    turn: int
    mean: TopicMean
    judged: float

    def record(self) -> dict[str, Any]:
        one = self.mean
        return plain_values(
            {
                "recommender": self.recommender,
                "user": self.user,
                "measure": self.measure.name,
                "turn": self.turn,
                "mean": one.value,
                "ci_low": one.ci_low,
                "ci_high": one.ci_high,
                "ci_method": one.method,
                "reason": one.reason,
                "n_targets": one.n_topics,
                "judged": self.judged,
            }
        )


@dataclass(frozen=True)
class Experiment:
    catalogue: Catalogue
    targets: Targets
    users: tuple[UserSimulator, ...]
    outcomes: dict[str, Outcomes]
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    @property
    def logs(self) -> dict[str, DialogueLog]:
        return {name: each.log for name, each in self.outcomes.items()}

    def evaluated(self, qrels: Qrels, carry: Carry) -> dict[str, Outcomes]:
        return {
            name: outcomes(each.log, each.measures, qrels=qrels, carry=carry)
            for name, each in self.outcomes.items()
        }

    def rows(self, turns: Sequence[int] | None = None) -> Iterator[Row]:
        """By recommender, user, measure and turn (all by default)."""
        for name, each in self.outcomes.items():
            for number, user in enumerate(self.users):
                for one in each.measures:
                    for turn in turns or range(1, self.settings.n_turns + 1):
                        values = each.by_target(one, number, turn)
                        mean = mean_over_topics(
                            values,
                            confidence=self.settings.confidence,
                            binary=one.is_binary and len(self.settings.seeds) == 1,
                        )
                        judged = float(each.judged[number, turn - 1])
                        yield Row(name, user.name, one, turn, mean, judged)

    def record(self) -> dict[str, Any]:
        return {
            "catalogue": self.catalogue.source,
            "is_stand_in": self.catalogue.is_stand_in,
            "n_items": len(self.catalogue),
            "n_targets": len(self.targets),
            "users": [user.record() for user in self.users],
            "recommenders": [log.recommender for log in self.logs.values()],
            "critics": [log.critic.record() for log in self.logs.values()],
            "n_switches": {
                name: dict(
                    zip([user.name for user in self.users], log.n_switches().tolist(), strict=True)
                )
                for name, log in self.logs.items()
            },
            "settings": self.settings.record(),
            "notes": list(self.notes),
        }


def run_experiment(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[UserSimulator],
    recommenders: Sequence[tuple[Recommender, Critic]],
    settings: Settings,
    *,
    progress: Progress = silently,
) -> Experiment:
    """Run every user with every recommender, each with the critic whose critiques it
    understands."""
    _require_names("users", [user.name for user in users])
    _require_names("recommenders", [recommender.name for recommender, _ in recommenders])
    evaluated: dict[str, Outcomes] = {}
    for recommender, critic in progress(recommenders, len(recommenders)):
        log = simulate(
            catalogue,
            targets,
            users,
            recommender,
            critic,
            n_turns=settings.n_turns,
            seeds=settings.seeds,
            depth=settings.depth,
            repeats=settings.repeats,
        )
        evaluated[recommender.name] = outcomes(
            log, settings.measures, qrels=settings.qrels, carry=settings.carry
        )
    trained = [(recommender.record(), critic) for recommender, critic in recommenders]
    notes = tuple(notes_of(catalogue, targets, users, trained, settings))
    return Experiment(catalogue, targets, tuple(users), evaluated, settings, notes)


def _require_names(argument: str, names: Sequence[str]) -> None:
    if not names:
        raise ValueError(f"{argument} must not be empty")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} must have different names: {twice} comes twice")


def notes_of(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[UserSimulator],
    recommenders: Sequence[tuple[Mapping[str, Any], Critic]],
    settings: Settings,
) -> Iterator[str]:
    """Recommenders are records, each with its critic."""
    if catalogue.is_stand_in:
        yield (
            "embeddings are stand-ins, drawn for ids whose own are not at hand: the numbers show "
            "how the programs behave, and nothing about these products or recommenders"
        )
    without = int((targets.alternatives == -1).all(axis=1).sum())
    if without:
        yield f"targets without an alternative, which no user leaves: {without}"
    own = int((targets.alternatives == targets.target[:, None]).any(axis=1).sum())
    if own:
        yield f"targets that are among their own alternatives: {own}"
    nothing = int((targets.without_faults().alternatives == -1).all(axis=1).sum())
    if settings.qrels == "alternatives" and nothing:
        yield (
            f"of {len(targets)} targets {nothing} have no alternative but themselves: with qrels "
            "'alternatives' nothing is relevant to them, they count as 0 at every turn, and every "
            "mean is lower by them"
        )
    start = targets.starts(catalogue, settings.seeds)
    if n_done := int((targets.accepted == start[..., None]).any(axis=2).sum()):
        what = "targets" if len(settings.seeds) == 1 else "pairs of target and seed"
        yield f"{what} whose dialogue begins with an accepted item: {n_done}"
    if not any(user.leave_hazard for user in users):
        yield "no user ever leaves before the last turn; people do"
    yield from _notes_of_training(recommenders)


def _notes_of_training(
    recommenders: Sequence[tuple[Mapping[str, Any], Critic]],
) -> Iterator[str]:
    for recommender, critic in recommenders:
        if recommender.get("trained_with") == critic.record():
            yield (
                f"{recommender['name']} is evaluated with the critic it was trained with, and on a "
                "catalogue whose items it knows: four fifths of them were targets in training"
            )
