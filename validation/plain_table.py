"""Correlations of metrics with human ratings from a plain table, without a study or a database.

A row is a judged output: an item under a system, with a human value and a score of each metric;
an empty cell is a missing value. Several rows of one item and system are several annotators'
values of it: their mean counts, and the metrics must not differ among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from annotation.readers.coded_table import Words, read_table
from annotation.readers.columns import Table, refusing_tables
from annotation.readers.label_tables import settle_outputs
from annotation.readers.policies import Reading
from annotation.readers.shapes import OutputColumns, Where, to_rows_per_output
from metrics.exceptions import ColumnsUnfit
from presentation.documents import Cell, Number
from presentation.numbers import plain_records, plain_values
from presentation.progress import Progress, silently
from presentation.text_tables import text_report, text_table
from stats.correlation import (
    Coefficient,
    Correlation,
    Level,
    Resample,
    Undefined,
    correlation_at_level,
)
from stats.libraries import np, pd
from stats.significance import Test, compare_by_resampling, compare_metrics

WHOLE_TABLE = ""
LEVELS: dict[str, Level] = {"sample": "item", "system": "system", "pooled": "pooled"}
COEFFICIENTS: tuple[Coefficient, ...] = (
    "pearson",
    "spearman",
    "kendall",
    "kendall_c",
    "acc_star",
    "spa",
)


@dataclass(frozen=True)
class Columns:
    """Several `item` columns together name the item."""

    human: tuple[str, ...]
    metrics: tuple[str, ...]
    item: tuple[str, ...]
    system: tuple[str, ...]
    by: str | None = None
    cluster: str | None = None
    where: Where = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        return [*self.human, *self.metrics, *self.item, *self.system]

    def __post_init__(self) -> None:
        names = self.named
        names += [name for name in (self.by, self.cluster) if name]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ColumnsUnfit(
                f"Column '{repeated[0]}' was named twice; name each once.", code="column_twice"
            )


@dataclass(frozen=True)
class Settings:
    levels: tuple[str, ...] = tuple(LEVELS)
    coefficients: tuple[Coefficient, ...] = COEFFICIENTS
    resample: Resample = "items"
    undefined: Undefined = "drop"
    confidence: float = 0.95
    n_resamples: int = 1000
    n_permutations: int = 1000
    seed: int = 0
    lower_is_better: tuple[str, ...] = ()
    permutation_tests: tuple[Test, ...] = ()
    williams: bool = False

    @property
    def resamplings(self) -> tuple[Resample, ...]:
        """If only items are drawn, a second comparison draws systems too."""
        return ("items", "both") if self.resample == "items" else (self.resample,)

    def at(self, level: str) -> Iterator[Coefficient]:
        return (name for name in self.coefficients if name != "spa" or level == "system")


@dataclass(frozen=True)
class _Part:
    by: str
    cells: pd.DataFrame

    def columns(self) -> dict[str, Any]:
        return {"items": self.cells["item"], "systems": self.cells["system"]}

    @property
    def clusters(self) -> Any:
        return self.cells["cluster"] if "cluster" in self.cells else None  # noqa: SIM401


@dataclass(frozen=True)
class _Step:
    part: _Part
    level: str
    coefficient: Coefficient
    metric: str = ""
    test: Test | None = None
    compared: Resample | None = None


def correlate_table(
    path: Path,
    columns: Columns,
    settings: Settings,
    *,
    compare: bool = False,
    progress: Progress = silently,
    reading: Reading | None = None,
) -> CorrelationTables:
    _require_metrics(columns, settings)
    parts = _parts(read_outputs(path, columns, reading), settings)
    correlations = [step for part in parts for step in _correlations(part, columns, settings)]
    comparisons = [step for part in parts if compare for step in _comparisons(part, settings)]
    tables = CorrelationTables([], [])
    steps = [*correlations, *comparisons]
    for step in progress(steps, len(steps)):
        if step.compared is not None:
            tables.comparisons.extend(_resampled(step, step.compared, columns, settings))
        elif step.test is None:
            tables.correlations.append(_correlated(step, settings))
        else:
            tables.comparisons.extend(_compared(step, step.test, columns, settings))
    return tables


def _require_metrics(columns: Columns, settings: Settings) -> None:
    for name in settings.lower_is_better:
        if name not in columns.metrics:
            known = ", ".join(columns.metrics)
            raise ColumnsUnfit(
                f"'{name}' cannot be lower: it is not one of the metrics ({known}).",
                code="metric_unknown",
            )


def read_outputs(path: Path, columns: Columns, reading: Reading | None = None) -> pd.DataFrame:
    """One row per item and system: by, item, system, human, and a column per metric."""
    reading = reading or Reading()
    groups = [name for name in (columns.by, columns.cluster) if name]
    names = list(dict.fromkeys((*columns.named, *groups, *columns.where)))
    with refusing_tables():
        cells = read_table(path, names, report=reading.report)
        reading.state_policies()
        cells, named = to_rows_per_output(
            cells,
            OutputColumns(
                columns.item,
                columns.system,
                columns.human,
                columns.metrics,
                others=tuple(dict.fromkeys((*groups, *columns.where))),
            ),
            reading,
        )
        table = Table(cells, reading)
        table.choose(columns.where)
        keys = [table.units(columns.item), table.names(named.system[0], "systems")]
        if columns.by:
            keys.append(table.names(columns.by, "groups"))
        human = table.numbers(named.human[0], is_optional=True)
        scores = {name: table.numbers(name, is_optional=True) for name in columns.metrics}
        cluster = None
        if columns.cluster:
            cluster = table.clusters(columns.cluster, _paired(keys[0], keys[2:]))
        human, scores, kept = settle_outputs(table, keys, human, scores, reading.repeats("refuse"))

    def texts(words: Words) -> list[str]:
        return words.rows(kept).to_list()

    item, system, *by = (texts(key) for key in keys)
    frame = pd.DataFrame(
        {"by": by[0] if by else WHOLE_TABLE, "item": item, "system": system, "human": human}
        | {_column(name): values for name, values in scores.items()}
    )
    return frame if cluster is None else frame.assign(cluster=texts(cluster))


def _paired(items: Words, by: Sequence[Words]) -> Words:
    if not by:
        return items
    distinct, numbers = np.unique(items.codes * len(by[0].words) + by[0].codes, return_inverse=True)
    return Words(numbers, [str(code) for code in distinct.tolist()])


def _column(metric: str) -> str:
    return f"metric {metric}"


def _parts(cells: pd.DataFrame, settings: Settings) -> list[_Part]:
    signed = {_column(name): -cells[_column(name)] for name in settings.lower_is_better}
    items = pd.Series(list(zip(cells["by"], cells["item"], strict=True)), index=cells.index)
    cells = cells.assign(item=items, **signed)
    each = [_Part(str(by), part) for by, part in cells.groupby("by", sort=False)]
    return [_Part(WHOLE_TABLE, cells), *[part for part in each if part.by != WHOLE_TABLE]]


def _correlations(part: _Part, columns: Columns, settings: Settings) -> Iterator[_Step]:
    for metric in columns.metrics:
        for level in settings.levels:
            for coefficient in settings.at(level):
                yield _Step(part, level, coefficient, metric=metric)


def _correlated(step: _Step, settings: Settings) -> dict[str, Any]:
    correlation = correlation_at_level(
        step.part.cells["human"],
        step.part.cells[_column(step.metric)],
        level=LEVELS[step.level],
        coefficient=step.coefficient,
        undefined=settings.undefined,
        resample=settings.resample,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=settings.seed,
        clusters=step.part.clusters,
        **step.part.columns(),
    )
    return _record(step.part.by, step.metric, step.level, correlation)


def _record(by: str, metric: str, level: str, correlation: Correlation) -> dict[str, Any]:
    named = {"by": by, "metric": metric, "level": level}
    rest = {name: value for name, value in asdict(correlation).items() if name not in named}
    return plain_values(named | rest) | {"notes": list(correlation.notes)}


def _comparisons(part: _Part, settings: Settings) -> Iterator[_Step]:
    for level in settings.levels:
        for coefficient in settings.at(level):
            for resample in settings.resamplings:
                yield _Step(part, level, coefficient, compared=resample)
            for test in _tests(level, coefficient, settings):
                yield _Step(part, level, coefficient, test=test)


def _compared(
    step: _Step, test: Test, columns: Columns, settings: Settings
) -> Iterator[dict[str, Any]]:
    cells = step.part.cells
    tests = compare_metrics(
        cells["human"],
        {metric: cells[_column(metric)] for metric in columns.metrics},
        level=LEVELS[step.level],
        coefficient=step.coefficient,
        test=test,
        undefined=settings.undefined,
        n_permutations=settings.n_permutations,
        rng=settings.seed,
        **step.part.columns(),
    )
    named = {"by": step.part.by, "level": step.level, "coefficient": step.coefficient}
    return (named | row for row in plain_records(tests))


def _resampled(
    step: _Step, resample: Resample, columns: Columns, settings: Settings
) -> Iterator[dict[str, Any]]:
    cells = step.part.cells
    table = compare_by_resampling(
        cells["human"],
        {metric: cells[_column(metric)] for metric in columns.metrics},
        level=LEVELS[step.level],
        coefficient=step.coefficient,
        clusters=step.part.clusters,
        resample=resample,
        undefined=settings.undefined,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=settings.seed,
        **step.part.columns(),
    )
    named = {"by": step.part.by, "level": step.level, "coefficient": step.coefficient}
    return (named | row for row in plain_records(table))


def _tests(level: str, coefficient: Coefficient, settings: Settings) -> list[Test]:
    """Williams' test is for Pearson's r of points; pooled calibration is too slow to permute."""
    if coefficient == "acc_star" and level == "pooled":
        return []
    with_williams = settings.williams and coefficient == "pearson" and level != "sample"
    of_points: list[Test] = ["williams"] if with_williams else []
    return [*of_points, *settings.permutation_tests]


Record = Mapping[str, Any]
CORRELATIONS = ("by", "metric", "level", "coefficient", "value", "used", "notes")
P_NAMES = ("p", "p_holm", "p_bh")
COMPARISONS = ("by", "level", "coefficient", "metrics", "test", "delta", *P_NAMES, "notes")


@dataclass(frozen=True)
class CorrelationTables:
    correlations: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]

    def record(self) -> dict[str, Any]:
        return vars(self)

    def lines(self) -> Iterator[str]:
        yield correlations_text(vars(self))


def correlations_text(records: Mapping[str, Sequence[Record]]) -> str:
    parts = [text_table(CORRELATIONS, map(_correlation, records["correlations"]))]
    notes = dict.fromkeys(note for row in records["correlations"] for note in row["notes"])
    if records["comparisons"]:
        parts.append(text_table(COMPARISONS, map(_comparison, records["comparisons"])))
    return text_report(parts, notes)


def _correlation(row: Record) -> tuple[Cell, ...]:
    return (
        row["by"] or "(all)",
        row["metric"],
        row["level"],
        row["coefficient"],
        _number(row, "value"),
        f"{row['n_used']}/{row['n_groups']}",
        _notes(row),
    )


def _notes(row: Record) -> str:
    counts = {
        "constant human": row["n_constant_human"],
        "constant metric": row["n_constant_metric"],
        "too few": row["n_too_few"],
        "cells missing": row["n_missing"],
    }
    notes = [f"undefined: {row['reason']}"] if row["reason"] else []
    notes += [f"{count} {name}" for name, count in counts.items() if count]
    if row["n_zeroed"]:
        notes.append(f"{row['n_zeroed']} counted as 0")
    if row["ci_reason"] and row["value"] is not None:
        notes.append(f"no interval: {row['ci_reason']}")
    if row["ci_method"].startswith("fisher"):
        notes.append(row["ci_method"])
    return ", ".join(notes)


def _comparison(row: Record) -> tuple[Cell, ...]:
    return (
        row["by"] or "(all)",
        row["level"],
        row["coefficient"],
        f"{row['metric_a']} - {row['metric_b']}",
        row["test"],
        _number(row, "delta"),
        *(Number(row[name], 3) for name in P_NAMES),
        _comparison_notes(row),
    )


def _comparison_notes(row: Record) -> str:
    notes = [row["estimand"]] if row.get("estimand") else []
    return ", ".join(notes + ([f"undecided: {row['reason']}"] if row["reason"] else []))


def _number(row: Record, name: str) -> Number:
    return Number(row[name], 3, row.get("ci_low"), row.get("ci_high"))
