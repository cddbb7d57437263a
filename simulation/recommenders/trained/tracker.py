"""The network: what was shown and said, turn by turn, as a state; from it a point among items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # noqa: TID253
from torch import nn  # noqa: TID253

from simulation.catalogue import Catalogue, on_grid
from simulation.recommenders.trained.settings import TrainingSettings, features_of
from simulation.recommenders.untrained import nearest_items
from stats.arguments import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


class Tracker(nn.Module):
    """A recurrent state tracker (X. Guo et al., 2018. Dialog-based interactive image retrieval.
    NeurIPS 2018), with the value of a state under a critique for EGE (Y. Wu, C. Macdonald and I.
    Ounis, 2021. Partially observable reinforcement learning for dialog-based interactive
    recommendation. RecSys 2021). Layers after the encoders have no bias.
    """

    def __init__(self, n_features: int, critique_width: int, settings: TrainingSettings) -> None:
        super().__init__()
        width = settings.width
        self.join, self.unit_length = settings.join, settings.unit_length
        self.item = nn.Linear(n_features, width)
        self.critique = nn.Linear(critique_width, width)
        joined = width if settings.join == "sum" else 2 * width
        self.response = nn.Linear(joined, width, bias=False)
        self.cell = nn.GRUCell(width, width, bias=False)
        self.head = nn.Linear(width, width, bias=False)
        self.value = nn.Sequential(
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width, bias=False),
            nn.Linear(width, 1, bias=False),
            nn.Tanh(),
        )

    def items(self, features: Tensor) -> Tensor:
        """Items' points, (n, width)."""
        return self._scaled(self.item(features))

    def step(self, state: Tensor, shown: Tensor, critique: Tensor) -> Tensor:
        """The state after a critique of the item shown, whose points are given."""
        import torch

        said = self.critique(critique)
        joined = shown + said if self.join == "sum" else torch.cat([shown, said], dim=1)
        after: Tensor = self.cell(self.response(joined), state)
        return after

    def query(self, state: Tensor) -> Tensor:
        """The point that items are ranked by their distance from."""
        return self._scaled(self.head(state))

    def worth(self, query: Tensor, critiques: Tensor) -> Tensor:
        """The value of queries (n, width): the highest under any critique (n, turns, width)."""
        values: Tensor = self.value(query[:, None, :] + self.critique(critiques))
        return values.squeeze(2).amax(dim=1)

    def _scaled(self, points: Tensor) -> Tensor:
        return nn.functional.normalize(points, dim=1) if self.unit_length else points


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
