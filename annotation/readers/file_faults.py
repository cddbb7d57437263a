"""What is wrong with a file, row by row: the first faults, and how many there are in all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from annotation.exceptions import ImportRefused

MOST_FAULTS = 100
LONGEST_VALUE, LONGEST_PROBLEM = 80, 5000


@dataclass(frozen=True)
class Fault:
    """What is wrong with a cell, a row or a file, and where that is."""

    line: int | None
    column: str
    value: str
    problem: str
    code: str = "import_refused"  # of faults stored before they had codes

    @property
    def plain(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("line", "column", "value", "problem", "code")
        }


@dataclass
class Faults:
    """The first faults of a file, and how many there are in all."""

    first: list[Fault] = field(default_factory=list)
    n: int = 0

    def add(self, refused: ImportRefused, value: str = "") -> None:
        self.n += 1
        if len(self.first) < MOST_FAULTS:
            excerpt = value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}…"
            problem = refused.problem[:LONGEST_PROBLEM]
            column = refused.field or ""
            self.first.append(Fault(refused.line, column, excerpt, problem, refused.code))

    @property
    def n_more(self) -> int:
        return self.n - len(self.first)
