from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any

from annotation.exceptions import AnnotationError, require
from annotation.readers.columns import refusing_values
from annotation.readers.label_tables import Kind, LabelTable, read_labels
from annotation.readers.policies import Reading, Repeats
from annotation.readers.shapes import Columns
from annotation.units import KAPPA_WEIGHTS, MOST_STEPS, Level
from presentation.numbers import count_of, plain_records, plain_values
from presentation.row_files import csv_parts
from stats.aggregation import METHODS, Aggregation, aggregate
from stats.agreement import Agreement, coefficients_at_level, pairwise_kappa
from stats.agreement.intervals import CiChoice
from stats.libraries import pd

KINDS: dict[Level, Kind] = {
    "nominal": "text",
    "ordinal": "number",
    "interval": "number",
    "ratio": "amount",
}


@dataclass(frozen=True)
class FileAgreement:
    level: Level
    n_items: int
    n_annotators: int
    n_judgments: int
    coefficients: tuple[Agreement, ...]
    pairs: pd.DataFrame

    def record(self) -> dict[str, Any]:
        return {
            "n_items": self.n_items,
            "n_annotators": self.n_annotators,
            "n_judgments": self.n_judgments,
            "level": self.level,
            "coefficients": [
                plain_values(asdict(coefficient)) for coefficient in self.coefficients
            ],
            "pairs": plain_records(self.pairs),
        }

    def lines(self) -> Iterator[str]:
        yield (
            f"{count_of(self.n_judgments, 'label')} of {count_of(self.n_items, 'item')} by "
            f"{count_of(self.n_annotators, 'annotator')}, {self.level}"
        )
        yield f"{'':24}{'value':>8}{'se':>8}   interval           items"
        yield from map(_line, sorted(self.coefficients, key=lambda row: not row.is_defined))
        warnings = dict.fromkeys(text for row in self.coefficients for text in row.warnings)
        yield from (f"Note: {warning}." for warning in warnings)
        if len(self.pairs):
            pairs = count_of(
                len(self.pairs), "pair of annotators shares", "pairs of annotators share"
            )
            yield f"{pairs} items; --json lists their kappas."


def agree_on_file(
    path: Path,
    columns: Columns,
    *,
    level: Level,
    ci: CiChoice = "jackknife",
    seed: int = 0,
    reading: Reading | None = None,
) -> FileAgreement:
    table = read_labels(path, columns, kind=KINDS[level], reading=reading)
    with refusing_values(path):
        coefficients = coefficients_at_level(
            table.items,
            table.annotators,
            table.values,
            level=level,
            clusters=table.clusters,
            ci=ci,
            rng=seed,
        )
    return FileAgreement(
        level=level,
        n_items=len(set(table.items)),
        n_annotators=len(set(table.annotators)),
        n_judgments=len(table.items),
        coefficients=coefficients,
        pairs=_pairs(table, level),
    )


def _pairs(table: LabelTable, level: Level) -> pd.DataFrame:
    if level not in KAPPA_WEIGHTS or (level == "ordinal" and len(set(table.values)) > MOST_STEPS):
        return pd.DataFrame()
    return pairwise_kappa(table.items, table.annotators, table.values, weights=KAPPA_WEIGHTS[level])


def _line(row: Agreement) -> str:
    if not row.is_defined:
        return f"{row.name:24} undefined: {str(row.reason).replace('_', ' ')}"
    if isnan(row.se):
        return f"{row.name:24}{row.value:8.4f}{'':8}   {'no interval':18}{row.n_items:8d}"
    interval = f"[{row.ci_low:7.4f}, {row.ci_high:7.4f}]"
    return f"{row.name:24}{row.value:8.4f}{row.se:8.4f}   {interval:18}{row.n_items:8d}"


OF_NUMBERS = ("mean", "trimmed_mean", "median", "zscore", "bias_precision")
# One annotator may compare the same two candidates again, for another prompt.
OF_COMPARISONS = ("bradley_terry",)
# Dawid and Skene's model models what an annotator says of an item the second time.
WITH_REPEATS = ("dawid_skene",)


@dataclass(frozen=True)
class FileAggregation:
    aggregation: Aggregation
    n_annotators: int
    n_judgments: int

    @property
    def n_unlabelled(self) -> int:
        return sum(record["label"] is None for record in self.items())

    def items(self) -> list[dict[str, Any]]:
        return plain_records(self.aggregation.labels)

    def record(self) -> dict[str, Any]:
        items = self.items()
        return (
            {"labels": {str(record["item"]): record["label"] for record in items}}
            | plain_values(
                {
                    "method": self.aggregation.method,
                    "signature": self.aggregation.signature,
                    "n_items": len(items),
                    "n_annotators": self.n_annotators,
                    "n_judgments": self.n_judgments,
                    "converged": self.aggregation.converged,
                    "iterations": self.aggregation.iterations,
                    "log_likelihood": self.aggregation.log_likelihood,
                    "n_ties": self.aggregation.n_ties,
                    "warnings": list(self.aggregation.warnings),
                    "reason": self.aggregation.reason,
                }
            )
            | {"items": items, "annotators": plain_records(self.aggregation.annotators)}
        )

    def content(self, path: Path) -> str:
        if path.suffix.lower() == ".json":
            return json.dumps(self.record(), indent=1)
        columns = list(self.aggregation.labels.columns)
        rows = ([record.get(name) for name in columns] for record in self.items())
        return "".join(csv_parts(columns, rows))

    def lines(self) -> Iterator[str]:
        items = count_of(len(self.aggregation.labels), "item")
        text = f"{items} labelled by {self.aggregation.method}"
        text += f" from {count_of(self.n_judgments, 'label')}"
        text += f" of {count_of(self.n_annotators, 'annotator')}"
        if self.aggregation.converged is not None:
            state = "converged" if self.aggregation.converged else "not converged"
            text += f"; {state} after {count_of(self.aggregation.iterations or 0, 'iteration')}"
        text += f"; {count_of(self.aggregation.n_ties, 'tie')}" if self.aggregation.n_ties else ""
        text += f"; {self.n_unlabelled} without a label" if self.n_unlabelled else ""
        text += f"; {self.aggregation.reason.replace('_', ' ')}" if self.aggregation.reason else ""
        yield f"{text}."
        yield from (f"Note: {warning}." for warning in self.aggregation.warnings)


def aggregate_file(
    path: Path, columns: Columns, *, method: str, reading: Reading | None = None
) -> FileAggregation:
    """The labels of the items in a file by a method of `stats.aggregation`.

    A label that an annotator gives an item again counts by default if the method models it, and
    refuses the file otherwise.
    """
    reading = reading or Reading()
    require(
        method in METHODS, ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    )
    kind: Kind = "number" if method in OF_NUMBERS else "text"
    require(
        not (reading.policies.repeats and method in OF_COMPARISONS),
        AnnotationError(
            f"{method} compares candidates and takes no --repeats: two may be compared again, "
            "but none rated again. Leave the option out.",
            code="takes_no_repeats",
        ),
    )
    default: Repeats = "count" if method in (*WITH_REPEATS, *OF_COMPARISONS) else "refuse"
    table = read_labels(path, columns, kind=kind, reading=reading, repeats=default)
    counted = {"repeats": "count" if reading.report.policies["repeats"] == "count" else "refuse"}
    options = {} if method in OF_COMPARISONS else counted
    with refusing_values(path):
        aggregation = aggregate(
            table.items, table.annotators, table.values, method=method, **options
        )
    return FileAggregation(aggregation, len(set(table.annotators)), len(table.items))
