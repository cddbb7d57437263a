"""Checkpoints: the best parameters, where training stands, and with what it was done."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import torch

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.exceptions import CheckpointUnfit
from simulation.recommenders.trained.items import fingerprint
from simulation.recommenders.trained.recommender import TrainedRecommender
from simulation.recommenders.trained.settings import TrainingSettings, settings_from
from simulation.recommenders.trained.tracker import Tracker

FORMAT = 1


@dataclass
class Checkpoint:
    """`best` are the parameters of the best epoch by validation, `latest` those of the last.

    `history` has a record for each epoch: loss, validation (mean nDCG@10 over turns), seconds.
    """

    settings: TrainingSettings
    fingerprint: str
    catalogue: str
    critic: dict[str, Any]
    best: dict[str, Any]
    latest: dict[str, Any]
    optimiser: dict[str, Any]
    history: list[dict[str, float]] = field(default_factory=list)
    started_from: str = ""

    @property
    def epoch(self) -> int:
        return len(self.history)

    def write(self, path: Path) -> None:
        """In one step, so that a killed process leaves the former one."""
        partial = path.with_name(f"{path.name}.partial")
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        torch.save(content | {"settings": self.settings.record(), "format": FORMAT}, partial)
        partial.replace(path)

    def origin(self) -> dict[str, Any]:
        """What a result keeps of it."""
        return {
            "fingerprint": self.fingerprint,
            "trained_on": self.catalogue,
            "trained_with": self.critic,
            "epochs": self.epoch,
            "best_validation": max(each["validation"] for each in self.history),
            "started_from": self.started_from,
        }


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint; only tensors and plain values are read, never programs."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointUnfit(f"{path.name} cannot be read as a checkpoint: {reason}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointUnfit(f"{path.name} is not a checkpoint of this program.")
    content.pop("format")
    return Checkpoint(**content | {"settings": settings_from(content["settings"])})


def read_recommender(
    path: Path, catalogue: Catalogue, critic: Critic, *, name: str = ""
) -> TrainedRecommender:
    """The recommender of a checkpoint, which must be of this catalogue and kind of critiques."""
    checkpoint = read_checkpoint(path)
    if checkpoint.fingerprint != fingerprint(catalogue, critic):
        raise CheckpointUnfit(
            f"{path.name} was trained on {checkpoint.catalogue} with critiques by "
            f"{checkpoint.critic['name']}; this is {catalogue.source} with {critic.name}."
        )
    tracker = Tracker(catalogue.positions.shape[1], critic.width, checkpoint.settings)
    tracker.load_state_dict(checkpoint.best)
    return TrainedRecommender(
        tracker, catalogue, checkpoint.settings, name=name or path.stem, origin=checkpoint.origin()
    )
