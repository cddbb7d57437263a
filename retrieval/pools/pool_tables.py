"""Pools as rows with lines and fields, for checks: pool files, and tables with a row a target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row, kind_of
from retrieval.exceptions import PoolFileFaults
from retrieval.pools.pool_files import read_pool
from retrieval.pools.records import Pool
from retrieval.text_lines import each_table_row, numbered_fault


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A candidate of a topic, and where a file has it."""

    line: int | None
    field: str
    topic: str
    docno: str
    source: str = ""
    quota: str = ""

    @property
    def place(self) -> str:
        return self.field if self.field else _("line {n}").format(n=self.line)


@dataclass(frozen=True)
class PoolTable:
    """The candidates of a file in its order; the target of each topic, empty where it has none."""

    path: Path
    rows: tuple[PoolRow, ...]
    targets: dict[str, str]
    lines: Mapping[str, int | None] = field(default_factory=dict)
    target_field: str = ""
    quotas: Mapping[str, int] | None = None
    per_topic: int | None = None

    def by_topic(self) -> dict[str, list[PoolRow]]:
        return self._by_topic

    @cached_property
    def _by_topic(self) -> dict[str, list[PoolRow]]:
        topics: dict[str, list[PoolRow]] = {topic: [] for topic in self.targets}
        for row in self.rows:
            topics[row.topic].append(row)
        return topics

    def line_of(self, topic: str) -> int | None:
        return self.lines.get(topic)


def read_pool_table(path: Path, *, report: ReadingReport | None = None) -> PoolTable:
    """A pool file, CSV or JSON, with the line, or the number among the slots, of each candidate."""
    pool = read_pool(path, report=report)
    if kind_of(path) == ".json":
        return table_of(pool, path)
    rows, lines = [], dict[str, int | None]()
    for row in each_row(path):
        topic, docno = row.required("topic"), row.optional("docno")
        lines.setdefault(topic, row.line)
        if docno:
            source, quota = row.optional("source"), row.optional("quota")
            rows.append(PoolRow(row.line, "", topic, docno, source, quota))
    targets = {target.topic: target.docno for target in pool.targets}
    return PoolTable(path, tuple(rows), targets, lines, "target")


def table_of(pool: Pool, path: Path = Path("pool")) -> PoolTable:
    """A pool that is in memory; its plan says what is to be met."""
    plan = pool.plan
    quotas = dict(plan.quotas) or None if plan else None
    if quotas and plan and plan.uniform:
        quotas["uniform"] = plan.uniform
    return PoolTable(
        path,
        tuple(
            PoolRow(None, f"slots[{number}]", slot.topic, slot.docno, slot.source, slot.quota)
            for number, slot in enumerate(pool.slots)
        ),
        {target.topic: target.docno for target in pool.targets},
        target_field="targets",
        quotas=quotas,
        per_topic=plan.per_topic if plan else None,
    )


def read_wide_table(
    path: Path,
    *,
    target: str,
    candidates: Sequence[str],
    topic: str = "",
    report: ReadingReport | None = None,
) -> PoolTable:
    """A CSV with a row a target and a column a candidate, such as a batch of HITs.

    A name of `candidates` may end in `*`: all columns that begin so and go on in digits. Without
    a column for the topic, that is the target, and of a target in several rows the row's number.
    """
    rows: list[PoolRow] = []
    targets: dict[str, str] = {}
    lines: dict[str, int | None] = {}
    columns: list[str] = []
    faults: list[tuple[int | None, str]] = []
    named = [target, *([topic] if topic else [])]
    for row in each_table_row(path, PoolFileFaults, named, report=report):
        columns = columns or _columns(row, candidates)
        try:
            name, docno = row.optional(topic or target), row.optional(target)
            cells = [(column, row.optional(column)) for column in columns]
        except ImportRefused as fault:
            faults.append(numbered_fault(fault))
            continue
        if name in targets and not topic:
            name = f"{name}:{row.line}"
        if not name or name in targets:
            problem = f"topic {name} is in line {lines[name]} already." if name else "no topic."
            faults.append((row.line, problem))
            continue
        targets[name], lines[name] = docno, row.line
        rows += [PoolRow(row.line, each, name, cell) for each, cell in cells if cell]
    if faults:
        raise PoolFileFaults(path, faults)
    return PoolTable(path, tuple(rows), targets, lines, target, per_topic=len(columns))


def _columns(row: Row, candidates: Sequence[str]) -> list[str]:
    """The columns that these names mean, in the order of the header."""
    patterns = [
        re.escape(each.removesuffix("*")) + (r"\d+" if each.endswith("*") else "")
        for each in candidates
    ]
    found = [name for name in row.fields if any(re.fullmatch(each, name) for each in patterns)]
    for name, pattern in zip(candidates, patterns, strict=True):
        if not any(re.fullmatch(pattern, each) for each in found):
            raise PoolFileFaults(row.path, [(1, f"there is no column {name}.")])
    return found
