"""A long table of judgments made elsewhere: item, annotator, value, and what else there is.

Optional columns: `candidate` (or `system`), `question`, `round`, `condition`, `simulated`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.policies import (
    MISSING,
    REPEATED,
    Reading,
    Repeats,
    mean_of_known,
    merged_categories,
    merged_note,
    mode_of_known,
    note_look_alikes,
    repeats_note,
)
from annotation.readers.report import ReadingReport, place_of_line
from annotation.readers.rows import Row
from annotation.readers.staged_cells import Cell, Staged, StagedCells
from annotation.readers.tables import each_row

COLUMNS = ("item", "annotator", "value")
SOLE_CANDIDATE = "item"
SOLE_QUESTION = "value"
MOST_CATEGORIES = 1000


def read_judgments(
    path: Path,
    *,
    level: str = "interval",
    scale: tuple[float, float] | None = None,
    reading: Reading | None = None,
) -> StudyDraft:
    """The items, questions and submissions of a long file of judgments.

    On a nominal level values may be any text, and each question's categories are the
    texts in the file, sorted; on the other levels they are numbers. Without a `scale` a
    question's scale is what the values span. The file is read once, and never in memory whole.
    """
    reading = reading or Reading()
    is_nominal = level == "nominal"
    reading.state_policies(categories=is_nominal)
    repeats = reading.repeats("refuse")
    if repeats == "mean" and is_nominal:
        raise AnnotationError(
            "--repeats mean needs numbers. For categories, choose first, last or majority.",
            code="mean_of_categories",
        )
    cells = StagedCells(
        path, _cells(each_row(path, COLUMNS, report=reading.report), is_nominal, reading)
    )
    if not len(cells):
        raise ImportRefused(path, "it has no labels, only missing ones.", code="no_labels")
    if is_nominal:
        _settle_categories(cells, reading)
    if repeats != "refuse":
        _settle_repeats(cells, repeats, reading.report)
    for column, what in (("item", "items"), ("annotator", "annotators"), ("candidate", "systems")):
        names = cells.names(column)
        note_look_alikes(reading.report, names, what=what, code=f"look_alike_{what}")
    spans = {name: _Span(low, high, categories) for name, low, high, categories in cells.spans()}
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
        report=reading.report,
    )


@dataclass(frozen=True)
class _Span:
    low: float
    high: float
    categories: tuple[str, ...]

    def codes(self) -> dict[str, float]:
        return {name: float(code) for code, name in enumerate(sorted(self.categories))}


def _cells(rows: Iterable[Row], is_nominal: bool, reading: Reading) -> Iterator[Cell]:
    """The judgments of the rows that have one; the others are counted."""
    report = reading.report
    for row in rows:
        word = row.text("value").strip()
        if reading.policies.is_missing(word):
            report.note_missing(word)
            report.leave_out(MISSING, place_of_line(row.line))
        else:
            yield _cell(row, is_nominal)


def _settle_categories(cells: StagedCells, reading: Reading) -> None:
    """Note the categories of each question that look alike, or merge them on request."""
    for question, counts in cells.categories().items():
        words = list(counts)
        if reading.policies.categories == "as-written":
            note_look_alikes(reading.report, words, what="categories", code="look_alike_categories")
        elif merged := merged_categories(words, list(counts.values())):
            cells.rename_categories(question, merged)
            reading.report.note(merged_note(merged, counts))


def _settle_repeats(cells: StagedCells, repeats: Repeats, report: ReadingReport) -> None:
    """Leave one judgment of each candidate by an annotator, by the policy."""
    n = 0
    for group in cells.repeated():
        values = [value for _n, _line, value in group]
        kept, *others = group if repeats != "last" else group[::-1]
        settle = {"mean": mean_of_known, "majority": mode_of_known}.get(repeats)
        cells.settle(kept[0], settle(values) if settle else kept[2], [each[0] for each in others])
        n += len(others)
        for _n, line, _value in others if settle is None else ():
            report.leave_out(REPEATED, place_of_line(line))
    if n and repeats in ("mean", "majority"):
        report.note(repeats_note(n, repeats))
    cells.number_items()


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
