"""Checkpoints: the best parameters, where training stands, and with what it was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.exceptions import CheckpointUnfit
from simulation.recommenders.trained.settings import TrainingSettings, fingerprint, settings_from
from simulation.recommenders.trained.tracker import Tracker, TrainedRecommender

FORMAT = 1
KINDS: dict[str, type] = {
    **dict.fromkeys(("settings", "critic", "best", "latest", "optimiser"), dict),
    **dict.fromkeys(("fingerprint", "catalogue", "started_from"), str),
    "history": list,
}


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
        import torch

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
    content = _loaded(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointUnfit(f"{path.name} is not a checkpoint of this program.")
    for name, kind in KINDS.items():
        if not isinstance(content.get(name), kind):
            raise CheckpointUnfit(f"{path.name} is not a whole checkpoint: {name} is missing.")
    if not content["history"] or not all(map(_is_epoch, content["history"])):
        raise CheckpointUnfit(f"{path.name} is not a whole checkpoint: it has no epochs.")
    values = {name: content[name] for name in KINDS}
    return Checkpoint(**values | {"settings": settings_from(content["settings"])})


def _loaded(path: Path) -> Any:
    """What torch reads of a file, tensors and plain values alone."""
    import torch

    unfit = f"{path.name} cannot be read as a checkpoint: "
    try:
        with path.open("rb") as file:
            is_archive = is_zipfile(file)
    except OSError as error:
        raise CheckpointUnfit(f"{unfit}{error.strerror}.") from None
    if not is_archive:
        raise CheckpointUnfit(f"{unfit}train_recommender wrote no such file, or not all of it.")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointUnfit(f"{unfit}{error.strerror or 'it is damaged'}.") from None
    # A file that is damaged, or made to be, ends in whatever its bytes happen to mean. Torch's own
    # text advises reading it as a program, which nobody should.
    except Exception:  # noqa: BLE001
        raise CheckpointUnfit(f"{unfit}it is damaged, or holds more than numbers.") from None


def _is_epoch(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("validation"), int | float)


def read_recommender(
    path: Path, catalogue: Catalogue, critic: Critic, *, name: str = ""
) -> TrainedRecommender:
    """The recommender of a checkpoint, which must be of this catalogue and kind of critiques."""
    checkpoint = read_checkpoint(path)
    if checkpoint.fingerprint != fingerprint(catalogue, critic):
        raise CheckpointUnfit(
            f"{path.name} was trained on {checkpoint.catalogue} with critiques by "
            f"{checkpoint.critic.get('name', '?')}; this is {catalogue.source} with {critic.name}.",
            code="other_critic" if checkpoint.catalogue == catalogue.source else "other_catalogue",
        )
    problem = f"{path.name} does not hold this network's parameters."
    try:
        tracker = Tracker(catalogue.positions.shape[1], critic.width, checkpoint.settings)
    except (RuntimeError, TypeError):  # of a width that no memory holds
        raise CheckpointUnfit(problem) from None
    load_parameters(tracker, checkpoint.best, problem)
    return TrainedRecommender(
        tracker, catalogue, checkpoint.settings, name=name or path.stem, origin=checkpoint.origin()
    )


def load_parameters(tracker: Tracker, parameters: dict[str, Any], problem: str) -> None:
    """Give a network its parameters; CheckpointUnfit where they are another's, or no numbers."""
    import torch

    try:
        tracker.load_state_dict(parameters)
    except (RuntimeError, TypeError, AttributeError):
        raise CheckpointUnfit(problem) from None
    if not all(torch.isfinite(value).all() for value in tracker.state_dict().values()):
        raise CheckpointUnfit(f"{problem} Some of them are not finite.")
