"""Texts of others in CSV files that a spreadsheet opens: none begins a formula, nor does what of a
text a spreadsheet takes for a cell of its own. Where it expects semicolons between cells, a quoted
text is divided at those, and at the ends of its lines."""

import re

# What a spreadsheet begins a formula with, blanks and what is not seen before it or not; the last
# four are full-width forms, which some editions take for the same. Apostrophes before that are
# quoted, too, so that taking one away always gives the text that was written.
FORMULA = re.compile(
    "'*(?:[\\s\u200b\u200c\u200d\u2060\ufeff\u00ad\\x00]*[=+\\-@＝＋－＠]|[\\t\\r\\n])"
)
# The same within a text; a plus or minus alone begins an item of a list there, or a smile ;-).
WITHIN = (
    "'*(?:[^\\S\r\n]|[\u200b\u200c\u200d\u2060\ufeff\u00ad\\x00])*"
    "(?:[=@＝＠]|[+\\-＋－](?![\\s)(|/\\\\]|$))"
)
LATER = re.compile(f"([;\r\n])(?={WITHIN})")
LATER_QUOTED = re.compile(f"([;\r\n])'(?={WITHIN})")


def to_cell(text: str) -> str:
    """The text as it is written into a cell: after an apostrophe where it would be a formula, or
    be taken for one that is quoted; so is what follows a semicolon in it, or the end of a line."""
    first = f"'{text}" if FORMULA.match(text) else text
    return LATER.sub(r"\1'", first)


def from_cell(cell: str) -> str:
    """The text that `to_cell` was given."""
    first = LATER_QUOTED.sub(r"\1", cell)
    return first[1:] if first.startswith("'") and FORMULA.match(first[1:]) else first
