"""Results of a Mechanical Turk batch in any layout: `Input.*`, `Answer.*`, one row an assignment.

A column `Answer.X` is a question X about what the HIT shows; one about several things at once has
`--answers 'Answer.{question}_{system}'`, which tells the two apart. Radio buttons and check boxes
come as `Answer.X.Y` with true and false, and all of a form as JSON in `Answer.taskAnswers`.
https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/ (Review results, the CSV file)
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from annotation.exceptions import AnnotationError
from annotation.readers.drafts import CandidateDraft
from annotation.readers.json_rows import fit_row
from annotation.readers.mturk_batch import STATUSES, time_of
from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Answer,
    Entry,
    Export,
    FieldNames,
    item_key,
    named_texts,
    number_of,
    require_fields,
    texts,
)

COLUMNS = ("HITId", "WorkerId", "AssignmentStatus")
INPUT, ANSWER, FORM = "Input.", "Answer.", "Answer.taskAnswers"
BOOLEANS = {"true": True, "false": False}


def read_mturk(export: Export, pattern: str = "") -> list[Entry]:
    """`pattern` is how a column of answers names its question and its system."""
    entries: list[Entry] = []
    matcher = _matcher(pattern)
    fields = export.fields
    for row in export.records():
        if not entries:
            fields = _in_full(fields, row)
            require_fields(row, (*COLUMNS, *named_texts(fields), *fields.values))
        with export.faults.noting():
            entries.append(_entry(export, row, fields, matcher))
    return entries


def _matcher(pattern: str) -> re.Pattern[str] | None:
    if not pattern:
        return None
    if not all(pattern.count(name) == 1 for name in ("{question}", "{system}")):
        raise AnnotationError(
            f"--answers '{pattern}' must hold {{question}} and {{system}} once each, as in "
            "'Answer.{question}_{system}'.",
            code="answers_pattern",
        )
    escaped = re.escape(pattern.removeprefix(ANSWER))
    for name in ("question", "system"):
        escaped = escaped.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>.+?)")
    return re.compile(escaped)


def _in_full(fields: FieldNames, row: Row) -> FieldNames:
    """Columns may be named without `Input.` and `Answer.`."""

    def column(name: str, prefix: str = INPUT) -> str:
        return name if not name or name in row.fields else f"{prefix}{name}"

    return replace(
        fields,
        item=tuple(column(name) for name in fields.item),
        values=tuple(column(name, ANSWER) for name in fields.values),
        **{
            name: column(getattr(fields, name))
            for name in ("candidate", "system", "context", "response", "reference", "condition")
            if "{system}" not in getattr(fields, name)
        },
    )


def _entry(export: Export, row: Row, fields: FieldNames, matcher: re.Pattern[str] | None) -> Entry:
    status = row.required("AssignmentStatus")
    if status not in STATUSES:
        raise row.refuse(
            f"'{status}' is not one of {', '.join(STATUSES)}.",
            "AssignmentStatus",
            code="unknown_status",
        )
    per_system = matcher is not None and "{system}" in fields.response
    about = texts(row, replace(fields, response="") if per_system else fields)
    entry = Entry(
        row=row,
        item=item_key(row, fields.item or ("HITId",)),
        annotator=row.required("WorkerId"),
        status=STATUSES[status],
        accepted_at=time_of(row, "AcceptTime"),
        submitted_at=time_of(row, "SubmitTime"),
        seconds=number_of(row, "WorkTimeInSeconds"),
        **about,
    )
    for name, column, kind, value in _values(export, row, fields):
        question, system = _question(row, name, matcher)
        candidate = system or entry.candidates[0].key
        entry.answers.append(Answer(question, kind, value, column, candidate))  # type: ignore[arg-type]
    if matcher is not None:
        entry.candidates = _candidates(row, fields, matcher)
    return entry


def _candidates(
    row: Row, fields: FieldNames, matcher: re.Pattern[str]
) -> tuple[CandidateDraft, ...]:
    """The systems that any column of answers names, with their texts where a column has them."""
    names = [match["system"] for name in row.fields if (match := _match(name, matcher))]
    is_template = "{system}" in fields.response
    drafts = []
    for name in dict.fromkeys(names):
        column = fields.response.replace("{system}", name) if is_template else ""
        column = column if column in row.fields or not column else f"{INPUT}{column}"
        if column and column not in row.fields:
            raise row.refuse(
                f"there is no column {column} of the response of '{name}'.",
                column,
                code="missing_columns",
            )
        drafts.append(CandidateDraft(name, name, row.text(column) if column else ""))
    return tuple(drafts)


def _match(column: str, matcher: re.Pattern[str]) -> re.Match[str] | None:
    return matcher.fullmatch(column.removeprefix(ANSWER)) if column.startswith(ANSWER) else None


def _question(row: Row, name: str, matcher: re.Pattern[str] | None) -> tuple[str, str]:
    """The question that a column asks, and the system that it is about, if it names one."""
    match = matcher.fullmatch(name) if matcher else None
    if matcher and not match:
        raise row.refuse(
            "the pattern of --answers does not fit this column; choose columns with --value.",
            f"{ANSWER}{name}",
            code="no_match",
        )
    question, system = (match["question"], match["system"]) if match else (name, "")
    if len(question) > LONGEST_QUESTION or len(system) > 100:
        problem = "a question's name has 64 characters at most, and a system's 100."
        raise row.refuse(problem, f"{ANSWER}{name}", code="too_long")
    return question, system


def _values(export: Export, row: Row, fields: FieldNames) -> Iterator[tuple[str, str, str, Any]]:
    """Name, column, kind and value of all that a row answers."""
    columns = fields.values or tuple(
        name for name, value in row.fields.items() if name.startswith(ANSWER) and value != ""
    )
    boxes: dict[str, dict[str, bool]] = {}
    for column in columns:
        text = row.text(column).strip()
        if column == FORM:
            yield from _form(export, row, text)
        elif text.lower() in BOOLEANS and "." in (name := column.removeprefix(ANSWER)):
            group, _, option = name.rpartition(".")
            boxes.setdefault(group, {})[option] = BOOLEANS[text.lower()]
        elif text:
            yield column.removeprefix(ANSWER), column, "plain", text
    for group, options in boxes.items():
        yield group, f"{ANSWER}{group}", "categories", _ticked(options)


def _ticked(options: dict[str, bool]) -> list[str]:
    return [name for name, is_ticked in options.items() if is_ticked]


def _form(export: Export, row: Row, text: str) -> Iterator[tuple[str, str, str, Any]]:
    """The one object in the list that `Answer.taskAnswers` holds."""
    try:
        [form] = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise row.refuse("expected a JSON list of one object.", FORM, code="not_form")
    answers = fit_row(row.child(form, FORM), ())
    for name, value in answers.fields.items():
        if isinstance(value, dict) and all(isinstance(one, bool) for one in value.values()):
            yield name, FORM, "categories", _ticked(value)
        elif isinstance(value, bool):
            yield name, FORM, "categories", ["yes" if value else "no"]
        elif isinstance(value, str | int | float):
            if value != "":
                yield name, FORM, "plain", str(value)
        elif value is not None:
            export.left_out.add(f"lists and objects in answers to '{name[:LONGEST_QUESTION]}'")
