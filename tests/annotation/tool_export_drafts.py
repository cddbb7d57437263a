import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from annotation.readers.drafts import ReadingReport, StudyDraft
from annotation.readers.policies import Policies
from annotation.readers.tool_exports import entries, questions, studies
from tests.annotation.importing import write_file

FOLDER = Path(__file__).parent / "tool_exports"
FIELD = Path(__file__).parent / "field"


def read_draft(
    path: Path,
    tool: str,
    fields: entries.FieldNames | None = None,
    policies: Policies | None = None,
    **settings: Any,
) -> StudyDraft:
    """The study that an export makes; annotators keep their names."""
    return studies.read_tool_export(
        path,
        tool,
        fields=fields or entries.FieldNames(),
        settings=questions.QuestionSettings(**settings),
        policies=policies,
        keep_names=True,
    )


def written_file(folder: Path, records: Any, name: str = "export.json") -> Path:
    """A file of these records, or of this text."""
    return write_file(folder / name, records if isinstance(records, str) else json.dumps(records))


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


NOTHING: Mapping[str, int] = {}
Answers = dict[tuple[str, str], dict[str, Any]]


def read_fixture(name: str, tool: str, *, answers: str = "", **fields: Any) -> StudyDraft:
    return studies.read_tool_export(
        FOLDER / name,
        tool,
        fields=entries.FieldNames(**fields),
        settings=questions.QuestionSettings(),
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


def ticks(question: str, options: str, ticked: str = "") -> dict[str, str]:
    """Yes or no for each of the options of a question, of which some were ticked."""
    chosen = ticked.split()
    return {f"{question}:{name}": "yes" if name in chosen else "no" for name in options.split()}


def counts_of(draft: StudyDraft) -> dict[str, Any]:
    """The counts of the reading report: rows read and used, and the rest by code or word."""
    report = draft.report
    return {
        "rows": (report.n_rows, report.n_used),
        "left_out": {code: each.n for code, each in report.left_out.items()},
        "parts": {code: each.n for code, each in report.parts.items()},
        "missing": dict(report.missing),
        "notes": {text.code for text in report.notes},
    }


def assert_counts(
    draft: StudyDraft,
    rows: tuple[int, int],
    left_out: Mapping[str, int] = NOTHING,
    parts: Mapping[str, int] = NOTHING,
    missing: Mapping[str, int] = NOTHING,
    notes: Collection[str] = frozenset(),
) -> None:
    """The rows read and used, and all else that is counted: by code or word, and the notes."""
    found = counts_of(draft)
    assert found == dict(zip(found, (rows, left_out, parts, missing, notes), strict=True))


def wordings_of(draft: StudyDraft) -> dict[str, str]:
    return {question.name: question.wording for question in draft.questions}
