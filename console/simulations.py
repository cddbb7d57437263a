"""Simulations from plain files: judgments of a test collection, and a catalogue they are of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from presentation.progress import Progress, silently
from retrieval.trec_files import read_qrels
from simulation.alternatives_files import read_dialogues, read_starts
from simulation.catalogue import Catalogue
from simulation.experiments import Experiment, Settings, run_experiment
from simulation.names import named_catalogue, named_critic, named_recommender, named_user
from simulation.plans import Plan, impossible_settings
from simulation.targets import Targets, from_judgments, targets_of
from simulation.users import Mode


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be simulated, by the names of a command line."""

    catalogue: str
    recommenders: tuple[str, ...]
    users: tuple[str, ...]
    settings: Settings
    qrels: Path | None = None
    dialogues: tuple[Path, Path] | None = None
    starts: Path | None = None
    captions: Path | None = None
    mode: Mode = "paper"
    choices: dict[str, Any]


def run_request(request: Request, *, progress: Progress = silently) -> Experiment:
    """The experiment that was requested; a name that means nothing is a ValueError."""
    seed = request.settings.seeds[0]
    users = [named_user(name, mode=request.mode, **request.choices) for name in request.users]
    catalogue = named_catalogue(request.catalogue, seed=seed)
    critic = named_critic(catalogue, request.captions)
    recommenders = [
        (named_recommender(name, catalogue, critic), critic) for name in request.recommenders
    ]
    targets = requested_targets(request, catalogue)
    experiment = run_experiment(
        catalogue, targets, users, recommenders, request.settings, progress=progress
    )
    plan = Plan(tuple(users), request.recommenders, request.settings)
    # Pages refuse such a design; a published one may be repeated here as it was.
    faults = (fault.rstrip(".") for fault in impossible_settings(plan))
    return replace(experiment, notes=(*experiment.notes, *faults))


def requested_targets(request: Request, catalogue: Catalogue) -> Targets:
    if request.dialogues is not None:
        return read_dialogues(catalogue, *request.dialogues)
    if request.qrels is None:
        raise ValueError("qrels or dialogues are needed")
    return targets_of_qrels(request, catalogue, request.qrels)


def targets_of_qrels(request: Request, catalogue: Catalogue, path: Path) -> Targets:
    """The targets of a file of qrels, with the first items that were requested."""
    grades = read_qrels(path)
    accepted, rejected = from_judgments(
        grades.topics, grades.documents, grades.topic, grades.document, grades.grade
    )
    starts = read_starts(request.starts) if request.starts else None
    return targets_of(catalogue, accepted, rejected=rejected, starts=starts)
