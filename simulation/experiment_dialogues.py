"""The dialogues of a version of an experiment, turn by turn, as the lines of a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from simulation.dialogue_pieces import Piece, joined_log, unpacked_log
from simulation.models import ExperimentVersion
from simulation.plans import plan_of
from simulation.stored_catalogues import read_stored, read_stored_critic
from simulation.stored_experiments import targets_of_experiment

LOG_NAME = "dialogues.jsonl"


def dialogue_rows(version: ExperimentVersion) -> Iterator[dict[str, Any]]:
    """Every turn of every dialogue as it was simulated, piece by piece."""
    plan = plan_of(version.rules)
    catalogue = read_stored(version.experiment.catalogue)
    targets = targets_of_experiment(version.experiment, plan)
    critic = read_stored_critic(version.experiment.catalogue)
    for piece in version.pieces.select_related("recommender").order_by("pk").iterator(chunk_size=1):
        users = plan.users[piece.first_user : piece.first_user + piece.n_users]
        part = Piece(0, piece.seed, unpacked_log(bytes(piece.log or b"")))
        log = joined_log(catalogue, targets, users, (piece.seed,), critic, [part])
        yield from ({"recommender": piece.recommender.name} | row for row in log.rows())


def log_lines(version: ExperimentVersion) -> Iterator[str]:
    """The same as `simulate --log` writes them."""
    for row in dialogue_rows(version):
        yield f"{json.dumps(row, ensure_ascii=False)}\n"
