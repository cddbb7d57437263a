"""How good the list of each turn is, by measures of rankings against a choice of qrels.

What a dialogue that has ended counts for at later turns is a choice with a name. Published
numbers depend on it: an article may say that all measures are 1 from then on, where its program
keeps a list of the item found, alone, whose nDCG is 1 over the ideal gain of all relevant items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from simulation.targets import NONE, Targets
from simulation.turn_log import DialogueLog
from simulation.users import Mode
from stats.arguments import Floats, Integers, require_one_of
from stats.ranking import JudgedLists, Measure, judged_lists, measure

# The relevant items: what each user accepts (SimBase only the target, meta users also the
# alternatives), or the same items for all users.
Qrels = Literal["accepted", "target", "target and alternatives", "alternatives"]
# What counts after the end of a dialogue: 1 in all measures; its last list; a list of the found
# item alone; or the lists of the turns that would have followed. After leaving, the last list.
Carry = Literal["one", "same list", "found alone", "none"]
# How the article evaluates (section 5.2), and the rule that fits its program's numbers.
EVALUATION_BY_MODE: Mapping[Mode, tuple[Qrels, Carry]] = {
    "paper": ("accepted", "one"),
    "released": ("accepted", "found alone"),
}

JUDGED = measure("Judged@10")


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
    targets = log.targets if kept is None else kept
    relevant, rejected = judgments(targets, qrels)
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
    """Each measure of a turn's lists, and the share judged of their first ten, by dialogue."""
    path = log.path[..., turn]
    target = np.empty(len(log.lists[turn]), dtype=np.intp)
    target[path] = np.broadcast_to(np.arange(len(log.targets)), path.shape)
    lists = lists_of(log.lists[turn], relevant[target], rejected[target])
    of_paths = [one.values(lists) for one in (*measures, JUDGED)]
    return np.stack(of_paths)[:, path]


def lists_of(ranked: Integers, relevant: Integers, rejected: Integers) -> JudgedLists:
    """1 for relevant items, 0 for items rejected and not relevant."""
    n, depth = ranked.shape
    judged = np.column_stack([relevant, rejected])
    topic, column = np.nonzero(judged != NONE)
    span = int(max(judged.max(initial=0), ranked.max(initial=0))) + 1
    # Of an item that was judged twice the first counts, and relevant ones come first.
    order = np.argsort(column, kind="stable")
    pairs = (topic * span + judged[topic, column])[order]
    pair, first = np.unique(pairs, return_index=True)
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
