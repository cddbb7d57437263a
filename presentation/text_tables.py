import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from presentation.documents import Cell, Number, P, cell_text, name_letter

# A terminal obeys them: they change its colours, its title, what stands above.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
BUT_LINE_ENDS = re.compile(f"(?![\n\t]){CONTROLS.pattern}")


def printable(text: str) -> str:
    r"""A text of several lines with U+FFFD for what would steer a terminal.

    Names come from files that others wrote.

    >>> printable("a\x1b[31mb\nc").splitlines()
    ['a�[31mb', 'c']
    """
    return BUT_LINE_ENDS.sub("\N{REPLACEMENT CHARACTER}", text)


def text_report(parts: Iterable[str], notes: Iterable[str] = ()) -> str:
    last = "\n".join(f"Note: {note}." for note in notes)
    return printable("\n\n".join(part for part in (*parts, last) if part))


def estimate_line(name: str, record: Mapping[str, Any]) -> str:
    """A record's `value` with its limits, or the reason why it is undefined.

    >>> estimate_line("bias", {"value": 0.25, "ci_low": 0.125, "ci_high": 0.5})
    'bias: 0.250 [0.125, 0.500]'
    """
    value, low, high = (record[key] for key in ("value", "ci_low", "ci_high"))
    reason = record.get("reason") or ""
    return f"{name}: {_cell_line(Number(value, 3, low, high, reason, no_interval=reason))}"


def _cell_line(cell: Cell) -> str:
    text = cell_text(cell)
    if isinstance(cell, Number | P) and cell.missing:
        missing = f"undefined: {cell.missing}"
        text = missing if cell.value is None else f"{text} (no interval: {cell.missing})"
    return _clean(text)


def _clean(text: str) -> str:
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def text_table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The header and the rows, a line each, in columns as wide as their longest cell.

    Below them, by letters, why numbers are undefined or have no interval.

    >>> missing = Number(None, reason="no topic")
    >>> print(text_table(("run", "mean"), [("bm25", Number(0.413)), ("dense", missing)]))
    run    mean
    bm25   0.41
    dense  undefined (a)
    (a) no topic
    """
    letters: dict[str, str] = {}
    lines = [list(header), *([_lettered(cell, letters) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    reasons = (f"({letter}) {_clean(reason)}" for reason, letter in letters.items())
    return "\n".join([*padded, *reasons])


def _lettered(cell: Cell, letters: dict[str, str]) -> str:
    if not (isinstance(cell, Number | P) and cell.missing):
        return _clean(cell_text(cell))
    letter = letters.setdefault(cell.missing, name_letter(len(letters)))
    return f"{'undefined' if cell.value is None else cell_text(cell)} ({letter})"
