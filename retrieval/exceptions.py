"""What can go wrong with test collections.

RetrievalError
├── TrecFileFaults   a run or a file of qrels cannot be used; every fault with its line
└── RunsUnfit        runs and judgments that cannot be evaluated together
"""

from collections.abc import Sequence
from pathlib import Path


class RetrievalError(Exception):
    """Something a person can mend; its text says what and how."""


class TrecFileFaults(RetrievalError):
    """All that is wrong with a file, in its order; the message lists the first of it."""

    MOST_LISTED = 20

    def __init__(self, path: Path, faults: Sequence[tuple[int | None, str]]) -> None:
        self.path, self.faults = path, tuple(faults)
        name = path.name or str(path)
        lines = [
            f"{name}: {problem}" if line is None else f"Line {line} of {name}: {problem}"
            for line, problem in self.faults[: self.MOST_LISTED]
        ]
        if (n_more := len(self.faults) - len(lines)) > 0:
            lines.append(f"... and {n_more:,} more.")
        super().__init__("\n".join([*lines, "Nothing was computed."]))


class RunsUnfit(RetrievalError):
    """Runs and judgments that cannot be evaluated together."""
