"""The audit of the files that simulators start from: a target's alternatives by number, and the
dialogues' first candidates. A topic's name holds both: `u<target>,<alternative>,...-t0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from presentation.numbers import count_of
from retrieval.audit.pool_files import unreadable_rows
from retrieval.audit.records import AuditedFile, FileKind, Finding

ALTERNATIVE_COLUMNS = (
    "Input.target1", "target_img_id", "alternative_id_y", "target_alt_id", "qid",
)  # fmt: skip
START_COLUMNS = ("qid", "docno", "docid", "rank")
NUMBER = re.compile(r"\d{1,12}", re.ASCII)
QID = re.compile(r"u(\d{1,12}(?:,\d{1,12})*)-t(\d+)", re.ASCII)


@dataclass(frozen=True)
class Alternatives:
    """A topic: its target and that target's alternatives, by number; `name` is the target's."""

    line: int
    target: str
    alternatives: tuple[str, ...]
    name: str = ""
    start: str = ""

    @property
    def qid(self) -> str:
        return qid_of(self.target, self.alternatives)


def qid_of(target: str, alternatives: Sequence[str] = ()) -> str:
    """A topic's name, in the form that simulators read.

    >>> qid_of("2389"), qid_of("2389", ["711", "3867"])
    ('u2389-t0', 'u2389,711,3867-t0')
    """
    return f"u{','.join((target, *alternatives))}-t0"


def audit_alternatives(path: Path, n_lines: int) -> tuple[AuditedFile, list[Alternatives]]:
    return _audited(path, n_lines, "alternatives", ALTERNATIVE_COLUMNS, _alternatives)


def audit_starts(path: Path, n_lines: int) -> tuple[AuditedFile, list[Alternatives]]:
    audited, rows = _audited(path, n_lines, "dialogue starts", START_COLUMNS, _start)
    at_target = [row for row in rows if row.start == row.target]
    if at_target:
        found = Finding(
            name="starts_at_target",
            severity="defect",
            text=f"{count_of(len(at_target), 'dialogue')} of {len(rows):,} starting at the target",
            n=len(at_target),
            of=len(rows),
            lines=tuple(row.line for row in at_target),
        )
        audited = replace(audited, findings=(*audited.findings, found))
    return audited, rows


def _audited(
    path: Path,
    n_lines: int,
    kind: FileKind,
    columns: Sequence[str],
    read: Callable[[Row], Alternatives],
) -> tuple[AuditedFile, list[Alternatives]]:
    faults: list[ImportRefused] = []
    rows: list[Alternatives] = []
    n_rows = 0
    try:
        for row in each_row(path, columns, on_fault=faults.append):
            n_rows += 1
            try:
                rows.append(read(row))
            except ImportRefused as fault:
                faults.append(fault)
    except ImportRefused as refused:
        faults.append(refused)
    n = sum(len(row.alternatives) for row in rows)
    audited = AuditedFile(
        path,
        kind,
        n_lines,
        n_rows=n_rows,
        findings=(*unreadable_rows(faults), *_defects(rows)),
        facts={"n_topics": len(rows), "n_alternatives": n},
    )
    return audited, rows


def _alternatives(row: Row) -> Alternatives:
    target = _number(row, "target_img_id", row.required("target_img_id"))
    listed = row.required("alternative_id_y", longest=10_000).split(",")
    numbers = tuple(_number(row, "alternative_id_y", one.strip()) for one in listed)
    one = Alternatives(row.line, target, numbers, name=row.required("Input.target1"))
    for field, expected in (("target_alt_id", one.qid), ("qid", qid_of(target))):
        if row.text(field).strip() != expected:
            raise row.refuse(f"it is not {expected}, as the other columns say.", field)
    return one


def _start(row: Row) -> Alternatives:
    match = QID.fullmatch(row.text("qid").strip())
    if match is None:
        problem = "it is not a target and its alternatives by number, such as u2389,711,3867-t0."
        raise row.refuse(problem, "qid")
    target, *numbers = match[1].split(",")
    start = _number(row, "docid", row.required("docid"))
    return Alternatives(row.line, target, tuple(numbers), start=start)


def _number(row: Row, field: str, text: str) -> str:
    """An item's number, as it is written: it is a name, and `07` is not `7`."""
    if not NUMBER.fullmatch(text):
        raise row.refuse(f"'{text[:40]}' is not an item's number.", field)
    return text


def _defects(rows: Sequence[Alternatives]) -> Iterator[Finding]:
    own = [row for row in rows if row.target in row.alternatives]
    if own:
        first = sum(row.alternatives[0] == row.target for row in own)
        yield _finding(
            "target_is_alternative",
            f"{count_of(len(own), 'topic')} of {len(rows):,} list the target as its own "
            f"alternative, first in {first:,}",
            own,
            rows,
        )
    repeated = [row for row in rows if len(set(row.alternatives)) < len(row.alternatives)]
    if repeated:
        text = f"{count_of(len(repeated), 'topic')} of {len(rows):,} list an alternative twice"
        yield _finding("alternative_twice", text, repeated, rows)
    seen: dict[str, Alternatives] = {}
    again = [row for row in rows if seen.setdefault(row.target, row) is not row]
    if again:
        text = f"{count_of(len(again), 'row')} of a target that an earlier row has already"
        yield _finding("topic_twice", text, again, rows)


def _finding(
    name: str, text: str, those: Sequence[Alternatives], rows: Sequence[Alternatives]
) -> Finding:
    lines = tuple(row.line for row in those)
    return Finding(name=name, severity="defect", text=text, n=len(those), of=len(rows), lines=lines)
