import csv
import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.pooled_batch import has_pools
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from presentation.numbers import count_of
from presentation.progress import Progress, silently
from retrieval.audit.pool_files import Ticks, audit_batch, audit_pools, unreadable_rows
from retrieval.audit.records import (
    Audit,
    AuditedFile,
    Claims,
    FileKind,
    Finding,
    explained_by_lines,
    published_claims,
)
from retrieval.audit.trec_files import audit_qrels, audit_run
from retrieval.exceptions import NothingToAudit, TrecFileFaults
from retrieval.trec_files import RelevanceGrades, kind_of_file

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
    audited = AuditedFile(
        path,
        kind,
        n_lines,
        n_rows=n_rows,
        findings=(*unreadable_rows(faults), *_defects(rows)),
        facts={"n_topics": len(rows), "n_alternatives": sum(len(row.alternatives) for row in rows)},
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
        raise row.refuse(
            "it is not a target and its alternatives by number, such as u2389,711,3867-t0.", "qid"
        )
    target, *numbers = match[1].split(",")
    return Alternatives(
        row.line, target, tuple(numbers), start=_number(row, "docid", row.required("docid"))
    )


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
        yield _finding(
            "alternative_twice",
            f"{count_of(len(repeated), 'topic')} of {len(rows):,} list an alternative twice",
            repeated,
            rows,
        )
    seen: dict[str, Alternatives] = {}
    again = [row for row in rows if seen.setdefault(row.target, row) is not row]
    if again:
        yield _finding(
            "topic_twice",
            f"{count_of(len(again), 'row')} of a target that an earlier row has already",
            again,
            rows,
        )


def _finding(
    name: str, text: str, those: Sequence[Alternatives], rows: Sequence[Alternatives]
) -> Finding:
    lines = tuple(row.line for row in those)
    return Finding(name=name, severity="defect", text=text, n=len(those), of=len(rows), lines=lines)


ORDER: tuple[FileKind, ...] = (
    *("judged pools", "alternatives", "dialogue starts", "batch", "qrels", "run", "unknown"),
)

NOT_CHECKED = Finding(
    name="claims_not_checked",
    severity="note",
    text="numbers were published of it, which could not be checked: they are counted of files of "
    "judged pools alone",
)


def audit_collection(
    paths: Iterable[Path],
    *,
    claims: Mapping[str, Claims] | None = None,
    progress: Progress = silently,
) -> Audit:
    """Files, or all files of folders, audited.

    `claims` are published numbers by the name of a file; without them, those known of it.
    """
    known = claims or {}
    files = sorted(
        ((recognise(path), path) for path in _files(paths)),
        key=lambda file: (ORDER.index(file[0]), file[1]),
    )
    names = {path.name for _kind, path in files}
    if strangers := [name for name in known if name not in names]:
        raise NothingToAudit(f"{strangers[0]} has a published number, and is none of the files.")
    work = _Work(known)
    for kind, path in progress(iter(files), len(files)):
        work.take(kind, path)
    return Audit(tuple(work.files), work.totals())


def recognise(path: Path) -> FileKind:
    header = _header(path)
    if has_pools(header):
        return "judged pools"
    if set(ALTERNATIVE_COLUMNS) <= set(header):
        return "alternatives"
    if set(START_COLUMNS) <= set(header):
        return "dialogue starts"
    if "HITId" in header:
        return "batch"
    try:
        kind = kind_of_file(path)
    except TrecFileFaults:
        return "unknown"
    if kind is None:
        return "unknown"
    return "run" if kind == "run" else "qrels"


def _files(paths: Iterable[Path]) -> list[Path]:
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = (one for one in path.rglob("*") if one.is_file() and one.name[0] != ".")
            files.update(dict.fromkeys(sorted(found)))
        elif path.is_file():
            files[path] = None
        else:
            raise NothingToAudit(f"There is no file and no folder at {path}.")
    if not files:
        raise NothingToAudit("There is no file to audit.")
    return list(files)


def _lines(path: Path) -> Any:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, "rb")


def _header(path: Path) -> list[str]:
    try:
        with _lines(path) as file:
            line = file.readline(1 << 20).decode("utf-8-sig")
        delimiter = "\t" if "\t" in line else ","
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        return []


def _n_lines(path: Path) -> int:
    """As `wc -l` counts them, and a last one without an end."""
    n, last = 0, b"\n"
    try:
        with _lines(path) as file:
            while part := file.read(1 << 20):
                n, last = n + part.count(b"\n"), part[-1:]
    except (OSError, EOFError):
        return 0
    return n + (last != b"\n")


class _Work:
    def __init__(self, claims: Mapping[str, Claims]) -> None:
        self.claims = claims
        self.files: list[AuditedFile] = []
        self.ticks: dict[Path, dict[str, Ticks]] = {}
        self.alternatives: dict[Path, list[Alternatives]] = {}
        self.qrels: list[RelevanceGrades] = []

    def take(self, kind: FileKind, path: Path) -> None:
        n_lines = _n_lines(path)
        if kind == "judged pools":
            claims = self.claims.get(path.name, published_claims(path))
            audited, self.ticks[path] = audit_pools(path, n_lines, claims)
        elif kind == "alternatives":
            audited, rows = audit_alternatives(path, n_lines)
            audited = self._held_against_ticks(audited, rows)
            self.alternatives[path] = rows
        elif kind == "dialogue starts":
            audited, rows = audit_starts(path, n_lines)
            audited = self._held_against_alternatives(audited, rows)
        elif kind == "batch":
            audited = audit_batch(path, n_lines)
        elif kind == "qrels":
            audited, grades = audit_qrels(path, n_lines)
            self.qrels += [] if grades is None else [grades]
        elif kind == "run":
            audited = audit_run(path, n_lines, self.qrels)
        else:
            audited = AuditedFile(path, kind, n_lines)
        if path.name in self.claims and kind != "judged pools":
            audited = replace(audited, findings=(*audited.findings, NOT_CHECKED))
        self.files.append(audited)

    def _held_against_ticks(
        self, audited: AuditedFile, rows: Sequence[Alternatives]
    ) -> AuditedFile:
        names = {row.name for row in rows}
        shared = {path: len(names & set(ticks)) for path, ticks in self.ticks.items()}
        path = max(shared, key=lambda path: shared[path], default=None)
        if path is None or not shared[path]:
            return audited
        self._explain(path, audited)
        found = tuple(_against_ticks(rows, self.ticks[path], path))
        return replace(audited, findings=(*audited.findings, *found), related=(path,))

    def _explain(self, path: Path, audited: AuditedFile) -> None:
        at = next(n for n, one in enumerate(self.files) if one.path == path)
        pools = self.files[at]
        claims = tuple(
            explained_by_lines(claim, audited.path, audited.n_lines, audited.n_rows)
            for claim in pools.claims
        )
        self.files[at] = replace(pools, claims=claims)

    def _held_against_alternatives(
        self, audited: AuditedFile, rows: Sequence[Alternatives]
    ) -> AuditedFile:
        qids = {row.qid for row in rows}
        shared = {
            path: len(qids & {row.qid for row in others})
            for path, others in self.alternatives.items()
        }
        path = max(shared, key=lambda path: shared[path], default=None)
        if path is None or not shared[path]:
            return audited
        n_others = len(self.alternatives[path])
        found = Finding(
            name="same_topics" if len(rows) == shared[path] == n_others else "other_topics",
            severity="note" if len(rows) == shared[path] == n_others else "defect",
            text=f"{shared[path]:,} of {len(rows):,} topics have the target and the alternatives "
            f"of {path.name} ({n_others:,} there)",
            n=shared[path],
            of=len(rows),
        )
        return replace(audited, findings=(*audited.findings, found), related=(path,))

    def totals(self) -> dict[str, Any]:
        pools = [one for one in self.files if one.kind == "judged pools" and one.facts]
        if not pools:
            return {}
        return {
            "n_rows": sum(one.n_rows for one in pools),
            "n_rows_refused": sum(len(one.of("refused")) for one in pools),
            "n_rows_with_repeats": sum(one.facts["repeats"]["n_rows"] for one in pools),
            "n_rows_with_target": sum(one.facts["own_targets"]["n_rows"] for one in pools),
            "n_empty_rows": sum(one.facts["n_empty_rows"] for one in pools),
        }


def _against_ticks(
    rows: Sequence[Alternatives], ticks: Mapping[str, Ticks], path: Path
) -> Iterable[Finding]:
    """Whether each target has as many alternatives as slots were ticked for it; of targets that
    were judged several times, at most as many as pictures that anybody ticked."""
    differ = [row for row in rows if not _fits(len(row.alternatives), ticks.get(row.name, Ticks()))]
    n_same = len(rows) - len(differ)
    is_once = all(one.n_rows == 1 for one in ticks.values())
    what = (
        f"as many alternatives as slots were ticked for them in {path.name}, repeated and own "
        "pictures among them"
        if is_once
        else f"no more alternatives than pictures that anybody ticked for them in {path.name}"
    )
    yield Finding(
        name="other_ticks" if differ else "same_ticks",
        severity="defect" if differ else "note",
        text=f"{n_same:,} of {len(rows):,} targets have {what}",
        n=n_same,
        of=len(rows),
        lines=tuple(row.line for row in differ),
    )
    listed = {row.name for row in rows}
    lost = [target for target, one in ticks.items() if one.n_slots and target not in listed]
    if lost:
        # A rule stricter than any may find nothing relevant where somebody ticked.
        yield Finding(
            name="lost_targets",
            severity="defect" if is_once else "note",
            text=f"{len(lost):,} targets of {path.name} with a tick are not here",
            n=len(lost),
        )


def _fits(n_alternatives: int, ticks: Ticks) -> bool:
    if ticks.n_rows <= 1:
        return n_alternatives == ticks.n_slots
    return n_alternatives <= len(ticks.pictures)
