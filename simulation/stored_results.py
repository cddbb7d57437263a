from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from django.db import models
from django.utils import timezone

from annotation.bulk import batched
from results.models import pack_record
from simulation.comparisons import Causes, Comparison, causes, compare_all, sensitivity
from simulation.experiments import Experiment
from simulation.models import (
    ExperimentVersion,
    SeedResult,
    SensitivityRow,
    TargetValue,
    TurnResult,
)
from simulation.reports import results_table

ROWS_AT_ONCE = 2000
# Draws per share of the judgments; each evaluates all dialogues.
N_REPEATS = 5
CELLS = {
    "base_target": "base, target",
    "base_all": "base, target and alternatives",
    "meta_target": "meta, target",
    "meta_all": "meta, target and alternatives",
}
INTERVAL = ("delta", "ci_low", "ci_high")
# Columns of texts, which are empty where a record has None.
TEXTS = ("reason", "ci_method")


def write_results(version: ExperimentVersion, experiment: Experiment) -> None:
    users = {row.name: row for row in version.users.all()}
    recommenders = {row.name: row for row in version.recommenders.all()}

    def with_keys(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"recommender": recommenders[row["recommender"]], "user": users[row["user"]]}

    tables: tuple[tuple[type[models.Model], Iterable[dict[str, Any]]], ...] = (
        (TurnResult, (_without_none(row.record()) for row in experiment.rows())),
        (SeedResult, _seed_results(experiment)),
        (TargetValue, _target_values(experiment)),
        (SensitivityRow, _sensitivity(experiment)),
    )
    for model, rows in tables:
        for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
            model._default_manager.bulk_create(
                model(version=version, **with_keys(row)) for row in some
            )
    table = results_table(experiment)
    record = {
        "comparisons": list(map(_comparison, compare_all(experiment))),
        "causes": list(map(_cause, causes(experiment))),
        "switches": list(_switches(experiment)),
        "improvements": [row.record() for row in table.improvements],
        "notes": experiment.notes,
        "faults": table.faults,
    }
    version.packed_record, version.finished_at = pack_record(record), timezone.now()
    version.save(update_fields=["packed_record", "finished_at"])


def _without_none(record: dict[str, Any]) -> dict[str, Any]:
    return record | {name: record[name] or "" for name in TEXTS if name in record}


def _seed_results(experiment: Experiment) -> Iterator[dict[str, Any]]:
    for name, each in experiment.outcomes.items():
        for (measure, user, seed, turn), mean in np.ndenumerate(each.values.mean(axis=3)):
            yield {
                "recommender": name,
                "user": experiment.users[user].name,
                "seed": experiment.settings.seeds[seed],
                "measure": each.measures[measure].name,
                "turn": turn + 1,
                "mean": float(mean),
            }


def _target_values(experiment: Experiment) -> Iterator[dict[str, Any]]:
    ids = experiment.catalogue.ids
    targets = [ids[item] for item in experiment.targets.target.tolist()]
    for name, each in experiment.outcomes.items():
        for number, user in enumerate(experiment.users):
            for measure in each.measures:
                values = each.by_target(measure, number, experiment.settings.n_turns).tolist()
                common = {"recommender": name, "user": user.name, "measure": measure.name}
                for target, value in zip(targets, values, strict=True):
                    yield common | {"target": target, "value": value}


def _switches(experiment: Experiment) -> Iterator[dict[str, Any]]:
    for name, log in experiment.logs.items():
        ends, n_switches = log.ends_at(), log.n_switches().tolist()
        has_left = (ends > log.n_turns) & (log.leaves_before <= log.n_turns)
        for number, user in enumerate(experiment.users):
            yield {
                "recommender": name,
                "user": user.name,
                "n_switches": n_switches[number],
                "n_dialogues": int(ends[number].size),
                "n_found": int((ends[number] <= log.n_turns).sum()),
                "n_left": int(has_left[number].sum()),
            }


def _comparison(row: Comparison) -> dict[str, Any]:
    record = _without_none(row.record())
    record["what"] = record.pop("compared")
    return record


def _cause(row: Causes) -> dict[str, Any]:
    record = row.record()
    means, effects = record.pop("means"), record.pop("effects")
    record |= {column: means[cell] for column, cell in CELLS.items()}
    for name, one in effects.items():
        record |= {f"{name}_{field}": one[field] for field in INTERVAL}
    return record


def _sensitivity(experiment: Experiment) -> Iterator[dict[str, Any]]:
    for row in sensitivity(experiment, n_repeats=N_REPEATS):
        record = _without_none(row.record())
        for name, mean in record.pop("means").items():
            yield record | {"recommender": name, "mean": mean}
