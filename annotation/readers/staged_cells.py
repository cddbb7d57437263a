"""Judgments of a file on their way into a study, on disk and not in memory.

A file names the cells of one item and of one submission wherever it likes. So that a file of
millions of rows needs no more memory than one of hundreds, its cells are put into a temporary
database, which groups them; it is gone as soon as nothing holds it.
"""

import json
import math
import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from annotation.bulk import insert_many
from annotation.readers.rows import Row

T = TypeVar("T")
# Items whose cells are in memory at once.
ITEMS_AT_ONCE = 200
KEY = "item, annotator, round, candidate, question"
TABLE = """
CREATE TABLE cell (
    n INTEGER PRIMARY KEY, line INTEGER, item TEXT, annotator TEXT, round INTEGER,
    candidate TEXT, question TEXT, condition TEXT, value, fields TEXT
)
"""


@dataclass(frozen=True)
class Cell:
    row: Row
    item: str
    candidate: str
    question: str
    annotator: str
    round: int
    condition: str
    value: Any

    @property
    def submission(self) -> tuple[str, str, int]:
        return self.item, self.annotator, self.round


class StagedCells:
    def __init__(self, path: Path, cells: Iterable[Cell]) -> None:
        self.path = path
        # An empty name is a private file that the system removes.
        self._database = sqlite3.connect("", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16000", "temp_store=1"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute(TABLE)
        rows = map(_record, cells)
        insert_many(self._database, "INSERT INTO cell", rows, n_columns=10, mark="?")
        self._database.execute(f"CREATE INDEX judged ON cell ({KEY}, line)")
        self.number_items()

    def number_items(self) -> None:
        for statement in (
            "DROP TABLE IF EXISTS item",
            "CREATE TABLE item (n INTEGER PRIMARY KEY, first INTEGER, name TEXT)",
            "INSERT INTO item SELECT NULL, first, name FROM"
            " (SELECT MIN(n) AS first, item AS name FROM cell GROUP BY item) ORDER BY first",
        ):
            self._database.execute(statement)
        self._database.commit()

    def __len__(self) -> int:
        return self._number("SELECT COUNT(*) FROM cell")

    @property
    def n_items(self) -> int:
        return self._number("SELECT COUNT(*) FROM item")

    @property
    def n_submissions(self) -> int:
        return self._number(
            "SELECT COUNT(*) FROM (SELECT 1 FROM cell GROUP BY item, annotator, round)"
        )

    def names(self, column: str) -> list[str]:
        return [name for (name,) in self._database.execute(f"SELECT DISTINCT {column} FROM cell")]

    def spans(self) -> Iterator[tuple[str, float, float, tuple[str, ...]]]:
        rows = self._database.execute(
            "SELECT question, MIN(value), MAX(value), MIN(n) AS first FROM cell"
            " GROUP BY question ORDER BY first"
        ).fetchall()
        for question, low, high, _first in rows:
            if isinstance(low, str):
                yield question, math.inf, -math.inf, tuple(self.categories(question)[question])
            else:
                yield question, low, high, ()

    def categories(self, question: str = "") -> dict[str, dict[str, int]]:
        where = "WHERE question = ?" if question else ""
        rows = self._database.execute(
            f"SELECT question, value, COUNT(*), MIN(n) AS first FROM cell {where}"
            " GROUP BY question, value ORDER BY first",
            (question,) if question else (),
        )
        counts: dict[str, dict[str, int]] = {}
        for name, value, n, _first in rows:
            counts.setdefault(name, {})[value] = n
        return counts

    def rename_categories(self, question: str, names: Mapping[str, str]) -> None:
        self._database.executemany(
            "UPDATE cell SET value = ? WHERE question = ? AND value = ?",
            [(new, question, old) for old, new in names.items()],
        )

    def repeated(self) -> list[list[tuple[int, int, Any]]]:
        """Number, line and value of the cells that have the same key, in the file's order."""
        rows = self._database.execute(
            f"SELECT {KEY}, n, line, value FROM (SELECT *, COUNT(*) OVER (PARTITION BY {KEY})"
            f" AS n_same FROM cell) WHERE n_same > 1 ORDER BY {KEY}, n"
        ).fetchall()
        return [
            [(n, line, value) for *_key, n, line, value in group]
            for _key, group in groupby(rows, key=lambda row: row[:5])
        ]

    def settle(self, kept: int, value: Any, others: Iterable[int]) -> None:
        self._database.execute("UPDATE cell SET value = ? WHERE n = ?", (value, kept))
        self._database.executemany("DELETE FROM cell WHERE n = ?", [(n,) for n in others])

    def first_repeat(self) -> tuple[Cell, int] | None:
        """The first cell of the file that it holds already, and the line of the earlier one."""
        row = self._database.execute(
            "SELECT line, before FROM (SELECT line, LAG(line) OVER"
            f" (PARTITION BY {KEY} ORDER BY line) AS before FROM cell)"
            " WHERE before IS NOT NULL ORDER BY line LIMIT 1"
        ).fetchone()
        return None if row is None else (self._at(row[0]), row[1])

    def first_other_condition(self) -> tuple[Cell, int] | None:
        """The first cell whose condition is not its item's, and the item's first line."""
        row = self._database.execute(
            "SELECT cell.line, first.line FROM item JOIN cell AS first ON first.n = item.first"
            " JOIN cell ON cell.item = item.name WHERE cell.condition <> first.condition"
            " ORDER BY cell.line LIMIT 1"
        ).fetchone()
        return None if row is None else (self._at(row[0]), row[1])

    def by_item(self) -> Iterator[list[Cell]]:
        last, n_items = 0, self.n_items
        while last < n_items:
            rows = self._database.execute(
                "SELECT cell.* FROM item CROSS JOIN cell ON cell.item = item.name"
                " WHERE item.n > ? AND item.n <= ? ORDER BY item.n, cell.n",
                (last, last + ITEMS_AT_ONCE),
            ).fetchall()
            for _, cells in groupby(map(self._cell, rows), key=lambda cell: cell.item):
                yield list(cells)
            last += ITEMS_AT_ONCE

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    def _at(self, line: int) -> Cell:
        [row] = self._database.execute("SELECT * FROM cell WHERE line = ?", (line,))
        return self._cell(row)

    def _cell(self, row: tuple[Any, ...]) -> Cell:
        _, line, item, annotator, round, candidate, question, condition, value, fields = row
        original = Row(self.path, line, json.loads(fields))
        return Cell(original, item, candidate, question, annotator, round, condition, value)


def _record(cell: Cell) -> tuple[Any, ...]:
    fields = json.dumps(cell.row.fields, ensure_ascii=False)
    names = (cell.item, cell.annotator, cell.round, cell.candidate, cell.question)
    return (None, cell.row.line, *names, cell.condition, cell.value, fields)


class Staged(Collection[T]):
    """What is made of the cells of each item, anew each time it is gone through."""

    def __init__(
        self, cells: StagedCells, make: Callable[[list[Cell]], Iterable[T]], size: int
    ) -> None:
        self._cells, self._make, self._size = cells, make, size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        for cells in self._cells.by_item():
            yield from self._make(cells)

    def __contains__(self, thing: object) -> bool:
        return any(each == thing for each in self)
