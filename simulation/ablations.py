from __future__ import annotations

from typing import Any

import numpy as np

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.draws import ORDER, uniform
from simulation.recommenders.protocol import Recommender
from stats.arguments import Floats, Integers


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
