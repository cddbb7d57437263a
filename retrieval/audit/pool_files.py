from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.pooled_batch import PooledHit, each_pooled_hit
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from presentation.numbers import count_of, plain_values
from retrieval.audit.pool_counts import (
    HUB_SHARE,
    JudgedPools,
    SelfConsistency,
    hubs,
    judged_pools,
    own_targets,
    positions,
    repeats,
    self_consistency,
)
from retrieval.audit.records import AuditedFile, Claims, Finding, claims_of
from stats.agreement import Reason
from stats.arguments import Flags


@dataclass
class Ticks:
    n_rows: int = 0
    n_slots: int = 0
    pictures: set[str] = field(default_factory=set)


def audit_pools(
    path: Path, n_lines: int, claims: Claims, *, confidence: float = 0.95
) -> tuple[AuditedFile, dict[str, Ticks]]:
    faults: list[ImportRefused] = []
    try:
        hits = list(each_pooled_hit(path, on_fault=faults.append))
    except ImportRefused as refused:
        faults, hits = [*faults, refused], []
    audited = AuditedFile(path, "judged pools", n_lines, n_rows=len(hits) + len(faults))
    refusals = tuple(unreadable_rows(faults))
    if not hits:
        return replace(audited, findings=refusals), {}
    table = judged_pools(hits)
    counts = _Counts(table, confidence)
    audited = replace(
        audited,
        findings=(
            *refusals,
            *_defects(table, counts),
            *_hit_findings(hits),
            *_notes(table, counts),
        ),
        facts=counts.facts(hits),
        claims=claims_of(
            table.sizes,
            claims,
            n_rows=audited.n_rows,
            n_lines=n_lines,
            path=path,
            cleaned=table.sizes_cleaned,
        ),
    )
    return audited, _ticks(hits)


def _ticks(hits: Sequence[PooledHit]) -> dict[str, Ticks]:
    ticks: dict[str, Ticks] = {}
    for hit in hits:
        if hit.ticks is not None:
            ticked = [name for name, tick in zip(hit.pictures, hit.ticks, strict=True) if tick]
            one = ticks.setdefault(hit.target, Ticks())
            one.n_rows += 1
            one.n_slots += len(ticked)
            one.pictures |= set(ticked)
    return ticks


def unreadable_rows(faults: Sequence[ImportRefused]) -> Iterator[Finding]:
    for fault in faults:
        where = f"field {fault.field}: " if fault.field else ""
        yield Finding(
            name="unreadable",
            severity="refused",
            text=f"{where}{fault.problem}",
            lines=(fault.line,) if fault.line else (),
        )


class _Counts:
    def __init__(self, table: JudgedPools, confidence: float) -> None:
        self.table = table
        self.repeats, self.own = repeats(table), own_targets(table)
        self.hubs, self.positions = hubs(table), positions(table)
        self.consistency = self_consistency(table, confidence=confidence)

    def facts(self, hits: Sequence[PooledHit]) -> dict[str, Any]:
        return {
            "n_slots": int(self.table.has_picture.sum()),
            "n_hits": len({hit.hit for hit in hits}),
            "n_workers": len({hit.worker for hit in hits if hit.worker}),
            "n_empty_rows": int((~self.table.judged).sum()),
            "sizes": self.table.sizes.record(),
            "sizes_cleaned": self.table.sizes_cleaned.record(),
            "repeats": plain_values(self.repeats),
            "own_targets": self.own,
            "hubs": plain_values(self.hubs),
            "positions": [plain_values(one) for one in self.positions],
            "self_consistency": self.consistency.record(),
        }


def _defects(table: JudgedPools, counts: _Counts) -> Iterator[Finding]:
    n, own, shown_twice = len(table.target), counts.own, counts.repeats
    repeated, with_target = (
        np.asarray(flags.any(axis=1)) for flags in (table.is_repeat, table.is_target)
    )
    if shown_twice["n_rows"]:
        yield Finding(
            name="repeated_picture",
            severity="defect",
            text=f"{shown_twice['n_rows']:,} of {count_of(n, 'row')} show a picture more than "
            f"once: {count_of(shown_twice['n_surplus'], 'surplus slot')}, "
            f"{shown_twice['n_within_block']:,} of them within one block of positions; different "
            f"candidates {shown_twice['unique_least']} to {shown_twice['unique_most']}, mean "
            f"{shown_twice['unique_mean']:.1f}",
            n=shown_twice["n_rows"],
            of=n,
            lines=_lines(table, repeated),
        )
    if own["n_rows"]:
        yield Finding(
            name="target_in_pool",
            severity="defect",
            text=f"{own['n_rows']:,} of {count_of(n, 'row')} show the target as its own candidate, "
            f"ticked in {own['n_ticked']:,}",
            n=own["n_rows"],
            of=n,
            lines=_lines(table, with_target),
        )
    if not table.judged.all():
        n_empty = int((~table.judged).sum())
        yield Finding(
            name="empty_judgments",
            severity="defect",
            text=f"{n_empty:,} of {count_of(n, 'row')} without any judgment: "
            f"{n - n_empty:,} of {n:,} were judged",
            n=n_empty,
            of=n,
            lines=_lines(table, ~table.judged),
        )


def _lines(table: JudgedPools, rows: Flags) -> tuple[int, ...]:
    return tuple(table.line[rows].tolist())


def _hit_findings(hits: Sequence[PooledHit]) -> Iterator[Finding]:
    keys = [(hit.hit, hit.assignment or hit.worker) for hit in hits]
    twice = [hit for hit, key in zip(hits, keys, strict=True) if Counter(keys)[key] > 1]
    if twice:
        yield Finding(
            name="assignment_twice",
            severity="defect",
            text=f"{count_of(len(twice), 'row')} of HITs that stand in the file more than once",
            n=len(twice),
            of=len(hits),
            lines=tuple(hit.line for hit in twice),
        )
    seen: dict[str, PooledHit] = {}
    again = [hit for hit in hits if not hit.worker and seen.setdefault(hit.target, hit) is not hit]
    if again:
        yield Finding(
            name="target_twice",
            severity="defect",
            text=f"{count_of(len(again), 'row')} of a target that an earlier row shows already, "
            "without a worker's id to tell assessments from copies",
            n=len(again),
            of=len(hits),
            lines=tuple(hit.line for hit in again),
        )
    if named := [hit for hit in hits if hit.worker]:
        yield Finding(
            name="workers_named",
            severity="note",
            text="worker ids stand in the file; take out a marketplace's before it is published",
            n=len({hit.worker for hit in named}),
        )


def _notes(table: JudgedPools, counts: _Counts) -> Iterator[Finding]:
    if (found := counts.hubs)["n"]:
        yield Finding(
            name="hubs",
            severity="note",
            text=f"{count_of(found['n'], 'picture')} shown for at least {HUB_SHARE:.0%} of the "
            f"targets fill {found['share_of_slots']:.1%} of the slots (relevant "
            f"{_share(found['relevance'])}, elsewhere {_share(found['relevance_elsewhere'])})",
            n=found["n"],
        )
    if counts.consistency.n_pairs:
        yield _consistency_finding(counts.consistency)
    few = [one for one in counts.positions if one["n_distinct"] < table.judged.sum() / 4]
    if counts.positions and len(table.target) >= 20 and 0 < len(few) < len(counts.positions):
        at = ", ".join(str(one["position"]) for one in few)
        yield Finding(
            name="fixed_positions",
            severity="note",
            text=f"positions {at} show few different pictures and the others many: positions seem "
            "to be filled by source and not shuffled, so that position and source cannot be told "
            "apart",
            n=len(few),
            of=len(counts.positions),
        )
    per_target = np.bincount(table.target[table.judged]) if table.judged.any() else np.array([0])
    if per_target.max() == 1:
        yield Finding(
            name="one_assessor",
            severity="note",
            text="every target was judged once: agreement of assessors cannot be computed, and "
            "differences of topics cannot be told from those of assessors",
        )


def _consistency_finding(found: SelfConsistency) -> Finding:
    kappa = found.kappa
    undefined = "undefined" if kappa.reason is None else _REASONS.get(kappa.reason, "undefined")
    interval = f" [{kappa.ci_low:.3f}, {kappa.ci_high:.3f}]" if kappa.ci_low == kappa.ci_low else ""
    value = f"{kappa.value:.3f}{interval}" if kappa.value == kappa.value else undefined
    pairs = f"{found.n_different:,} of {count_of(found.n_pairs, 'pair')}"
    return Finding(
        name="self_consistency",
        severity="note",
        text=f"the same picture twice in one HIT was judged differently in {pairs}: agreement "
        f"{kappa.observed:.3f}, kappa {value}",
        n=found.n_different,
        of=found.n_pairs,
    )


_REASONS = {
    Reason.SINGLE_CATEGORY: "undefined, since all have one value",
    Reason.SINGLE_ITEM: "undefined for one pair",
}


def _share(value: float) -> str:
    return "undefined" if value != value else f"{value:.3f}".removeprefix("0")


def audit_batch(path: Path, n_lines: int) -> AuditedFile:
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
