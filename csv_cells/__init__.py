"""Texts of others in CSV files that a spreadsheet opens: none begins a formula."""

import re

# What a spreadsheet begins a formula with, blanks and what is not seen before it or not; the last
# four are full-width forms, which some editions take for the same. Apostrophes before that are
# quoted, too, so that taking one away always gives the text that was written.
FORMULA = re.compile(
    "'*(?:[\\s\u200b\u200c\u200d\u2060\ufeff\u00ad\\x00]*[=+\\-@＝＋－＠]|[\\t\\r\\n])"
)


def to_cell(text: str) -> str:
    """The text as it is written into a cell: after an apostrophe where it would be a formula, or
    be taken for one that is quoted."""
    return f"'{text}" if FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """The text that `to_cell` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell[1:]) else cell
