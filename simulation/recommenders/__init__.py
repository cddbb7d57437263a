from typing import Any, Protocol

import numpy as np

from simulation.catalogue import NONE, ORDER, Catalogue, hashed, on_grid, uniform
from simulation.critics import Critic
from stats.arguments import Floats, Integers


class Recommender(Protocol):
    """What it knows of a dialogue is a row of numbers, so that dialogues can share a beginning.

    Shapes: start, seed, shown (n,); state (n, width); critique (n, width of the critic's vectors);
    excluded (n, any) of items not to be ranked, filled up with -1; ranked (n, depth).
    """

    @property
    def name(self) -> str: ...

    def reset(self, start: Integers, seed: Integers) -> Floats:
        """The state of dialogues that begin with these items; `seed` is for random draws."""
        ...

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats: ...

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        """Best first."""
        ...

    def record(self) -> dict[str, Any]: ...


N_PAIRS = 20_000
RIDGE = 1e-3


class EmbeddingRecommender:
    """Each critique says where the wanted item is: where the shown one is, moved as critics' words
    move items of this catalogue on average (ridge regression on random pairs of its items). The
    belief is the mean of what critiques said, later ones weighing more.

    A state is the belief and the weight of all that it rests on. With `recency` 0 every critique
    weighs as much as any other, with 1 the last one alone counts.
    """

    name = "embedding"

    def __init__(
        self, catalogue: Catalogue, critic: Critic, *, recency: float = 0.5, seed: int = 0
    ) -> None:
        if not 0 <= recency <= 1:
            raise ValueError(f"recency must lie between 0 and 1, not {recency}")
        self.positions, self.recency, self.seed = catalogue.positions, recency, seed
        self.moves = mean_moves(catalogue, critic, seed=seed)

    def reset(self, start: Integers, seed: Integers) -> Floats:
        return np.column_stack([self.positions[start], np.zeros(len(start))])

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        belief, weight = state[:, :-1], state[:, -1:] * (1 - self.recency)
        said = self.positions[shown] + on_grid(np.einsum("nc,cd->nd", critique, self.moves))
        belief = on_grid((belief * weight + said) / (weight + 1))
        return np.column_stack([belief, weight + 1])

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        return nearest_items(state[:, :-1], self.positions, depth, excluded)

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "recency": self.recency, "seed": self.seed}


def mean_moves(catalogue: Catalogue, critic: Critic, *, seed: int) -> Floats:
    """How far each component of a critique moves an item, (width of critiques, d)."""
    rng = np.random.default_rng(seed)
    shown, wanted = rng.integers(0, len(catalogue), size=(2, N_PAIRS))
    critiques = critic.vectors(shown, wanted)
    gaps = catalogue.positions[wanted] - catalogue.positions[shown]
    gram = critiques.T @ critiques + RIDGE * N_PAIRS * np.eye(critiques.shape[1])
    return np.asarray(np.linalg.solve(gram, critiques.T @ gaps))


# Scores in memory at a time, 32 MB.
CELLS_AT_ONCE = 4_000_000
# Points are moved to at most this distance from the origin (items are within 1), so that products
# stay exact.
FURTHEST = 4.0


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


def nearest_items(
    points: Floats, positions: Floats, depth: int, excluded: Integers | None = None
) -> Integers:
    """The nearest of items' positions to each point, nearest first; ties by position.

    Points are rounded to the catalogue's grid. Shapes: points (n, d), positions (n_items, d).
    """
    length = np.sqrt((points**2).sum(axis=1, keepdims=True))
    points = on_grid(points * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST)))
    half_squares = np.einsum("id,id->i", positions, positions) / 2
    step = max(1, CELLS_AT_ONCE // len(positions))
    ranked = np.empty((len(points), min(depth, len(positions))), dtype=np.intp)
    for low in range(0, len(points), step):
        block = slice(low, low + step)
        scores = points[block] @ positions.T
        scores -= half_squares
        if excluded is not None:
            exclude(scores, excluded[block])
        ranked[block] = top_items(scores, ranked.shape[1])
    return ranked


def exclude(scores: Floats, excluded: Integers) -> None:
    row, column = np.nonzero(excluded != NONE)
    scores[row, excluded[row, column]] = -np.inf


class RandomRecommender:
    """A new random order at each turn, by seed and the items shown."""

    name = "random"

    def __init__(self, catalogue: Catalogue) -> None:
        self.n_items, self.keys = len(catalogue), catalogue.keys

    def reset(self, start: Integers, seed: Integers) -> Floats:
        return uniform(ORDER, seed, self.keys[start])[:, None]

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        bits = np.ascontiguousarray(state[:, 0]).view(np.uint64)
        return uniform(ORDER, bits, self.keys[shown])[:, None]

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        n_excluded = 0 if excluded is None else excluded.shape[1]
        depth = min(depth, self.n_items)
        longer = np.arange(min(depth + n_excluded, self.n_items))
        bits = hashed(np.ascontiguousarray(state[:, 0]).view(np.uint64))
        steps = np.array([n for n in range(1, self.n_items + 1) if np.gcd(n, self.n_items) == 1])
        first = (bits % np.uint64(self.n_items)).astype(np.intp)
        step = steps[((bits >> np.uint64(32)) % np.uint64(len(steps))).astype(np.intp)]
        ranked = np.asarray((first[:, None] + step[:, None] * longer) % self.n_items, dtype=np.intp)
        if excluded is None:
            return ranked
        is_excluded = (ranked[:, :, None] == excluded[:, None, :]).any(axis=2)
        order = np.argsort(is_excluded, axis=1, kind="stable")[:, :depth]
        return np.asarray(np.take_along_axis(ranked, order, axis=1))

    def record(self) -> dict[str, Any]:
        return {"name": self.name}


class WithoutHistory:
    """A recommender that knows only the last critique."""

    def __init__(self, recommender: Recommender) -> None:
        self.recommender, self.name = recommender, f"{recommender.name}, without history"

    def reset(self, start: Integers, seed: Integers) -> Floats:
        return self.recommender.reset(start, seed)

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        begun = self.recommender.reset(shown, np.zeros(len(shown), dtype=np.int64))
        return self.recommender.observe(begun, shown, critique)

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        return self.recommender.rank(state, depth, excluded)

    def record(self) -> dict[str, Any]:
        return self.recommender.record() | {"name": self.name, "history": False}


class ShuffledCritic:
    """Gives each pair of items the critique of another pair, by a seed."""

    def __init__(self, critic: Critic, catalogue: Catalogue, *, seed: int = 0) -> None:
        self.critic, self.keys, self.seed = critic, catalogue.keys, seed
        self.name, self.width = f"{critic.name}, shuffled", critic.width

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        return self.critic.vectors(*self._others(shown, wanted))

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        return self.critic.texts(*self._others(shown, wanted))

    def record(self) -> dict[str, Any]:
        return self.critic.record() | {"name": self.name, "seed": self.seed}

    def _others(self, shown: Integers, wanted: Integers) -> tuple[Integers, Integers]:
        keys, n = (self.keys[shown], self.keys[wanted]), len(self.keys)
        first, second = (
            (uniform(ORDER, self.seed, side, *keys) * n).astype(np.intp) for side in (0, 1)
        )
        return first, second
