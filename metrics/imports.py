"""Scores that were computed elsewhere, from a CSV or JSON Lines file.

A long file has the columns `item`, `system` (or `candidate`), `metric` and `value`, and
may have `signature` and `reason`. A wide one has a column per metric, named when importing.
An empty value is a score that could not be computed. All that is wrong is reported at once.
"""

from collections.abc import Sequence
from pathlib import Path

from django.db import transaction

from annotation.exceptions import FileFaults, ImportRefused
from annotation.models import Study
from annotation.readers.tables import read_rows
from metrics.score_tables import ScoreColumns, read_score_table, write_score_table


@transaction.atomic
def import_scores(
    *,
    study: Study,
    path: Path,
    metrics: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    signature: str = "",
) -> dict[str, int]:
    """Read a file of scores into a study; return how many scores each metric has in it.

    `signature` is that of the rows that name none.
    """
    names = tuple(dict.fromkeys(metrics))
    default = signature or f"imported|file:{path.name}"
    faults: list[ImportRefused] = []
    rows = read_rows(path, ("item", *(names or ("metric", "value"))))
    columns = ScoreColumns(values=names)
    table = read_score_table(study, rows, columns, signature=default, note=faults.append)
    if faults:
        raise faults[0] if len(faults) == 1 else FileFaults(faults)
    counts = table.counts
    if absent := [metric for metric in lower_is_better if metric not in counts]:
        there = ", ".join(counts)
        message = f"it has no metric '{absent[0]}' to be lower (found: {there})."
        raise ImportRefused(path, message, code="unknown_metric")
    write_score_table(study, table, lower_is_better=lower_is_better, signature=default)
    return counts
