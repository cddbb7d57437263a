from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from django.db import models

from annotation.bulk import batched
from presentation.records import plain_values
from simulation.comparisons import causes, compare_all, sensitivity
from simulation.experiments import Experiment
from simulation.models import (
    CauseRow,
    ComparisonRow,
    ExperimentNote,
    ExperimentVersion,
    ImprovementRow,
    SeedResult,
    SensitivityRow,
    SwitchCount,
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
Names = Mapping[str, Any]


def write_results(version: ExperimentVersion, experiment: Experiment) -> None:
    """Call it in the transaction that marks the version as done."""
    users: Names = {row.name: row for row in version.users.all()}
    recommenders: Names = {row.name: row for row in version.recommenders.all()}
    tables: tuple[tuple[type[models.Model], Iterable[dict[str, Any]]], ...] = (
        (TurnResult, _turn_results(experiment, recommenders, users)),
        (SeedResult, _seed_results(experiment, recommenders, users)),
        (TargetValue, _target_values(experiment, recommenders, users)),
        (SwitchCount, _switches(experiment, recommenders, users)),
        (ComparisonRow, _comparisons(experiment)),
        (CauseRow, _causes(experiment, recommenders, users)),
        (ImprovementRow, _improvements(experiment, recommenders)),
        (SensitivityRow, _sensitivity(experiment, recommenders, users)),
        (ExperimentNote, _notes(experiment)),
    )
    for model, rows in tables:
        for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
            model._default_manager.bulk_create(model(version=version, **row) for row in some)


def _turn_results(
    experiment: Experiment, recommenders: Names, users: Names
) -> Iterator[dict[str, Any]]:
    for row in experiment.rows():
        record = row.record()
        record |= {"recommender": recommenders[row.recommender], "user": users[row.user]}
        yield record | {"reason": record["reason"] or "", "ci_method": record["ci_method"] or ""}


def _seed_results(
    experiment: Experiment, recommenders: Names, users: Names
) -> Iterator[dict[str, Any]]:
    for name, each in experiment.outcomes.items():
        for (measure, user, seed, turn), mean in np.ndenumerate(each.values.mean(axis=3)):
            yield {
                "recommender": recommenders[name],
                "user": users[experiment.users[user].name],
                "seed": experiment.settings.seeds[seed],
                "measure": each.measures[measure].name,
                "turn": turn + 1,
                "mean": float(mean),
            }


def _target_values(
    experiment: Experiment, recommenders: Names, users: Names
) -> Iterator[dict[str, Any]]:
    ids = experiment.catalogue.ids
    targets = [ids[item] for item in experiment.targets.target.tolist()]
    for name, each in experiment.outcomes.items():
        for number, user in enumerate(experiment.users):
            for measure in each.measures:
                values = each.by_target(measure, number, experiment.settings.n_turns).tolist()
                common = {
                    "recommender": recommenders[name],
                    "user": users[user.name],
                    "measure": measure.name,
                }
                for target, value in zip(targets, values, strict=True):
                    yield common | {"target": target, "value": value}


def _switches(
    experiment: Experiment, recommenders: Names, users: Names
) -> Iterator[dict[str, Any]]:
    for name, log in experiment.logs.items():
        ends, n_switches = log.ends_at(), log.n_switches().tolist()
        has_left = (ends > log.n_turns) & (log.leaves_before <= log.n_turns)
        for number, user in enumerate(experiment.users):
            yield {
                "recommender": recommenders[name],
                "user": users[user.name],
                "n_switches": n_switches[number],
                "n_dialogues": int(ends[number].size),
                "n_found": int((ends[number] <= log.n_turns).sum()),
                "n_left": int(has_left[number].sum()),
            }


def _comparisons(experiment: Experiment) -> Iterator[dict[str, Any]]:
    for row in compare_all(experiment):
        record = row.record()
        record["what"] = record.pop("compared")
        yield record | {"reason": record["reason"] or ""}


def _causes(experiment: Experiment, recommenders: Names, users: Names) -> Iterator[dict[str, Any]]:
    for row in causes(experiment):
        means = row.record()["means"]
        record: dict[str, Any] = {
            "recommender": recommenders[row.recommender],
            "user": users[row.user],
            "measure": row.measure.name,
            "turn": row.turn,
        }
        record |= {column: means[cell] for column, cell in CELLS.items()}
        effects = {
            "user": row.of_user,
            "qrels": row.of_qrels,
            "total": row.total,
            "interaction": row.interaction,
        }
        for name, one in effects.items():
            record |= {f"{name}_{field}": getattr(one, field) for field in INTERVAL}
        yield plain_values(record)


def _improvements(experiment: Experiment, recommenders: Names) -> Iterator[dict[str, Any]]:
    for row in results_table(experiment).improvements:
        yield row.record() | {"recommender": recommenders[row.recommender]}


def _sensitivity(
    experiment: Experiment, recommenders: Names, users: Names
) -> Iterator[dict[str, Any]]:
    for row in sensitivity(experiment, n_repeats=N_REPEATS):
        record = row.record()
        means = record.pop("means")
        common = record | {"user": users[row.user], "reason": row.reason or ""}
        for name, mean in means.items():
            yield common | {"recommender": recommenders[name], "mean": mean}


def _notes(experiment: Experiment) -> Iterator[dict[str, Any]]:
    for text in experiment.notes:
        yield {"text": text}
    for text in results_table(experiment).faults:
        yield {"text": text, "is_fault": True}
