"""E2E's golden-answer tables: questions, an expert's answer to each, and what chatbots answered.

A CSV or JSON Lines file in either of two forms, with the columns

    question       what was asked
    golden_answer  what an expert answers
    prompt         optional: the variant the systems were prompted with (standard, enhanced)
    id             optional: the question's name; without it questions are numbered

and then, in the *long* form, `system` and `answer`, a row an answer; in the *wide* form a
column for each system that holds its answer.

An item is a question under one prompt, and the prompt is its condition; its candidates are the
systems' answers, its reference the golden one. The same question has the same context under
every prompt, which is how answers are paired.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import CandidateDraft, ItemDraft, StudyDraft
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from replications.readers.published import Published, rating

COLUMNS = ("question", "golden_answer")
OPTIONAL_COLUMNS = (*COLUMNS, "prompt", "id")
LONG = ("system", "answer")
QUESTION = replace(
    rating("correctness", "How well does the answer agree with the golden one?", 0, 100),
    low_label="Not at all",
    high_label="Completely",
)


class _Answer(NamedTuple):
    row: Row
    item: str
    prompt: str
    system: str
    text: str


def read_golden_answers(path: Path) -> Published:
    """The questions under each prompt, with the golden answer and every system's."""
    report = ReadingReport()
    rows = read_rows(path, COLUMNS, report=report)
    by_item: dict[str, list[_Answer]] = {}
    for answer in _answers(path, rows):
        by_item.setdefault(answer.item, []).append(answer)
    items = tuple(_item(key, answers) for key, answers in by_item.items())
    study = StudyDraft(kind="rating", items=items, questions=(QUESTION,), report=report)
    return Published(study)


def _answers(path: Path, rows: list[Row]) -> Iterator[_Answer]:
    fields = rows[0].fields
    is_long = all(name in fields for name in LONG)
    systems = () if is_long else tuple(name for name in fields if name not in OPTIONAL_COLUMNS)
    if not is_long and not systems:
        problem = "it has no column for any system, and neither `system` and `answer`."
        raise ImportRefused(path, problem, line=1, code="no_system")
    names: dict[str, str] = {}
    for row in rows:
        question = row.text("question").strip()
        if not question:
            raise row.refuse("this field must not be empty.", "question", code="empty")
        name = row.optional("id", longest=100) or str(len(names) + 1)
        if names.setdefault(question, name) != name and row.optional("id"):
            raise row.refuse(
                f"this question is named '{names[question]}' already.",
                "id",
                code="repeated_question",
            )
        prompt = row.optional("prompt", longest=64)
        item = f"{names[question]}/{prompt}" if prompt else names[question]
        if is_long:
            system, text = row.required("system", longest=100), row.text("answer")
            yield _Answer(row, item, prompt, system, text)
        for system in systems:
            yield _Answer(row, item, prompt, system[:100], row.text(system))


def _item(key: str, answers: list[_Answer]) -> ItemDraft:
    first = answers[0]
    candidates: dict[str, CandidateDraft] = {}
    for answer in answers:
        for field in COLUMNS:
            if answer.row.text(field).strip() != first.row.text(field).strip():
                problem = f"differs from line {first.row.line} of the same question and prompt."
                raise answer.row.refuse(problem, field, code="differs")
        if answer.system in candidates:
            problem = f"question '{key}' has an answer of '{answer.system}' already."
            raise answer.row.refuse(
                problem,
                "system" if "system" in answer.row.fields else None,
                code="repeated_response",
            )
        text = answer.text.strip()
        candidates[answer.system] = CandidateDraft(answer.system, answer.system, text)
    return ItemDraft(
        key=key,
        line=first.row.line,
        context=first.row.text("question").strip(),
        reference=first.row.text("golden_answer").strip(),
        condition=first.prompt,
        candidates=tuple(candidates.values()),
    )
