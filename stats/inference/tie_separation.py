"""Whether a model of comparisons with ties has a maximum, and what stands in its way if not."""

from collections.abc import Hashable

import numpy as np

from stats.arguments import Floats
from stats.inference.tie_likelihood import Game
from stats.libraries import scipy

NOTHING = 1e-7
"""Of a direction in which no outcome grows less likely, and some grow more: as good as none."""
ENOUGH_ROWS = 2000
"""Of comparisons, nearly always enough to rule out such a direction."""


def groups_that_met(game: Game) -> int:
    """How many groups of systems there are between which nothing was compared."""
    counted = game.weight > 0
    n = len(game.systems)
    edges = (game.first[counted], game.second[counted])
    graph = scipy.sparse.coo_array((np.ones(int(counted.sum())), edges), shape=(n, n)).tocsr()
    return int(scipy.sparse.csgraph.connected_components(graph, directed=False)[0])


def unbeaten(game: Game) -> list[Hashable]:
    """Systems outside the largest group that beat each other, ties counting both ways."""
    n = len(game.systems)
    counted = game.weight > 0
    won, lost = counted & (game.outcome >= 0), counted & (game.outcome <= 0)
    source = np.concatenate([game.first[won], game.second[lost]])
    target = np.concatenate([game.second[won], game.first[lost]])
    graph = scipy.sparse.coo_array((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
    count, label = scipy.sparse.csgraph.connected_components(
        graph, directed=True, connection="strong"
    )
    if count == 1:
        return []
    largest = np.bincount(label).argmax()
    return [name for name, group in zip(game.systems, label, strict=True) if group != largest]


def is_identified(game: Game) -> bool:
    """Whether no covariate (or the side) is a sum of the others and of systems' differences."""
    design = np.unique(game.design[game.weight > 0], axis=0)
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def rising_direction(game: Game) -> Floats | None:
    """A direction of the parameters in which the likelihood rises for ever, None where none.

    The last element is the tie parameter's logarithm, where there is a tie. Along such a
    direction no comparison's outcome loses to another outcome that it could have had, and one
    at least gains.

    References
    ----------
    A. Albert and J. A. Anderson (1984). On the existence of maximum likelihood estimates in
    logistic regression models. Biometrika 71(1), 1-10.

    Examples
    --------
    >>> one = Game(
    ...     np.array([0, 0]), np.array([1, 1]), np.array([1, 0], np.int8), np.ones(2),
    ...     np.zeros((2, 0)), ["a", "b"], [], np.ones(0),
    ... )
    >>> rising_direction(one) is None  # a won and tied: the more b loses, the likelier
    False
    """
    counted = game.weight > 0
    rows = np.unique(
        np.column_stack([game.design[counted], game.outcome[counted].astype(np.float64)]), axis=0
    )
    half, outcome = rows[:, :-1] / 2, rows[:, -1]
    won, lost, tied = half[outcome > 0], -half[outcome < 0], half[outcome == 0]
    ahead = np.vstack([won, lost])
    gains = [2 * ahead]
    if len(tied):
        gains = [
            np.column_stack([part, np.full(len(part), of_tie)])
            for part, of_tie in ((2 * ahead, 0.0), (ahead, -1.0), (tied, 1.0), (-tied, 1.0))
        ]
    table = np.vstack(gains)
    part = table[:: max(len(table) // ENOUGH_ROWS, 1)]
    if len(part) < len(table) and np.linalg.matrix_rank(part) == table.shape[1]:
        # what a part of the comparisons rules out, all of them do
        return None if _direction(part) is None else _direction(table)
    return _direction(table)


def _direction(gains: Floats) -> Floats | None:
    """By linear programming: the direction whose gains, none below 0 or above 1, sum highest."""
    found = scipy.optimize.linprog(
        -gains.sum(axis=0),
        A_ub=np.vstack([-gains, gains]),
        b_ub=np.concatenate([np.zeros(len(gains)), np.ones(len(gains))]),
        bounds=(None, None),
        method="highs",
    )
    if found.fun is None or -found.fun <= NOTHING:
        return None
    return np.asarray(found.x, dtype=np.float64)


def systems_apart(game: Game, direction: Floats) -> list[Hashable]:
    """The systems that such a direction parts from the most that it keeps together."""
    of_systems = np.concatenate([[0.0], direction[: len(game.systems) - 1]])
    level = np.unique(np.round(of_systems, 6), return_inverse=True)[1]
    most = np.bincount(level)
    if len(most) == 1:
        return []
    kept = int(np.flatnonzero(most == most.max())[0])  # the lowest, so that winners are named
    return [name for name, group in zip(game.systems, level, strict=True) if group != kept]
