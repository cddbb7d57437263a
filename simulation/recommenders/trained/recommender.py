"""A trained tracker as a recommender of simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # noqa: TID253

from simulation.catalogue import Catalogue, on_grid
from simulation.recommenders.nearest import nearest_items
from simulation.recommenders.trained.items import features_of
from simulation.recommenders.trained.settings import TrainingSettings
from simulation.recommenders.trained.tracker import Tracker
from stats.arguments import Floats, Integers


class TrainedRecommender:
    """Ranks by distance from the query, in double precision; a state is that of the network."""

    def __init__(
        self,
        tracker: Tracker,
        catalogue: Catalogue,
        settings: TrainingSettings,
        *,
        name: str = "",
        origin: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.settings, self.origin = name or settings.kind, settings, origin or {}
        self.tracker = Tracker(
            tracker.item.in_features, tracker.critique.in_features, settings
        ).double()
        state = {key: value.cpu().double() for key, value in tracker.state_dict().items()}
        self.tracker.load_state_dict(state)
        with torch.no_grad():
            self.points = self.tracker.items(torch.as_tensor(features_of(catalogue)))
        self.longest = float(self.points.norm(dim=1).max()) or 1.0
        self.positions = on_grid(self.points.numpy() / self.longest)

    def reset(self, start: Integers, seed: Integers) -> Floats:
        return np.zeros((len(start), self.settings.width))

    @torch.no_grad()
    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        after = self.tracker.step(
            torch.as_tensor(state), self.points[torch.as_tensor(shown)], torch.as_tensor(critique)
        )
        return np.asarray(after.numpy())

    @torch.no_grad()
    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        query = self.tracker.query(torch.as_tensor(state)).numpy() / self.longest
        return nearest_items(query, self.positions, depth, excluded)

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "training": self.settings.record(), **self.origin}
