from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulation import critics, drawn_products
from simulation.catalogue import Catalogue, Targets, targets_of
from simulation.dialogues import DialogueLog, simulate
from simulation.recommenders import EmbeddingRecommender
from simulation.users import MetaUser
from stats.arguments import Floats, Integers
from tests.annotation.importing import command_output


def line_catalogue(n_items: int = 11) -> Catalogue:
    ids = tuple(f"p{place}" for place in range(n_items))
    return Catalogue(ids, np.arange(n_items, dtype=float)[:, None], "a line")


class Script:
    name = "script"

    def __init__(self, catalogue: Catalogue, shown: Sequence[str]) -> None:
        self.shown, self.n_items = catalogue.numbers(shown), len(catalogue)

    def reset(self, start: Integers, seed: Integers) -> Floats:
        return np.zeros((len(start), 1))

    def observe(self, state: Floats, shown: Integers, critique: Floats) -> Floats:
        return state + 1

    def rank(self, state: Floats, depth: int, excluded: Integers | None = None) -> Integers:
        first = self.shown[state[:, 0].astype(int) - 1]
        return np.asarray((first[:, None] + np.arange(min(depth, self.n_items))) % self.n_items)

    def record(self) -> dict[str, Any]:
        return {"name": self.name}


def scripted_log(
    users: Sequence[MetaUser],
    shown: Sequence[str],
    accepted: dict[str, list[str]],
    *,
    rejected: dict[str, list[str]] | None = None,
    **options: Any,
) -> DialogueLog:
    """Dialogues on a line that begin with p8, of a recommender that shows what a script says."""
    catalogue, starts = line_catalogue(), dict.fromkeys(accepted, "p8")
    targets = targets_of(catalogue, accepted, starts=starts, rejected=rejected)
    critic = critics.DirectionCritic(catalogue)
    return simulate(catalogue, targets, users, Script(catalogue, shown), critic, **options)


def neighbours(catalogue: Catalogue, n_targets: int, *, seed: int = 0) -> Targets:
    """Drawn targets with some of their nearest items as alternatives, in any order."""
    rng = np.random.default_rng(seed)
    accepted = {}
    for target in rng.choice(len(catalogue), n_targets, replace=False):
        others = np.full(len(catalogue), target)
        nearest = np.argsort(catalogue.squared_distance(np.arange(len(catalogue)), others))[1:6]
        kept = rng.permutation(nearest)[: rng.integers(1, 5)]
        accepted[catalogue.ids[target]] = [catalogue.ids[item] for item in kept]
    return targets_of(catalogue, accepted)


def drawn_shoes(n_items: int = 1200, n_targets: int = 120) -> tuple[Catalogue, Targets]:
    catalogue = drawn_products.drawn_catalogue(n_items)
    return catalogue, neighbours(catalogue, n_targets)


def drawn_setting(
    n_items: int, n_targets: int, **options: Any
) -> tuple[Catalogue, Targets, critics.AttributeCritic, EmbeddingRecommender]:
    catalogue, targets = drawn_shoes(n_items, n_targets)
    critic = critics.AttributeCritic(catalogue)
    return catalogue, targets, critic, EmbeddingRecommender(catalogue, critic, **options)


def simulated_setting(
    users: Sequence[MetaUser], n_items: int, n_targets: int, **options: Any
) -> DialogueLog:
    catalogue, targets, critic, recommender = drawn_setting(n_items, n_targets)
    return simulate(catalogue, targets, users, recommender, critic, **options)


def write_qrels(path: Path, catalogue: Catalogue, targets: Targets) -> Path:
    rows = zip(targets.target.tolist(), targets.alternatives.tolist(), strict=True)
    ids = catalogue.ids
    path.write_text(
        "".join(f"{ids[a]} 0 {ids[each]} 1\n" for a, row in rows for each in row if each >= 0)
    )
    return path


def simulated_log(
    folder: Path,
    n_targets: int,
    *,
    users: Sequence[str],
    recommenders: Sequence[str],
    turns: int = 10,
) -> tuple[Path, Path]:
    catalogue = drawn_products.drawn_catalogue(300)
    qrels = write_qrels(folder / "judged.qrels", catalogue, neighbours(catalogue, n_targets))
    log = folder / "log.jsonl"
    command_output(
        "simulate", catalogue="drawn:300", qrels=qrels, user=list(users), log=log,
        recommender=list(recommenders), turns=turns,
    )  # fmt: skip
    return log, qrels
