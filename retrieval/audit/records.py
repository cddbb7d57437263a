"""What an audit of a test collection holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from presentation.records import plain_values

Severity = Literal["refused", "defect", "note"]
FileKind = Literal[
    "judged pools",
    "alternatives",
    "dialogue starts",
    "batch",
    "qrels",
    "assessors",
    "run",
    "unknown",
]
Facts = Mapping[str, Any]
"""What was counted of a file, as plain values: each kind of file has its own."""
Claims = Mapping[str, str]
"""Published numbers by what they are of, as they were printed: their decimals count."""
MOST_LINES = 20
"""Lines named in JSON and on pages of one finding; the number counts all."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a reader must know of a file.

    A file with what is `refused` would be silently misread; a `defect` can be read, and makes
    numbers mean something else than they seem; a `note` is neither.
    """

    name: str
    severity: Severity
    text: str
    n: int = 1
    of: int | None = None
    lines: tuple[int, ...] = ()

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "lines": list(self.lines[:MOST_LINES])}


@dataclass(frozen=True)
class ClaimChecked:
    """A published number beside what the file gives, and which way of counting gives it, if any."""

    name: str
    claimed: float
    counted: float
    explanation: str

    @property
    def holds(self) -> bool:
        return not self.explanation

    def record(self) -> dict[str, Any]:
        return {**plain_values(asdict(self)), "holds": self.holds}


@dataclass(frozen=True)
class AuditedFile:
    """A file, what it was recognised as, and what is to be said of it.

    `facts` are empty where it is refused; `related` is the file that it was compared with.
    """

    path: Path
    kind: FileKind
    n_lines: int
    n_rows: int = 0
    findings: tuple[Finding, ...] = ()
    facts: Facts = field(default_factory=dict)
    claims: tuple[ClaimChecked, ...] = ()
    related: tuple[Path, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(one.severity == "refused" for one in self.findings)

    def of(self, severity: Severity) -> list[Finding]:
        return [one for one in self.findings if one.severity == severity]

    def record(self) -> dict[str, Any]:
        """As `audit_collection --json` prints it."""
        return {
            "file": self.path.name,
            "kind": self.kind,
            "n_lines": self.n_lines,
            "n_rows": self.n_rows,
            "findings": [one.record() for one in self.findings],
            "facts": dict(self.facts),
            "claims": [one.record() for one in self.claims],
            "related": [path.name for path in self.related],
        }


@dataclass(frozen=True)
class Audit:
    """An audit of files; `totals` are of the files of judged pools together."""

    files: tuple[AuditedFile, ...]
    totals: Facts = field(default_factory=dict)

    @property
    def n_defects(self) -> int:
        return sum(len(one.of("defect")) for one in self.files)

    @property
    def refused(self) -> Sequence[AuditedFile]:
        return [one for one in self.files if one.is_refused]

    def record(self) -> dict[str, Any]:
        """As `audit_collection --json` prints it."""
        return {
            "files": [one.record() for one in self.files],
            "totals": dict(self.totals),
            "n_defects": self.n_defects,
            "n_refused": len(self.refused),
        }
