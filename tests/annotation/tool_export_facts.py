"""What tests compare of an export that was read: answers in words, and counts of the report."""

from pathlib import Path
from typing import Any

from annotation.readers.drafts import StudyDraft
from annotation.readers.tool_exports.entries import FieldNames
from annotation.readers.tool_exports.questions import QuestionSettings
from annotation.readers.tool_exports.studies import read_tool_export

EXPORTS = Path(__file__).parent / "tool_exports"
Answers = dict[tuple[str, str], dict[str, Any]]


def read_fixture(name: str, tool: str, *, answers: str = "", **fields: Any) -> StudyDraft:
    return read_tool_export(
        EXPORTS / name,
        tool,
        fields=FieldNames(**fields),
        settings=QuestionSettings(),
        answers=answers,
    )


def answers_of(draft: StudyDraft) -> Answers:
    """By item and annotator: the label, number or words under each question, or under
    `question@candidate` if the item has several candidates."""
    categories = {question.name: question.categories for question in draft.questions}
    sole = {item.key: len(item.candidates) == 1 for item in draft.items}
    found: Answers = {}
    for each in draft.submissions:
        values = found.setdefault((each.item, each.identity), {})
        for judgment in each.judgments:
            names = categories[judgment.question]
            where = "" if sole[each.item] else f"@{judgment.candidate}"
            label: Any = names[int(judgment.value)] if names else judgment.value
            values[f"{judgment.question}{where}"] = label
        for text in each.written:
            where = "" if sole[each.item] else f"@{text.candidate}"
            values[f"{text.question}{where}"] = text.text
    return found


def counts_of(draft: StudyDraft) -> dict[str, Any]:
    """The counts of the reading report: rows read and used, and the rest by code or word."""
    report = draft.report
    assert report is not None
    return {
        "rows": (report.n_rows, report.n_used),
        "left_out": {code: each.n for code, each in report.left_out.items()},
        "parts": {code: each.n for code, each in report.parts.items()},
        "missing": dict(report.missing),
        "notes": {text.code for text in report.notes},
    }


def wordings_of(draft: StudyDraft) -> dict[str, str]:
    return {question.name: question.wording for question in draft.questions}
