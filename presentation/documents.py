"""Documents, which all writers share: sections of paragraphs, tables and figures.

HTML, Markdown, LaTeX, CSV, JSON and text are written from the same objects. No writer knows what
a correlation is.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import takewhile
from math import isnan
from string import ascii_lowercase
from typing import Any, Protocol

from django.utils.translation import gettext as _

from presentation.theme import Picture

MOST_PRINTED = 200
# A table with more columns is unreadable when it is scaled to the width of the text.
MOST_COLUMNS_PRINTED = 24
DASH = "–"


@dataclass(frozen=True)
class Number:
    """A number with the limits of its interval, and how it is displayed.

    An undefined value is None or NaN, with the `reason`. `no_interval` is why a defined value has
    no limits. `signature` names the data and the rules of the computation. `is_best` highlights
    the number in its column. `is_signed` prints a plus before positive values.
    """

    value: float | None
    decimals: int = 2
    low: float | None = None
    high: float | None = None
    reason: str = ""
    signature: str = ""
    is_best: bool = False
    no_interval: str = ""
    is_signed: bool = False

    def __post_init__(self) -> None:
        _clear_nan(self, "value", "low", "high")

    @property
    def missing(self) -> str:
        if self.value is None:
            return self.reason
        return self.no_interval if self.low is None or self.high is None else ""

    @property
    def text(self) -> str:
        if self.value is None:
            return DASH
        text = self._round(self.value)
        if self.low is None or self.high is None:
            return text
        return f"{text} [{self._round(self.low)}, {self._round(self.high)}]"

    def _round(self, value: float) -> str:
        # Zero has no sign.
        text = f"{value:{'+' if self.is_signed else ''},.{self.decimals}f}"
        return text.lstrip("+-") if not text.strip("+-0.,") else text


@dataclass(frozen=True)
class P:
    """A p-value, printed in APA style (".050", "<.001"); None or NaN is undefined."""

    value: float | None
    reason: str = ""
    signature: str = ""
    is_best: bool = False

    def __post_init__(self) -> None:
        _clear_nan(self, "value")

    @property
    def missing(self) -> str:
        return self.reason if self.value is None else ""

    @property
    def text(self) -> str:
        if self.value is None:
            return DASH
        return "<.001" if self.value < 0.001 else f"{self.value:.3f}".removeprefix("0")


def _clear_nan(cell: Number | P, *names: str) -> None:
    for name in names:
        if (number := getattr(cell, name)) is not None and isnan(number):
            object.__setattr__(cell, name, None)


class Estimate(Protocol):
    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...


def add_interval(
    value: float | None, estimate: Estimate, decimals: int = 2, *, is_signed: bool = False
) -> Number:
    reason = estimate.reason or ""
    low, high = estimate.ci_low, estimate.ci_high
    return Number(value, decimals, low, high, reason, no_interval=reason, is_signed=is_signed)


@dataclass(frozen=True)
class Shortened:
    text: str
    whole: str


Cell = str | int | Number | P | Shortened
Row = tuple[Cell, ...]
# A field of a table's records: its title, the index of its cell, and the content of the cell.
Field = tuple[str, int, Callable[[Cell], Any]]


@dataclass(frozen=True)
class Column:
    """A column's title, the title (`group`) that it shares with its neighbours, and its type."""

    title: str
    group: str = ""
    is_number: bool = True

    @property
    def full_title(self) -> str:
        return f"{self.group}: {self.title}" if self.group else self.title


# Between a number and the interval behind it.
INTERVAL = " ["


@dataclass(frozen=True)
class DisplayedCell:
    column: Column
    text: str
    letter: str = ""
    signature: str = ""
    is_best: bool = False
    is_header: bool = False

    @property
    def value(self) -> str:
        return self.text.partition(INTERVAL)[0] if self.column.is_number else self.text

    @property
    def interval(self) -> str:
        _value, begins, rest = self.text.partition(INTERVAL)
        return f"[{rest}" if begins and self.column.is_number else ""


@dataclass(frozen=True)
class Table:
    """A table; `name` consists of letters, digits and hyphens, and names its file.

    A paper prints all rows of an appendix.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    is_appendix: bool = False

    @property
    def is_short(self) -> bool:
        """Whether a page displays the table; otherwise the page has it as a file."""
        return len(self.columns) <= MOST_COLUMNS_PRINTED and len(self.rows) <= MOST_PRINTED

    @property
    def is_printed(self) -> bool:
        """Whether a paper prints the table; otherwise it is a separate CSV file."""
        return self.is_appendix or self.is_short

    @cached_property
    def letters(self) -> dict[str, str]:
        """A letter for each reason why a number is undefined or has no interval, in order of
        appearance."""
        reasons = dict.fromkeys(
            cell.missing
            for row in self.rows
            for cell in row
            if isinstance(cell, Number | P) and cell.missing
        )
        return {reason: name_letter(number) for number, reason in enumerate(reasons)}

    def reasons(self, *, is_defined: bool) -> list[str]:
        of = {
            cell.missing
            for row in self.rows
            for cell in row
            if isinstance(cell, Number | P) and (cell.value is not None) == is_defined
        }
        return [f"{letter}: " + _(one) for one, letter in self.letters.items() if one in of]

    @property
    def cells(self) -> Iterator[list[DisplayedCell]]:
        for row in self.rows:
            yield [
                _displayed(self, column, cell, is_header=number < self.n_headers)
                for number, (column, cell) in enumerate(zip(self.columns, row, strict=True))
            ]

    @cached_property
    def n_headers(self) -> int:
        """Number of header columns: the fewest leading text columns that distinguish as many rows
        as all leading text columns do."""
        n_words = len(list(takewhile(lambda column: not column.is_number, self.columns)))
        words = [tuple(cell_text(cell) for cell in row[:n_words]) for row in self.rows]
        counts = [len({row[:n] for row in words}) for n in range(1, n_words + 1)]
        return next((n for n, count in enumerate(counts, 1) if count == counts[-1]), 0)

    @property
    def full_note(self) -> str:
        parts = [self.note]
        if reasons := self.reasons(is_defined=False):
            parts.append(_("– undefined; %(reasons)s.") % {"reasons": "; ".join(reasons)})
        if reasons := self.reasons(is_defined=True):
            parts.append(_("Without an interval; %(reasons)s.") % {"reasons": "; ".join(reasons)})
        return " ".join(part for part in parts if part)

    @property
    def file_note(self) -> str:
        """The text of a paper in place of a table that is too long, or too wide, to be printed."""
        n_columns = len(self.columns)
        wide = f" of {n_columns} columns" if n_columns > MOST_COLUMNS_PRINTED else ""
        size = f"{len(self.rows):,} rows{wide}"
        return f"{self.caption}: {size}, in the file tables/{self.name}.csv. {self.note}".rstrip()

    def letter(self, cell: Cell) -> str:
        return self.letters.get(cell.missing, "") if isinstance(cell, Number | P) else ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each title that neighbouring columns share and the number of columns; empty if none."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if groups and column.group and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return groups if any(title for title, _size in groups) else []

    def records(self) -> list[dict[str, Any]]:
        fields = self._fields()
        return [
            {title: content(row[number]) for title, number, content in fields} for row in self.rows
        ]

    def _fields(self) -> list[Field]:
        with_interval = {
            number
            for row in self.rows
            for number, cell in enumerate(row)
            if isinstance(cell, Number) and (cell.low is not None or cell.high is not None)
        }
        counts: Counter[str] = Counter()
        fields: list[Field] = []
        for number, column in enumerate(self.columns):
            title = column.full_title
            counts[title] += 1
            name = f"{title} ({counts[title]})" if counts[title] > 1 else title
            fields.append((name, number, _plain))
            if number in with_interval:
                ends = {
                    "low": _("{title}, lower limit").format(title=name),
                    "high": _("{title}, upper limit").format(title=name),
                }
                fields += [(text, number, partial(_limit, end)) for end, text in ends.items()]
            if any(_missing(row[number]) for row in self.rows):
                fields.append((_("{title}, what is missing").format(title=name), number, _missing))
        return fields


@dataclass(frozen=True)
class Figure:
    """A chart, its description in words, and its data.

    `draw` is called only when the chart is needed.
    """

    name: str
    caption: str
    words: str
    draw: Callable[[], Picture]
    rows: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def chart(self) -> Picture:
        return self.draw()


@dataclass(frozen=True)
class Verbatim:
    """A user's text under a caption, with its line breaks and all its characters."""

    caption: str
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.strip("\r\n").splitlines()


Part = str | Table | Figure | Verbatim


@dataclass(frozen=True)
class Section:
    title: str
    parts: Sequence[Part]

    def mark(self, words: str, *, suffix: str = "") -> "Section":
        """The section with `words` in each caption, and `suffix` at the names of its files."""
        parts = [
            replace(part, name=f"{part.name}{suffix}", caption=f"{part.caption} ({words})")
            if isinstance(part, Table | Figure)
            else part
            for part in self.parts
        ]
        return Section(self.title, parts)


@dataclass(frozen=True)
class Document:
    """A report that begins with its `answer`. JSON and CSV also contain the `records`, by kind."""

    title: str
    sections: Sequence[Section]
    records: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""

    @property
    def tables(self) -> list[Table]:
        parts = (part for section in self.sections for part in section.parts)
        return [part for part in parts if isinstance(part, Table)]

    @property
    def figures(self) -> list[Figure]:
        parts = (part for section in self.sections for part in section.parts)
        return [part for part in parts if isinstance(part, Figure)]


def _displayed(table: Table, column: Column, cell: Cell, *, is_header: bool) -> DisplayedCell:
    text = printed_text(cell)
    if not isinstance(cell, Number | P):
        # A header without words is no header.
        return DisplayedCell(column, text, is_header=is_header and bool(text))
    letter = table.letter(cell)
    return DisplayedCell(column, text, letter, cell.signature, cell.is_best)


def cell_text(cell: Cell) -> str:
    if isinstance(cell, Number | P | Shortened):
        return cell.text
    return f"{cell:,}" if isinstance(cell, int) else cell


def printed_text(cell: Cell) -> str:
    text = cell_text(cell)
    return text.replace("-", "\N{MINUS SIGN}") if isinstance(cell, Number | P) else text


def _plain(cell: Cell) -> Any:
    if isinstance(cell, Shortened):
        return cell.whole
    return cell.value if isinstance(cell, Number | P) else cell


def _limit(end: str, cell: Cell) -> Any:
    return getattr(cell, end, None)


def _missing(cell: Cell) -> str:
    return _(cell.missing) if isinstance(cell, Number | P) and cell.missing else ""


def name_letter(number: int) -> str:
    over, rest = divmod(number, len(ascii_lowercase))
    return (ascii_lowercase[over - 1] if over else "") + ascii_lowercase[rest]
