"""A recommender without training: a belief about where the wanted item is, moved by critiques."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulation.catalogue import Catalogue, on_grid
from simulation.critics import Critic
from simulation.recommenders.nearest import nearest_items
from stats.arguments import Floats, Integers

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
