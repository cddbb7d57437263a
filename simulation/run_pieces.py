"""A version of an experiment is run in pieces, one job each, and joined at the end. A piece is
committed whole under its job's lease, so that a killed worker loses one piece only. Draws depend on
seed, target and turn: pieces done twice or in another order are equal."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from results.computing import finish_result
from results.models import Result
from simulation.catalogue import Catalogue, Targets
from simulation.critics import Critic
from simulation.dialogues import DialogueLog, simulate
from simulation.exceptions import ExperimentUnfit
from simulation.experiments import Experiment, notes_of, outcomes
from simulation.models import DialoguePiece, StoredRecommender
from simulation.plans import TRAINED, Plan, named_recommender, plan_of
from simulation.recommenders import Recommender
from simulation.stored_catalogues import read_stored, read_stored_critic
from simulation.stored_experiments import (
    FORM,
    KIND,
    find_experiment,
    subject_of,
    targets_of_experiment,
)
from simulation.stored_results import tabulate_experiment
from simulation.users import MetaUser
from work.execution import RunningJob
from work.tasks import request_job

RUN_PIECE, EVALUATE_RUN = "run_piece", "evaluate_run"
# Users of one piece share the beginnings of their dialogues; a piece takes seconds, not minutes.
MOST_USERS_A_PIECE, DIALOGUES_A_PIECE = 8, 4000


def run_experiment_version(running: RunningJob) -> str:
    """Plan the pieces of a version, and request a job for each that is not done."""
    version = version_of(running)
    if version.finished_at is not None:
        return _("Result {number}.").format(number=version.number)
    if not version.pieces.exists():
        _plan_pieces(running, version)
    waiting = version.pieces.filter(done_at=None).order_by("pk").values_list("pk", flat=True)
    for piece in waiting:
        request_job(
            kind=RUN_PIECE,
            subject=subject_of(version.subject_id),
            arguments={"version": version.pk, "piece": piece},
            requested_by=running.job.requested_by,
        )
    if not waiting:
        _request_evaluation(running, version)
    return _("Dialogues are simulated in {n} pieces.").format(n=f"{version.pieces.count():,}")


def _plan_pieces(running: RunningJob, version: Result) -> None:
    plan, experiment = plan_of(version.settings), find_experiment(version)
    targets_of_experiment(experiment, plan)  # refuses before anything is requested
    a_piece = max(1, min(MOST_USERS_A_PIECE, DIALOGUES_A_PIECE // experiment.n_targets))
    keys = [one["trained"] for one in version.facts["recommenders"]]
    trained = StoredRecommender.objects.defer("checkpoint").in_bulk(filter(None, keys))
    pieces = [
        DialoguePiece(
            version=version,
            recommender=position,
            trained=trained.get(key),
            seed=seed,
            first_user=first,
            n_users=min(a_piece, len(plan.users) - first),
        )
        for position, key in enumerate(keys)
        for seed in plan.settings.seeds
        for first in range(0, len(plan.users), a_piece)
    ]
    with transaction.atomic():
        running.hold()
        DialoguePiece.objects.bulk_create(pieces)


def run_piece(running: RunningJob) -> str:
    """The job of the last piece requests the evaluation."""
    version = version_of(running)
    rows = version.pieces.select_related("trained").defer("log")
    if (piece := rows.filter(pk=running.arguments["piece"]).first()) is None:
        raise ExperimentUnfit(_("The experiment was deleted meanwhile."))
    if piece.done_at is None:
        _simulate_piece(running, version, piece)
    if not version.pieces.filter(done_at=None).exists():
        _request_evaluation(running, version)
    return _("{n} dialogues.").format(n=f"{piece.n_dialogues:,}")


def _simulate_piece(running: RunningJob, version: Result, piece: DialoguePiece) -> None:
    started = perf_counter()
    plan, catalogue, targets, critic = open_version(version)
    named = version.facts["recommenders"][piece.recommender]
    log = simulate(
        catalogue,
        targets,
        plan.users[piece.first_user : piece.first_user + piece.n_users],
        opened_recommender(named, piece.trained, catalogue, critic),
        critic,
        n_turns=plan.settings.n_turns,
        seeds=(piece.seed,),
        depth=plan.settings.depth,
        repeats=plan.settings.repeats,
    )
    piece.log, piece.n_dialogues = packed_log(log), log.n_dialogues
    piece.seconds, piece.done_at = perf_counter() - started, timezone.now()
    running.check()
    with transaction.atomic():
        running.hold()
        piece.save(update_fields=["log", "n_dialogues", "seconds", "done_at"])


def open_version(version: Result) -> tuple[Plan, Catalogue, Targets, Critic]:
    plan, experiment = plan_of(version.settings), find_experiment(version)
    return (
        plan,
        read_stored(experiment.catalogue),
        targets_of_experiment(experiment, plan),
        read_stored_critic(experiment.catalogue),
    )


def opened_recommender(
    named: Mapping[str, Any],
    trained: StoredRecommender | None,
    catalogue: Catalogue,
    critic: Critic,
) -> Recommender:
    """A trained one as it was when the version was requested."""
    if not named["spec"].startswith(TRAINED):
        return named_recommender(named["spec"], catalogue, critic)
    # Torch takes seconds, which only those wait for who trained something.
    from simulation.recommenders.trained.training import read_recommender

    if trained is None or trained.sha256 != named["sha256"]:
        raise ExperimentUnfit(
            _("{name} was trained further meanwhile. Run the experiment anew.").format(
                name=named["name"]
            )
        )
    with TemporaryDirectory(prefix="assay-checkpoint-") as folder:
        path = Path(folder) / f"{trained.pk}.pt"
        path.write_bytes(bytes(trained.checkpoint or b""))
        return read_recommender(path, catalogue, critic, name=named["name"])


def _request_evaluation(running: RunningJob, version: Result) -> None:
    """Two jobs that end together request the same job, which runs once."""
    request_job(
        kind=EVALUATE_RUN,
        subject=subject_of(version.subject_id),
        arguments={"version": version.pk},
        requested_by=running.job.requested_by,
    )


def evaluate_run(running: RunningJob) -> str:
    version = version_of(running)
    if version.finished_at is None:
        computed = tabulate_experiment(joined_experiment(version))
        running.check()
        with transaction.atomic():
            running.hold()
            finish_result(version, computed)
    return _("Result {number}.").format(number=version.number)


def joined_experiment(version: Result) -> Experiment:
    plan, catalogue, targets, critic = open_version(version)
    evaluated, records = {}, []
    for position, named in enumerate(version.facts["recommenders"]):
        pieces = [
            Piece(piece.first_user, piece.seed, unpacked_log(bytes(piece.log or b"")))
            for piece in version.pieces.filter(recommender=position).order_by("pk")
        ]
        log = joined_log(catalogue, targets, plan.users, plan.settings.seeds, critic, pieces)
        evaluated[named["name"]] = outcomes(
            log, plan.settings.measures, qrels=plan.settings.qrels, carry=plan.settings.carry
        )
        records.append((log.recommender, critic))
    notes = tuple(notes_of(catalogue, targets, plan.users, records, plan.settings))
    return Experiment(catalogue, targets, plan.users, evaluated, plan.settings, notes)


def version_of(running: RunningJob) -> Result:
    version = Result.objects.filter(pk=running.arguments["version"], kind=KIND).first()
    if version is None:
        raise ExperimentUnfit(_("The experiment was deleted meanwhile."))
    if version.form != FORM and version.finished_at is None:
        # Its pieces would be of dialogues that were drawn in two ways.
        raise ExperimentUnfit(
            _("This run was begun by an earlier version of Assay. Run the experiment anew.")
        )
    return version


ARRAYS = ("shown", "in_force", "delta", "switched", "path", "leaves_before")
OF_ITEMS = ("shown", "in_force", "path", "leaves_before")


@dataclass(frozen=True)
class Piece:
    first_user: int
    seed: int
    arrays: dict[str, Any]


def packed_log(log: DialogueLog) -> bytes:
    arrays: dict[str, Any] = {name: getattr(log, name) for name in ARRAYS}
    arrays |= {name: arrays[name].astype(np.int32) for name in OF_ITEMS}
    arrays |= {f"lists_{turn}": lists.astype(np.int32) for turn, lists in enumerate(log.lists)}
    arrays["recommender"] = np.array(json.dumps(log.recommender))
    content = BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def unpacked_log(content: bytes) -> dict[str, Any]:
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def joined_log(
    catalogue: Catalogue,
    targets: Targets,
    users: Sequence[MetaUser],
    seeds: Sequence[int],
    critic: Critic,
    pieces: Sequence[Piece],
) -> DialogueLog:
    shape = (len(users), len(seeds))
    first = pieces[0].arrays
    whole = {
        name: np.empty(
            shape + first[name].shape[2:], dtype=np.intp if name in OF_ITEMS else first[name].dtype
        )
        for name in ARRAYS
    }
    n_lists = first["shown"].shape[-1]
    lists: list[list[Any]] = [[] for _ in range(n_lists)]
    so_far = np.zeros(n_lists, dtype=np.intp)
    for piece in pieces:
        low, column = piece.first_user, list(seeds).index(piece.seed)
        high = low + len(piece.arrays["shown"])
        for name in ARRAYS:
            values = piece.arrays[name][:, 0]
            # Each piece numbers its paths from 0.
            whole[name][low:high, column] = values + so_far if name == "path" else values
        for turn in range(n_lists):
            lists[turn].append(piece.arrays[f"lists_{turn}"].astype(np.intp))
            so_far[turn] += len(lists[turn][-1])
    return DialogueLog(
        catalogue=catalogue,
        targets=targets,
        users=tuple(users),
        seeds=tuple(seeds),
        recommender=json.loads(str(first["recommender"])),
        critic=critic,
        lists=tuple(np.concatenate(of_turn) for of_turn in lists),
        **whole,
    )


LOG_NAME = "dialogues.jsonl"


def dialogue_rows(version: Result) -> Iterator[dict[str, Any]]:
    plan, catalogue, targets, critic = open_version(version)
    names = [one["name"] for one in version.facts["recommenders"]]
    for piece in version.pieces.order_by("pk").iterator(chunk_size=1):
        users = plan.users[piece.first_user : piece.first_user + piece.n_users]
        part = Piece(0, piece.seed, unpacked_log(bytes(piece.log or b"")))
        log = joined_log(catalogue, targets, users, (piece.seed,), critic, [part])
        yield from ({"recommender": names[piece.recommender]} | row for row in log.rows())


def log_lines(version: Result) -> Iterator[str]:
    for row in dialogue_rows(version):
        yield f"{json.dumps(row, ensure_ascii=False)}\n"
