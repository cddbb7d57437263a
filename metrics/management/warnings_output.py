"""How commands pass on a scorer's warnings."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from metrics.scorers.errors import ScoringWarning


@contextmanager
def plain_warnings() -> Iterator[None]:
    """What may mislead about a score is a line on standard error, without Python's trappings."""
    with warnings.catch_warnings():
        otherwise = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, ScoringWarning):
                sys.stderr.write(f"Warning: {message}.\n")
            else:
                otherwise(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
