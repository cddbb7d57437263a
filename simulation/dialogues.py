"""Dialogues of simulated users with a recommender, all at once.

At each turn dialogues that have gone the same way so far (same target and first item, same
critiques) are one path: users with different settings share a beginning, whatever it is they
differ in, and each path's list is computed once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulation.catalogue import LEAVE, SWITCH, Catalogue, Targets, uniform
from simulation.critics import Critic
from simulation.recommenders import Recommender
from simulation.users import MetaUser, Situation
from stats.arguments import Flags, Floats, Integers

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


def leaves_before(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[MetaUser],
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


@dataclass(frozen=True)
class DialogueLog:
    """Dialogues of users x seeds x targets, all to the last turn whether they had ended or not.

    A dialogue's beginning does not depend on when it ends, so that any rule of ending can be
    applied to the same log. Turn 0 shows the first item; a critique at turn t leads to turn t + 1.

    Attributes
    ----------
    shown : (n_users, n_seeds, n_targets, n_turns + 1)
        The item shown first at each turn.
    in_force, delta, switched : (n_users, n_seeds, n_targets, n_turns)
        At each critique the item in mind, how much nearer the item shown is to the original target
        than the one before, and whether another than the target is in mind.
    path : (n_users, n_seeds, n_targets, n_turns + 1)
        Dialogues that went the same way so far have the same path, a row of that turn's `lists`.
    lists : for each turn (n_paths, depth)
        The items ranked, best first; at turn 0 the first item alone.
    leaves_before : (n_users, n_seeds, n_targets)
        The turn that a user who has left does not see; beyond the last where none leaves.
    """

    catalogue: Catalogue
    targets: Targets
    users: tuple[MetaUser, ...]
    seeds: tuple[int, ...]
    recommender: dict[str, Any]
    critic: Critic
    shown: Integers
    in_force: Integers
    delta: Floats
    switched: Flags
    path: Integers
    lists: tuple[Integers, ...]
    leaves_before: Integers

    @property
    def n_turns(self) -> int:
        return int(self.in_force.shape[-1])

    @property
    def n_dialogues(self) -> int:
        return int(np.prod(self.shown.shape[:3]))

    def rankings(self, turn: int) -> Integers:
        """(n_users, n_seeds, n_targets, depth) of a turn."""
        return np.asarray(self.lists[turn][self.path[..., turn]])

    def ends_at(self) -> Integers:
        """The first turn with an accepted item, unless the user has left; n_turns + 1 if none."""
        none = self.n_turns + 1
        ends = np.empty(self.shown.shape[:3], dtype=np.intp)
        accepted = self.targets.accepted
        for number, user in enumerate(self.users):
            items = self.targets.target[:, None] if user.accepts == "target" else accepted
            is_end = (self.shown[number][..., None] == items[:, None, :]).any(axis=-1)
            ends[number] = np.where(is_end.any(axis=-1), is_end.argmax(axis=-1), none)
        return np.where(ends < self.leaves_before, ends, none)

    def lasts_until(self) -> Integers:
        """The last turn that each user sees: found, left, or the last of all."""
        return np.minimum(np.minimum(self.ends_at(), self.leaves_before - 1), self.n_turns)

    def n_switches(self) -> Integers:
        """By user, the critiques with another item than the target in mind, before the end."""
        open_turns = np.arange(self.n_turns) < self.lasts_until()[..., None]
        return np.asarray((self.switched & open_turns).sum(axis=(1, 2, 3)))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per turn of each dialogue up to its end, with words for ids."""
        ids, until, ends = self.catalogue.ids, self.lasts_until(), self.ends_at()
        for index in np.ndindex(*self.shown.shape[:3]):
            user, seed, row = index
            turns = range(int(until[index]) + 1)
            critiques = [turn for turn in turns if turn < until[index]]
            texts = self.critic.texts(self.shown[index][critiques], self.in_force[index][critiques])
            for turn in turns:
                critiqued = turn < until[index]
                yield {
                    "user": self.users[user].name,
                    "seed": self.seeds[seed],
                    "target": ids[self.targets.target[row]],
                    "turn": turn,
                    "shown": ids[self.shown[index][turn]],
                    "in_force": ids[self.in_force[index][turn]] if critiqued else None,
                    "delta": _number(self.delta[index][turn]) if critiqued else None,
                    "switched": bool(self.switched[index][turn]) if critiqued else None,
                    "critique": texts[turn] if critiqued else None,
                    "ranking": [ids[item] for item in self.lists[turn][self.path[index][turn]]],
                    "found": bool(turn == ends[index]),
                }


def simulate(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[MetaUser],
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
    users: Sequence[MetaUser],
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


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
