"""Items in any order: what every recommender has to beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulation.catalogue import Catalogue
from simulation.draws import ORDER, hashed, uniform
from stats.arguments import Floats, Integers


class RandomRecommender:
    """Another order at each turn, by seed and what has been shown, without regard to critiques."""

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
