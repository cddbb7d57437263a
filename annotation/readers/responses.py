"""A long table of responses: item, system, context, response, reference, condition."""

from pathlib import Path

from annotation.readers.drafts import CandidateDraft, ItemDraft, QuestionDraft, StudyDraft
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows

COLUMNS = ("item", "system", "context", "response")
SHARED = ("context", "reference", "condition")

APPROPRIATENESS = QuestionDraft(
    name="appropriateness",
    wording="How appropriate is the response to the conversation so far?",
    low_label="Not at all appropriate",
    high_label="Completely appropriate",
)


def read_responses(
    path: Path, questions: tuple[QuestionDraft, ...] = (APPROPRIATENESS,)
) -> StudyDraft:
    report = ReadingReport()
    by_item: dict[str, list[Row]] = {}
    for row in read_rows(path, COLUMNS, report=report):
        by_item.setdefault(row.required("item"), []).append(row)
    items = tuple(_item(key, rows) for key, rows in by_item.items())
    return StudyDraft(kind="rating", items=items, questions=questions, report=report)


def _item(key: str, rows: list[Row]) -> ItemDraft:
    first = rows[0]
    candidates: dict[str, CandidateDraft] = {}
    for row in rows:
        if row is not first:
            _require_agreement(first, row)
        system = row.required("system", longest=100)
        if system in candidates:
            raise row.refuse(
                f"item '{key}' has a response of '{system}' already.",
                "system",
                code="repeated_response",
            )
        candidates[system] = CandidateDraft(key=system, system=system, text=row.text("response"))
    return ItemDraft(
        key=key,
        line=first.line,
        context=first.text("context"),
        reference=first.text("reference"),
        condition=first.optional("condition", longest=64),
        candidates=tuple(candidates.values()),
    )


def _require_agreement(first: Row, row: Row) -> None:
    """Rows of one item show one page, so they share its context, reference and condition."""
    for field in SHARED:
        is_same = row.fields.get(field) == first.fields.get(field)
        if not is_same and row.text(field) != first.text(field):
            raise row.refuse(
                f"differs from line {first.line} of the same item.", field, code="differs"
            )
