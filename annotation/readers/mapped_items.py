"""Rows of any table as items, by a mapping of its columns.

A row is one response of a system, or one item with a column for each system. Items are put
together in a temporary database, so that a long file needs no more memory than a short one; all
that is wrong with the file is noted, with the cell that it is in.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, ngettext

from annotation.bulk import insert_many
from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    MOST_PLACES,
    CandidateDraft,
    Faults,
    ItemDraft,
    PictureDraft,
    ReadingReport,
)
from annotation.readers.item_files import MOST_CANDIDATES
from annotation.readers.mapping import LONGEST_SYSTEM, ColumnMapping, Use, mapping_warnings
from annotation.readers.pictures import NoPictures, PictureSource, read_picture
from annotation.readers.rows import CheckedCells, Row, RowBlock
from error_codes import CodedText

# Items whose candidates are in memory at once.
ITEMS_AT_ONCE = 200
TABLES = """
CREATE TABLE item (
    n INTEGER PRIMARY KEY, line INTEGER, name TEXT UNIQUE, context TEXT, reference TEXT,
    condition TEXT, picture TEXT, digest TEXT, is_faulty INTEGER
);
CREATE TABLE candidate (
    n INTEGER PRIMARY KEY, item INTEGER, key TEXT, system TEXT, line INTEGER, text TEXT,
    picture TEXT, digest TEXT, row INTEGER, UNIQUE (item, key)
);
"""


REPEATED_RESPONSE = CodedText("another row has the same response", "repeated_response")
FAULTY_ITEM = CodedText("something is wrong in a row of the item", "faulty_item")
# Of items and responses of which something is said, so many by their names.
MOST_NAMED = 3
BLANK = (
    "FROM candidate JOIN item ON item.n = item"
    " WHERE NOT is_faulty AND TRIM(text) = '' AND candidate.picture = ''"
)


class MappedItems(Collection[ItemDraft]):
    def __init__(
        self,
        blocks: Iterable[RowBlock],
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
        self._n_items = 0
        self._pictures: PictureSource = pictures or NoPictures()
        self._is_pool = is_pool
        # An empty name is a private file that the system removes.
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._database.close)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-16000", "temp_store=1"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.executescript(TABLES)
        self._database.execute("BEGIN")
        for block in blocks:
            self._stage(block)
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
        return any(map(self.mapping.column, (Use.PICTURE, Use.CANDIDATE_PICTURE)))

    @property
    def n_uneven(self) -> int:
        return self._number(
            "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM candidate JOIN item ON item.n = item"
            " WHERE NOT is_faulty GROUP BY item) WHERE n < (SELECT MAX(n) FROM (SELECT COUNT(*)"
            " AS n FROM candidate JOIN item ON item.n = item WHERE NOT is_faulty GROUP BY item))"
        )

    def __contains__(self, thing: object) -> bool:
        return any(each == thing for each in self)

    def __iter__(self) -> Iterator[ItemDraft]:
        for last in range(0, self._n_items, ITEMS_AT_ONCE):
            between = (last, last + ITEMS_AT_ONCE)
            rows = self._database.execute(
                "SELECT item, key, system, text, picture FROM candidate"
                " WHERE item > ? AND item <= ? ORDER BY item, n",
                between,
            ).fetchall()
            candidates = {n: list(group) for n, group in groupby(rows, key=itemgetter(0))}
            items = self._database.execute(
                "SELECT n, name, line, context, reference, condition, picture FROM item"
                " WHERE n > ? AND n <= ? AND NOT is_faulty ORDER BY n",
                between,
            ).fetchall()
            for n, name, line, context, reference, condition, picture in items:
                drafts = tuple(
                    CandidateDraft(key, system, text, self._picture(line, named) if named else None)
                    for _item, key, system, text, named in candidates[n]
                )
                shown = self._picture(line, picture) if picture else None
                yield ItemDraft(name, drafts, line, context, reference, condition, shown)

    def report(self) -> ReadingReport:
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
        rows = self._database.execute(
            "SELECT name FROM item WHERE is_faulty ORDER BY n LIMIT ?", (MOST_NAMED,)
        )
        return [name for (name,) in rows]

    def _picture(self, line: int, name: str) -> PictureDraft | None:
        return read_picture(Row(self.path, line, {"": name}), "", self._pictures)

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    # Staging

    def _stage(self, block: RowBlock) -> None:
        rows = MappedRows(
            block,
            self.mapping,
            pictures=self._pictures,
            is_pool=self._is_pool,
            report=self._report,
        )
        numbers = self._write_items(rows)
        self._n_unstaged += numbers.count(None)
        self._write_candidates(rows, numbers)
        self._n_rows += len(block)
        for _n, refused, value in sorted(rows.cells.faults, key=itemgetter(0)):
            self.faults.add(refused, value)

    def _write_items(self, rows: MappedRows) -> list[int | None]:
        """The number of each row's item, or None if the row is left out.

        Rows of one item share its page, so they agree in all of it.
        """
        cells, lines = rows.cells, rows.block.lines
        faulty_rows, faulty_items = {n for n, *_rest in cells.faults}, set()
        known = self._known_items(rows.names)
        items, numbers = [], []
        for n, (name, page, line) in enumerate(zip(rows.names, rows.pages, lines, strict=True)):
            is_faulty = n in faulty_rows
            if (item := known.get(name)) is None:
                self._n_items += 1
                # One that begins with a faulty row has no line: its other rows are not checked.
                item = known[name] = self._n_items, None if is_faulty else line, page
                items.append((*item[:2], name, *page, rows.digests[n], is_faulty))
            number, first_line, first_page = item
            numbers.append(None if is_faulty or first_line is None else number)
            if is_faulty:
                faulty_items.add(number)
            elif page != first_page and first_line is not None:
                faulty_items.add(number)
                problem = _("differs from line {line} of the same item.").format(line=first_line)
                for use, value, there in zip(SHARED, page, first_page, strict=True):
                    if value != there:
                        field = self.mapping.column(use)
                        refused = rows.block.row(n).refuse(problem, field, code="differs")
                        cells.note(n, refused, value)
        insert_many(self._database, "INSERT INTO item", items, n_columns=9, mark="?")
        self._mark_faulty(faulty_items)
        return numbers

    def _known_items(self, names: Iterable[str]) -> dict[str, tuple[int, int | None, Any]]:
        asked = list(set(names))
        marks = ", ".join("?" * len(asked))
        rows = self._database.execute(
            "SELECT name, n, line, context, reference, condition, picture FROM item"
            f" WHERE name IN ({marks})",
            asked,
        )
        return {name: (n, line, tuple(page)) for name, n, line, *page in rows}

    def _write_candidates(self, rows: MappedRows, numbers: Sequence[int | None]) -> None:
        block = rows.block
        by_column = [
            zip(
                *(numbers, each.keys, each.systems, block.lines, each.texts),
                *(each.pictures, each.digests, range(self._n_rows, self._n_rows + len(block))),
                [each.column] * len(block),
                strict=True,
            )
            for each in rows.responses
        ]
        is_wide = self.mapping.is_wide
        candidates = [
            candidate
            for candidate in chain.from_iterable(zip(*by_column, strict=True))
            if candidate[0] is not None and (not is_wide or candidate[4].strip())
        ]
        last = self._number("SELECT COALESCE(MAX(n), 0) FROM candidate")
        n_changes = self._database.total_changes
        columns = "item, key, system, line, text, picture, digest, row"
        insert = f"INSERT OR IGNORE INTO candidate ({columns})"
        stored = (candidate[:8] for candidate in candidates)
        insert_many(self._database, insert, stored, n_columns=8, mark="?")
        if self._database.total_changes - n_changes == len(candidates):
            return
        problem = _("item '{item}' has another response of '{key}' on line {line}.")
        faulty_items, new = set(), set()
        # Of each row whether a candidate is stored, or else whether one is faulty.
        is_stored, is_faulty = [False] * len(block), [False] * len(block)
        for item, key, system, _line, text, _picture, digest, row, column in candidates:
            n = row - self._n_rows
            first, line, *there = self._database.execute(
                "SELECT n, line, system, text, digest FROM candidate WHERE item = ? AND key = ?",
                (item, key),
            ).fetchone()
            if first > last and first not in new:
                new.add(first)
                is_stored[n] = True
            elif there != [system, text, digest]:
                refused = block.row(n).refuse(
                    problem.format(item=rows.names[n], key=key, line=line),
                    column,
                    code="repeated_response",
                )
                rows.cells.note(n, refused, key)
                faulty_items.add(item)
                is_faulty[n] = True
        self._mark_faulty(faulty_items)
        for n, number in enumerate(numbers):
            if number is None or is_stored[n]:
                continue
            if is_faulty[n]:
                self._n_unstaged += 1
            else:
                self._report.leave_out(REPEATED_RESPONSE, block.row(n).place)

    def _mark_faulty(self, numbers: Iterable[int]) -> None:
        self._database.executemany(
            "UPDATE item SET is_faulty = 1 WHERE n = ?", [(n,) for n in numbers]
        )

    def _refuse_pools(self) -> None:
        target = _("'{key}' shows the target's own picture. Take it out of the pool.")
        twice = _("'{key}' shows a picture that the pool has already. Take one of them out.")
        many = _("item '{key}' has more than {n} candidates.")
        of_candidates = "SELECT candidate.line, key, item FROM candidate JOIN item ON item.n = item"
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
                "SELECT line, name, n FROM item WHERE (SELECT COUNT(*) FROM candidate"
                f" WHERE item = item.n) > {MOST_CANDIDATES}",
                CodedText(many, "too_many_candidates"),
            ),
        ):
            column = self.mapping.column(Use.CANDIDATE_PICTURE)
            rows = self._database.execute(query).fetchall()
            for line, key, _item in rows:
                text = problem.format(key=key, n=MOST_CANDIDATES)
                field = column if problem != many else None
                self.faults.add(Row(self.path, line, {}).refuse(text, field, code=problem.code))
            self._mark_faulty(item for *_place, item in rows)


# What rows of one item have in common: its page.
SHARED = (Use.CONTEXT, Use.REFERENCE, Use.CONDITION, Use.PICTURE)
EMPTY_CELL = CodedText("the cell is empty: no response of the system", "empty_response_cell")


class Responses(NamedTuple):
    column: str
    keys: Sequence[str]
    systems: Sequence[str]
    texts: Sequence[str]
    pictures: Sequence[str]
    digests: Sequence[str]


class MappedRows:
    """Of each row of a block its item's name, its page, and the digest of its picture.

    `responses` has a column of responses for each system, or one in a table of a row per response.
    `cells.faults` has every cell that cannot be used.
    """

    def __init__(
        self,
        block: RowBlock,
        mapping: ColumnMapping,
        *,
        pictures: PictureSource,
        is_pool: bool,
        report: ReadingReport,
    ) -> None:
        self.block, self.cells = block, CheckedCells(block)
        self._mapping, self._pictures, self._is_pool = mapping, pictures, is_pool
        cells, column = self.cells, mapping.column
        contexts = [cells.texts(each) for each in mapping.columns(Use.CONTEXT)]
        if len(contexts) != 1:
            joined = ["\n\n".join(filter(None, each)) for each in zip(*contexts, strict=True)]
            contexts = [joined or [""] * len(block)]
        shared = [
            *contexts,
            cells.texts(column(Use.REFERENCE)),
            cells.names(column(Use.CONDITION), longest=64),
            stripped(cells.texts(column(Use.PICTURE))),
        ]
        self.pages = list(zip(*shared, strict=True))
        self.digests = self._picture_digests(column(Use.PICTURE))
        if is_pool:
            problem = _("a target needs a title: choose its column as “Context”.")
            for n, text in enumerate(shared[0]):
                if not text.strip():
                    cells.note(n, block.row(n).refuse(problem, code="no_title"))
        names = cells.names(column(Use.ITEM), is_required=True)
        if not all(names):
            names = [name or named_by(page) for name, page in zip(names, self.pages, strict=True)]
        self.names = names
        self.responses = self._wide_responses(report) if mapping.is_wide else [self._responses()]

    def _wide_responses(self, report: ReadingReport) -> list[Responses]:
        block, none = self.block, [""] * len(self.block)
        responses = []
        for column in self._mapping.columns(Use.RESPONSE):
            systems = [self._mapping.system_of(column)] * len(block)
            texts = self.cells.texts(column)
            responses.append(Responses(column, systems, systems, texts, none, none))
        empty = [
            (n, each.column)
            for n in range(len(block))
            for each in responses
            if not each.texts[n].strip()
        ]
        for n, column in empty[:MOST_PLACES]:
            report.leave_out_part(EMPTY_CELL, f"{block.row(n).place}, {column}")
        if len(empty) > MOST_PLACES:
            report.leave_out_part(EMPTY_CELL, n=len(empty) - MOST_PLACES)
        problem = _("no system has a response in this row.")
        for n, row in enumerate(zip(*(each.texts for each in responses), strict=True)):
            if not "".join(row).strip():
                self.cells.note(n, block.row(n).refuse(problem, code="no_response"))
        return responses

    def _responses(self) -> Responses:
        cells, column = self.cells, self._mapping.column
        system, candidate = column(Use.SYSTEM), column(Use.CANDIDATE)
        systems = cells.names(system, longest=LONGEST_SYSTEM, is_required=True)
        keys = cells.names(candidate, is_required=True)
        if not all(keys):
            keys = [key or name for key, name in zip(keys, systems, strict=True)]
        response, picture = column(Use.RESPONSE), column(Use.CANDIDATE_PICTURE)
        texts: Sequence[str] = cells.texts(response)
        if self._is_pool:
            texts = cells.names(response, longest=1000, is_required=True) if response else keys
        pictures = stripped(cells.texts(picture))
        digests = self._picture_digests(picture)
        return Responses(candidate or system or "", keys, systems, texts, pictures, digests)

    def _picture_digests(self, column: str | None) -> list[str]:
        digests = [""] * len(self.block)
        if column is None:
            return digests
        for n, row in enumerate(self.block.rows()):
            try:
                picture = read_picture(row, column, self._pictures)
            except ImportRefused as refused:
                self.cells.note(n, refused, str(row.fields.get(column, "")))
            else:
                digests[n] = sha256(picture.content).hexdigest() if picture else ""
        return digests


def stripped(texts: Sequence[str]) -> list[str]:
    return [text.strip() for text in texts]


def named_by(page: Sequence[str]) -> str:
    """A name for an item that has none: the same for the same page, in whatever file."""
    digest = sha256("\x00".join(page).encode("utf-8", "replace")).hexdigest()
    return f"item-{digest[:12]}"
