"""Scores that were computed elsewhere, from a CSV or JSON Lines file.

A long file has the columns `item`, `system` (or `candidate`), `metric` and `value`, and
may have `signature` and `reason`. A wide one has a column per metric or per system, named when
importing. An empty value is a score that could not be computed. All faults are reported at once.
"""

from collections.abc import Sequence
from pathlib import Path

from django.db import transaction

from annotation.exceptions import FileFaults, ImportRefused
from annotation.models import Study
from annotation.readers.policies import Reading
from annotation.readers.tables import read_rows
from metrics.exceptions import MetricsError
from metrics.score_tables import ScoreColumns, read_score_table, write_score_table


@transaction.atomic
def import_scores(
    *,
    study: Study,
    path: Path,
    metrics: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    systems: Sequence[str] = (),
    signature: str = "",
    reading: Reading | None = None,
) -> dict[str, int]:
    """Read a file of scores into a study; return how many scores each metric has in it.

    `signature` is that of the rows that name none. Each of the `systems` is a column of scores.
    """
    reading = reading or Reading()
    names = tuple(dict.fromkeys(metrics))
    default = signature or f"imported|file:{path.name}"
    faults: list[ImportRefused] = []
    measures = () if names else ("metric",) if systems else ("metric", "value")
    if names and systems:
        raise MetricsError(
            "Columns are either metrics or systems: leave --metric or --system out.",
            code="metrics_and_systems",
        )
    rows = read_rows(path, ("item", *names, *systems, *measures), report=reading.report)
    table = read_score_table(
        study,
        rows,
        ScoreColumns(values=names, systems=tuple(systems)),
        signature=default,
        note=faults.append,
        reading=reading,
    )
    if faults:
        raise faults[0] if len(faults) == 1 else FileFaults(faults)
    counts = table.counts
    if absent := [metric for metric in lower_is_better if metric not in counts]:
        there = ", ".join(counts)
        message = f"it has no metric '{absent[0]}' to be lower (found: {there})."
        raise ImportRefused(path, message, code="unknown_metric")
    write_score_table(study, table, lower_is_better=lower_is_better, signature=default)
    return counts
