"""The lines of an open text, of which a record that would fill the memory is refused.

What gzip compressed is a thousandth of itself: one line of it may be all that a machine can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused

LONGEST_RECORD = 16 * 1024**2
"""In characters. A dialogue of 100,000 words has less than one million; with pictures, more."""


class BoundedLines:
    """Lines as a text gives them; a CSV record in quotation marks may be of many."""

    def __init__(self, path: Path, lines: TextIO) -> None:
        self._path, self._lines = path, lines
        self._left, self._line = LONGEST_RECORD, 1
        self.is_refused = False

    def begin_record(self, *, line: int) -> None:
        """What comes next is another record, which begins on this line."""
        self._left, self._line = LONGEST_RECORD, line

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = self._lines.readline(self._left + 1)
        if not text:
            raise StopIteration
        if len(text) > self._left:
            self.is_refused = True
            problem = _("it has more than {n} million characters up to the next row.")
            problem = problem.format(n=LONGEST_RECORD // 1_000_000)
            raise ImportRefused(self._path, problem, line=self._line, code="too_long")
        self._left -= len(text)
        return text
