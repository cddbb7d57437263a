from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accounts.models import Team, User
from simulation.catalogue import NONE
from simulation.models import StoredExperiment, StoredRecommender
from simulation.stored_catalogues import drawn_products, read_stored, request_training
from simulation.stored_experiments import Judged, create_experiment
from tests.simulation.conftest import neighbours
from work import execution, models

USERS = ["base", "tol:3", "tol:5", "prob:3:0.5", "prob:3:0.75"]
RULES: dict[str, Any] = {
    "users": USERS,
    "mode": "paper",
    "recommenders": ["random", "embedding"],
    "n_turns": 7,
    "seeds": [0, 1],
    "measures": ["nDCG@10", "RR@10", "Success@1"],
    "qrels": "target and alternatives",
    "carry": "same list",
    "repeats": True,
    "relevant_from": 1,
}


def saved(values: ArrayLike) -> bytes:
    array = BytesIO()
    np.save(array, np.asarray(values, dtype=np.float32))
    return array.getvalue()


def stored_experiment(
    team: Team, owner: User | None, *, n_items: int = 400, n_targets: int = 30, name: str = "Shoes"
) -> StoredExperiment:
    catalogue = drawn_products(team=team, n_items=n_items, actor=owner)
    items = read_stored(catalogue)
    targets = neighbours(items, n_targets)
    judgments: list[Judged] = []
    for row, target in enumerate(targets.target.tolist()):
        accepted = [item for item in targets.alternatives[row].tolist() if item != NONE]
        judgments += [(items.ids[target], items.ids[item], 1) for item in accepted]
        judgments.append((items.ids[target], items.ids[(target + 7) % n_items], 0))
    made = {"made_of": "drawn neighbours", "actor": owner}
    return create_experiment(team=team, name=name, catalogue=catalogue, judgments=judgments, **made)


def trained_recommender(team: Team, owner: User | None, *, epochs: int = 2) -> StoredRecommender:
    return request_training(
        catalogue=drawn_products(team=team, n_items=400, actor=owner),
        name="GRU-SL",
        kind="gru-sl",
        choices={"epochs": epochs, "width": 8},
        start_from=None,
        actor=owner,
    )


def work_off() -> None:
    while waiting := list(models.Job.objects.queued().order_by("pk").values_list("pk", flat=True)):
        for job in waiting:
            execution.run_job(job)
