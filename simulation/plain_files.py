"""Simulations from plain files: judgments of a test collection, and a catalogue they are of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from annotation.readers.report import FileReadings, ReadingReport
from annotation.relevance import relevance_sources
from presentation.progress import Progress, silently
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
    readings: FileReadings = field(default_factory=FileReadings)
    """The reports of the files, once they are read."""


def run_request(request: Request, *, progress: Progress = silently) -> Experiment:
    """The experiment that was requested; a name that means nothing is a ValueError."""
    seed = request.settings.seeds[0]
    users = [named_user(name, mode=request.mode, **request.choices) for name in request.users]
    catalogue = named_catalogue(request.catalogue, seed=seed)
    critic = named_critic(catalogue, request.captions, report=_report(request, request.captions))
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
        return read_dialogues(catalogue, *request.dialogues, readings=request.readings)
    if request.qrels is None:
        raise ValueError("qrels or dialogues are needed")
    return targets_of_qrels(request, catalogue, request.qrels)


def targets_of_qrels(request: Request, catalogue: Catalogue, path: Path) -> Targets:
    """The targets of a file of qrels, with the first items that were requested."""
    grades = relevance_sources().read_qrels(path)
    request.readings.add(path, grades.reading)
    accepted, rejected = from_judgments(
        grades.topics, grades.documents, grades.topic, grades.document, grades.grade
    )
    starts = None
    if request.starts:
        starts = read_starts(request.starts, report=_report(request, request.starts))
    return targets_of(catalogue, accepted, rejected=rejected, starts=starts)


def _report(request: Request, path: Path | None) -> ReadingReport | None:
    """The report of a file, which is new if the file is not read yet."""
    if path is None or any(each.path == path for each in request.readings.files):
        return None
    return request.readings.add(path)
