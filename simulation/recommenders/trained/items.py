"""Items as a network's inputs: their features, and which are for training, validation and tests."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.draws import SPLIT, uniform
from stats.arguments import Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor


TRAINING, VALIDATION = 0.8, 0.1
LEAST_ITEMS = 50


@dataclass(frozen=True)
class Items:
    """Items by position; those of `training` alone are targets, shown or compared in training."""

    catalogue: Catalogue
    critic: Critic
    features: Tensor
    training: Integers
    validation: Integers
    test: Integers

    def critiques(self, shown: Tensor, wanted: Tensor) -> Tensor:
        """Vectors of critiques of items by position."""
        import torch

        vectors = self.critic.vectors(_numbers(shown), _numbers(wanted))
        return torch.as_tensor(vectors, dtype=self.features.dtype, device=self.features.device)


def items_of(catalogue: Catalogue, critic: Critic, *, seed: int, device: str = "cpu") -> Items:
    """Four fifths of the items for training, a tenth each to validate and test, by seed and id."""
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
    """The positions, centred and with a standard deviation of 1 over all coordinates."""
    centred = catalogue.positions - catalogue.positions.mean(axis=0)
    return np.asarray(centred / (centred.std() or 1.0))


def fingerprint(catalogue: Catalogue, critic: Critic) -> str:
    """What a checkpoint is of: ids, positions and the kind of critiques."""
    digest = sha256("\n".join(catalogue.ids).encode())
    digest.update(catalogue.positions.tobytes())
    digest.update(f"{critic.name} {critic.width}".encode())
    return digest.hexdigest()[:16]


def _numbers(items: Tensor) -> Integers:
    return np.asarray(items.cpu().numpy(), dtype=np.intp)
