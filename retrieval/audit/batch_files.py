"""The audit of any other Mechanical Turk batch: assignments that stand twice, and who is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from presentation.counts import count_of
from retrieval.audit.pool_files import unreadable_rows
from retrieval.audit.records import AuditedFile, Finding


def audit_batch(path: Path, n_lines: int) -> AuditedFile:
    """A batch without pools, of which no more is known than Mechanical Turk's own columns."""
    faults: list[ImportRefused] = []
    rows: list[Row] = []
    try:
        rows += each_row(path, ("HITId",), on_fault=faults.append)
    except ImportRefused as refused:
        faults.append(refused)
    statuses = Counter(row.text("AssignmentStatus").strip() or "none" for row in rows)
    return AuditedFile(
        path,
        "batch",
        n_lines,
        n_rows=len(rows) + len(faults),
        findings=(*unreadable_rows(faults), *_findings(rows)),
        facts={
            "n_hits": len({row.text("HITId") for row in rows}),
            "n_workers": len({row.text("WorkerId") for row in rows} - {""}),
            "statuses": dict(sorted(statuses.items())),
        },
    )


def _findings(rows: Sequence[Row]) -> Iterator[Finding]:
    for name, columns, what in (
        ("assignment_twice", ("AssignmentId",), "an assignment"),
        ("worker_twice", ("HITId", "WorkerId"), "a worker in a HIT"),
    ):
        first: dict[tuple[str, ...], int] = {}
        again = []
        for row in rows:
            key = tuple(row.text(column).strip() for column in columns)
            if all(key) and first.setdefault(key, row.line) != row.line:
                again.append(row.line)
        if again:
            yield Finding(
                name=name,
                severity="defect",
                text=f"{count_of(len(again), 'row')} of {what} that an earlier row has already",
                n=len(again),
                of=len(rows),
                lines=tuple(again),
            )
    if n := len({row.text("WorkerId") for row in rows} - {""}):
        text = "worker ids stand in the file; take out a marketplace's before it is published"
        yield Finding(name="workers_named", severity="note", text=text, n=n)
