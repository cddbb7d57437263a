"""Rows of a Mechanical Turk batch that showed a target and its pool: `Input.target1`,
`Input.top1`, `Input.top2`, ... and for each slot whether it was ticked.

Rows are read as they stand: what is wrong with a pool is for whoever imports or audits it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.blocks import OnFault
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row

TARGET, HIT = "Input.target1", "HITId"
SLOT = "Input.top"
TICKS = {"True": True, "true": True, "TRUE": True, "False": False, "false": False, "FALSE": False}
# What a checkbox of the page's own form sends: nothing where it is not ticked.
CHECKBOX = {"on": True, "": False}
REASONS = ("reason", "justification", "Answer.reason", "Answer.justification")


@dataclass(slots=True)
class PooledHit:
    """One assignment: `ticks` is None where the row holds no answer.

    `worker` and `assignment` are empty where the file does not name them.
    """

    row: Row
    target: str
    pictures: tuple[str, ...]
    ticks: tuple[bool, ...] | None
    hit: str
    assignment: str = ""
    worker: str = ""
    reason: str = ""

    @property
    def line(self) -> int:
        return self.row.line


@dataclass(frozen=True)
class _Slot:
    picture: str
    tick: str


def has_pools(columns: Sequence[str]) -> bool:
    return TARGET in columns and any(name.startswith(SLOT) for name in columns)


def is_pooled_batch(path: Path) -> bool:
    return has_pools(list(next(each_row(path)).fields))


def each_pooled_hit(
    path: Path, *, on_fault: OnFault | None = None, report: ReadingReport | None = None
) -> Iterator[PooledHit]:
    """The rows of a batch; with `on_fault` those that cannot be read are its to take."""
    slots: list[_Slot] = []
    for row in each_row(path, (TARGET, HIT), on_fault=on_fault, report=report):
        slots = slots or _slots(path, row)
        try:
            hit = _hit(row, slots)
        except ImportRefused as fault:
            if on_fault is None:
                raise
            on_fault(fault)
        else:
            yield hit


def _slots(path: Path, row: Row) -> list[_Slot]:
    """The positions of the pool, which all have both a picture and a tick column."""
    names = [name.removeprefix("Input.") for name in row.fields if name.startswith(SLOT)]
    slots, missing = [], []
    for name in names:
        ticks = (name, f"Answer.{name}", f"Answer.{name}.on")
        tick = next((column for column in ticks if column in row.fields), None)
        if tick is None:
            missing.append(name)
        else:
            slots.append(_Slot(f"Input.{name}", tick))
    if missing or not names:
        problem = f"columns are missing: {', '.join(missing) or 'Input.top1 and top1'}."
        raise ImportRefused(path, problem, line=1, code="missing_columns")
    return slots


def _hit(row: Row, slots: Sequence[_Slot]) -> PooledHit:
    target = row.required(TARGET)
    filled = _filled(row, slots)
    marks = {slot.tick: row.text(slot.tick).strip() for slot in filled}
    ticks = _ticks(row, marks)
    pictures = () if ticks is None else tuple(row.required(slot.picture) for slot in filled)
    return PooledHit(
        row=row,
        target=target,
        pictures=pictures or tuple(row.optional(slot.picture) for slot in filled),
        ticks=ticks,
        hit=row.required(HIT, longest=80),
        assignment=row.optional("AssignmentId", longest=80),
        worker=row.optional("WorkerId", longest=80),
        reason=next((row.text(name).strip() for name in REASONS if name in row.fields), ""),
    )


def _filled(row: Row, slots: Sequence[_Slot]) -> Sequence[_Slot]:
    """The slots up to the last that holds anything: pools need not be of one size."""
    last = max(
        (n for n, slot in enumerate(slots, 1) if row.text(slot.picture) or row.text(slot.tick)),
        default=0,
    )
    return slots[:last]


def _ticks(row: Row, marks: dict[str, str]) -> tuple[bool, ...] | None:
    of_form = {name.startswith("Answer.") for name in marks} == {True}
    if of_form and "on" in marks.values() and set(marks.values()) <= set(CHECKBOX):
        return tuple(CHECKBOX[mark] for mark in marks.values())
    if not any(marks.values()):
        was_submitted = of_form and bool(row.text("AssignmentStatus").strip())
        return (False,) * len(marks) if was_submitted else None
    for name, mark in marks.items():
        if mark not in TICKS:
            raise row.refuse(f"'{mark[:20]}' is neither True nor False.", name, code="not_tick")
    return tuple(TICKS[mark] for mark in marks.values())
