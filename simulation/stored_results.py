from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from presentation.row_files import Kind
from results.kinds import Computed, Row, pack_rows
from simulation.comparisons import Causes, Comparison, causes, compare_all, sensitivity
from simulation.experiments import Experiment
from simulation.reports import results_table

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
RESULT_KINDS: dict[str, Kind] = {
    "recommender": "text",
    "user": "text",
    "kind": "text",
    "tolerance": "integer",
    "p_switch": "number",
    "measure": "text",
    "turn": "integer",
    "mean": "number",
    "ci_low": "number",
    "ci_high": "number",
    "ci_method": "text",
    "reason": "text",
    "n_targets": "integer",
    "judged": "number",
}
KEYS: dict[str, Kind] = {"recommender": "text", "user": "text", "measure": "text"}
TAUS: dict[str, Kind] = {"tau": "number", "tau_low": "number", "tau_high": "number"}
ROWS: dict[str, dict[str, Kind]] = {
    "turns": RESULT_KINDS,
    "seeds": KEYS | {"turn": "integer", "mean": "number", "seed": "integer"},
    "targets": KEYS | {"target": "text", "value": "number"},
    "sensitivity": KEYS
    | {"choice": "text", "value": "text", "mean": "number"}
    | TAUS
    | {"reason": "text"},
}


def tabulate_experiment(experiment: Experiment) -> Computed:
    """What is read whole as the record, and long tables as parts."""
    users = {user.name: user.record() for user in experiment.users}
    tables: dict[str, Iterable[Row]] = {
        "turns": (users[row.user] | _without_none(row.record()) for row in experiment.rows()),
        "seeds": _seed_results(experiment),
        "targets": _target_values(experiment),
        "sensitivity": _sensitivity(experiment),
    }
    table = results_table(experiment)
    record = {
        "comparisons": list(map(_comparison, compare_all(experiment))),
        "causes": list(map(_cause, causes(experiment))),
        "switches": list(_switches(experiment)),
        "improvements": [row.record() for row in table.improvements],
        "notes": experiment.notes,
        "faults": table.faults,
    }
    parts = {
        part: content
        for name, rows in tables.items()
        for part, content in pack_rows(name, ROWS[name], rows)
    }
    return Computed(record=record, parts=parts)


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
