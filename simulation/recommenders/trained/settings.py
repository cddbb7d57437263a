from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from simulation.catalogue import SPLIT, Catalogue, uniform
from simulation.critics import Critic
from simulation.exceptions import CheckpointUnfit
from stats.arguments import Floats, Integers, require_one_of

if TYPE_CHECKING:
    from torch import Tensor


Kind = Literal["gru-sl", "gru-rl", "gru-rl-later", "ege"]
Join = Literal["sum", "concatenation"]
NextItem = Literal["nearest", "random"]
PolicyTerms = Literal["each turn", "last turn"]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """One kind of training; everything that decides its result, beside the data.

    Attributes
    ----------
    kind : "gru-sl", "gru-rl", "gru-rl-later", "ege"
    width : the size of item, critique and state vectors
    join : whether the item shown and its critique are added or put side by side
    unit_length : whether items and queries are scaled to length 1
    n_turns, batch_size, learning_rate, epochs
    margin : of the triplet loss (GRU-SL)
    next_item : what is shown next in training: the nearest to the query, or any
    n_negatives, temperature : of the cross-entropy (GRU-RL, EGE)
    n_candidates : items that GRU-RL looks ahead from, at each turn
    discount : of rewards (later GRU-RL, EGE)
    policy_terms : "each turn", or "last turn", which a released program of EGE adds at every turn
    freeze_items : whether the items' layer stays as it was (GRU-RL)
    seed : of the parameters, of the split of items, and of every draw
    """

    kind: Kind
    width: int = 64
    join: Join = "sum"
    unit_length: bool = False
    n_turns: int = 5
    batch_size: int = 128
    learning_rate: float = 1e-3
    epochs: int = 15
    margin: float = 0.1
    next_item: NextItem = "nearest"
    n_negatives: int = 5
    temperature: float = 0.2
    n_candidates: int = 4
    discount: float = 0.9
    policy_terms: PolicyTerms = "each turn"
    freeze_items: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_one_of(
            kind=(self.kind, get_args(Kind)),
            join=(self.join, get_args(Join)),
            next_item=(self.next_item, get_args(NextItem)),
            policy_terms=(self.policy_terms, get_args(PolicyTerms)),
        )
        for name in ("width", "n_turns", "batch_size", "epochs", "n_negatives", "n_candidates"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")

    def record(self) -> dict[str, Any]:
        return asdict(self)


PUBLISHED = {
    "gru-sl": TrainingSettings(kind="gru-sl"),
    "gru-rl": TrainingSettings(
        kind="gru-rl", learning_rate=1e-4, epochs=5, freeze_items=True
    ),
    "gru-rl-later": TrainingSettings(
        kind="gru-rl-later", join="concatenation", unit_length=True, n_turns=10,
        learning_rate=1e-4, discount=0.2, next_item="random",
    ),
    "ege": TrainingSettings(
        kind="ege", join="concatenation", unit_length=True, n_turns=10, next_item="random"
    ),
}  # fmt: skip


def settings_of(kind: str, **choices: Any) -> TrainingSettings:
    if kind not in PUBLISHED:
        raise ValueError(f"kind must be one of {', '.join(PUBLISHED)}, not {kind!r}")
    return replace(PUBLISHED[kind], **choices)


def settings_from(record: dict[str, Any]) -> TrainingSettings:
    try:
        return TrainingSettings(**record)
    except (TypeError, ValueError) as error:
        raise CheckpointUnfit(f"The checkpoint's settings cannot be used: {error}.") from None


TRAINING, VALIDATION = 0.8, 0.1
LEAST_ITEMS = 50


@dataclass(frozen=True)
class Items:
    """Only `training` items are targets, shown or compared in training."""

    catalogue: Catalogue
    critic: Critic
    features: Tensor
    training: Integers
    validation: Integers
    test: Integers

    def critiques(self, shown: Tensor, wanted: Tensor) -> Tensor:
        import torch

        vectors = self.critic.vectors(_numbers(shown), _numbers(wanted))
        return torch.as_tensor(vectors, dtype=self.features.dtype, device=self.features.device)


def items_of(catalogue: Catalogue, critic: Critic, *, seed: int, device: str = "cpu") -> Items:
    """Four fifths of the items for training, a tenth each for validation and test, by seed and
    id."""
    import torch

    if len(catalogue) < LEAST_ITEMS:
        raise ValueError(f"catalogue must have at least {LEAST_ITEMS} items to train on")
    draw = uniform(SPLIT, seed, catalogue.keys)
    bounds = (0.0, TRAINING, TRAINING + VALIDATION, 1.0)
    training, validation, test = (
        np.flatnonzero((draw >= low) & (draw < high)) for low, high in pairwise(bounds)
    )
    features = torch.as_tensor(features_of(catalogue), dtype=torch.float32, device=device)
    return Items(catalogue, critic, features, training, validation, test)


def features_of(catalogue: Catalogue) -> Floats:
    """Positions, centered, with a standard deviation of 1 over all coordinates."""
    centred = catalogue.positions - catalogue.positions.mean(axis=0)
    return np.asarray(centred / (centred.std() or 1.0))


def fingerprint(catalogue: Catalogue, critic: Critic) -> str:
    """Identifies ids, positions and the kind of critiques."""
    digest = sha256("\n".join(catalogue.ids).encode())
    digest.update(catalogue.positions.tobytes())
    digest.update(f"{critic.name} {critic.width}".encode())
    return digest.hexdigest()[:16]


def _numbers(items: Tensor) -> Integers:
    return np.asarray(items.cpu().numpy(), dtype=np.intp)
