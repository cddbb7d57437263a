"""The lines of a list of names, of which none is in memory but the last."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from error_codes import CodedText
from presentation.files import plain_file
from retrieval.exceptions import FileFaults

LONGEST_LINE = 64 * 1024
"""In characters: a name has a thousand bytes at the most."""


def each_text_line(path: Path, refused: type[FileFaults]) -> Iterator[tuple[int, str]]:
    """Lines of UTF-8 with their numbers, without what ends them, or faults of the class."""
    number = 0
    try:
        file = plain_file(path).open("rb")
        with file, io.TextIOWrapper(file, encoding="utf-8-sig") as lines:
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    problem = CodedText(
                        f"it is longer than {LONGEST_LINE:,} characters.", code="too_long"
                    )
                    raise refused(path, [(number, problem)])
                yield number, line.removesuffix("\n")
    except OSError as error:
        problem = CodedText(f"it cannot be read: {error.strerror or error}.", code="unreadable")
        raise refused(path, [(None, problem)]) from None
    except UnicodeDecodeError:
        raise refused(
            path, [(None, CodedText("it is not UTF-8. Save it as UTF-8.", code="not_utf8"))]
        ) from None
