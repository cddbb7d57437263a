"""A Mechanical Turk batch of targets and their pools, as an alternatives study with judgments.

Such files show some pictures twice in a pool, and some targets in their own pool: both are mended
here, and said. `audit_collection` names each of them with its line.
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
from annotation.readers.mturk_batch import STATUSES, time_of
from annotation.readers.pooled_hits import TARGET, PooledHit, each_pooled_hit
from annotation.readers.report import ReadingReport, place_of_line
from error_codes import CodedText

UNJUDGED = CodedText("the row has no judgments", "no_judgments")
SURPLUS = CodedText(
    "the picture is in the pool more than once: merged, relevant if ticked in either slot",
    "repeated_picture",
)
OWN_TARGET = CodedText("the target is among its own candidates", "own_target")


def read_pooled_batch(path: Path) -> StudyDraft:
    report = ReadingReport()
    items: dict[str, ItemDraft] = {}
    submissions: dict[tuple[str, str], SubmissionDraft] = {}
    for hit in each_pooled_hit(path, report=report):
        ticked = _ticked(hit, report)
        if not ticked:
            continue
        item = items.setdefault(hit.target, _item(hit, list(ticked)))
        _require_same_target(hit, item, list(ticked))
        draft = _submission(hit, ticked)
        other = submissions.setdefault((hit.target, draft.identity or draft.annotator), draft)
        if other is not draft:
            problem = f"this worker's answer for this target is on line {other.line} already."
            raise hit.row.refuse(problem, TARGET, code="repeated_target")
    if not items:
        raise ImportRefused(path, "none of its rows holds judgments.", code="no_judgments")
    return StudyDraft(
        kind="alternatives",
        items=tuple(items.values()),
        questions=(ACCEPTABLE,),
        submissions=tuple(submissions.values()),
        report=report,
    )


def _ticked(hit: PooledHit, report: ReadingReport) -> dict[str, bool]:
    """Each candidate shown, and whether it was ticked in any slot; none where unjudged."""
    if hit.ticks is None:
        report.leave_out(UNJUDGED, place_of_line(hit.line))
        return {}
    ticked: dict[str, bool] = {}
    for picture, tick in zip(hit.pictures, hit.ticks, strict=True):
        ticked[picture] = ticked.get(picture, False) or tick
    surplus = len(hit.pictures) - len(ticked)
    if surplus:
        report.leave_out_part(SURPLUS, place_of_line(hit.line), surplus)
    if ticked.pop(hit.target, None) is not None:
        report.leave_out_part(OWN_TARGET, place_of_line(hit.line))
    if not ticked:
        raise hit.row.refuse("the target is its own only candidate.", code="only_target")
    return ticked


def _item(hit: PooledHit, pictures: list[str]) -> ItemDraft:
    pool = tuple(CandidateDraft(key=picture, text=picture) for picture in pictures)
    return ItemDraft(key=hit.target, context=hit.target, line=hit.line, candidates=pool)


def _require_same_target(hit: PooledHit, item: ItemDraft, pictures: list[str]) -> None:
    """A target comes again in other assignments only, with the same pool."""
    if hit.line == item.line:
        return
    if not hit.worker:
        raise hit.row.refuse(
            f"this target is on line {item.line} already.", TARGET, code="repeated_target"
        )
    if {candidate.key for candidate in item.candidates} != set(pictures):
        problem = f"this target is on line {item.line} already, with another pool."
        raise hit.row.refuse(problem, TARGET, code="other_pool")


def _submission(hit: PooledHit, ticked: dict[str, bool]) -> SubmissionDraft:
    """Where no worker is named, each HIT's assessor is a person of its own."""
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
    """Released judgments, which name no status, were accepted by whoever released them."""
    status = hit.row.text("AssignmentStatus").strip()
    if status and status not in STATUSES:
        problem = f"'{status[:40]}' is not one of {', '.join(STATUSES)}."
        raise hit.row.refuse(problem, "AssignmentStatus", code="unknown_status")
    return STATUSES.get(status, "approved")
