from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from presentation.numbers import plain_values
from presentation.progress import Progress, silently
from simulation.catalogue import NONE, Catalogue, Targets
from simulation.critics import Critic
from simulation.dialogues import DEPTH, DialogueLog, simulate
from simulation.recommenders import Recommender
from simulation.users import MetaUser, Mode
from stats.arguments import Floats, Integers, require_one_of
from stats.ranking import JudgedLists, Measure, judged_lists, measure
from stats.ranking.topic_means import TopicMean, mean_over_topics

MEASURES = tuple(measure(name) for name in ("nDCG@10", "RR@10", "Success@1"))


# The relevant items: what each user accepts (SimBase only the target, meta users also the
# alternatives), or the same items for all users.
Qrels = Literal["accepted", "target", "target and alternatives", "alternatives"]
# What counts after the end of a dialogue: 1 in all measures; its last list; a list of the found
# item alone; or the lists of the turns that would have followed. After leaving, the last list.
# Published numbers depend on it: an article may say that all measures are 1 after the end, but its
# program keeps a list of the found item alone, whose nDCG is 1 over the ideal gain of all relevant
# items.
Carry = Literal["one", "same list", "found alone", "none"]


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
class Outcomes:
    """Values of measures, (n_measures, n_users, n_seeds, n_targets, n_turns), from turn 1 on.

    `judged` (n_users, n_turns) is the share of the first ten that anybody judged, where the lists
    are those that were shown.
    """

    log: DialogueLog
    measures: tuple[Measure, ...]
    qrels: Qrels
    carry: Carry
    values: Floats
    judged: Floats

    def by_target(self, measure: Measure, user: int, turn: int) -> Floats:
        """Mean over seeds for each target."""
        values = self.values[self.measures.index(measure), user, :, :, turn - 1]
        return np.asarray(values.mean(axis=0))

    def settings(self) -> dict[str, Any]:
        return {"qrels": self.qrels, "carry": self.carry}


def outcomes(
    log: DialogueLog,
    measures: Sequence[Measure],
    *,
    qrels: Qrels = "target and alternatives",
    carry: Carry = "same list",
    kept: Targets | None = None,
) -> Outcomes:
    """`kept` are targets with fewer judgments than those that the users act on."""
    require_one_of(qrels=(qrels, get_args(Qrels)), carry=(carry, get_args(Carry)))
    if qrels == "accepted":
        return _by_what_each_accepts(log, measures, carry, kept)
    relevant, rejected = judgments(log.targets if kept is None else kept, qrels)
    if deepest := [one.name for one in measures if (one.cutoff or 0) > log.recommender["depth"]]:
        raise ValueError(
            f"measures look further than the {log.recommender['depth']} items that were ranked: "
            f"{deepest[0]}"
        )
    raw = np.stack(
        [_of_turn(log, turn, measures, relevant, rejected) for turn in range(log.n_turns + 1)],
        axis=-1,
    )
    values, judged = raw[:-1], raw[-1]
    if carry != "none":
        last = np.broadcast_to(log.lasts_until()[..., None], log.path.shape)
        turn = np.minimum(np.arange(log.n_turns + 1), last)
        values = np.take_along_axis(values, turn[None], axis=-1)
        judged = np.take_along_axis(judged, turn, axis=-1)
    if carry in ("found alone", "one"):
        values = _from_end(log, measures, relevant, rejected, values, carry)
    by_user = judged[..., 1:].mean(axis=(1, 2))
    return Outcomes(log, tuple(measures), qrels, carry, values[..., 1:], by_user)


@dataclass(frozen=True)
class Experiment:
    catalogue: Catalogue
    targets: Targets
    users: tuple[MetaUser, ...]
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
        for name, each in self.outcomes.items():
            for number, user in enumerate(self.users):
                for one in each.measures:
                    for turn in turns or range(1, self.settings.n_turns + 1):
                        mean = mean_over_topics(
                            each.by_target(one, number, turn),
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
    users: Sequence[MetaUser],
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
    users: Sequence[MetaUser],
    recommenders: Sequence[tuple[Mapping[str, Any], Critic]],
    settings: Settings,
) -> Iterator[str]:
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


# How the article evaluates (section 5.2), and the rule that fits its program's numbers.
EVALUATION_BY_MODE: Mapping[Mode, tuple[Qrels, Carry]] = {
    "paper": ("accepted", "one"),
    "released": ("accepted", "found alone"),
}

JUDGED = measure("Judged@10")


def _by_what_each_accepts(
    log: DialogueLog, measures: Sequence[Measure], carry: Carry, kept: Targets | None
) -> Outcomes:
    """SimBase is evaluated by the target alone, the others by its alternatives too."""
    narrow = outcomes(log, measures, qrels="target", carry=carry, kept=kept)
    wide = outcomes(log, measures, qrels="target and alternatives", carry=carry, kept=kept)
    is_narrow = np.array([user.accepts == "target" for user in log.users])
    values = np.where(is_narrow[:, None, None, None], narrow.values, wide.values)
    judged = np.where(is_narrow[:, None], narrow.judged, wide.judged)
    return replace(wide, qrels="accepted", values=values, judged=judged)


def judgments(targets: Targets, qrels: Qrels) -> tuple[Integers, Integers]:
    """Relevant and other judged items of each target, padded with -1."""
    alternatives = targets.without_faults().alternatives
    if qrels == "target":
        return targets.target[:, None], np.column_stack([alternatives, targets.rejected])
    if qrels == "alternatives":
        return alternatives, targets.rejected
    return targets.accepted, targets.rejected


def _of_turn(
    log: DialogueLog,
    turn: int,
    measures: Sequence[Measure],
    relevant: Integers,
    rejected: Integers,
) -> Floats:
    path = log.path[..., turn]
    target = np.empty(len(log.lists[turn]), dtype=np.intp)
    target[path] = np.broadcast_to(np.arange(len(log.targets)), path.shape)
    lists = lists_of(log.lists[turn], relevant[target], rejected[target])
    return np.stack([one.values(lists) for one in (*measures, JUDGED)])[:, path]


def lists_of(ranked: Integers, relevant: Integers, rejected: Integers) -> JudgedLists:
    """1 for relevant items, 0 for items rejected and not relevant."""
    n, depth = ranked.shape
    judged = np.column_stack([relevant, rejected])
    topic, column = np.nonzero(judged != NONE)
    span = int(max(judged.max(initial=0), ranked.max(initial=0))) + 1
    # Of an item that was judged twice the first counts, and relevant ones come first.
    order = np.argsort(column, kind="stable")
    pair, first = np.unique((topic * span + judged[topic, column])[order], return_index=True)
    return judged_lists(
        np.repeat(np.arange(n), depth),
        ranked.ravel(),
        np.tile(-np.arange(depth, dtype=np.float64), n),
        pair // span,
        pair % span,
        (column[order][first] < relevant.shape[1]).astype(np.intp),
        n_topics=n,
    )


def _from_end(
    log: DialogueLog,
    measures: Sequence[Measure],
    relevant: Integers,
    rejected: Integers,
    values: Floats,
    carry: Carry,
) -> Floats:
    ends = log.ends_at()
    has_ended = ends <= log.n_turns
    user, seed, row = np.nonzero(has_ended)
    item = log.shown[user, seed, row, ends[has_ended]]
    alone = lists_of(item[:, None], relevant[row], rejected[row])
    after = np.arange(log.n_turns + 1) >= ends[..., None]
    for number, one in enumerate(measures):
        of_item = one.values(alone)
        if carry == "one":
            of_item = np.where(alone.grade == 1, 1.0, of_item)
        at_end = np.zeros(ends.shape)
        at_end[has_ended] = of_item
        values[number] = np.where(after, at_end[..., None], values[number])
    return values
