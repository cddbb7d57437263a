"""The named columns of a plain table as texts and numbers, under stated policies.

Every command that computes from a file reads it here, so that missing words, repeated labels and
names that look alike have the same rules and the same report.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from annotation.exceptions import FileRefused, ImportRefused, TableRefused
from annotation.readers.coded_table import (
    CodedTable,
    Mask,
    Words,
    merged_words,
    number_in_order,
    read_table,
)
from annotation.readers.nested_records import flat_records
from annotation.readers.policies import (
    MISSING,
    Reading,
    merged_categories,
    merged_note,
    note_look_alikes,
)
from annotation.readers.rows import MISSING_WORDS, MOST
from annotation.readers.shapes import Where
from error_codes import CodedText

Floats = NDArray[np.float64]

SEPARATOR = " | "
MOST_VALUES = 8
# A category that a program wrote for a number that overflowed.
INFINITIES = frozenset({"inf", "+inf", "-inf", "infinity", "-infinity"})


def as_table_refused(refused: FileRefused, more: str = "") -> TableRefused:
    return TableRefused(
        refused.path,
        f"{refused.problem} {more}" if more else refused.problem,
        line=refused.line,
        field=refused.field,
        code=refused.code,
        record=refused.record,
        sheet=refused.sheet,
    )


@contextmanager
def refusing_tables() -> Iterator[None]:
    try:
        yield
    except ImportRefused as refused:
        raise as_table_refused(refused) from None


@contextmanager
def refusing_values(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise TableRefused(path, f"{error}.", code=getattr(error, "code", "")) from None


class Table:
    def __init__(self, cells: CodedTable, reading: Reading) -> None:
        self.cells, self.reading = cells, reading
        self.report = reading.report

    def __len__(self) -> int:
        return len(self.cells)

    def choose(self, where: Where) -> None:
        self.cells.require(where)
        for column, values in where.items():
            words = self.cells.words(column)
            chosen = words.mask(lambda word, fits=values: word in fits)  # type: ignore[misc]
            if not chosen.any():
                raise self._no_match(column, values, words.words)
            self.keep(chosen, CodedText("--where does not choose it", "not_chosen"))

    def _no_match(self, column: str, values: Sequence[str], present: list[str]) -> ImportRefused:
        listed = ", ".join(f"'{value}'" for value in sorted(present)[:MOST_VALUES])
        n_more = len(present) - MOST_VALUES
        more = f" and {n_more} more" if n_more > 0 else ""
        alternatives = " or ".join(f"'{value}'" for value in values)
        return ImportRefused(
            self.cells.path,
            f"no row has {alternatives} here; there are {listed}{more}.",
            field=column,
            code="unknown_value",
        )

    def keep(self, mask: Mask, reason: CodedText) -> None:
        if mask.all():
            return
        rows = self.cells.rows
        left = np.setdiff1d(rows[~mask], rows[mask])
        if len(left):
            places = self.cells.places(np.isin(rows, left))
            for place in places:
                self.report.leave_out(reason, place)
            if len(left) > len(places):
                self.report.leave_out(reason, n=len(left) - len(places))
        n = int((~mask & ~np.isin(rows, left)).sum())
        # Missing labels are counted by their words.
        if n and reason.code != MISSING.code:
            self.report.leave_out_part(reason, n=n)
        self.cells = self.cells.keep(mask)

    def drop_missing(self, *columns: str) -> None:
        is_there = np.ones(len(self.cells), dtype=np.bool_)
        for column in columns:
            is_there &= ~self._missing(column, ~is_there)
        self.keep(is_there, MISSING)

    def _missing(self, column: str, known: Mask | None = None) -> Mask:
        words = self.cells.words(column)
        missing = words.mask(self.reading.policies.is_missing)
        counted = missing if known is None else missing & ~known
        counts = np.bincount(words.codes[counted], minlength=len(words.words))
        for code in np.flatnonzero(counts).tolist():
            self.report.note_missing(words.words[code], int(counts[code]))
        return missing

    def names(self, column: str, what: str) -> Words:
        """Names of items, annotators or systems; look-alikes stay distinct and are noted.

        Space at the ends is removed, unless two names of the file differ only by it.
        """
        raw = self.cells.words(column, is_stripped=False)
        stripped = [word.strip() for word in raw.words]
        if len({*stripped}) == len(stripped):
            words = Words(raw.codes, stripped)
        else:
            taken = {word for word in raw.words if word == word.strip()}
            kept = [
                word if plain in taken else plain
                for word, plain in zip(raw.words, stripped, strict=True)
            ]
            words = merged_words(raw.codes, kept)
        if (empty := words.mask(lambda word: not word.strip())).any():
            raise self.cells.refuse("this field must not be empty.", column, empty, code="empty")
        if named := [word for word in words.words if word in MISSING_WORDS]:
            n = int(words.mask(lambda word: word in MISSING_WORDS).sum())
            listed = ", ".join(f"'{word}'" for word in named)
            self.report.note(
                CodedText(
                    f"{n:,} rows have {listed} as the name in column '{column}'.",
                    "missing_word_as_name",
                )
            )
        note_look_alikes(self.report, words.words, what=what, code=f"look_alike_{what}")
        return words

    def units(self, columns: Sequence[str]) -> Words:
        parts = [self.names(column, "items") for column in columns]
        if len(parts) == 1:
            return parts[0]
        codes = parts[0].codes
        for part in parts[1:]:
            _distinct, codes = np.unique(codes * len(part.words) + part.codes, return_inverse=True)
        codes, first = number_in_order(codes)
        named = [
            SEPARATOR.join(part.words[part.codes[row]] for part in parts) for row in first.tolist()
        ]
        if len({*named}) < len(named):
            again = next(n for n in range(len(named)) if named[n] in named[:n])
            rows = np.isin(codes, [n for n, name in enumerate(named) if name == named[again]])
            rows &= codes != codes[int(np.argmax(rows))]
            raise self.cells.refuse(
                f"'{named[again]}' could be two units, since values contain '{SEPARATOR}'; "
                "rename one.",
                None,
                rows,
                code="ambiguous_unit",
            )
        return Words(codes, named)

    def texts(self, column: str) -> list[str]:
        return self.cells.words(column).to_list()

    def categories(self, column: str) -> Words:
        words = self.cells.words(column)
        wrong = words.mask(lambda word: word.casefold() in INFINITIES)
        if wrong.any():
            text = words.words[words.codes[int(np.argmax(wrong))]]
            raise self.cells.refuse(
                f"'{text}' is what programs write for no number. Leave such rows out.",
                column,
                wrong,
                code="no_label",
            )
        if self.reading.policies.categories == "as-written":
            note_look_alikes(
                self.report, words.words, what="categories", code="look_alike_categories"
            )
            return words
        counts = np.bincount(words.codes, minlength=len(words.words))
        merged = merged_categories(words.words, counts.tolist())
        if merged:
            numbers = dict(zip(words.words, counts.tolist(), strict=True))
            self.report.note(merged_note(merged, numbers))
        return merged_words(words.codes, [merged.get(word, word) for word in words.words])

    def numbers(
        self,
        column: str,
        *,
        is_optional: bool = False,
        is_counted: bool = True,
        lowest: float | None = None,
    ) -> Floats:
        if is_optional and is_counted:
            self._missing(column)
        words = self.cells.words(column)
        values = np.full(len(words.words), np.nan)
        problems: dict[str, CodedText] = {}
        for at, text in enumerate(words.words):
            if is_optional and self.reading.policies.is_missing(text):
                continue
            value, problem = number_of(self.cells.source.with_decimal_point(text), lowest)
            values[at] = value
            if problem is not None:
                problems[words.words[at]] = problem
        if problems:
            wrong = words.mask(problems.__contains__)
            text = words.words[words.codes[int(np.argmax(wrong))]]
            raise self.cells.refuse(problems[text], column, wrong)
        return values[words.codes] if len(words.words) else np.empty(0)

    def clusters(self, column: str, units: Words) -> Words:
        words = self.names(column, "clusters")
        first = np.full(len(units.words), -1, dtype=np.intp)
        _units, rows = np.unique(units.codes, return_index=True)
        first[_units] = rows
        differs = words.codes != words.codes[first[units.codes]]
        if differs.any():
            place = self.cells.place(int(first[units.codes[int(np.argmax(differs))]]))
            raise self.cells.refuse(
                f"differs from {place} of the same item.", column, differs, code="differs"
            )
        return words


WORDS_OF_TWO = frozenset({"yes", "no", "true", "false", "pass", "fail", "y", "n", "t", "f"})


def number_of(text: str, lowest: float | None = None) -> tuple[float, CodedText | None]:
    try:
        value = float("" if "_" in text else text)
    except ValueError:
        problem = f"'{text[:40]}' is not a number."
        if text.casefold() in WORDS_OF_TWO:
            problem += " Write 1 and 0."
        return math.nan, CodedText(problem, "not_number")
    if not math.isfinite(value):
        return math.nan, CodedText(f"'{text[:40]}' is not a finite number.", "not_finite")
    if abs(value) > MOST:
        return math.nan, CodedText(f"'{text[:40]}' is beyond {MOST:g}.", "out_of_range")
    if lowest is not None and value < lowest:
        problem = f"'{value:g}' is below zero. A ratio scale begins at zero."
        return math.nan, CodedText(problem, "below_zero")
    return value, None


def open_table(path: Path, columns: Sequence[str], where: Where, reading: Reading) -> Table:
    named = list(dict.fromkeys([*columns, *where]))
    cells = read_table(path, named, report=reading.report)
    reading.state_policies()
    cells = flat_records(cells, named, reading)
    cells.require(named)
    table = Table(cells.only(named), reading)
    table.choose(where)
    return table
