"""Read exports of tools in tests, and name what annotators answered in them."""

import json
from pathlib import Path
from typing import Any

from annotation.readers.drafts import StudyDraft
from annotation.readers.policies import Policies
from annotation.readers.report import ReadingReport
from annotation.readers.tool_exports.entries import FieldNames
from annotation.readers.tool_exports.questions import QuestionSettings
from annotation.readers.tool_exports.studies import read_tool_export

FOLDER = Path(__file__).parent / "tool_exports"
FIELD = Path(__file__).parent / "field"


def read_draft(
    path: Path,
    tool: str,
    fields: FieldNames | None = None,
    policies: Policies | None = None,
    **settings: Any,
) -> StudyDraft:
    """The study that an export makes; annotators keep their names."""
    return read_tool_export(
        path,
        tool,
        fields=fields or FieldNames(),
        settings=QuestionSettings(**settings),
        policies=policies,
        keep_names=True,
    )


def written_file(folder: Path, records: Any, name: str = "export.json") -> Path:
    """A file of these records, or of this text."""
    path = folder / name
    path.write_text(records if isinstance(records, str) else json.dumps(records))
    return path


def answers_to(draft: StudyDraft, question: str) -> dict[tuple[str, str], Any]:
    """What each annotator answered about each item: a number, a category, or the categories of
    which several could be chosen."""
    found: dict[tuple[str, str], Any] = {}
    drafts = {each.name: each for each in draft.questions}
    for submission in draft.submissions:
        key = submission.item, submission.annotator
        for judgment in submission.judgments:
            categories = drafts[judgment.question].categories
            if judgment.question == question:
                value = judgment.value
                found[key] = categories[int(value)] if categories else value
            elif judgment.question.startswith(f"{question}:"):
                ticked = found.setdefault(key, [])
                ticked += [judgment.question.removeprefix(f"{question}:")] * int(judgment.value)
    return found


def words_to(draft: StudyDraft, question: str) -> dict[tuple[str, str], str]:
    """What each annotator wrote about each item."""
    return {
        (submission.item, submission.annotator): written.text
        for submission in draft.submissions
        for written in submission.written
        if written.question == question
    }


def counts(report: ReadingReport) -> dict[str, int]:
    """The number of rows and of values that are left out, by code."""
    left_out = {code: group.n for code, group in report.left_out.items()}
    return left_out | {code: group.n for code, group in report.parts.items()}


def note_codes(report: ReadingReport) -> set[str]:
    return {note.code for note in report.notes}
