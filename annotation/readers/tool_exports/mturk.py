"""Results of a Mechanical Turk batch in any layout: `Input.*`, `Answer.*`, one row an assignment.

A column `Answer.X` is a question X about what the HIT shows; one about several things at once has
`--answers 'Answer.{question}_{system}'`, which tells the two apart. Check boxes of one name come as
`a|b`, or as `Answer.X.Y` with true and false, and all of a <crowd-form> as JSON in
`Answer.taskAnswers` or, with answer-format="flatten-objects", as columns such as
`Answer.X.label`.
https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/ (Review results, the CSV file)
https://docs.aws.amazon.com/sagemaker/latest/dg/sms-ui-template-reference.html (output)
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from annotation.exceptions import AnnotationError
from annotation.readers.drafts import CandidateDraft
from annotation.readers.json_rows import fit_row
from annotation.readers.mturk_batch import STATUSES, time_of
from annotation.readers.rows import Row, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    FieldNames,
    Kind,
    compile_pattern,
    named_texts,
    number_of,
    parse_json,
    require_fields,
    texts,
)
from error_codes import CodedText, require

COLUMNS = ("HITId", "WorkerId", "AssignmentStatus")
INPUT, ANSWER, FORM = "Input.", "Answer.", "Answer.taskAnswers"
BOOLEANS = {"true": True, "false": False}


# Columns of crowd-classifier and its multi-select variant, in a form that is flattened.
LABEL, LABELS = ".label", ".labels"
BETWEEN_BOXES = "|"
SPANS = CodedText("regions of texts and pictures are not read yet", "spans")
UNREAD = CodedText("answers that are lists or objects are not read", "unread")
# The names by which crowd elements give what was drawn or marked.
REGIONS = frozenset(
    {"boundingBoxes", "entities", "polygons", "polylines", "lines", "keypoints", "instances"}
    | {"labeledImage", "inputImageProperties", "labelMappings", "vertices"}
)


def read_mturk(export: Export, pattern: str = "") -> list[Entry]:
    matcher = _matcher(pattern)
    fields = export.fields
    rows = list(export.records())
    if rows:
        fields = _in_full(fields, rows[0])
        require_fields(rows[0], (*COLUMNS, *named_texts(fields), *fields.values))
    boxes = _box_columns(export, rows, fields)
    return list(export.read_each(lambda row: [_entry(export, row, fields, matcher, boxes)], rows))


def _box_columns(export: Export, rows: Iterable[Row], fields: FieldNames) -> frozenset[str]:
    joined: set[str] = set()
    spaced: set[str] = set()
    for row in rows:
        for column in _answer_columns(row, fields):
            text = row.fields[column]
            if isinstance(text, str) and BETWEEN_BOXES in text and column != FORM:
                parts = text.split(BETWEEN_BOXES)
                joined.add(column)
                # Words that somebody typed have a space or nothing next to a bar.
                spaced |= {column for part in parts if not part or part != part.strip()}
    boxes = frozenset(
        column for column in joined - spaced if column.removeprefix(ANSWER) not in export.written
    )
    for column in sorted(boxes):
        name = column.removeprefix(ANSWER)
        text = (
            f"'{name}' is read as check boxes: '{BETWEEN_BOXES}' is between those that were "
            f"ticked, and an empty cell means that none was. If it is text, say --written {name}."
        )
        export.report.note(CodedText(text, "check_boxes"))
    return boxes


def _answer_columns(row: Row, fields: FieldNames) -> tuple[str, ...]:
    return fields.values or tuple(name for name in row.fields if name.startswith(ANSWER))


def _matcher(pattern: str) -> re.Pattern[str] | None:
    if not pattern:
        return None
    require(
        all(pattern.count(name) == 1 for name in ("{question}", "{system}")),
        AnnotationError(
            f"--answers '{pattern}' must hold {{question}} and {{system}} once each, as in "
            "'Answer.{question}_{system}'.",
            code="answers_pattern",
        ),
    )
    return compile_pattern(pattern.removeprefix(ANSWER), ("question", "system"))


def _in_full(fields: FieldNames, row: Row) -> FieldNames:
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


def _entry(
    export: Export,
    row: Row,
    fields: FieldNames,
    matcher: re.Pattern[str] | None,
    boxes: frozenset[str],
) -> Entry:
    status = row.required("AssignmentStatus")
    row.refuse_unless(
        status in STATUSES,
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
    for name, column, kind, value in _values(export, row, fields, boxes):
        question, system = _question(row, name, matcher)
        if not export.is_unwanted(question, row):
            entry.add(question, kind, value, column, system)
    if matcher is not None:
        entry.candidates = _candidates(row, fields, matcher)
    return entry


def _candidates(
    row: Row, fields: FieldNames, matcher: re.Pattern[str]
) -> tuple[CandidateDraft, ...]:
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
    name = column.removeprefix(ANSWER).removesuffix(LABEL).removesuffix(LABELS)
    return matcher.fullmatch(name) if column.startswith(ANSWER) else None


def _question(row: Row, name: str, matcher: re.Pattern[str] | None) -> tuple[str, str]:
    match = matcher.fullmatch(name) if matcher else None
    if matcher and not match:
        raise row.refuse(
            "the pattern of --answers does not fit this column; choose columns with --value.",
            f"{ANSWER}{name}",
            code="no_match",
        )
    question, system = (match["question"], match["system"]) if match else (name, "")
    row.refuse_unless(
        not (len(question) > LONGEST_QUESTION or len(system) > 100),
        "a question's name has 64 characters at most, and a system's 100.",
        f"{ANSWER}{name}",
        code="too_long",
    )
    return question, system


Value = tuple[str, str, Kind, Any]


def _values(export: Export, row: Row, fields: FieldNames, boxes: frozenset[str]) -> Iterator[Value]:
    groups: dict[str, dict[str, bool]] = {}
    for column in _answer_columns(row, fields):
        text = row.text(column).strip()
        name = column.removeprefix(ANSWER)
        if column == FORM and text:
            yield from _form(export, row, text)
        elif column in boxes:
            is_empty = text in ("{}", "[]") or export.policies.is_missing(text)
            ticked = [] if is_empty else text.split(BETWEEN_BOXES)
            yield name, column, "categories", list(dict.fromkeys(ticked))
        elif text.lower() in BOOLEANS and "." in name:
            group, _, option = name.rpartition(".")
            groups.setdefault(group, {})[option] = BOOLEANS[text.lower()]
        elif export.is_missing(text, name):
            continue
        elif name.endswith(LABEL) and name != LABEL:
            yield name.removesuffix(LABEL), column, "categories", [text]
        elif text[0] in "[{":
            yield from _cell(export, row, column, text)
        else:
            yield name, column, "plain", text
    for group, options in groups.items():
        yield group, f"{ANSWER}{group}", "categories", _ticked(options)


def _ticked(options: dict[str, bool]) -> list[str]:
    return [name for name, is_ticked in options.items() if is_ticked]


def _cell(export: Export, row: Row, column: str, text: str) -> Iterator[Value]:
    name = column.removeprefix(ANSWER)
    value = parse_json(text, text)
    if isinstance(value, str):
        yield name, column, "plain", text
        return
    fit_row(row.child({name: value}, column), ())
    yield from _part(export, row, name.removesuffix(LABELS) or name, column, value)


def _form(export: Export, row: Row, text: str) -> Iterator[Value]:
    try:
        [form] = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise row.refuse("expected a JSON list of one object.", FORM, code="not_form")
    for name, value in fit_row(row.child(form, FORM), ()).fields.items():
        yield from _part(export, row, name, FORM, value)


def _part(export: Export, row: Row, name: str, column: str, value: Any) -> Iterator[Value]:
    labels = _labels(value)
    if labels is not None:
        yield name, column, "categories", labels
    elif value in (None, "", {"label": None}, {"label": ""}):
        export.report.note_missing("")
    elif isinstance(value, str | int | float):
        yield name, column, "plain", str(value)
    elif isinstance(value, dict) and value.keys() & REGIONS:
        marked = [len(each) for each in value.values() if isinstance(each, list)]
        export.leave_out(SPANS, row, max(1, sum(marked)))
    else:
        export.leave_out(UNREAD, row, detail=name[:LONGEST_QUESTION])


def _labels(value: Any) -> list[str] | None:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, dict) and all(isinstance(one, bool) for one in value.values()):
        return _ticked(value)
    if isinstance(value, dict) and len(value) == 1:
        value = [value["label"]] if "label" in value else value.get("labels")
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return list(dict.fromkeys(value))
    return None
