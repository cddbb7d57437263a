"""Tables as text: columns padded to their longest cell."""

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The header and the rows, a line each.

    >>> print(text_table(("run", "mean"), [("bm25", ".41"), ("dense", ".5")]))
    run    mean
    bm25   .41
    dense  .5
    """
    widths = [max(len(line[at]) for line in (header, *rows)) for at in range(len(header))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (header, *rows)
    )
    return "\n".join(padded)
