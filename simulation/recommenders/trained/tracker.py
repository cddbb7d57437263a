from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # noqa: TID253
from torch import nn  # noqa: TID253

from simulation.catalogue import Catalogue, on_grid
from simulation.recommenders import nearest_items
from simulation.recommenders.trained.settings import Items, TrainingSettings, features_of
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
        self.response = nn.Linear(width if settings.join == "sum" else 2 * width, width, bias=False)
        self.cell = nn.GRUCell(width, width, bias=False)
        self.head = nn.Linear(width, width, bias=False)
        self.value = nn.Sequential(
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width, bias=False),
            nn.Linear(width, 1, bias=False),
            nn.Tanh(),
        )

    def items(self, features: Tensor) -> Tensor:
        return self._scaled(self.item(features))

    def step(self, state: Tensor, shown: Tensor, critique: Tensor) -> Tensor:
        said = self.critique(critique)
        joined = shown + said if self.join == "sum" else torch.cat([shown, said], dim=1)
        after: Tensor = self.cell(self.response(joined), state)
        return after

    def query(self, state: Tensor) -> Tensor:
        return self._scaled(self.head(state))

    def worth(self, query: Tensor, critiques: Tensor) -> Tensor:
        """The value of queries (n, width): the highest under any critique (n, turns, width)."""
        values: Tensor = self.value(query[:, None, :] + self.critique(critiques))
        return values.squeeze(2).amax(dim=1)

    def _scaled(self, points: Tensor) -> Tensor:
        return nn.functional.normalize(points, dim=1) if self.unit_length else points


class TrainedRecommender:
    """Ranks by distance from the query, in double precision."""

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


@dataclass(frozen=True)
class Batch:
    """Targets and first items are positions among training items; draws come from `rng`."""

    target: Tensor
    start: Tensor
    rng: torch.Generator


@dataclass
class Dialogue:
    points: Tensor
    state: Tensor
    shown: Tensor


class Trainer:
    """`frozen` is a copy that GRU-RL looks ahead with."""

    def __init__(self, tracker: Tracker, items: Items, settings: TrainingSettings) -> None:
        self.tracker, self.items, self.settings = tracker, items, settings
        self.frozen: Tracker | None = None
        self.training = torch.as_tensor(items.training, device=items.features.device)
        self.features = items.features[self.training]

    def loss(self, batch: Batch) -> Tensor:
        losses = {
            "gru-sl": self._supervised,
            "gru-rl": self._look_ahead,
            "gru-rl-later": self._rewarded,
            "ege": self._evaluated,
        }
        return losses[self.settings.kind](batch)

    def _begin(self, batch: Batch) -> Dialogue:
        points = self.tracker.items(self.features)
        state = points.new_zeros(len(batch.target), self.settings.width)
        return Dialogue(points, state, batch.start)

    def _critiques(self, shown: Tensor, target: Tensor) -> Tensor:
        return self.items.critiques(self.training[shown], self.training[target])

    def _turn(self, dialogue: Dialogue, batch: Batch) -> tuple[Tensor, Tensor]:
        critique = self._critiques(dialogue.shown, batch.target)
        shown = dialogue.points[dialogue.shown]
        dialogue.state = self.tracker.step(dialogue.state, shown, critique)
        return self.tracker.query(dialogue.state), critique

    def _next(self, dialogue: Dialogue, query: Tensor, batch: Batch) -> Tensor:
        if self.settings.next_item == "random":
            return self._any(len(query), batch)
        return nearest(query.detach(), dialogue.points.detach(), 1)[:, 0]

    def _any(self, n: int, batch: Batch) -> Tensor:
        drawn = torch.randint(len(self.training), (n,), generator=batch.rng)
        return drawn.to(self.features.device)

    def _supervised(self, batch: Batch) -> Tensor:
        """Nearer to the target than to any other item, by a margin."""
        dialogue, terms = self._begin(batch), []
        for _ in range(self.settings.n_turns):
            query, _critique = self._turn(dialogue, batch)
            other = self._any(len(query), batch)
            near = squared(query, dialogue.points[batch.target])
            far = squared(query, dialogue.points[other])
            terms.append(nn.functional.relu(near - far + self.settings.margin).mean())
            dialogue.shown = self._next(dialogue, query, batch)
        return torch.stack(terms).mean()

    def _look_ahead(self, batch: Batch) -> Tensor:
        """Show what a copy, rolled to the end of the dialogue, reaches the target best from.

        The dialogue goes on with that item. Its cross-entropy is against uniform items; the
        query's distance from the target is added.
        """
        dialogue, terms = self._begin(batch), []
        for turn in range(self.settings.n_turns):
            query, _critique = self._turn(dialogue, batch)
            best = self._best_next(dialogue, query, batch, self.settings.n_turns - turn - 1)
            others = [self._any(len(query), batch) for _ in range(self.settings.n_negatives)]
            choices = torch.stack([best, *others], dim=1)
            distance = squared(query[:, None, :], dialogue.points[choices])
            terms.append(_first_of(-distance / self.settings.temperature))
            terms.append(squared(query, dialogue.points[batch.target]).mean())
            dialogue.shown = best
        return torch.stack(terms).sum() / self.settings.n_turns

    @torch.no_grad()
    def _best_next(self, dialogue: Dialogue, query: Tensor, batch: Batch, n_left: int) -> Tensor:
        """Among the nearest items, the one with the least sum of the target's ranks."""
        frozen = self.frozen if self.frozen is not None else self.tracker
        points = frozen.items(self.features)
        k = self.settings.n_candidates
        candidates = nearest(query, points, k)
        target = batch.target.repeat_interleave(k)
        state, shown = dialogue.state.repeat_interleave(k, dim=0), candidates.flatten()
        ranks = target_ranks(points[shown], points, target).double()
        for _ in range(n_left):
            state = frozen.step(state, points[shown], self._critiques(shown, target))
            ahead = frozen.query(state)
            ranks += target_ranks(ahead, points, target)
            shown = nearest(ahead, points, 1)[:, 0]
        best = ranks.view(-1, k).argmin(dim=1, keepdim=True)
        return candidates.gather(1, best)[:, 0]

    def _rewarded(self, batch: Batch) -> Tensor:
        """The target against items shown, by dot products, weighted by the rewards to come."""
        terms, rewards, _, _ = self._policy(batch)
        total = torch.zeros_like(rewards[0])
        returns: list[Tensor] = []
        for reward in reversed(rewards):
            total = reward + self.settings.discount * total
            returns.insert(0, total)
        weighted = [term * weight for term, weight in zip(terms, returns, strict=True)]
        return torch.stack(weighted).mean()

    def _evaluated(self, batch: Batch) -> Tensor:
        """EGE: the policy's cross-entropy, and how far values are from reward and next value."""
        terms, rewards, queries, critiques = self._policy(batch, one_more=True)
        values = [
            self.tracker.worth(query, torch.stack(critiques[: turn + 1], dim=1))
            for turn, query in enumerate(queries)
        ]
        errors = [
            nn.functional.smooth_l1_loss(now, reward + self.settings.discount * after.detach())
            for now, after, reward in zip(values, values[1:], rewards, strict=False)
        ]
        if self.settings.policy_terms == "last turn":
            terms = [terms[-1]] * len(terms)
        return torch.stack(terms).mean() + torch.stack(errors).mean()

    def _policy(
        self, batch: Batch, *, one_more: bool = False
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """For each turn cross-entropies, rewards, queries and critiques, each (n,) or (n, …).

        With `one_more` there is a query and a critique beyond the last turn.
        """
        dialogue = self._begin(batch)
        terms, rewards, queries, critiques = [], [], [], []
        for turn in range(self.settings.n_turns + one_more):
            query, critique = self._turn(dialogue, batch)
            queries.append(query)
            critiques.append(critique)
            if turn < self.settings.n_turns:
                target = dialogue.points[batch.target]
                listed = self._disliked(dialogue, query, batch)
                choices = torch.cat([batch.target[:, None], listed], dim=1)
                likeness = (query[:, None, :] * dialogue.points[choices]).sum(dim=2)
                logits = likeness / self.settings.temperature
                terms.append(nn.functional.cross_entropy(logits, _zeros(logits), reduction="none"))
                first = dialogue.points[nearest(query.detach(), dialogue.points.detach(), 1)[:, 0]]
                rewards.append((first * target).sum(dim=1).detach())
            dialogue.shown = self._next(dialogue, query, batch)
        return terms, rewards, queries, critiques

    def _disliked(self, dialogue: Dialogue, query: Tensor, batch: Batch) -> Tensor:
        n = self.settings.n_negatives
        listed = nearest(query.detach(), dialogue.points.detach(), n + 1)
        order = (listed == batch.target[:, None]).int().argsort(dim=1, stable=True)
        return listed.gather(1, order)[:, :n]


def squared(a: Tensor, b: Tensor) -> Tensor:
    return ((a - b) ** 2).sum(dim=-1)


def nearest(query: Tensor, points: Tensor, k: int) -> Tensor:
    """Positions, nearest first, (n, k)."""
    scores = query @ points.T - (points**2).sum(dim=1) / 2
    return scores.topk(min(k, len(points)), dim=1).indices


def target_ranks(query: Tensor, points: Tensor, target: Tensor) -> Tensor:
    """How many points are nearer to each query than its target is."""
    scores = query @ points.T - (points**2).sum(dim=1) / 2
    return (scores > scores.gather(1, target[:, None])).sum(dim=1)


def _first_of(logits: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, _zeros(logits))


def _zeros(logits: Tensor) -> Tensor:
    return torch.zeros(len(logits), dtype=torch.long, device=logits.device)
