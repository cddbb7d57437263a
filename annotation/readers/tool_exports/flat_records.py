"""Labels with a row or record each: tables with columns of any names, and scores of tools.

A row of a table has one label, or several. The files of the alternative annotator test are one as
JSON: an object of labels for each annotator, people or language models; a label is a text, a number
or a list of texts. https://github.com/nitaytech/AltTest (human_annotations.json,
llm_annotations.json)

Langfuse, Phoenix and LangSmith have a record per score. Scores that a program gave are left out and
counted. A question whose scores all have a label is answered by categories, and else by numbers.

Langfuse: https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
Phoenix: https://arize.com/docs/phoenix/tracing/how-to-tracing/feedback-and-annotations
LangSmith: https://docs.langchain.com/langsmith/feedback-data-format
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from annotation.exceptions import AnnotationError
from annotation.readers.rows import Row, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    FieldNames,
    iso_time,
    named_texts,
    require_fields,
    short_name,
    texts,
)
from error_codes import CodedText, require


def read_plain_table(export: Export) -> list[Entry]:
    fields = export.fields
    for name in ("item", "annotator", "values"):
        if not getattr(fields, name):
            option = f"--{name.removesuffix('s')}"
            raise AnnotationError(
                f"Name the column that holds each {option[2:]} with {option}.",
                code=f"no_{option[2:]}",
            )
    require(
        not (fields.question and len(fields.values) > 1),
        AnnotationError(
            "--question names a column of questions, whose values stand in one column: give "
            "--value once; or leave --question out, and each --value is a question.",
            code="several_values",
        ),
    )
    rows = list(export.records())
    rest = (fields.annotator, fields.question, fields.round, *fields.values)
    for row in rows[:1]:
        require_fields(row, (*named_texts(fields), *rest))
        wording = row.source.wording if row.source and not fields.question else {}
        named = (name for name in fields.values if name in wording)
        export.wordings |= {name.strip(): wording[name] for name in named}
    return list(export.read_each(lambda row: [_entry(export, row, fields)], rows))


def _entry(export: Export, row: Row, fields: FieldNames) -> Entry:
    entry = Entry(
        row=row,
        item=item_key(row, fields.item),
        annotator=row.required(fields.annotator),
        round=round_of(row, fields.round),
        is_simulated=row.is_simulated,
        **texts(row, fields),
    )
    for column in fields.values:
        value = row.optional(column, longest=20_000)
        if not value:
            export.report.note_missing("")
            continue
        question = (
            row.required(fields.question, longest=LONGEST_QUESTION)
            if fields.question
            else short_name(row, column)
        )
        if not (export.is_missing(value, question) or export.is_unwanted(question, row)):
            entry.add(question, "plain", value, row.called(column))
    return entry


def round_of(row: Row, column: str) -> int:
    if not column or not row.text(column).strip():
        return 1
    number = row.number(column)
    if number != int(number) or not 1 <= number <= 1000:
        raise row.refuse("expected a whole number from 1 to 1000.", column, code="not_round")
    return int(number)


LABEL = "value"
FIELDS = ("annotator", "item", LABEL)


def read_alt_test(export: Export) -> list[Entry]:
    return list(export.read_each(lambda row: _label(export, row)))


def _label(export: Export, row: Row) -> Iterator[Entry]:
    label = row.fields.get(LABEL)
    if "annotator" not in row.fields or "item" not in row.fields:
        raise row.refuse(
            "expected an object with the labels of each annotator by item.", code="not_export"
        )
    entry = Entry(
        row=row,
        item=item_key(row, ("item",)),
        annotator=row.required("annotator", longest=254),
        **texts(row, export.fields),
    )
    if isinstance(label, list):
        labels = [each for each in label if isinstance(each, str) and each]
        export.leave_out(
            CodedText("labels that are lists of other than texts are not read", "unread"),
            row,
            len(label) - len(labels),
        )
        entry.add(LABEL, "categories", list(dict.fromkeys(labels)), LABEL)
    elif isinstance(label, bool):
        entry.add(LABEL, "categories", ["yes" if label else "no"], LABEL)
    elif not export.is_missing(row.optional(LABEL, longest=20_000), LABEL):
        entry.add(LABEL, "plain", row.optional(LABEL, longest=20_000), LABEL)
    yield entry


PROGRAM = CodedText("a program gave the score", "program_score")
COMMENTS = CodedText("comments are not read", "comments")
UNREAD = CodedText("labels that are objects are not read", "unread")


@dataclass(frozen=True)
class FeedbackLayout:
    """The names of fields in a tool's API and files; the first one that has a value counts.

    `programs` are the sources that are not people.
    """

    has: tuple[frozenset[str], ...]
    item: tuple[str, ...]
    annotator: tuple[str, ...]
    question: tuple[str, ...]
    source: tuple[str, ...]
    programs: frozenset[str]
    number: tuple[str, ...]
    label: tuple[str, ...]
    time: tuple[str, ...]
    comment: tuple[str, ...]
    position: str = ""
    kind: tuple[str, ...] = ()


LAYOUTS = {
    "langfuse": FeedbackLayout(
        has=(
            frozenset({"name", "source", "traceId"}),
            frozenset({"name", "source", "trace_id"}),
            frozenset({"name", "source", "sessionId"}),
        ),
        item=("observationId", "observation_id", "traceId", "trace_id", "sessionId", "session_id"),
        annotator=("authorUserId", "author_user_id"),
        question=("name",),
        source=("source",),
        programs=frozenset({"EVAL"}),
        number=("value",),
        label=("stringValue", "string_value"),
        time=("timestamp",),
        comment=("comment",),
        kind=("dataType", "data_type"),
    ),
    "phoenix": FeedbackLayout(
        has=(frozenset({"annotator_kind"}),),
        item=("span_id", "trace_id", "session_id"),
        annotator=("user_id", "identifier"),
        question=("annotation_name", "name"),
        source=("annotator_kind",),
        programs=frozenset({"LLM", "CODE"}),
        number=("result.score", "score"),
        label=("result.label", "label"),
        time=("updated_at", "created_at"),
        comment=("result.explanation", "explanation"),
        position="document_position",
    ),
    "langsmith": FeedbackLayout(
        has=(
            frozenset({"run_id", "key", "score", "feedback_source"}),
            frozenset({"run_id", "key", "score", "feedback_source.type"}),
        ),
        item=("run_id", "trace_id"),
        annotator=("feedback_source.user_id", "feedback_source.user_name"),
        question=("key",),
        source=("feedback_source.type",),
        programs=frozenset({"model", "auto_eval"}),
        number=("score",),
        label=("value",),
        time=("modified_at", "created_at"),
        comment=("comment",),
    ),
}
WRITTEN = {"TEXT", "CORRECTION"}


def read_feedback(export: Export, tool: str) -> list[Entry]:
    layout = LAYOUTS[tool]
    rows = [row for row in export.records() if _is_human(export, layout, row)]
    if rows:
        require_fields(rows[0], (*named_texts(export.fields), export.fields.annotator))
    scored = {
        str(_found(row, layout.question)[1])
        for row in rows
        if _found(row, layout.label)[1] is None and _found(row, layout.number)[1] is not None
    }
    return list(export.read_each(lambda row: _entries(export, layout, scored, row), rows))


def _is_human(export: Export, layout: FeedbackLayout, row: Row) -> bool:
    is_human = str(_found(row, layout.source)[1]) not in layout.programs
    if not is_human:
        export.leave_out_record(PROGRAM, row)
    return is_human


def _found(row: Row, names: tuple[str, ...]) -> tuple[str, Any]:
    for name in names:
        value: Any = row.fields.get(name)
        outer, point, inner = name.partition(".")
        if value is None and point and isinstance(nested := row.fields.get(outer), dict):
            value = nested.get(inner)
        if value not in (None, ""):
            return name, value
    return names[0] if names else "", None


def _entries(export: Export, layout: FeedbackLayout, scored: set[str], row: Row) -> Iterator[Entry]:
    entry = Entry(
        row=row,
        item=_item(export, layout, row),
        annotator=_annotator(export, layout, row),
        submitted_at=_time(layout, row),
        **texts(row, export.fields),
    )
    question = _text(row, layout.question, longest=LONGEST_QUESTION)
    if not export.is_unwanted(question, row):
        _add_answer(export, layout, entry, question, is_scored=question in scored)
    if _found(row, layout.comment)[1] is not None:
        export.leave_out(COMMENTS, row)
    if row.fields.get("correction") not in (None, ""):
        export.leave_out(CodedText("corrections are not read", "corrections"), row)
    yield entry


def _text(row: Row, names: tuple[str, ...], *, longest: int = 200) -> str:
    name, value = _found(row, names)
    return row.child({name: value}, row.inside).required(name, longest=longest)


def _item(export: Export, layout: FeedbackLayout, row: Row) -> str:
    if export.fields.item:
        return item_key(row, export.fields.item)
    key = _text(row, layout.item)
    position = row.fields.get(layout.position)
    return key if position in (None, "") else f"{key}-{position}"


def _annotator(export: Export, layout: FeedbackLayout, row: Row) -> str:
    if export.fields.annotator:
        return row.required(export.fields.annotator, longest=254)
    if _found(row, layout.annotator)[1] is not None:
        return _text(row, layout.annotator, longest=254)
    export.report.note(
        CodedText(
            "Records that name no person are read as one annotator's, with the name of their "
            "source.",
            "no_annotator",
        )
    )
    return _text(row, layout.source)


def _time(layout: FeedbackLayout, row: Row) -> Any:
    name, value = _found(row, layout.time)
    return iso_time(row, name) if value is not None else None


def _add_answer(
    export: Export, layout: FeedbackLayout, entry: Entry, question: str, *, is_scored: bool
) -> None:
    row = entry.row
    is_text = str(_found(row, layout.kind)[1]) in WRITTEN
    name, value = _found(row, layout.number if is_scored and not is_text else layout.label)
    if value is None:
        export.report.note_missing("")
    elif is_text or question in export.written:
        entry.add(question, "written", str(value), row.called(name))
    elif isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        entry.add(question, "categories", list(dict.fromkeys(value)), row.called(name))
    elif isinstance(value, list | dict):
        export.leave_out(UNREAD, row, detail=question)
    elif is_scored:
        cell = row.child({name: value}, row.inside)
        number = float(value) if isinstance(value, bool) else cell.number(name)
        entry.add(question, "number", number, row.called(name))
    else:
        entry.add(question, "categories", [str(value)], row.called(name))
