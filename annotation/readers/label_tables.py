from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from annotation.exceptions import AnnotationError, ImportRefused, require
from annotation.readers.coded_table import Integers, Mask, Words, read_table
from annotation.readers.columns import MOST_VALUES, Floats, Table, refusing_tables
from annotation.readers.policies import (
    REPEATED,
    Reading,
    Repeats,
    mode_of_known,
    repeats_note,
)
from annotation.readers.shapes import Columns, to_rows_per_label

Kind = Literal["text", "number", "amount"]


@dataclass(frozen=True)
class LabelTable:
    items: list[str]
    annotators: list[str]
    values: list[str] | list[float]
    systems: list[str] | None = None
    clusters: list[str] | None = None

    def joined(self, other: LabelTable) -> LabelTable:
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
        cells = read_table(path, columns.named if columns.value else (), report=reading.report)
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
    [values], kept = settle_repeats(
        table, [units, *([systems] if systems else []), annotators], [values], repeats
    )

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
        raise ImportRefused(
            table.cells.path,
            f"a binary scale has one other value than '{positive}'; there are {listed}.",
            field=column,
            code="not_binary",
        )
    return np.asarray(words.mask(lambda word: word == positive), dtype=np.float64)


def settle_outputs(
    table: Table,
    keys: Sequence[Words],
    human: Floats,
    scores: Mapping[str, Floats],
    repeats: Repeats,
) -> tuple[Floats, dict[str, Floats], Integers]:
    """Of each output its human value, its scores by column, and its first row.

    Several rows of one output are several annotators' values, whose mean counts. By default they
    are refused if their scores differ.
    """
    if repeats != "refuse":
        settled, kept = settle_repeats(table, keys, [human, *scores.values()], repeats)
        return settled[0], dict(zip(scores, settled[1:], strict=True)), kept
    _keys, first, inverse = np.unique(combined_codes(keys), return_index=True, return_inverse=True)
    for column, values in scores.items():
        known = values[first][inverse]
        differs = (values != known) & ~(np.isnan(values) & np.isnan(known))
        if differs.any():
            place = table.cells.place(int(first[inverse[int(np.argmax(differs))]]))
            raise table.cells.refuse(
                f"{place} has another value for the same item and system. Rows may repeat "
                "them only for more human values of one output; --repeats chooses or averages.",
                column,
                differs,
                code="differs",
            )
    kept = np.sort(first)
    means = _means(human, inverse, len(first))[inverse[kept]]
    return means, {column: values[kept] for column, values in scores.items()}, kept


def settle_repeats(
    table: Table, keys: Sequence[Words], columns: Sequence[NDArray[Any]], repeats: Repeats
) -> tuple[list[NDArray[Any]], Integers]:
    """The values and the rows that count, one per key, unless repeats count themselves.

    Numbers may be NaN, which no mean and no majority counts.
    """
    codes = combined_codes(keys)
    kept = np.arange(len(codes))
    _keys, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    if repeats == "count" or len(first) == len(codes):
        return list(columns), kept
    again = np.ones(len(codes), dtype=np.bool_)
    again[first] = False
    if repeats == "refuse":
        raise _repeated(table, keys, again, int(first[inverse[int(np.argmax(again))]]))
    if repeats in ("first", "last"):
        return _chosen(table, columns, inverse, len(first), is_last=repeats == "last")
    require(
        not (repeats == "mean" and any(values.dtype == object for values in columns)),
        AnnotationError(
            "--repeats mean needs numbers. For categories, choose first, last or majority.",
            code="mean_of_categories",
        ),
    )
    kept = np.sort(first)
    settle = _means if repeats == "mean" else _modes
    settled = [settle(values, inverse, len(first))[inverse[kept]] for values in columns]
    table.report.note(repeats_note(int(again.sum()), repeats))
    table.cells = table.cells.keep(~again)
    return settled, kept


def _chosen(
    table: Table, columns: Sequence[NDArray[Any]], groups: Integers, n: int, *, is_last: bool
) -> tuple[list[NDArray[Any]], Integers]:
    def choose(rows: Integers, chosen: Integers) -> Integers:
        # Of several assignments to one place, the last one holds.
        rows = rows if is_last else rows[::-1]
        chosen[groups[rows]] = rows
        return chosen

    every = choose(np.arange(len(groups)), np.zeros(n, dtype=np.intp))
    settled, is_used = [], np.zeros(len(groups), dtype=np.bool_)
    for values in columns:
        known = np.flatnonzero(values == values)  # NaN is not
        chosen = choose(known, every.copy())
        is_used[chosen[groups[known]]] = True
        settled.append(values[chosen])
    # A group without any value has a row all the same.
    has_used = np.zeros(n, dtype=np.bool_)
    has_used[groups[is_used]] = True
    is_used[every[~has_used]] = True
    table.keep(is_used, REPEATED)
    kept = np.sort(every)
    return [values[groups[kept]] for values in settled], kept


def combined_codes(keys: Sequence[Words]) -> Integers:
    codes = keys[0].codes
    for key in keys[1:]:
        codes = codes * len(key.words) + key.codes
    return codes


def _means(values: Floats, groups: Integers, n: int) -> Floats:
    is_known = ~np.isnan(values)
    counts = np.bincount(groups[is_known], minlength=n)
    sums = np.bincount(groups[is_known], weights=values[is_known], minlength=n)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts)


def _modes(values: NDArray[Any], groups: Integers, n: int) -> NDArray[Any]:
    members: list[list[Any]] = [[] for _ in range(n)]
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        members[group].append(value)
    modes = np.empty(n, dtype=values.dtype)
    modes[:] = [mode_of_known(each) for each in members]
    return modes


def _repeated(table: Table, keys: Sequence[Words], again: Mask, first: int) -> ImportRefused:
    row = int(np.argmax(again))
    item, *others = (key.words[key.codes[row]] for key in keys)
    of = f" of system '{others[0]}'" if len(others) > 1 else ""
    who = f"annotator '{others[-1]}' labelled " if others else ""
    return table.cells.refuse(
        f"{who}item '{item}'{of} {'' if who else 'is '}on {table.cells.place(first)} already. "
        "If more columns distinguish the items, name each with --item; --where COLUMN=VALUE "
        "chooses rows; --repeats chooses or averages labels.",
        None,
        again,
        code="repeated_label",
    )
