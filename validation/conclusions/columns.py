"""The named columns of a plain file as texts and numbers, refused with line and field."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row
from annotation.readers.selection import LONGEST, Where, matching_rows, unit_names
from annotation.readers.tables import read_rows
from metrics.exceptions import TableRefused


@dataclass(frozen=True)
class TableColumns:
    """Which columns to read: texts and labels must be filled in, numbers may be empty where
    optional."""

    texts: Sequence[str] = ()
    labels: Sequence[str] = ()
    numbers: Sequence[str] = ()
    optional_numbers: Sequence[str] = ()
    optional_texts: Sequence[str] = ()
    units: Sequence[str] = ()
    where: Where = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        named = [*self.units, *self.texts, *self.labels, *self.numbers, *self.optional_numbers]
        return list(dict.fromkeys([*named, *self.optional_texts, *self.where]))


@dataclass(frozen=True)
class Table:
    """The rows that count: each column by name, and `unit`, the names of several together."""

    rows: Sequence[Row]
    texts: dict[str, list[str]]
    numbers: dict[str, list[float]]
    unit: list[str]


def read_table(path: Path, columns: TableColumns) -> Table:
    """The columns of a .csv, .tsv or .jsonl file, or TableRefused, which says what to mend."""
    try:
        rows = matching_rows(read_rows(path, columns.named), columns.where)
        texts = {name: [r.required(name, longest=LONGEST) for r in rows] for name in columns.texts}
        texts |= {name: [r.label(name, longest=LONGEST) for r in rows] for name in columns.labels}
        texts |= {
            name: [r.optional(name, longest=LONGEST) for r in rows]
            for name in columns.optional_texts
        }
        numbers = {name: [r.number(name) for r in rows] for name in columns.numbers}
        numbers |= {
            name: [r.number_or_nan(name) for r in rows] for name in columns.optional_numbers
        }
        unit = unit_names(rows, columns.units) if columns.units else []
        return Table(rows, texts, numbers, unit)
    except ImportRefused as refused:
        raise unread(refused) from None


def require_once(rows: Sequence[Row], keys: Iterable[tuple[str, ...]], what: str) -> None:
    """Refuse the line on which a key, as annotator and item, comes a second time."""
    lines: dict[tuple[str, ...], int] = {}
    for row, key in zip(rows, keys, strict=True):
        if (earlier := lines.setdefault(key, row.line)) != row.line:
            raise unread(
                row.refuse(
                    f"{what} on line {earlier} already. If more columns distinguish the items, "
                    "name each with --item; --where COLUMN=VALUE chooses rows."
                )
            )


def clusters_of(table: Table, column: str) -> list[str]:
    """The cluster of each row; the line on which an item is in another one is refused."""
    known: dict[str, str] = {}
    for row, unit, cluster in zip(table.rows, table.unit, table.texts[column], strict=True):
        if known.setdefault(unit, cluster) != cluster:
            raise unread(row.refuse("another row of this item is in another cluster.", column))
    return table.texts[column]


def unread(refused: ImportRefused) -> TableRefused:
    """The same refusal, of a file that was to be computed from."""
    return TableRefused(refused.path, refused.problem, line=refused.line, field=refused.field)


def unusable(path: Path, error: ValueError) -> TableRefused:
    """A refusal of what a statistic says of its columns."""
    return TableRefused(path, f"{error}.")
