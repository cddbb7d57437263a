"""One label an item from a plain file of labels."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.exceptions import AnnotationError
from annotation.readers.columns import unusable
from annotation.readers.label_tables import Kind, read_labels
from annotation.readers.policies import Reading, Repeats
from annotation.readers.shapes import Columns
from presentation.counts import count_of
from presentation.records import plain_records, plain_values
from presentation.spreadsheets import csv_parts
from stats.aggregation import METHODS, Aggregation, aggregate

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
        """As plain values for JSON; a label that cannot be given is None."""
        items = self.items()
        rest = {
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
        labels = {str(record["item"]): record["label"] for record in items}
        annotators = plain_records(self.aggregation.annotators)
        return {"labels": labels} | plain_values(rest) | {"items": items, "annotators": annotators}

    def content(self, path: Path) -> str:
        if path.suffix.lower() == ".json":
            return json.dumps(self.record(), indent=1)
        return _csv(list(self.aggregation.labels.columns), self.items())

    def lines(self) -> Iterator[str]:
        """The result in a sentence, and its notes."""
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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    kind: Kind = "number" if method in OF_NUMBERS else "text"
    if reading.policies.repeats and method in OF_COMPARISONS:
        raise AnnotationError(
            f"{method} compares candidates and takes no --repeats: two may be compared again, "
            "but none rated again. Leave the option out.",
            code="takes_no_repeats",
        )
    default: Repeats = "count" if method in (*WITH_REPEATS, *OF_COMPARISONS) else "refuse"
    table = read_labels(path, columns, kind=kind, reading=reading, repeats=default)
    is_counted = reading.report.policies["repeats"] == "count"
    options = {"repeats": "count" if is_counted else "refuse"}
    if method in OF_COMPARISONS:
        options = {}
    try:
        aggregation = aggregate(
            table.items, table.annotators, table.values, method=method, **options
        )
    except ValueError as error:
        raise unusable(path, error) from None
    return FileAggregation(aggregation, len(set(table.annotators)), len(table.items))


def _csv(columns: list[str], records: list[dict[str, Any]]) -> str:
    rows = ([record.get(name) for name in columns] for record in records)
    return "".join(csv_parts(columns, rows))
