"""Dialogues of simulated users with a recommender, all at once.

At each turn dialogues that have gone the same way so far (same target and first item, same
critiques) are one path: users with different settings share a beginning, whatever it is they
differ in, and each path's list is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.draws import LEAVE, SWITCH, uniform
from simulation.recommenders.protocol import Recommender
from simulation.targets import Targets
from simulation.turn_log import DialogueLog
from simulation.users import Flags, Situation, UserSimulator
from stats.arguments import Floats, Integers

DEPTH = 10


@dataclass
class Paths:
    """Distinct beginnings of dialogues; `seen` (n, turns) are the items shown."""

    seen: Integers
    state: Floats
    delta: Floats

    @property
    def shown(self) -> Integers:
        return self.seen[:, -1]


@dataclass
class Turns:
    shown: list[Integers] = field(default_factory=list)
    path: list[Integers] = field(default_factory=list)
    lists: list[Integers] = field(default_factory=list)
    in_force: list[Integers] = field(default_factory=list)
    delta: list[Floats] = field(default_factory=list)
    switched: list[Flags] = field(default_factory=list)

    def keep_lists(self, path: Integers, paths: Paths, lists: Integers) -> None:
        self.shown.append(paths.shown[path])
        self.path.append(path)
        self.lists.append(lists)


def simulate(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[UserSimulator],
    recommender: Recommender,
    critic: Critic,
    *,
    n_turns: int = 10,
    seeds: Sequence[int] = (0,),
    depth: int = DEPTH,
    repeats: bool = True,
) -> DialogueLog:
    """The dialogue of each user, seed and target; `repeats` says whether an item may come again.

    A seed's dialogues are the same whichever other seeds there are.
    """
    _require(n_turns=n_turns, depth=depth, n_users=len(users), n_seeds=len(seeds))
    shape = (len(users), len(seeds), len(targets))
    start = targets.starts(catalogue, seeds)
    paths, turns = _first(start, seeds, recommender), Turns()
    path = np.broadcast_to(np.arange(start.size).reshape(start.shape), shape)
    turns.keep_lists(path, paths, paths.seen)
    in_force = np.broadcast_to(targets.target, shape)
    for critique in range(n_turns):
        delta = paths.delta[path]
        in_force = _in_force(catalogue, targets, users, seeds, critique, paths, path, in_force)
        turns.in_force.append(in_force)
        turns.delta.append(delta)
        turns.switched.append(in_force != targets.target)
        pair, path = np.unique(path * len(catalogue) + in_force, return_inverse=True)
        path = path.reshape(shape)
        former, wanted = np.divmod(pair, len(catalogue))
        target = np.empty(len(pair), dtype=np.intp)
        target[path] = np.broadcast_to(targets.target, shape)
        paths, lists = _next(
            catalogue, recommender, critic, paths, former, wanted, target, depth, repeats
        )
        turns.keep_lists(path, paths, lists)
    return DialogueLog(
        catalogue=catalogue,
        targets=targets,
        users=tuple(users),
        seeds=tuple(seeds),
        recommender=recommender.record() | {"depth": depth, "repeats": repeats},
        critic=critic,
        shown=np.stack(turns.shown, axis=-1),
        in_force=np.stack(turns.in_force, axis=-1),
        delta=np.stack(turns.delta, axis=-1),
        switched=np.stack(turns.switched, axis=-1),
        path=np.stack(turns.path, axis=-1),
        lists=tuple(turns.lists),
        leaves_before=leaves_before(catalogue, targets, users, seeds, n_turns),
    )


def _require(**least: int) -> None:
    for name, value in least.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")


def _first(start: Integers, seeds: Sequence[int], recommender: Recommender) -> Paths:
    """One path per seed and target: seeds may draw other first items or lists."""
    seed = np.repeat(np.asarray(seeds, dtype=np.int64), start.shape[1])
    start = start.ravel()
    return Paths(start[:, None], recommender.reset(start, seed), np.full(len(start), np.nan))


def _in_force(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[UserSimulator],
    seeds: Sequence[int],
    critique: int,
    paths: Paths,
    path: Integers,
    before: Integers,
) -> Integers:
    in_force = np.empty(path.shape, dtype=np.intp)
    keys = catalogue.keys[targets.target]
    for column, seed in enumerate(seeds):
        draw = uniform(SWITCH, seed, keys, critique)
        for row, user in enumerate(users):
            here = path[row, column]
            situation = Situation(
                critique=critique,
                targets=targets,
                shown=paths.shown[here],
                in_force=before[row, column],
                delta=paths.delta[here],
                draw=draw,
            )
            in_force[row, column] = user.in_force(situation, catalogue)
    return in_force


def _next(
    catalogue: Catalogue,
    recommender: Recommender,
    critic: Critic,
    paths: Paths,
    former: Integers,
    wanted: Integers,
    target: Integers,
    depth: int,
    repeats: bool,
) -> tuple[Paths, Integers]:
    shown, seen = paths.shown[former], paths.seen[former]
    state = recommender.observe(paths.state[former], shown, critic.vectors(shown, wanted))
    lists = recommender.rank(state, depth, None if repeats else seen)
    now = lists[:, 0]
    delta = catalogue.squared_distance(shown, target) - catalogue.squared_distance(now, target)
    return Paths(np.column_stack([seen, now]), state, delta), lists


def leaves_before(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[UserSimulator],
    seeds: Sequence[int],
    n_turns: int,
) -> Integers:
    """The turn before which each user leaves, by (seed, target, turn), never before turn 1. With a
    hazard, the number of turns is geometric."""
    keys = catalogue.keys[targets.target]
    turn = np.arange(1, n_turns + 1)
    leaves = np.empty((len(users), len(seeds), len(targets)), dtype=np.intp)
    for column, seed in enumerate(seeds):
        draw = uniform(LEAVE, seed, keys[:, None], turn)
        for row, user in enumerate(users):
            is_left = draw < user.leave_hazard
            first = np.where(is_left.any(axis=1), is_left.argmax(axis=1) + 1, n_turns + 2)
            leaves[row, column] = first
    return leaves
