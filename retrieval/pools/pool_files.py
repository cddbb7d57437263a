import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeVar

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row, kind_of, read_object
from presentation.files import reason_of, write_whole
from presentation.numbers import group_values
from presentation.row_files import csv_parts
from retrieval.exceptions import PoolFileFaults
from retrieval.pools.catalogue import require_name
from retrieval.pools.records import (
    REASONS,
    DrySource,
    Pool,
    PoolPlan,
    Replacement,
    Slot,
    SourceFacts,
    Target,
)
from retrieval.text_lines import each_table_row, numbered_fault, take_rows

COLUMNS = (
    *("topic", "target", "slot", "position", "docno", "source", "source_rank", "quota"),
    *("inclusion", "also", "replaced", "replaced_at", "reason", "resembles"),
)
NOTHING = "-"
T = TypeVar("T")


def write_pool(path: Path, pool: Pool) -> None:
    if kind_of(path) == ".json":
        write_whole(path, f"{json.dumps(pool.record(), indent=1)}\n")
    else:
        write_whole(path, pool_csv(pool))


def pool_csv(pool: Pool) -> Iterator[str]:
    """A row a slot; what was passed over stands beside the slot that it was passed over for.

    `replaced`, `replaced_at` (source:rank), `reason` and `resembles` are lists that correspond,
    as `also` is one, with spaces between. A row without a docno is a slot that stayed open.
    """
    return csv_parts(COLUMNS, _rows(pool))


def _rows(pool: Pool) -> Iterator[tuple[Any, ...]]:
    replaced = group_values(((each.topic, each.slot), each) for each in pool.replacements)
    slots = pool.by_topic()
    for target in pool.targets:
        for slot in slots[target.topic]:
            passed = replaced.pop((slot.topic, slot.slot), [])
            yield (
                *(slot.topic, target.docno, slot.slot, slot.position, slot.docno, slot.source),
                *(slot.source_rank, slot.quota, slot.inclusion),
                " ".join(f"{source}:{rank}" for source, rank in slot.also),
                *_passed_over(passed),
            )
        last = len(slots[target.topic]) + 1
        if passed := replaced.pop((target.topic, last), []):
            yield (target.topic, target.docno, last, *[""] * 7, *_passed_over(passed))


def _passed_over(replaced: Sequence[Replacement]) -> tuple[str, ...]:
    return (
        " ".join(each.docno for each in replaced),
        " ".join(f"{each.source}:{each.source_rank}" for each in replaced),
        " ".join(each.reason for each in replaced),
        " ".join(each.other or NOTHING for each in replaced),
    )


def read_pool(path: Path, *, report: ReadingReport | None = None) -> Pool:
    report = report or ReadingReport()
    return _read_json(path, report) if kind_of(path) == ".json" else _read_table(path, report)


def _read_json(path: Path, report: ReadingReport) -> Pool:
    try:
        record = read_object(path, ("targets", "slots")).fields
    except ImportRefused as refused:
        raise PoolFileFaults(path, [numbered_fault(refused)]) from None
    try:
        plan = PoolPlan.of(record["plan"]) if record.get("plan") else None
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise PoolFileFaults(path, [(None, f"plan: {reason_of(error)}.")]) from None
    also: Callable[[Any], Any] = lambda pairs: tuple((str(s), int(n)) for s, n in pairs)  # noqa: E731
    pool = Pool(
        targets=_entries(path, record, "targets", Target),
        slots=_entries(path, record, "slots", lambda **e: Slot(**e | {"also": also(e["also"])})),
        replacements=_entries(path, record, "replacements", Replacement),
        dry=_entries(
            path,
            record,
            "dry",
            lambda **e: DrySource(**e | {"filled_by": tuple(map(str, e["filled_by"]))}),
        ),
        plan=plan,
        sources=_entries(path, record, "sources", SourceFacts),
        report=record.get("report") or {},
    )
    topics = {target.topic for target in pool.targets}
    foreign = [
        (None, f"slots[{n}]: topic {slot.topic} is not among the targets.")
        for n, slot in enumerate(pool.slots)
        if slot.topic not in topics
    ]
    if foreign:
        raise PoolFileFaults(path, foreign)
    report.n_rows += len(pool.slots)
    return pool


def _entries(
    path: Path, record: dict[str, Any], name: str, make: Callable[..., T]
) -> tuple[T, ...]:
    entries = record.get(name) or []
    made: list[T] = []
    faults: list[tuple[int | None, str]] = []
    for number, entry in enumerate(entries if isinstance(entries, list) else [None]):
        try:
            made.append(make(**entry))
        except (TypeError, ValueError, KeyError) as error:
            faults.append((None, f"{name}[{number}]: {reason_of(error)}."))
    if faults:
        raise PoolFileFaults(path, faults)
    return tuple(made)


def _read_table(path: Path, report: ReadingReport) -> Pool:
    targets: dict[str, Target] = {}
    slots: list[Slot] = []
    replacements: list[Replacement] = []
    n_slots: dict[str, int] = {}

    def take(row: Row) -> None:
        target, slot, passed = _row(row, n_slots)
        if targets.setdefault(target.topic, target) != target:
            raise row.refuse(f"topic {target.topic} has another target above.", code="twice")
        slots.extend([slot] if slot else [])
        replacements.extend(passed)

    take_rows(
        path,
        PoolFileFaults,
        each_table_row(path, PoolFileFaults, ("topic", "docno"), report=report),
        take,
    )
    ordered = {topic: n for n, topic in enumerate(targets)}
    slots.sort(key=lambda slot: ordered[slot.topic])
    return Pool(tuple(targets.values()), tuple(slots), tuple(replacements), tuple(_dry(slots)))


def _row(row: Row, n_slots: dict[str, int]) -> tuple[Target, Slot | None, list[Replacement]]:
    topic = require_name(row, "topic")
    target = Target(topic, require_name(row, "target") if row.optional("target") else "")
    is_slot = bool(row.optional("docno"))
    number = n_slots[topic] = n_slots.get(topic, 0) + is_slot
    passed = _replacements(row, topic, number if is_slot else number + 1)
    if not is_slot:
        return target, None, passed
    slot = Slot(
        topic,
        number,
        require_name(row, "docno"),
        row.optional("source"),
        _whole(row, "source_rank"),
        row.optional("quota"),
        row.number("inclusion") if row.text("inclusion").strip() else 1.0,
        _whole(row, "position"),
        tuple(_listing(row, each, "also") for each in row.optional("also", longest=10**6).split()),
    )
    return target, slot, passed


def _replacements(row: Row, topic: str, slot: int) -> list[Replacement]:
    names = ("replaced", "replaced_at", "reason", "resembles")
    lists = [row.optional(name, longest=10**7).split() for name in names]
    if len({len(each) for each in lists}) > 1:
        raise row.refuse("replaced, replaced_at, reason and resembles differ in length.")
    passed = []
    for docno, at, reason, other in zip(*lists, strict=True):
        if reason not in REASONS:
            raise row.refuse(f"'{reason}' is not one of {', '.join(REASONS)}.", "reason")
        source, rank = _listing(row, at, "replaced_at")
        resembles = "" if other == NOTHING else other
        passed.append(Replacement(topic, slot, source, rank, docno, reason, resembles))
    return passed


def _listing(row: Row, text: str, field: str) -> tuple[str, int]:
    source, _, rank = text.rpartition(":")
    if not source or not rank.isdecimal():
        raise row.refuse(f"'{text[:40]}' is not a source and a rank, such as bm25:3.", field)
    return source, int(rank)


def _whole(row: Row, field: Literal["source_rank", "position"]) -> int:
    text = row.optional(field)
    if text and not text.isdecimal():
        raise row.refuse(f"'{text[:40]}' is not a whole number.", field)
    return int(text or 0)


def _dry(slots: Sequence[Slot]) -> Iterator[DrySource]:
    """Sources of which other ones filled the quota, as far as slots show it."""
    others = [slot for slot in slots if slot.quota not in ("", slot.source)]
    for (topic, source), group in groupby(others, lambda slot: (slot.topic, slot.quota)):
        filled_by = tuple(slot.source for slot in group)
        yield DrySource(topic, source, 0, 0, len(filled_by), filled_by)


@dataclass(frozen=True, slots=True)
class PoolRow:
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

    def take(row: Row) -> None:
        columns.extend([] if columns else _columns(row, candidates))
        name, docno = row.optional(topic or target), row.optional(target)
        cells = [(column, row.optional(column)) for column in columns]
        if name in targets and not topic:
            name = f"{name}:{row.line}"
        if not name or name in targets:
            problem = f"topic {name} is in line {lines[name]} already." if name else "no topic."
            raise row.refuse(problem, code="twice" if name else "no_topic")
        targets[name], lines[name] = docno, row.line
        rows.extend(PoolRow(row.line, each, name, cell) for each, cell in cells if cell)

    named = [target, *([topic] if topic else [])]
    take_rows(
        path, PoolFileFaults, each_table_row(path, PoolFileFaults, named, report=report), take
    )
    return PoolTable(path, tuple(rows), targets, lines, target, per_topic=len(columns))


def _columns(row: Row, candidates: Sequence[str]) -> list[str]:
    patterns = [
        re.escape(each.removesuffix("*")) + (r"\d+" if each.endswith("*") else "")
        for each in candidates
    ]
    found = [name for name in row.fields if any(re.fullmatch(each, name) for each in patterns)]
    for name, pattern in zip(candidates, patterns, strict=True):
        if not any(re.fullmatch(pattern, each) for each in found):
            raise PoolFileFaults(row.path, [(1, f"there is no column {name}.")])
    return found
