import csv

import numpy as np
import pandas as pd

from validation.analysis.records import plain
from validation.results import TableResults


def judged_table(values, *, annotator="Ann", condition="", question="q", **columns):
    """A row a judgment: `values` has a row an item and a column a system."""
    rows = [
        {"item": f"i{item}", "system": f"s{system}", "value": value}
        for item, row in enumerate(values)
        for system, value in enumerate(row)
    ]
    named = {"annotator": annotator, "condition": condition, "question": question}
    return pd.DataFrame(rows).assign(**named, **columns)


def written(path, rows, encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def score_table(values, metric="m", **columns):
    rows = [
        {"item": f"i{item}", "system": f"s{system}", "value": value}
        for item, row in enumerate(values)
        for system, value in enumerate(row)
    ]
    return pd.DataFrame(rows).assign(metric=metric, **columns)


def random_tables(n_items=30, n_systems=4, n_metrics=3, n_annotators=3, seed=0, gaps=0.0):
    """Ties among people's values; every metric follows them, the first most closely."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_items, n_systems))
    human = pd.concat(
        [
            judged_table(np.round(latent + rng.normal(size=latent.shape)), annotator=f"a{person}")
            for person in range(n_annotators)
        ],
        ignore_index=True,
    )
    tables = []
    for number in range(n_metrics):
        values = np.round(latent + (1 + number) * rng.normal(size=latent.shape), 1)
        values[rng.random(latent.shape) < gaps] = np.nan
        tables.append(score_table(values, f"m{number}"))
    return human, pd.concat(tables, ignore_index=True)


def row_of(report, **named):
    """The one row of a report's table with these fields, as plain values."""
    [row] = [row for row in correlations_of(report) if named.items() <= row.items()]
    return row


def correlations_of(report):
    return [plain(row) for row in report.correlations]


def content_of(report):
    return TableResults("tables", report, with_variants=True).content()
