"""A long table of judgments made elsewhere: item, annotator, value, and what else there is.

Optional columns: `candidate` (or `system`), `question`, `round`, `condition`, `simulated`.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
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
from annotation.readers.rows import Row
from annotation.readers.staged_cells import Cell, Staged, StagedCells
from annotation.readers.tables import each_row

COLUMNS = ("item", "annotator", "value")
SOLE_CANDIDATE = "item"
SOLE_QUESTION = "value"
MOST_CATEGORIES = 1000


def read_judgments(
    path: Path, *, level: str = "interval", scale: tuple[float, float] | None = None
) -> StudyDraft:
    """The items, questions and submissions a long file of judgments speaks of.

    On a nominal level values may be any text, and each question's categories are the
    texts in the file, sorted; on the other levels they are numbers. Without a `scale` a
    question's scale is what the values span. The file is read once, and never in memory whole.
    """
    spans: dict[str, _Span] = {}
    is_nominal = level == "nominal"
    rows = each_row(path, COLUMNS)
    cells = StagedCells(path, _counted((_cell(row, is_nominal) for row in rows), spans))
    _refuse(cells, spans, path)
    codes = {name: span.codes() for name, span in spans.items()} if is_nominal else {}
    return StudyDraft(
        kind="rating",
        items=Staged(cells, _items, cells.n_items),
        questions=tuple(
            _question(name, level, None if is_nominal else scale, span)
            for name, span in spans.items()
        ),
        submissions=Staged(cells, partial(_submissions, codes), cells.n_submissions),
        items_only_named=True,
    )


@dataclass
class _Span:
    """What the values of a question are: lowest and highest, or the texts of its categories."""

    low: float = math.inf
    high: float = -math.inf
    categories: set[str] = field(default_factory=set)

    def add(self, value: str | float) -> None:
        if isinstance(value, str):
            self.categories.add(value)
        else:
            self.low, self.high = min(self.low, value), max(self.high, value)

    def codes(self) -> dict[str, float]:
        return {name: float(code) for code, name in enumerate(sorted(self.categories))}


def _counted(cells: Iterable[Cell], spans: dict[str, _Span]) -> Iterator[Cell]:
    """The cells as they come, while what they span is noted."""
    for cell in cells:
        if cell.question not in spans:
            spans[cell.question] = _Span()
        spans[cell.question].add(cell.value)
        yield cell


def _cell(row: Row, is_nominal: bool) -> Cell:
    return Cell(
        row=row,
        item=row.required("item"),
        candidate=row.optional("candidate", longest=100)
        or row.optional("system", longest=100)
        or SOLE_CANDIDATE,
        question=row.optional("question", longest=64) or SOLE_QUESTION,
        annotator=row.required("annotator", longest=100),
        round=_round(row),
        condition=row.optional("condition", longest=64),
        value=row.required("value") if is_nominal else row.number("value"),
    )


def _round(row: Row) -> int:
    if not row.text("round").strip():
        return 1
    number = row.number("round")
    if number != int(number) or not 1 <= number <= 1000:
        raise row.refuse("expected a whole number from 1.", "round", code="not_round")
    return int(number)


def _refuse(cells: StagedCells, spans: dict[str, _Span], path: Path) -> None:
    """Refuse what only shows once all of the file is there."""
    if (repeat := cells.first_repeat()) is not None:
        cell, line = repeat
        raise cell.row.refuse(
            f"annotator '{cell.annotator}' judged item '{cell.item}' on line {line} already.",
            code="repeated_judgment",
        )
    for name, span in spans.items():
        if (n := len(span.categories)) > MOST_CATEGORIES:
            raise ImportRefused(
                path,
                f"question '{name}' has {n} categories; {MOST_CATEGORIES} fit.",
                code="too_many_categories",
            )
    if (other := cells.first_other_condition()) is not None:
        cell, line = other
        raise cell.row.refuse(
            f"differs from line {line} of the same item.", "condition", code="differs"
        )


def _question(
    name: str, level: str, scale: tuple[float, float] | None, span: _Span
) -> QuestionDraft:
    low, high = scale or (span.low, span.high)
    if span.categories:
        low, high = 0.0, float(len(span.categories) - 1)
    return QuestionDraft(
        name=name,
        wording=name,
        level=level,
        scale_min=low,
        scale_max=high if high > low else low + 1,
        categories=tuple(span.codes()),
    )


def _items(cells: list[Cell]) -> Iterator[ItemDraft]:
    """The one item that all the cells are of."""
    first = cells[0]
    yield ItemDraft(
        key=first.item,
        line=first.row.line,
        condition=first.condition,
        candidates=tuple(
            CandidateDraft(key=name, system="" if name == SOLE_CANDIDATE else name)
            for name in dict.fromkeys(cell.candidate for cell in cells)
        ),
    )


def _submissions(
    codes: dict[str, dict[str, float]], cells: list[Cell]
) -> Iterator[SubmissionDraft]:
    """The submissions of an item; `codes` are the values of each question's categories."""
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.submission, []).append(cell)
    for (item, annotator, round), group in groups.items():
        yield SubmissionDraft(
            item=item,
            annotator=annotator,
            round=round,
            line=group[0].row.line,
            raw=json.dumps([cell.row.fields for cell in group], ensure_ascii=False),
            is_simulated=any(cell.row.is_simulated for cell in group),
            judgments=tuple(
                JudgmentDraft(
                    cell.candidate,
                    cell.question,
                    codes[cell.question][cell.value] if codes else cell.value,
                    cell.row.line,
                )
                for cell in group
            ),
        )
