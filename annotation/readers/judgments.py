"""A long table of judgments made elsewhere: item, annotator, value, and what else there is.

Optional columns: `candidate` (or `system`), `question`, `round`, `condition`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.tables import Row, read_rows

COLUMNS = ("item", "annotator", "value")
SOLE_CANDIDATE = "item"
SOLE_QUESTION = "value"


@dataclass(frozen=True)
class _Cell:
    row: Row
    item: str
    candidate: str
    question: str
    annotator: str
    round: int

    @property
    def submission(self) -> tuple[str, str, int]:
        return self.item, self.annotator, self.round


def read_judgments(
    path: Path, *, level: str = "interval", scale: tuple[float, float] | None = None
) -> StudyDraft:
    """The items, questions and submissions a long file of judgments speaks of.

    On a nominal level values may be any text, and each question's categories are the
    texts in the file, sorted; on the other levels they are numbers. Without a `scale` a
    question's scale is what the values span.
    """
    cells = [_cell(row) for row in read_rows(path, COLUMNS)]
    _refuse_repeats(cells)
    categories = _categories(cells) if level == "nominal" else {}
    values = {id(cell): _value(cell, categories.get(cell.question)) for cell in cells}
    questions = tuple(
        _question(
            name,
            level,
            None if level == "nominal" else scale,
            [values[id(cell)] for cell in group],
            categories.get(name, ()),
        )
        for name, group in _grouped(cells, "question").items()
    )
    submissions: dict[tuple[str, str, int], list[_Cell]] = {}
    for cell in cells:
        submissions.setdefault(cell.submission, []).append(cell)
    drafts = tuple(_submission(group, values) for group in submissions.values())
    items = tuple(_item(key, group) for key, group in _grouped(cells, "item").items())
    return StudyDraft(
        kind="rating",
        items=items,
        questions=questions,
        submissions=drafts,
        items_only_named=True,
    )


def _cell(row: Row) -> _Cell:
    return _Cell(
        row=row,
        item=row.required("item"),
        candidate=row.optional("candidate", longest=100)
        or row.optional("system", longest=100)
        or SOLE_CANDIDATE,
        question=row.optional("question", longest=64) or SOLE_QUESTION,
        annotator=row.required("annotator", longest=100),
        round=_round(row),
    )


def _round(row: Row) -> int:
    if not row.text("round").strip():
        return 1
    number = row.number("round")
    if number != int(number) or not 1 <= number <= 1000:
        raise row.refuse("expected a whole number from 1.", "round")
    return int(number)


def _refuse_repeats(cells: Iterable[_Cell]) -> None:
    lines: dict[tuple[object, ...], int] = {}
    for cell in cells:
        key = (*cell.submission, cell.candidate, cell.question)
        if key in lines:
            raise cell.row.refuse(
                f"annotator '{cell.annotator}' judged item '{cell.item}' "
                f"on line {lines[key]} already."
            )
        lines[key] = cell.row.line


def _categories(cells: list[_Cell]) -> dict[str, tuple[str, ...]]:
    labels = {
        name: {cell.row.required("value") for cell in group}
        for name, group in _grouped(cells, "question").items()
    }
    for name, categories in labels.items():
        if len(categories) > 1000:
            raise ImportRefused(
                cells[0].row.path, f"question '{name}' has {len(categories)} categories; 1000 fit."
            )
    return {name: tuple(sorted(categories)) for name, categories in labels.items()}


def _value(cell: _Cell, categories: tuple[str, ...] | None) -> float:
    if categories is None:
        return cell.row.number("value")
    return float(categories.index(cell.row.required("value")))


def _question(
    name: str,
    level: str,
    scale: tuple[float, float] | None,
    values: list[float],
    categories: tuple[str, ...],
) -> QuestionDraft:
    low, high = scale or (min(values), max(values))
    return QuestionDraft(
        name=name,
        wording=name,
        level=level,
        scale_min=low,
        scale_max=high if high > low else low + 1,
        categories=categories,
    )


def _item(key: str, cells: list[_Cell]) -> ItemDraft:
    systems = dict.fromkeys(cell.candidate for cell in cells)
    first = cells[0].row
    for cell in cells:
        if cell.row.text("condition").strip() != first.text("condition").strip():
            raise cell.row.refuse(f"differs from line {first.line} of the same item.", "condition")
    return ItemDraft(
        key=key,
        line=first.line,
        condition=first.optional("condition", longest=64),
        candidates=tuple(
            CandidateDraft(key=name, system="" if name == SOLE_CANDIDATE else name)
            for name in systems
        ),
    )


def _submission(cells: list[_Cell], values: dict[int, float]) -> SubmissionDraft:
    first = cells[0]
    return SubmissionDraft(
        item=first.item,
        annotator=first.annotator,
        round=first.round,
        line=first.row.line,
        raw=json.dumps([cell.row.fields for cell in cells], ensure_ascii=False),
        judgments=tuple(
            JudgmentDraft(cell.candidate, cell.question, values[id(cell)], cell.row.line)
            for cell in cells
        ),
    )


def _grouped(cells: list[_Cell], attribute: str) -> dict[str, list[_Cell]]:
    groups: dict[str, list[_Cell]] = {}
    for cell in cells:
        groups.setdefault(getattr(cell, attribute), []).append(cell)
    return groups
