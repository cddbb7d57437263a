"""A Mechanical Turk batch of targets and their pools, as an alternatives study with judgments.

A row has `Input.target1`, `Input.top1`, `Input.top2`, ... and for each slot whether it was ticked.
Such files show some pictures twice in a pool, and some targets in their own pool: both are mended
here, and said. `audit_collection` names each of them with its line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
    place_of_line,
)
from annotation.readers.item_files import ACCEPTABLE
from annotation.readers.mturk_batch import STATUSES, time_of
from annotation.readers.rows import OnFault, Row
from annotation.readers.tables import each_row
from error_codes import CodedText, require

UNJUDGED = CodedText("the row has no judgments", "no_judgments")


def read_pooled_batch(path: Path) -> StudyDraft:
    report = ReadingReport()
    items: dict[str, ItemDraft] = {}
    submissions: dict[tuple[str, str], SubmissionDraft] = {}
    for hit in each_pooled_hit(path, report=report):
        ticked = _ticked(hit, report)
        if not ticked:
            continue
        _require_same_target(
            hit, items.setdefault(hit.target, _item(hit, list(ticked))), list(ticked)
        )
        draft = _submission(hit, ticked)
        other = submissions.setdefault((hit.target, draft.identity or draft.annotator), draft)
        if other is not draft:
            raise hit.row.refuse(
                f"this worker's answer for this target is on line {other.line} already.",
                TARGET,
                code="repeated_target",
            )
    require(items, ImportRefused(path, "none of its rows holds judgments.", code="no_judgments"))
    return StudyDraft(
        kind="alternatives",
        items=tuple(items.values()),
        questions=(ACCEPTABLE,),
        submissions=tuple(submissions.values()),
        report=report,
    )


def _ticked(hit: PooledHit, report: ReadingReport) -> dict[str, bool]:
    if hit.ticks is None:
        report.leave_out(UNJUDGED, place_of_line(hit.line))
        return {}
    ticked: dict[str, bool] = {}
    for picture, tick in zip(hit.pictures, hit.ticks, strict=True):
        ticked[picture] = ticked.get(picture, False) or tick
    surplus = len(hit.pictures) - len(ticked)
    if surplus:
        report.leave_out_part(
            CodedText(
                "the picture is in the pool more than once: merged, relevant if ticked in either "
                "slot",
                "repeated_picture",
            ),
            place_of_line(hit.line),
            surplus,
        )
    if ticked.pop(hit.target, None) is not None:
        report.leave_out_part(
            CodedText("the target is among its own candidates", "own_target"),
            place_of_line(hit.line),
        )
    hit.row.refuse_unless(ticked, "the target is its own only candidate.", code="only_target")
    return ticked


def _item(hit: PooledHit, pictures: list[str]) -> ItemDraft:
    pool = tuple(CandidateDraft(key=picture, text=picture) for picture in pictures)
    return ItemDraft(key=hit.target, context=hit.target, line=hit.line, candidates=pool)


def _require_same_target(hit: PooledHit, item: ItemDraft, pictures: list[str]) -> None:
    if hit.line == item.line:
        return
    hit.row.refuse_unless(
        hit.worker, f"this target is on line {item.line} already.", TARGET, code="repeated_target"
    )
    hit.row.refuse_unless(
        {candidate.key for candidate in item.candidates} == set(pictures),
        f"this target is on line {item.line} already, with another pool.",
        TARGET,
        code="other_pool",
    )


def _submission(hit: PooledHit, ticked: dict[str, bool]) -> SubmissionDraft:
    row = hit.row
    fields = {name: value for name, value in row.fields.items() if name != "WorkerId"}
    return SubmissionDraft(
        item=hit.target,
        annotator="" if hit.worker else f"assessor-{hit.hit}",
        identity=hit.worker,
        line=hit.line,
        status=_status(hit),
        raw=json.dumps(fields, ensure_ascii=False),
        justification=hit.reason,
        is_simulated=row.is_simulated,
        accepted_at=time_of(row, "AcceptTime"),
        submitted_at=time_of(row, "SubmitTime"),
        seconds=row.number("WorkTimeInSeconds") if row.text("WorkTimeInSeconds") else None,
        judgments=tuple(
            JudgmentDraft(candidate=picture, question=ACCEPTABLE.name, value=float(tick))
            for picture, tick in ticked.items()
        ),
    )


def _status(hit: PooledHit) -> str:
    status = hit.row.text("AssignmentStatus").strip()
    if status and status not in STATUSES:
        raise hit.row.refuse(
            f"'{status[:40]}' is not one of {', '.join(STATUSES)}.",
            "AssignmentStatus",
            code="unknown_status",
        )
    return STATUSES.get(status, "approved")


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
    names = [name.removeprefix("Input.") for name in row.fields if name.startswith(SLOT)]
    slots, missing = [], []
    for name in names:
        ticks = (name, f"Answer.{name}", f"Answer.{name}.on")
        tick = next((column for column in ticks if column in row.fields), None)
        if tick is None:
            missing.append(name)
        else:
            slots.append(_Slot(f"Input.{name}", tick))
    require(
        not missing and names,
        ImportRefused(
            path,
            f"columns are missing: {', '.join(missing) or 'Input.top1 and top1'}.",
            line=1,
            code="missing_columns",
        ),
    )
    return slots


def _hit(row: Row, slots: Sequence[_Slot]) -> PooledHit:
    target = row.required(TARGET)
    filled = _filled(row, slots)
    ticks = _ticks(row, {slot.tick: row.text(slot.tick).strip() for slot in filled})
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
        row.refuse_unless(
            mark in TICKS, f"'{mark[:20]}' is neither True nor False.", name, code="not_tick"
        )
    return tuple(TICKS[mark] for mark in marks.values())
