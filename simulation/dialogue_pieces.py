"""Logs of dialogues in pieces: each of one recommender and seed with some users, put together as
the one log that all of them would have been."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np

from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.dialogue_log import DialogueLog
from simulation.models import ExperimentVersion
from simulation.plans import plan_of
from simulation.stored_catalogues import read_stored, read_stored_critic
from simulation.stored_experiments import targets_of_experiment
from simulation.targets import Targets
from simulation.users import UserSimulator

ARRAYS = ("shown", "in_force", "delta", "switched", "path", "leaves_before")
OF_ITEMS = ("shown", "in_force", "path", "leaves_before")


@dataclass(frozen=True)
class Piece:
    """An unpacked log, and where its users and its seed belong."""

    first_user: int
    seed: int
    arrays: dict[str, Any]


def packed_log(log: DialogueLog) -> bytes:
    """A log as compressed arrays; items as 32-bit numbers."""
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
    users: Sequence[UserSimulator],
    seeds: Sequence[int],
    critic: Critic,
    pieces: Sequence[Piece],
) -> DialogueLog:
    """The log of all users and seeds of one recommender."""
    shape = (len(users), len(seeds))
    first = pieces[0].arrays
    whole = {
        name: np.empty(shape + first[name].shape[2:], dtype=_type_of(name, first[name]))
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


def _type_of(name: str, array: Any) -> Any:
    return np.intp if name in OF_ITEMS else array.dtype


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
