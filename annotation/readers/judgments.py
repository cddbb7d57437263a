"""A long table of judgments made elsewhere: item, annotator, value, and what else there is.

Optional columns: `candidate` (or `system`), `question`, `round`, `condition`, `simulated`. A file
names the cells of one item and of one submission wherever it likes. So that a file of millions of
rows needs no more memory than one of hundreds, its cells are put into a temporary database, which
groups them; it is gone as soon as nothing holds it.
"""

from __future__ import annotations

import json
import math
import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from annotation.bulk import insert_many
from annotation.exceptions import AnnotationError, ImportRefused, require
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
    place_of_line,
)
from annotation.readers.policies import (
    MISSING,
    REPEATED,
    Reading,
    Repeats,
    mean_of_known,
    merged_categories,
    merged_note,
    mode_of_known,
    note_look_alikes,
    repeats_note,
)
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from presentation.numbers import group_values

COLUMNS = ("item", "annotator", "value")
SOLE_CANDIDATE = "item"
MOST_CATEGORIES = 1000


def read_judgments(
    path: Path,
    *,
    level: str = "interval",
    scale: tuple[float, float] | None = None,
    reading: Reading | None = None,
) -> StudyDraft:
    """The items, questions and submissions of a long file of judgments.

    On a nominal level values may be any text, and each question's categories are the
    texts in the file, sorted; on the other levels they are numbers. Without a `scale` a
    question's scale is what the values span. The file is read once, and never in memory whole.
    """
    reading = reading or Reading()
    is_nominal = level == "nominal"
    reading.state_policies(categories=is_nominal)
    repeats = reading.repeats("refuse")
    require(
        not (repeats == "mean" and is_nominal),
        AnnotationError(
            "--repeats mean needs numbers. For categories, choose first, last or majority.",
            code="mean_of_categories",
        ),
    )
    cells = StagedCells(
        path, _cells(each_row(path, COLUMNS, report=reading.report), is_nominal, reading)
    )
    require(
        len(cells), ImportRefused(path, "it has no labels, only missing ones.", code="no_labels")
    )
    if is_nominal:
        _settle_categories(cells, reading)
    if repeats != "refuse":
        _settle_repeats(cells, repeats, reading.report)
    for column, what in (("item", "items"), ("annotator", "annotators"), ("candidate", "systems")):
        note_look_alikes(reading.report, cells.names(column), what=what, code=f"look_alike_{what}")
    spans = {name: _Span(low, high, categories) for name, low, high, categories in cells.spans()}
    _refuse(cells, spans, path)
    codes = {name: span.codes() for name, span in spans.items()} if is_nominal else {}
    return StudyDraft(
        kind="rating",
        items=Staged(cells, _items, cells.n_items),
        questions=tuple(
            _question(name, level, None if is_nominal else scale, span)
            for name, span in spans.items()
        ),
        submissions=Staged(cells, partial(_submissions, codes), cells.n_submissions),
        items_only_named=True,
        report=reading.report,
    )


@dataclass(frozen=True)
class _Span:
    low: float
    high: float
    categories: tuple[str, ...]

    def codes(self) -> dict[str, float]:
        return {name: float(code) for code, name in enumerate(sorted(self.categories))}


def _cells(rows: Iterable[Row], is_nominal: bool, reading: Reading) -> Iterator[Cell]:
    report = reading.report
    for row in rows:
        word = row.text("value").strip()
        if reading.policies.is_missing(word):
            report.note_missing(word)
            report.leave_out(MISSING, place_of_line(row.line))
        else:
            yield _cell(row, is_nominal)


def _settle_categories(cells: StagedCells, reading: Reading) -> None:
    for question, counts in cells.categories().items():
        words = list(counts)
        if reading.policies.categories == "as-written":
            note_look_alikes(reading.report, words, what="categories", code="look_alike_categories")
        elif merged := merged_categories(words, list(counts.values())):
            cells.rename_categories(question, merged)
            reading.report.note(merged_note(merged, counts))


def _settle_repeats(cells: StagedCells, repeats: Repeats, report: ReadingReport) -> None:
    n = 0
    for group in cells.repeated():
        values = [value for _n, _line, value in group]
        kept, *others = group if repeats != "last" else group[::-1]
        settle = {"mean": mean_of_known, "majority": mode_of_known}.get(repeats)
        cells.settle(kept[0], settle(values) if settle else kept[2], [each[0] for each in others])
        n += len(others)
        for _n, line, _value in others if settle is None else ():
            report.leave_out(REPEATED, place_of_line(line))
    if n and repeats in ("mean", "majority"):
        report.note(repeats_note(n, repeats))
    cells.number_items()


def _cell(row: Row, is_nominal: bool) -> Cell:
    return Cell(
        row=row,
        item=row.required("item"),
        candidate=row.optional("candidate", longest=100)
        or row.optional("system", longest=100)
        or SOLE_CANDIDATE,
        question=row.optional("question", longest=64) or "value",
        annotator=row.required("annotator", longest=100),
        round=_round(row),
        condition=row.optional("condition", longest=64),
        value=row.required("value") if is_nominal else row.number("value"),
    )


def _round(row: Row) -> int:
    if not row.text("round").strip():
        return 1
    number = row.number("round")
    if number != int(number) or not 1 <= number <= 1000:
        raise row.refuse("expected a whole number from 1.", "round", code="not_round")
    return int(number)


def _refuse(cells: StagedCells, spans: dict[str, _Span], path: Path) -> None:
    if (repeat := cells.first_repeat()) is not None:
        cell, line = repeat
        raise cell.row.refuse(
            f"annotator '{cell.annotator}' judged item '{cell.item}' on line {line} already.",
            code="repeated_judgment",
        )
    for name, span in spans.items():
        if (n := len(span.categories)) > MOST_CATEGORIES:
            raise ImportRefused(
                path,
                f"question '{name}' has {n} categories; {MOST_CATEGORIES} fit.",
                code="too_many_categories",
            )
    if (other := cells.first_other_condition()) is not None:
        cell, line = other
        raise cell.row.refuse(
            f"differs from line {line} of the same item.", "condition", code="differs"
        )


def _question(
    name: str, level: str, scale: tuple[float, float] | None, span: _Span
) -> QuestionDraft:
    low, high = scale or (span.low, span.high)
    if span.categories:
        low, high = 0.0, float(len(span.categories) - 1)
    return QuestionDraft(
        name=name,
        wording=name,
        level=level,
        scale_min=low,
        scale_max=high if high > low else low + 1,
        categories=tuple(span.codes()),
    )


def _items(cells: list[Cell]) -> Iterator[ItemDraft]:
    first = cells[0]
    yield ItemDraft(
        key=first.item,
        line=first.row.line,
        condition=first.condition,
        candidates=tuple(
            CandidateDraft(key=name, system="" if name == SOLE_CANDIDATE else name)
            for name in dict.fromkeys(cell.candidate for cell in cells)
        ),
    )


def _submissions(
    codes: dict[str, dict[str, float]], cells: list[Cell]
) -> Iterator[SubmissionDraft]:
    for (item, annotator, round), group in group_values(
        (cell.submission, cell) for cell in cells
    ).items():
        yield SubmissionDraft(
            item=item,
            annotator=annotator,
            round=round,
            line=group[0].row.line,
            raw=json.dumps([cell.row.fields for cell in group], ensure_ascii=False),
            is_simulated=any(cell.row.is_simulated for cell in group),
            judgments=tuple(
                JudgmentDraft(
                    cell.candidate,
                    cell.question,
                    codes[cell.question][cell.value] if codes else cell.value,
                    cell.row.line,
                )
                for cell in group
            ),
        )


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
        insert_many(self._database, "INSERT INTO cell", map(_record, cells), n_columns=10, mark="?")
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
        for question, low, high, _first in self._database.execute(
            "SELECT question, MIN(value), MAX(value), MIN(n) AS first FROM cell"
            " GROUP BY question ORDER BY first"
        ).fetchall():
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
