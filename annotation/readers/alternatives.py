"""JSON Lines of targets with their pooled candidates and pictures."""

from pathlib import Path
from typing import Any

from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    PictureDraft,
    QuestionDraft,
    StudyDraft,
)
from annotation.readers.pictures import Folder, read_picture
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows

MOST_CANDIDATES = 100

ACCEPTABLE = QuestionDraft(
    name="acceptable",
    wording="Tick every product that would be an acceptable alternative to the target.",
    level="nominal",
    scale_max=1.0,
    categories=("no", "yes"),
)


def read_alternatives(
    path: Path, *, allows_target: bool = False, allows_repeats: bool = False
) -> StudyDraft:
    """The targets of a JSON Lines file; pictures are files named relative to it.

    A pool that holds its own target, or one picture twice, is refused unless it is allowed: the
    judgments of such a pool are worth less than they seem.
    """
    report = ReadingReport()
    items: dict[str, ItemDraft] = {}
    for row in read_rows(path, ("item", "target", "candidates"), report=report):
        item = _item(row)
        if not allows_target:
            _refuse_target(row, item)
        if not allows_repeats:
            _refuse_repeats(row, item)
        if item.key in items:
            raise row.refuse(
                f"item '{item.key}' is on line {items[item.key].line} already.",
                "item",
                code="repeated_item",
            )
        items[item.key] = item
    return StudyDraft(
        kind="alternatives",
        items=tuple(items.values()),
        questions=(ACCEPTABLE,),
        report=report,
    )


def _item(row: Row) -> ItemDraft:
    target = _part(row, row.fields["target"], "target")
    pool = row.fields["candidates"]
    if not isinstance(pool, list) or not 1 <= len(pool) <= MOST_CANDIDATES:
        raise row.refuse(
            f"expected a list of 1 to {MOST_CANDIDATES} objects.", "candidates", code="not_pool"
        )
    candidates: dict[str, CandidateDraft] = {}
    for index, entry in enumerate(pool):
        part = _part(row, entry, f"candidates[{index}]")
        candidate = _candidate(part)
        if candidate.key in candidates:
            raise part.refuse(
                f"'{candidate.key}' is listed twice.", "key", code="repeated_candidate"
            )
        candidates[candidate.key] = candidate
    return ItemDraft(
        key=row.required("item"),
        line=row.line,
        context=target.required("title", longest=1000),
        condition=row.optional("condition", longest=64),
        picture=_picture(target),
        candidates=tuple(candidates.values()),
    )


def _refuse_target(row: Row, item: ItemDraft) -> None:
    for index, candidate in enumerate(item.candidates):
        if candidate.picture is not None and candidate.picture == item.picture:
            raise row.refuse(
                f"'{candidate.key}' shows the target's own picture. Take it out of the pool, or "
                "allow it with --allow-target-in-pool.",
                f"candidates[{index}].image",
                code="target_in_pool",
            )


def _refuse_repeats(row: Row, item: ItemDraft) -> None:
    known: dict[PictureDraft, str] = {}
    for index, candidate in enumerate(item.candidates):
        if candidate.picture is None:
            continue
        if candidate.picture in known:
            raise row.refuse(
                f"'{candidate.key}' shows the same picture as '{known[candidate.picture]}'. Take "
                "one of them out, or allow it with --allow-same-pictures.",
                f"candidates[{index}].image",
                code="same_picture",
            )
        known[candidate.picture] = candidate.key


def _part(row: Row, value: Any, name: str) -> Row:
    if not isinstance(value, dict):
        raise row.refuse("expected a JSON object in braces.", name, code="not_object")
    return row.child(value, name)


def _candidate(entry: Row) -> CandidateDraft:
    return CandidateDraft(
        key=entry.required("key"),
        system=entry.optional("system", longest=100),
        text=entry.required("title", longest=1000),
        picture=_picture(entry),
    )


def _picture(entry: Row) -> PictureDraft | None:
    return read_picture(entry, "image", Folder(entry.path.parent))
