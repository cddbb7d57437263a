"""Fashion-AlterEval's released judgments: a target, its pool by position, ticks by position.

The release shows some pictures twice in a pool, and some targets in their own pool:
both are mended here, and said.
"""

import json
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.alternatives import ACCEPTABLE
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from presentation.counts import count_of

TARGET = "Input.target1"
TICKS = {"True": True, "true": True, "TRUE": True, "False": False, "false": False, "FALSE": False}


def read_altereval(path: Path) -> StudyDraft:
    """The judged targets of a released file, cleaned up, with the repairs counted."""
    rows = read_rows(path, (TARGET, "HITId"))
    positions = _positions(path, rows[0])
    repairs = _Repairs()
    items: dict[str, ItemDraft] = {}
    submissions: list[SubmissionDraft] = []
    for row in rows:
        target = row.required(TARGET)
        if target in items:
            raise row.refuse(f"this target is on line {items[target].line} already.", TARGET)
        ticked = _ticked(row, positions, target, repairs)
        if ticked:
            items[target] = _item(row, target, list(ticked))
            submissions.append(_submission(row, target, ticked))
    if not items:
        raise ImportRefused(path, "none of its rows holds judgments.")
    return StudyDraft(
        kind="alternatives",
        items=tuple(items.values()),
        questions=(ACCEPTABLE,),
        submissions=tuple(submissions),
        repairs=repairs.descriptions(),
    )


class _Repairs:
    """How many rows and slots were mended, and why."""

    def __init__(self) -> None:
        self.merged = self.rows_merged = self.rows_self = self.unjudged = 0

    def descriptions(self) -> tuple[str, ...]:
        sentences = {
            f"{count_of(self.rows_merged, 'row')} showed a picture more than once: "
            f"{count_of(self.merged, 'surplus slot')} merged, relevant if ticked in "
            "either": self.rows_merged,
            f"{count_of(self.rows_self, 'row')} listed the target among its own candidates: "
            "dropped": self.rows_self,
            f"{count_of(self.unjudged, 'row')} without judgments: left out": self.unjudged,
        }
        return tuple(sentence for sentence, count in sentences.items() if count)


def _positions(path: Path, row: Row) -> list[str]:
    """Names of the pool's slots, such as top1, that have both a picture and a tick column."""
    names = [name.removeprefix("Input.") for name in row.fields if name.startswith("Input.top")]
    missing = [name for name in names if name not in row.fields]
    if not names or missing:
        problem = f"columns are missing: {', '.join(missing) or 'Input.top1 and top1'}."
        raise ImportRefused(path, problem, line=1)
    return names


def _ticked(row: Row, positions: list[str], target: str, repairs: _Repairs) -> dict[str, bool]:
    """Each candidate shown, and whether it was ticked in any slot; none where unjudged."""
    marks = {name: row.text(name).strip() for name in positions}
    if not any(marks.values()):
        repairs.unjudged += 1
        return {}
    ticked: dict[str, bool] = {}
    for name, mark in marks.items():
        if mark not in TICKS:
            raise row.refuse(f"'{mark[:20]}' is neither True nor False.", name)
        picture = row.required(f"Input.{name}")
        ticked[picture] = ticked.get(picture, False) or TICKS[mark]
    surplus = len(positions) - len(ticked)
    repairs.merged += surplus
    repairs.rows_merged += surplus > 0
    repairs.rows_self += ticked.pop(target, None) is not None
    if not ticked:
        raise row.refuse("the target is its own only candidate.")
    return ticked


def _item(row: Row, target: str, pictures: list[str]) -> ItemDraft:
    pool = tuple(CandidateDraft(key=picture, text=picture) for picture in pictures)
    return ItemDraft(key=target, context=target, line=row.line, candidates=pool)


def _submission(row: Row, target: str, ticked: dict[str, bool]) -> SubmissionDraft:
    """The release names no worker: each HIT's assessor is a person of its own."""
    return SubmissionDraft(
        item=target,
        annotator=f"assessor-{row.required('HITId', longest=80)}",
        line=row.line,
        status="approved",
        raw=json.dumps(row.fields, ensure_ascii=False),
        judgments=tuple(
            JudgmentDraft(candidate=picture, question=ACCEPTABLE.name, value=float(tick))
            for picture, tick in ticked.items()
        ),
    )
