"""An experiment with all that is said of it: as a record for programs, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from presentation.documents import Cell, Number
from presentation.text_tables import text_report, text_table
from simulation.comparisons import causes, compare_all
from simulation.experiments import Experiment
from simulation.outcomes import Qrels
from simulation.sensitivity import sensitivity
from simulation.tables import results_table, table_text
from simulation.targets import Targets
from stats.ranking.topic_means import TopicDifference

EVALUATED_BY: Mapping[Qrels, str] = {
    "accepted": "the target for SimBase, the target and its alternatives for the others",
    "target": "the target",
    "target and alternatives": "the target and its alternatives",
    "alternatives": "the alternatives",
}


def report(
    experiment: Experiment,
    *,
    with_sensitivity: bool = False,
    judged_otherwise: Mapping[str, Targets] | None = None,
) -> dict[str, Any]:
    """Everything, for ``--json``."""
    record = experiment.record() | {
        "results": [row.record() for row in experiment.rows()],
        "table": results_table(experiment).record(),
        "comparisons": [row.record() for row in compare_all(experiment)],
        "causes": [row.record() for row in causes(experiment)],
    }
    if with_sensitivity:
        rows = sensitivity(experiment, judged_otherwise=judged_otherwise)
        record["sensitivity"] = [row.record() for row in rows]
    return record


def report_text(experiment: Experiment) -> str:
    """The table at the last turn, what differs, the causes and the notes."""
    table, settings = results_table(experiment), experiment.settings
    parts = [
        f"Turn {table.turn}, {len(experiment.targets):,} targets, {experiment.catalogue.source}",
        f"Relevant: {EVALUATED_BY[settings.qrels]}. After the end: {settings.carry}",
        table_text(table),
        "\n".join(_best(experiment)),
    ]
    if compared := list(_compared(experiment)):
        parts.append(text_table(("differs", "measure", "delta", "p (Holm)"), compared))
    if rows := list(_causes(experiment)):
        header = ("cause of the change from the first user", "measure", "qrels", "user", "total")
        parts.append(text_table(header, rows))
    parts.append("\n".join(_switches(experiment)))
    return text_report(parts, (*experiment.notes, *table.faults))


def _best(experiment: Experiment) -> Iterator[str]:
    for row in results_table(experiment).improvements:
        if row.n_rows > 1 and row.best > row.base:
            yield (
                f"{row.recommender} {row.measure.name}: {row.best_user} is the best of "
                f"{row.n_rows} rows; of equal ones the best would be {row.expected_gain_se:.2f} "
                "standard errors above their mean"
            )


def _compared(experiment: Experiment) -> Iterator[tuple[Cell, ...]]:
    for row in compare_all(experiment):
        if row.p_adjusted < 1 - experiment.settings.confidence:
            name = f"{row.a} - {row.b}, {row.within}"
            yield name, row.measure.name, _delta(row.difference), Number(row.p_adjusted, 4)


def _causes(experiment: Experiment) -> Iterator[tuple[Cell, ...]]:
    for row in causes(experiment):
        effects = map(_delta, (row.of_qrels, row.of_user, row.total))
        yield f"{row.user}, {row.recommender}", row.measure.name, *effects


def _delta(one: TopicDifference) -> Number:
    return Number(one.delta, 3, one.ci_low, one.ci_high, is_signed=True)


def _switches(experiment: Experiment) -> Iterator[str]:
    for name, log in experiment.logs.items():
        counts = zip(experiment.users, log.n_switches().tolist(), strict=True)
        said = "; ".join(f"{user.name} {count:,}" for user, count in counts)
        yield f"Critiques with an alternative in mind, {name}: {said}"
