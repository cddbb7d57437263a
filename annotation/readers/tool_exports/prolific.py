"""Prolific's exports: submissions with demographics, and responses of the AI Task Builder.

https://docs.prolific.com/api-reference/ai-task-builder/get-task-builder-batch-task-responses
"""

from collections.abc import Iterator

from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    inner,
    inner_list,
    iso_time,
    item_key,
    texts,
)
from annotation.readers.tool_exports.surveys import read_survey
from error_codes import CodedText

SHAPES = (frozenset({"participant_id", "task_id", "response"}),)
CHOICES = ("multiple_choice", "multiple_choice_with_free_text")
WORDS = ("free_text", "free_text_with_unit")
FILES = CodedText("files that participants sent are not read", "files")
EXPLANATIONS = CodedText("explanations of answers are not read", "explanations")


def read_prolific(export: Export) -> list[Entry]:
    rows = list(export.records())
    if rows and "response" not in rows[0].fields:
        return read_survey(export, "prolific", rows)
    return list(export.read_each(lambda row: _response(export, row), rows))


def _response(export: Export, row: Row) -> Iterator[Entry]:
    metadata = inner(row, row.fields.get("metadata") or {}, "metadata")
    shown = row.child(metadata.fields | row.fields, row.inside)
    entry = Entry(
        row=row,
        item=item_key(shown, export.fields.item or ("task_id",)),
        annotator=row.required("participant_id", longest=254),
        submitted_at=iso_time(row, "created_at"),
        **texts(shown, export.fields),
    )
    response = inner(row, row.fields.get("response"), "response")
    question = response.required("instruction_id", longest=LONGEST_QUESTION)
    kind = response.required("type")
    answers = [
        inner(response, value, f"answer[{n}]")
        for n, value in enumerate(inner_list(response, "answer"))
    ]
    field = response.called("answer")
    if not export.is_unwanted(question, row):
        values = [answer.text("value").strip() for answer in answers]
        if kind in CHOICES:
            labels = list(dict.fromkeys(filter(None, values)))
            entry.add(question, "categories", labels, field)
        elif kind in WORDS:
            units = [f"{v} {a.text('unit')}".strip() for v, a in zip(values, answers, strict=True)]
            entry.add(question, "written", "\n".join(units), field)
        else:
            export.leave_out(FILES, row, max(1, len(answers)))
    export.leave_out(
        EXPLANATIONS, row, sum(bool(each.fields.get("explanation")) for each in answers)
    )
    yield entry
