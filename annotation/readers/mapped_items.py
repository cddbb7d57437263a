"""Rows of any table as items, by a mapping of its columns.

A row is one response of a system, or one item with a column for each system. Items are put
together in a temporary database, so that a long file needs no more memory than a short one; all
that is wrong with the file is noted, with the cell that it is in.
"""

import sqlite3
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, ngettext

from annotation.bulk import insert_many
from annotation.readers.drafts import (
    CandidateDraft,
    Faults,
    ItemDraft,
    PictureDraft,
    ReadingReport,
)
from annotation.readers.item_files import MOST_CANDIDATES
from annotation.readers.mapped_rows import MappedRows
from annotation.readers.mapping import (
    KEEP,
    LEAVE_OUT,
    ColumnMapping,
    Use,
    mapping_warnings,
)
from annotation.readers.pictures import NoPictures, PictureSource, read_picture
from annotation.readers.rows import Row, RowBlock
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
    picture TEXT, digest TEXT, row INTEGER, extra TEXT, UNIQUE (item, key)
);
CREATE TABLE blank (
    n INTEGER PRIMARY KEY, item INTEGER, key TEXT, system TEXT, line INTEGER, row INTEGER
);
"""


# Of items and responses of which something is said, so many by their names.
MOST_NAMED = 3
# Kinds of candidates that a person may keep or leave out.
BLANK, NO_TEXT, REPEATED = "response_without_text", "candidate_without_text", "repeated_candidate"
# Of each kind: what is done unless the mapping has a fix, and which candidates are of it.
FOUND = {
    BLANK: (LEAVE_OUT, "TRIM(text) = '' AND candidate.picture = ''"),
    NO_TEXT: (
        KEEP,
        "TRIM(text) = '' AND candidate.picture <> ''"
        " AND EXISTS (SELECT 1 FROM candidate WHERE TRIM(text) <> '')",
    ),
    REPEATED: (
        KEEP,
        "EXISTS (SELECT 1 FROM candidate AS other WHERE other.item = candidate.item"
        " AND other.n < candidate.n AND other.digest = candidate.digest"
        " AND (other.digest <> '' OR (other.text = candidate.text AND TRIM(other.text) <> '')))",
    ),
}


class Found(NamedTuple):
    """Candidates of one kind in `FOUND`: how many, and the first of them."""

    code: str
    n: int
    fix: str
    named: list[str]
    lines: list[int]
    item: str


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
        self._refuse_empty_items()
        self.found = [*self._settle()]
        self._refuse_empty_items()
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
    def n_per_item(self) -> tuple[int, int]:
        """The fewest and the most candidates of an item."""
        fewest, most = self._database.execute(
            "SELECT MIN(n), MAX(n) FROM (SELECT COUNT(*) AS n FROM candidate"
            " JOIN item ON item.n = item WHERE NOT is_faulty GROUP BY item)"
        ).fetchone()
        return fewest or 0, most or 0

    @property
    def first_and_last(self) -> list[str]:
        """The names of the first and the last item."""
        names = "SELECT name FROM item WHERE NOT is_faulty ORDER BY n"
        rows = [self._database.execute(f"{names} {order} LIMIT 1") for order in ("", "DESC")]
        return list(dict.fromkeys(name for found in rows for (name,) in found))

    def __contains__(self, thing: object) -> bool:
        return any(each == thing for each in self)

    def __iter__(self) -> Iterator[ItemDraft]:
        for last in range(0, self._n_items, ITEMS_AT_ONCE):
            between = (last, last + ITEMS_AT_ONCE)
            rows = self._database.execute(
                "SELECT item, key, system, text, picture, extra FROM candidate"
                " WHERE item > ? AND item <= ? ORDER BY item, n",
                between,
            ).fetchall()
            candidates = {n: list(group) for n, group in groupby(rows, key=itemgetter(0))}
            for n, name, line, context, reference, condition, picture in self._database.execute(
                "SELECT n, name, line, context, reference, condition, picture FROM item"
                " WHERE n > ? AND n <= ? AND NOT is_faulty ORDER BY n",
                between,
            ).fetchall():
                drafts = tuple(
                    CandidateDraft(
                        key, system, text, self._picture(line, named) if named else None, extra
                    )
                    for _item, key, system, text, named, extra in candidates[n]
                )
                shown = self._picture(line, picture) if picture else None
                yield ItemDraft(name, drafts, line, context, reference, condition, shown)

    def report(self) -> ReadingReport:
        report = replace(
            self._report, left_out=dict(self._report.left_out), notes=list(self._report.notes)
        )
        if n := self._n_unstaged + self._number(
            "SELECT COUNT(DISTINCT row) FROM (SELECT item, row FROM candidate UNION"
            " SELECT item, row FROM blank) JOIN item ON item.n = item WHERE is_faulty"
        ):
            report.leave_out(
                CodedText("something is wrong in a row of the item", "faulty_item"), n=n
            )
        for note in self.notes():
            report.note(CodedText(f"{note}.", note.code))
        return report

    def notes(self) -> list[CodedText]:
        return [*mapping_warnings(self.mapping), *map(_found_in_words, self.found)]

    def faulty_names(self) -> list[str]:
        return [
            name
            for (name,) in self._database.execute(
                "SELECT name FROM item WHERE is_faulty ORDER BY n LIMIT ?", (MOST_NAMED,)
            )
        ]

    def _picture(self, line: int, name: str) -> PictureDraft | None:
        row, folder = Row(self.path, line, {"": name}), self.mapping.fixes.get("several_pictures")
        return read_picture(row, "", self._pictures, folder)

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    def _settle(self) -> Iterator[Found]:
        """Leave out the candidates that the mapping, or the default, says to leave out."""
        for code, (default, condition) in FOUND.items():
            fix = self.mapping.fixes.get(code, default)
            # Blank ones that are left out never were candidates.
            table = "blank AS candidate" if (code, fix) == (BLANK, LEAVE_OUT) else "candidate"
            rows = self._database.execute(
                "SELECT candidate.n, COALESCE(NULLIF(system, ''), key), candidate.line, name"
                f" FROM {table} JOIN item ON item.n = item WHERE NOT is_faulty"
                f"{'' if table != 'candidate' else f' AND {condition}'} ORDER BY candidate.n"
            ).fetchall()
            if not rows or (code == REPEATED and not self._is_pool):
                continue
            named = [f"{item}, {key}" for _n, key, _line, item in rows[:MOST_NAMED]]
            lines = [line for _n, _key, line, _item in rows[:MOST_NAMED]]
            if code == REPEATED:
                lines.insert(0, self._line_of_first(rows[0][0]))
            yield Found(code, len(rows), fix, named, lines, rows[0][3])
            if fix == LEAVE_OUT:
                self._leave_out(code, rows)

    def _line_of_first(self, candidate: int) -> int:
        """The line of the first candidate that this one repeats."""
        row = self._database.execute(
            "SELECT MIN(other.line) FROM candidate JOIN candidate AS other"
            " ON other.item = candidate.item AND other.digest = candidate.digest"
            " AND (other.digest <> '' OR other.text = candidate.text) WHERE candidate.n = ?",
            (candidate,),
        ).fetchone()
        return int(row[0])

    def _leave_out(self, code: str, rows: Sequence[tuple[int, str, int, str]]) -> None:
        if code != BLANK:
            self._database.executemany(
                "DELETE FROM candidate WHERE n = ?", [row[:1] for row in rows]
            )
        add = self._report.leave_out_part if self.mapping.is_wide else self._report.leave_out
        for _n, key, line, item in rows:
            add(CodedText(LEFT_OUT[code], code), f"{Row(self.path, line, {}).place}, {item}, {key}")

    def _refuse_empty_items(self) -> None:
        rows = self._database.execute(
            "SELECT n, line FROM item WHERE NOT is_faulty"
            " AND NOT EXISTS (SELECT 1 FROM candidate WHERE item = item.n) ORDER BY n"
        ).fetchall()
        problem = _("no response of this item has a text or a picture.")
        for _n, line in rows:
            self.faults.add(Row(self.path, line, {}).refuse(problem, code="no_response"))
        self._mark_faulty(n for n, _line in rows)

    # Staging

    def _stage(self, block: RowBlock) -> None:
        rows = MappedRows(
            block,
            self.mapping,
            pictures=self._pictures,
            is_pool=self._is_pool,
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
                        refused = rows.block.row(n).refuse(
                            problem, self.mapping.column(use), code="differs"
                        )
                        cells.note(n, refused, value)
        insert_many(self._database, "INSERT INTO item", items, n_columns=9, mark="?")
        self._mark_faulty(faulty_items)
        return numbers

    def _known_items(self, names: Iterable[str]) -> dict[str, tuple[int, int | None, Any]]:
        asked = list(set(names))
        marks = ", ".join("?" * len(asked))
        return {
            name: (n, line, tuple(page))
            for name, n, line, *page in self._database.execute(
                "SELECT name, n, line, context, reference, condition, picture FROM item"
                f" WHERE name IN ({marks})",
                asked,
            )
        }

    def _write_candidates(self, rows: MappedRows, numbers: Sequence[int | None]) -> None:
        block = rows.block
        by_column = [
            zip(
                *(numbers, each.keys, each.systems, block.lines, each.texts),
                *(each.pictures, each.digests, range(self._n_rows, self._n_rows + len(block))),
                *(rows.extras, [each.column] * len(block)),
                strict=True,
            )
            for each in rows.responses
        ]
        candidates = [
            candidate
            for candidate in chain.from_iterable(zip(*by_column, strict=True))
            if candidate[0] is not None
        ]
        blank_rows: set[int] = set()
        if self.mapping.fixes.get(BLANK) != KEEP:
            # A blank one would be in the way of the same system's response in a later row.
            blank = [each for each in candidates if not (each[4].strip() or each[5])]
            candidates = [each for each in candidates if each[4].strip() or each[5]]
            # Rows with nothing else; others are counted by their other responses.
            blank_rows = {each[7] for each in blank} - {each[7] for each in candidates}
            of_items = ((*each[:4], each[7] if each[7] in blank_rows else None) for each in blank)
            insert = "INSERT INTO blank (item, key, system, line, row)"
            insert_many(self._database, insert, of_items, n_columns=5, mark="?")
        last = self._number("SELECT COALESCE(MAX(n), 0) FROM candidate")
        n_changes = self._database.total_changes
        columns = "item, key, system, line, text, picture, digest, row, extra"
        insert = f"INSERT OR IGNORE INTO candidate ({columns})"
        stored = (candidate[:9] for candidate in candidates)
        insert_many(self._database, insert, stored, n_columns=9, mark="?")
        if self._database.total_changes - n_changes == len(candidates):
            return
        problem = _("item '{item}' has another response of '{key}' on line {line}.")
        faulty_items, new = set(), set()
        # Of each row whether a candidate is stored, or else whether one is faulty.
        is_stored, is_faulty = [False] * len(block), [False] * len(block)
        for item, key, system, _line, text, _picture, digest, row, _extra, column in candidates:
            n = row - self._n_rows
            first, line, *there = self._database.execute(
                "SELECT n, line, system, text, digest FROM candidate WHERE item = ? AND key = ?",
                (item, key),
            ).fetchone()
            if first > last and first not in new:
                new.add(first)
                is_stored[n] = True
            elif there != [system, text, digest]:
                rows.cells.note(
                    n,
                    block.row(n).refuse(
                        problem.format(item=rows.names[n], key=key, line=line),
                        column,
                        code="repeated_response",
                    ),
                    key,
                )
                faulty_items.add(item)
                is_faulty[n] = True
        self._mark_faulty(faulty_items)
        for n, number in enumerate(numbers):
            if number is None or is_stored[n] or n + self._n_rows in blank_rows:
                continue
            if is_faulty[n]:
                self._n_unstaged += 1
            else:
                self._report.leave_out(
                    CodedText("another row has the same response", "repeated_response"),
                    block.row(n).place,
                )

    def _mark_faulty(self, numbers: Iterable[int]) -> None:
        self._database.executemany(
            "UPDATE item SET is_faulty = 1 WHERE n = ?", [(n,) for n in numbers]
        )

    def _refuse_pools(self) -> None:
        target = _("'{key}' shows the target's own picture. Take it out of the pool.")
        many = _("item '{key}' has more than {n} candidates.")
        of_candidates = "SELECT candidate.line, key, item FROM candidate JOIN item ON item.n = item"
        for query, problem in (
            (
                f"{of_candidates} WHERE candidate.digest <> '' AND candidate.digest = item.digest",
                CodedText(target, "target_in_pool"),
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
LEFT_OUT = {
    BLANK: "the response has no text and no picture",
    NO_TEXT: "the candidate has no text",
    REPEATED: "the item has the same candidate already",
}


def _found_in_words(found: Found) -> CodedText:
    n = found.n
    texts = {
        (BLANK, LEAVE_OUT): ngettext(
            "%(n)s response is left out, because it has no text and no picture: %(named)s",
            "%(n)s responses are left out, because they have no text and no picture: %(named)s",
            n,
        ),
        (BLANK, KEEP): ngettext(
            "%(n)s response has no text and no picture: %(named)s",
            "%(n)s responses have no text and no picture: %(named)s",
            n,
        ),
        (NO_TEXT, LEAVE_OUT): ngettext(
            "%(n)s candidate without a text is left out: %(named)s",
            "%(n)s candidates without a text are left out: %(named)s",
            n,
        ),
        (NO_TEXT, KEEP): ngettext(
            "%(n)s candidate has a picture and no text: %(named)s",
            "%(n)s candidates have a picture and no text: %(named)s",
            n,
        ),
        (REPEATED, LEAVE_OUT): ngettext(
            "%(n)s candidate that is in its item twice is left out once: %(named)s",
            "%(n)s candidates that are in their items twice are left out once: %(named)s",
            n,
        ),
        (REPEATED, KEEP): ngettext(
            "%(n)s candidate is in the same item twice: %(named)s",
            "%(n)s candidates are in the same item twice: %(named)s",
            n,
        ),
    }
    named = "; ".join([*found.named, *["…"] * (n > len(found.named))])
    return CodedText(texts[found.code, found.fix] % {"n": f"{n:,}", "named": named}, found.code)
