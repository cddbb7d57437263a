"""Rows of any table as items, by a mapping of its columns.

A row is one response of a system, or one item with a column for each system. Items are put
together in a temporary database, so that a long file needs no more memory than a short one; all
that is wrong with the file is noted, with the cell that it is in.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.alternatives import MOST_CANDIDATES
from annotation.readers.column_mapping import ColumnMapping, Use, mapping_warnings
from annotation.readers.drafts import CandidateDraft, ItemDraft, PictureDraft
from annotation.readers.file_faults import Faults
from annotation.readers.pictures import NoPictures, PictureSource, read_picture
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from error_codes import CodedText

# Items whose candidates are in memory at once.
ITEMS_AT_ONCE = 200
TABLES = """
CREATE TABLE item (
    n INTEGER PRIMARY KEY, name TEXT UNIQUE, line INTEGER, context TEXT, reference TEXT,
    condition TEXT, picture TEXT, digest TEXT, is_faulty INTEGER DEFAULT 0
);
CREATE TABLE candidate (
    n INTEGER PRIMARY KEY, item INTEGER, key TEXT, system TEXT, line INTEGER, text TEXT,
    picture TEXT, digest TEXT, row INTEGER, UNIQUE (item, key)
);
"""


REPEATED_RESPONSE = CodedText("another row has the same response", "repeated_response")
EMPTY_CELL = CodedText("the cell is empty: no response of the system", "empty_response_cell")
FAULTY_ITEM = CodedText("something is wrong in a row of the item", "faulty_item")
# Of items and responses of which something is said, so many by their names.
MOST_NAMED = 3
BLANK = (
    "FROM candidate JOIN item ON item.n = item"
    " WHERE NOT is_faulty AND TRIM(text) = '' AND candidate.picture = ''"
)


class MappedItems(Collection[ItemDraft]):
    """The items that a table's rows make, without those in which something is wrong."""

    def __init__(
        self,
        rows: Iterable[Row],
        mapping: ColumnMapping,
        *,
        path: Path,
        faults: Faults,
        pictures: PictureSource | None = None,
        is_pool: bool = False,
        report: ReadingReport | None = None,
    ) -> None:
        self.path, self.mapping, self.faults = path, mapping, faults
        self._report = report or ReadingReport()
        # Rows so far, and those that no candidate in the database is of.
        self._n_rows = self._n_unstaged = 0
        # Most rows are of the item of the row before.
        self._last_name, self._last_item = "", 0
        self._last_shared: dict[str, str] = {}
        self._pictures: PictureSource = pictures or NoPictures()
        self._is_pool = is_pool
        # An empty name is a private file that the system removes.
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._database.close)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16000", "temp_store=1"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.executescript(TABLES)
        self._database.execute("BEGIN")
        for row in rows:
            self._n_rows += 1
            self._stage(row)
        if is_pool:
            self._refuse_pools()
        self._database.execute("COMMIT")

    def __len__(self) -> int:
        return self._number("SELECT COUNT(*) FROM item WHERE NOT is_faulty")

    @property
    def n_faulty(self) -> int:
        return self._number("SELECT COUNT(*) FROM item WHERE is_faulty")

    @property
    def n_candidates(self) -> int:
        return self._number(
            "SELECT COUNT(*) FROM candidate JOIN item ON item.n = item WHERE NOT is_faulty"
        )

    @property
    def n_systems(self) -> int:
        return self._number(
            "SELECT COUNT(DISTINCT system) FROM candidate JOIN item ON item.n = item"
            " WHERE NOT is_faulty AND system <> ''"
        )

    @property
    def has_pictures(self) -> bool:
        return not isinstance(self._pictures, NoPictures)

    @property
    def n_uneven(self) -> int:
        """Items that have fewer candidates than others."""
        return self._number(
            "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM candidate JOIN item ON item.n = item"
            " WHERE NOT is_faulty GROUP BY item) WHERE n < (SELECT MAX(n) FROM (SELECT COUNT(*)"
            " AS n FROM candidate JOIN item ON item.n = item WHERE NOT is_faulty GROUP BY item))"
        )

    def __contains__(self, thing: object) -> bool:
        return any(each == thing for each in self)

    def __iter__(self) -> Iterator[ItemDraft]:
        last, end = 0, self._number("SELECT COALESCE(MAX(n), 0) FROM item")
        while last < end:
            rows = self._database.execute(
                "SELECT item.n, name, item.line, context, reference, condition, item.picture, key,"
                " system, text, candidate.picture FROM item JOIN candidate ON item = item.n"
                " WHERE NOT is_faulty AND item.n > ? AND item.n <= ? ORDER BY item.n, candidate.n",
                (last, last + ITEMS_AT_ONCE),
            ).fetchall()
            for _n, group in groupby(rows, key=lambda row: row[0]):
                yield self._draft(list(group))
            last += ITEMS_AT_ONCE

    def report(self) -> ReadingReport:
        """The report of the table, with the rows of items that are left out and with notes."""
        report = replace(
            self._report, left_out=dict(self._report.left_out), notes=list(self._report.notes)
        )
        if n := self._n_unstaged + self._number(
            "SELECT COUNT(DISTINCT row) FROM candidate JOIN item ON item.n = item WHERE is_faulty"
        ):
            report.leave_out(FAULTY_ITEM, n=n)
        for note in self.notes():
            report.note(CodedText(f"{note}.", note.code))
        return report

    def notes(self) -> list[CodedText]:
        """Sentences on what may have been overlooked in the rows."""
        texts = [*mapping_warnings(self.mapping)]
        if n := self._number(f"SELECT COUNT(*) {BLANK}"):
            text = ngettext(
                "%(n)s response has no text and no picture: %(named)s",
                "%(n)s responses have no text and no picture: %(named)s",
                n,
            )
            first = self._database.execute(
                f"SELECT name, COALESCE(NULLIF(system, ''), key) {BLANK}"
                " ORDER BY candidate.n LIMIT ?",
                (MOST_NAMED,),
            )
            named = [f"{item}, {key}" for item, key in first]
            more = ["…"] * (n > MOST_NAMED)
            text = text % {"n": f"{n:,}", "named": "; ".join([*named, *more])}
            texts.append(CodedText(text, "response_without_text"))
        return texts

    def faulty_names(self) -> list[str]:
        """Of the first items that are left out, since something in them is wrong."""
        rows = self._database.execute(
            "SELECT name FROM item WHERE is_faulty ORDER BY n LIMIT ?", (MOST_NAMED,)
        )
        return [name for (name,) in rows]

    def _draft(self, rows: list[tuple[Any, ...]]) -> ItemDraft:
        _n, name, line, context, reference, condition, picture, *_rest = rows[0]
        return ItemDraft(
            key=name,
            line=line,
            context=context,
            reference=reference,
            condition=condition,
            picture=self._picture(line, picture),
            candidates=tuple(
                CandidateDraft(key, system, text, self._picture(line, of_candidate))
                for *_item, key, system, text, of_candidate in rows
            ),
        )

    def _picture(self, line: int, name: str) -> PictureDraft | None:
        return read_picture(Row(self.path, line, {"": name}), "", self._pictures) if name else None

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    # Staging

    def _stage(self, row: Row) -> None:
        """Take a row in; every cell of it that cannot be is noted, and its item is left out."""
        before = self.faults.n
        cells = _Cells(row, self.mapping, self._note)
        shared = {
            "context": "\n\n".join(
                text for column in self.mapping.columns(Use.CONTEXT) if (text := cells.text(column))
            ),
            "reference": cells.text(self.mapping.column(Use.REFERENCE)),
            "condition": cells.name(self.mapping.column(Use.CONDITION), longest=64),
            "picture": cells.text(picture := self.mapping.column(Use.PICTURE)).strip(),
        }
        digest = self._checked_picture(row, picture)
        if self._is_pool and not shared["context"].strip():
            self._note(
                row.refuse(
                    _("a target needs a title: choose its column as “Context”."), code="no_title"
                ),
                "",
            )
        name = cells.required(self.mapping.column(Use.ITEM)) or named_by(shared)
        candidates = self._candidates(row, cells)
        if self.faults.n > before:
            self._mark_faulty(name, row)
            self._n_unstaged += 1
            return
        item = self._item(name, row, shared, digest)
        if item is None:
            self._n_unstaged += 1
            return
        before = self.faults.n
        is_added = [self._add(item, row, name, candidate) for candidate in candidates]
        if any(is_added):
            return
        if self.faults.n > before:
            self._n_unstaged += 1
        else:
            self._report.leave_out(REPEATED_RESPONSE, row.place)

    def _candidates(self, row: Row, cells: _Cells) -> list[tuple[str, ...]]:
        """Key, system, text, picture, its digest, and the column of each."""
        mapping = self.mapping
        if mapping.is_wide:
            responses: list[tuple[str, ...]] = []
            for column in mapping.columns(Use.RESPONSE):
                text, system = cells.text(column), mapping.system_of(column)
                if text.strip():
                    responses.append((system, system, text, "", "", column))
                else:
                    self._report.leave_out_part(EMPTY_CELL, f"{row.place}, {column}")
            if not responses:
                self._note(
                    row.refuse(_("no system has a response in this row."), code="no_response"), ""
                )
            return responses
        system = cells.required(mapping.column(Use.SYSTEM), longest=LONGEST_OF_SYSTEM)
        key = cells.required(mapping.column(Use.CANDIDATE)) or system
        response, picture = mapping.column(Use.RESPONSE), mapping.column(Use.CANDIDATE_PICTURE)
        text = cells.text(response)
        if self._is_pool:
            text = cells.required(response, longest=1000) if response else key
        named = cells.text(picture).strip()
        column = mapping.column(Use.CANDIDATE) or mapping.column(Use.SYSTEM) or ""
        return [(key, system, text, named, self._checked_picture(row, picture), column)]

    def _checked_picture(self, row: Row, column: str | None) -> str:
        """The digest of the picture that a cell names; what is wrong with it is noted."""
        if column is None:
            return ""
        try:
            picture = read_picture(row, column, self._pictures)
        except ImportRefused as refused:
            self._note(refused, str(row.fields.get(column, "")))
            return ""
        return sha256(picture.content).hexdigest() if picture else ""

    def _item(self, name: str, row: Row, shared: dict[str, str], digest: str) -> int | None:
        """The item's number; rows of one item share its page, so they agree in all of it."""
        if (self._last_name, self._last_shared) == (name, shared):
            return self._last_item
        cursor = self._database.execute(
            "INSERT OR IGNORE INTO item (name, line, context, reference, condition, picture,"
            " digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, row.line, *shared.values(), digest),
        )
        if cursor.rowcount == 1:
            self._last_name, self._last_shared = name, shared
            self._last_item = int(cursor.lastrowid or 0)
            return self._last_item
        n, line, *there = self._database.execute(
            "SELECT n, line, context, reference, condition, picture FROM item WHERE name = ?",
            (name,),
        ).fetchone()
        if line is None:  # left out already, for a row before
            return None
        for (use, value), known in zip(shared.items(), there, strict=True):
            if value != known:
                column = self.mapping.column(Use(use))
                problem = _("differs from line {line} of the same item.").format(line=line)
                self._note(row.refuse(problem, column, code="differs"), value)
                self._mark_faulty(name, row)
        return int(n)

    def _add(self, item: int, row: Row, name: str, candidate: tuple[str, ...]) -> bool:
        """Whether the candidate is new; another one with its key is a fault."""
        key, system, text, picture, digest, column = candidate
        cursor = self._database.execute(
            "INSERT OR IGNORE INTO candidate (item, key, system, line, text, picture, digest, row)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (item, key, system, row.line, text, picture, digest, self._n_rows),
        )
        if cursor.rowcount == 1:
            return True
        line, *there = self._database.execute(
            "SELECT line, system, text, digest FROM candidate WHERE item = ? AND key = ?",
            (item, key),
        ).fetchone()
        if there == [system, text, digest]:
            return False
        problem = _("item '{item}' has another response of '{key}' on line {line}.")
        self._note(
            row.refuse(
                problem.format(item=name, key=key, line=line), column, code="repeated_response"
            ),
            key,
        )
        self._mark_faulty(name, row)
        return False

    def _mark_faulty(self, name: str, row: Row) -> None:
        self._last_name = ""
        self._database.execute(
            "INSERT INTO item (name, line, is_faulty) VALUES (?, NULL, 1)"
            " ON CONFLICT (name) DO UPDATE SET is_faulty = 1",
            (name,),
        )

    def _note(self, refused: ImportRefused, value: str) -> None:
        self.faults.add(refused, value)

    def _refuse_pools(self) -> None:
        """Judgments of a pool that holds its own target, or a picture twice, are worth less."""
        target = _("'{key}' shows the target's own picture. Take it out of the pool.")
        twice = _("'{key}' shows a picture that the pool has already. Take one of them out.")
        many = _("item '{key}' has more than {n} candidates.")
        of_candidates = "SELECT candidate.line, key, name FROM candidate JOIN item ON item.n = item"
        for query, problem in (
            (
                f"{of_candidates} WHERE candidate.digest <> '' AND candidate.digest = item.digest",
                CodedText(target, "target_in_pool"),
            ),
            (
                f"{of_candidates} WHERE candidate.digest <> '' AND EXISTS (SELECT 1 FROM candidate"
                " AS other WHERE other.item = candidate.item AND other.digest = candidate.digest"
                " AND other.n < candidate.n)",
                CodedText(twice, "same_picture"),
            ),
            (
                "SELECT line, name, name FROM item WHERE (SELECT COUNT(*) FROM candidate"
                f" WHERE item = item.n) > {MOST_CANDIDATES}",
                CodedText(many, "too_many_candidates"),
            ),
        ):
            column = self.mapping.column(Use.CANDIDATE_PICTURE)
            for line, key, name in self._database.execute(query).fetchall():
                row = Row(self.path, line, {})
                text = problem.format(key=key, n=MOST_CANDIDATES)
                self._note(
                    row.refuse(text, column if problem != many else None, code=problem.code), ""
                )
                self._mark_faulty(name, row)


LONGEST_OF_SYSTEM = 100


class _Cells:
    """The cells of a row, of which each that cannot be read is noted once."""

    def __init__(
        self, row: Row, mapping: ColumnMapping, note: Callable[[ImportRefused, str], None]
    ) -> None:
        self._row, self._note = row, note

    def text(self, column: str | None) -> str:
        return self._read(column, self._row.text)

    def name(self, column: str | None, *, longest: int) -> str:
        return self._read(column, lambda name: self._row.optional(name, longest=longest))

    def required(self, column: str | None, *, longest: int = 200) -> str:
        return self._read(column, lambda name: self._row.required(name, longest=longest))

    def _read(self, column: str | None, read: Callable[[str], str]) -> str:
        if column is None:
            return ""
        try:
            return read(column)
        except ImportRefused as refused:
            self._note(refused, str(self._row.fields.get(column) or ""))
            return ""


def named_by(shared: dict[str, str]) -> str:
    """A name for an item that has none: the same for the same page, in whatever file."""
    return (
        "item-" + sha256("\x00".join(shared.values()).encode("utf-8", "replace")).hexdigest()[:12]
    )
