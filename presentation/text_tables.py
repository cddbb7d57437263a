"""Tables as text: columns padded to their longest cell."""

import re
from collections.abc import Sequence

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


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The header and the rows, a line each.

    >>> print(text_table(("run", "mean"), [("bm25", ".41"), ("dense", ".5")]))
    run    mean
    bm25   .41
    dense  .5
    """
    lines = [[CONTROLS.sub("\N{REPLACEMENT CHARACTER}", cell) for cell in line] for line in rows]
    lines.insert(0, list(header))
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join(padded)
