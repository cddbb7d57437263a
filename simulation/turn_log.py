from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.targets import Targets
from simulation.users import Flags, UserSimulator
from stats.arguments import Floats, Integers


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
    users: tuple[UserSimulator, ...]
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

    @property
    def n_rankings(self) -> int:
        """Without shared paths it would be one per turn of each dialogue."""
        return sum(len(lists) for lists in self.lists[1:])

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


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


GROUPS_PER_ITEM = 4


def top_items(scores: Floats, depth: int) -> Integers:
    """The `depth` best of each row, best first; of equal ones the one that comes first.

    The depth-th best of groups' maxima is a bound that every one of them reaches, ties too, so
    that only what reaches it is sorted. Shapes: (n, n_items) in, (n, depth) out.
    """
    n, n_items = scores.shape
    n_groups = GROUPS_PER_ITEM * depth
    if n_items < 4 * n_groups or not n:
        return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, :depth])
    width = n_items // n_groups
    maxima = scores[:, : width * n_groups].reshape(n, n_groups, width).max(axis=2)
    bound = np.partition(maxima, n_groups - depth, axis=1)[:, n_groups - depth]
    row, item = np.nonzero(scores >= bound[:, None])
    order = np.lexsort((item, -scores[row, item], row))
    first = np.searchsorted(row, np.arange(n))
    return np.asarray(item[order][first[:, None] + np.arange(depth)])
