"""The labels of a table, one for each item and annotator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.coded_table import read_table
from annotation.readers.columns import MOST_VALUES, Floats, Table, refusing_tables
from annotation.readers.policies import (
    Reading,
    Repeats,
)
from annotation.readers.repeated_rows import settle_repeats
from annotation.readers.shapes import Columns, to_rows_per_label
from annotation.readers.words import Words

Kind = Literal["text", "number", "amount"]


@dataclass(frozen=True)
class LabelTable:
    """The labels of a file, row by row; `values` are numbers where numbers were asked for."""

    items: list[str]
    annotators: list[str]
    values: list[str] | list[float]
    systems: list[str] | None = None
    clusters: list[str] | None = None

    def joined(self, other: LabelTable) -> LabelTable:
        """These labels and then those of another table with the same columns."""
        values: Any = [*self.values, *other.values]
        return LabelTable(
            items=self.items + other.items,
            annotators=self.annotators + other.annotators,
            values=values,
            systems=self.systems and self.systems + (other.systems or []),
            clusters=self.clusters and self.clusters + (other.clusters or []),
        )


def read_labels(
    path: Path,
    columns: Columns,
    *,
    kind: Kind,
    reading: Reading | None = None,
    repeats: Repeats = "refuse",
    has_systems: bool = False,
    positive: str | None = None,
) -> LabelTable:
    """The labels of a file, one for each item and annotator, or TableRefused.

    Values are texts, numbers, or amounts: numbers from zero; with `positive`, 1 for this value
    and 0 for the other. `repeats` is the default policy. A system is a part of the item's name,
    or with `has_systems` apart.
    """
    reading = reading or Reading()
    with refusing_tables():
        names = columns.named if columns.value else ()
        cells = read_table(path, names, report=reading.report)
        reading.state_policies(categories=kind == "text")
        cells, columns = to_rows_per_label(cells, columns, reading, has_systems=has_systems)
        table = Table(cells, reading)
        table.choose(columns.where)
        table.drop_missing(columns.value)
        return _labels(table, columns, kind, reading.repeats(repeats), has_systems, positive)


def _labels(
    table: Table, columns: Columns, kind: Kind, repeats: Repeats, is_apart: bool, positive: Any
) -> LabelTable:
    units = table.units((*columns.item, *(() if is_apart else columns.system)))
    annotators = table.names(columns.annotator[0], "annotators")
    systems = table.names(columns.system[0], "systems") if is_apart and columns.system else None
    clusters = None if columns.cluster is None else table.clusters(columns.cluster, units)
    values: Any
    if kind == "text" or positive is not None:
        words = table.categories(columns.value)
        values = words.take(words.words)
        if positive is not None:
            values = _binary(table, columns.value, words, positive)
    else:
        values = table.numbers(columns.value, lowest=0 if kind == "amount" else None)
    keys = [units, *([systems] if systems else []), annotators]
    [values], kept = settle_repeats(table, keys, [values], repeats)

    def kept_texts(words: Words) -> list[str]:
        return words.rows(kept).to_list()

    return LabelTable(
        items=kept_texts(units),
        annotators=kept_texts(annotators),
        values=values.tolist(),
        systems=kept_texts(systems) if systems else None,
        clusters=kept_texts(clusters) if clusters else None,
    )


def _binary(table: Table, column: str, words: Words, positive: str) -> Floats:
    if positive not in words.words:
        known = ", ".join(f"'{word}'" for word in sorted(words.words)[:MOST_VALUES])
        raise ImportRefused(
            table.cells.path,
            f"no row has '{positive}' here; there are {known}.",
            field=column,
            code="unknown_value",
        )
    others = [word for word in words.words if word != positive]
    if len(others) > 1:
        listed = ", ".join(f"'{word}'" for word in others[:MOST_VALUES])
        problem = f"a binary scale has one other value than '{positive}'; there are {listed}."
        raise ImportRefused(table.cells.path, problem, field=column, code="not_binary")
    return np.asarray(words.mask(lambda word: word == positive), dtype=np.float64)
