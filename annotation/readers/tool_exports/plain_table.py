"""A table of labels with columns of any names: a row a label, or a row with several.

The files of the alternative annotator test are one as JSON: an object of labels for each annotator,
people or language models; a label is a text, a number or a list of texts.
https://github.com/nitaytech/AltTest (human_annotations.json, llm_annotations.json)
"""

from collections.abc import Iterator

from annotation.exceptions import AnnotationError
from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    FieldNames,
    item_key,
    named_texts,
    require_fields,
    short_name,
    texts,
)
from error_codes import CodedText


def read_plain_table(export: Export) -> list[Entry]:
    fields = export.fields
    for name in ("item", "annotator", "values"):
        if not getattr(fields, name):
            option = f"--{name.removesuffix('s')}"
            raise AnnotationError(
                f"Name the column that holds each {option[2:]} with {option}.",
                code=f"no_{option[2:]}",
            )
    if fields.question and len(fields.values) > 1:
        raise AnnotationError(
            "--question names a column of questions, whose values stand in one column: give "
            "--value once; or leave --question out, and each --value is a question.",
            code="several_values",
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
    about = texts(row, fields)
    entry = Entry(
        row=row,
        item=item_key(row, fields.item),
        annotator=row.required(fields.annotator),
        round=round_of(row, fields.round),
        is_simulated=row.is_simulated,
        **about,
    )
    for column in fields.values:
        value = row.optional(column, longest=20_000)
        if not value:
            export.report.note_missing("")
            continue
        question = _question(row, fields, column)
        if not (export.is_missing(value, question) or export.is_unwanted(question, row)):
            entry.add(question, "plain", value, row.called(column))
    return entry


def _question(row: Row, fields: FieldNames, column: str) -> str:
    if fields.question:
        return row.required(fields.question, longest=LONGEST_QUESTION)
    return short_name(row, column)


def round_of(row: Row, column: str) -> int:
    if not column or not row.text(column).strip():
        return 1
    number = row.number(column)
    if number != int(number) or not 1 <= number <= 1000:
        raise row.refuse("expected a whole number from 1 to 1000.", column, code="not_round")
    return int(number)


LABEL = "value"
FIELDS = ("annotator", "item", LABEL)
UNREAD = CodedText("labels that are lists of other than texts are not read", "unread")


def read_alt_test(export: Export) -> list[Entry]:
    return list(export.read_each(lambda row: _label(export, row)))


def _label(export: Export, row: Row) -> Iterator[Entry]:
    label = row.fields.get(LABEL)
    if "annotator" not in row.fields or "item" not in row.fields:
        problem = "expected an object with the labels of each annotator by item."
        raise row.refuse(problem, code="not_export")
    entry = Entry(
        row=row,
        item=item_key(row, ("item",)),
        annotator=row.required("annotator", longest=254),
        **texts(row, export.fields),
    )
    if isinstance(label, list):
        labels = [each for each in label if isinstance(each, str) and each]
        export.leave_out(UNREAD, row, len(label) - len(labels))
        entry.add(LABEL, "categories", list(dict.fromkeys(labels)), LABEL)
    elif isinstance(label, bool):
        entry.add(LABEL, "categories", ["yes" if label else "no"], LABEL)
    elif not export.is_missing(row.optional(LABEL, longest=20_000), LABEL):
        entry.add(LABEL, "plain", row.optional(LABEL, longest=20_000), LABEL)
    yield entry
