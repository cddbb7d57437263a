from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from zipfile import is_zipfile

import numpy as np
import torch  # noqa: TID253

from simulation.catalogue import Catalogue, Targets, drawn_starts, filled
from simulation.critics import Critic
from simulation.dialogues import simulate
from simulation.exceptions import CheckpointUnfit
from simulation.experiments import outcomes
from simulation.recommenders.trained.settings import (
    Items,
    TrainingSettings,
    fingerprint,
    items_of,
    settings_from,
)
from simulation.recommenders.trained.tracker import Batch, Tracker, TrainedRecommender, Trainer
from simulation.users import sim_base
from stats.arguments import Integers
from stats.ranking import measure

MOST_VALIDATED = 200
# Longer gradients are scaled down to it: recurrent networks otherwise diverge now and then.
STEEPEST = 5.0
# These start from a supervised recommender of the same width and join.
REINFORCED = ("gru-rl", "gru-rl-later")
Report = Callable[[dict[str, float]], None]


def train(
    catalogue: Catalogue,
    critic: Critic,
    settings: TrainingSettings,
    path: Path,
    *,
    start_from: Path | None = None,
    report: Report | None = None,
    device: str | None = None,
) -> Checkpoint:
    """Train to the epochs of the settings, going on from the checkpoint at `path` if there is one.

    GRU-RL starts from a supervised checkpoint, `start_from`. Each epoch's draws depend on the
    seed and its number alone.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    items = items_of(catalogue, critic, seed=settings.seed, device=device)
    checkpoint = _begin(items, settings, path, start_from)
    tracker = _tracker(items, settings, checkpoint.latest)
    trainer = Trainer(tracker, items, settings)
    if settings.kind == "gru-rl":
        trainer.frozen = _tracker(items, settings, _first(checkpoint, start_from)).requires_grad_(
            False
        )
    optimiser = _optimiser(tracker, settings)
    if checkpoint.optimiser:
        optimiser.load_state_dict(checkpoint.optimiser)
    while checkpoint.epoch < settings.epochs:
        started = perf_counter()
        loss = _epoch(trainer, optimiser, checkpoint.epoch)
        score = validation(tracker, items, settings)
        is_best = all(score > each["validation"] for each in checkpoint.history)
        checkpoint.latest = _state(tracker)
        if is_best:
            checkpoint.best = checkpoint.latest
        checkpoint.optimiser = copy.deepcopy(optimiser.state_dict())
        seconds = perf_counter() - started
        checkpoint.history.append({"loss": loss, "validation": score, "seconds": seconds})
        checkpoint.write(path)
        if report is not None:
            report({"epoch": checkpoint.epoch, **checkpoint.history[-1]})
    return checkpoint


def _begin(
    items: Items, settings: TrainingSettings, path: Path, start_from: Path | None
) -> Checkpoint:
    mark = fingerprint(items.catalogue, items.critic)
    if path.exists():
        checkpoint = read_checkpoint(path)
        former = checkpoint.settings.record() | {"epochs": settings.epochs}
        if checkpoint.fingerprint != mark or former != settings.record():
            raise CheckpointUnfit(
                f"{path.name} was trained on other items or with other settings. Name another file."
            )
        checkpoint.settings = settings
        return checkpoint
    if settings.kind in REINFORCED and start_from is None:
        raise ValueError(
            f"start_from must name a supervised checkpoint (gru-sl) for {settings.kind}"
        )
    parameters: dict[str, torch.Tensor] = {}
    if start_from is not None:
        former_checkpoint = read_checkpoint(start_from)
        if former_checkpoint.fingerprint != mark:
            raise CheckpointUnfit(f"{start_from.name} was trained on other items or critiques.")
        parameters = former_checkpoint.best
    return Checkpoint(
        settings=settings,
        fingerprint=mark,
        catalogue=items.catalogue.source,
        critic=items.critic.record(),
        best=parameters,
        latest=parameters,
        optimiser={},
        started_from=start_from.name if start_from else "",
    )


def _first(checkpoint: Checkpoint, start_from: Path | None) -> dict[str, torch.Tensor]:
    """The supervised parameters, which GRU-RL looks ahead with."""
    if start_from is None:
        raise ValueError("start_from must name the supervised checkpoint that gru-rl began with")
    if start_from.name != checkpoint.started_from:
        raise CheckpointUnfit(f"This training began with {checkpoint.started_from}.")
    return read_checkpoint(start_from).best


def _tracker(
    items: Items, settings: TrainingSettings, parameters: dict[str, torch.Tensor]
) -> Tracker:
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        tracker = Tracker(items.features.shape[1], items.critic.width, settings)
    if parameters:
        problem = "The checkpoint to start from has another width or join. Train both alike."
        load_parameters(tracker, parameters, problem)
    return tracker.to(items.features.device)


def _optimiser(tracker: Tracker, settings: TrainingSettings) -> torch.optim.Optimizer:
    if settings.freeze_items:
        tracker.item.requires_grad_(False)
    trained = [parameter for parameter in tracker.parameters() if parameter.requires_grad]
    return torch.optim.Adam(trained, lr=settings.learning_rate)


def _epoch(trainer: Trainer, optimiser: torch.optim.Optimizer, epoch: int) -> float:
    losses = []
    for batch in _batches(trainer, epoch):
        optimiser.zero_grad()
        loss = trainer.loss(batch)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(trainer.tracker.parameters(), STEEPEST)
        optimiser.step()
        losses.append(float(loss.detach()))
    return float(np.mean(losses))


def _batches(trainer: Trainer, epoch: int) -> Iterator[Batch]:
    settings, n = trainer.settings, len(trainer.training)
    rng = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch)
    order = torch.randperm(n, generator=rng)
    device = trainer.features.device
    for low in range(0, n, settings.batch_size):
        target = order[low : low + settings.batch_size]
        start = torch.randint(n, (len(target),), generator=rng)
        yield Batch(target.to(device), start.to(device), rng)


def _state(tracker: Tracker) -> dict[str, torch.Tensor]:
    return {name: value.detach().cpu().clone() for name, value in tracker.state_dict().items()}


def validation(tracker: Tracker, items: Items, settings: TrainingSettings) -> float:
    """Mean nDCG@10 over turns with SimBase, of held-out targets."""
    recommender = TrainedRecommender(tracker, items.catalogue, settings)
    log = simulate(
        items.catalogue,
        held_out(items.catalogue, items.validation[:MOST_VALIDATED], seed=settings.seed),
        [sim_base()],
        recommender,
        items.critic,
        n_turns=settings.n_turns,
    )
    return float(outcomes(log, (measure("nDCG@10"),), qrels="target").values.mean())


def held_out(catalogue: Catalogue, items: Integers, *, seed: int) -> Targets:
    none = filled([[] for _ in items])
    return Targets(items, none, drawn_starts(catalogue, items, seed=seed), none)


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
        """Atomic, so that a killed process leaves the previous one."""
        partial = path.with_name(f"{path.name}.partial")
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        torch.save(content | {"settings": self.settings.record(), "format": FORMAT}, partial)
        partial.replace(path)

    def origin(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "trained_on": self.catalogue,
            "trained_with": self.critic,
            "epochs": self.epoch,
            "best_validation": max(each["validation"] for each in self.history),
            "started_from": self.started_from,
        }


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads only tensors and plain values, never programs."""
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
    """Raises CheckpointUnfit for another catalogue or kind of critiques."""
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
    """Raises CheckpointUnfit if they are of another network, or not finite."""
    try:
        tracker.load_state_dict(parameters)
    except (RuntimeError, TypeError, AttributeError):
        raise CheckpointUnfit(problem) from None
    if not all(torch.isfinite(value).all() for value in tracker.state_dict().values()):
        raise CheckpointUnfit(f"{problem} Some of them are not finite.")
