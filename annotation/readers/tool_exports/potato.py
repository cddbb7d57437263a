"""Potato's annotations: its `user_state.json`, its annotation output, and what it exports.

Potato 2 keeps `user_state.json` for each annotator, and exports rows of `instance_id` and
`user_id` as CSV, TSV or JSON Lines. Potato 1 writes `annotated_instances` for each annotator, as
JSON Lines in a folder of the annotator's name, or as a table with columns `schema:::label`.
https://potato-annotation.readthedocs.io/ (Data format)
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from annotation.readers.archives import unpacked_members
from annotation.readers.json_rows import fit_row
from annotation.readers.rows import Row, inner, item_key
from annotation.readers.tables import kind_of
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    named_texts,
    number_of_text,
    require_fields,
    short_name,
    texts,
)
from error_codes import CodedText

STATE_FILE, OUTPUT_FILE = "user_state.json", "annotated_instances"
STATE = "instance_id_to_label_to_value"
STATE_SPANS = "instance_id_to_span_to_value"
SURVEYS = "phase_to_page_to_label_to_value"
OUTPUT, OUTPUT_SPANS = "label_annotations", "span_annotations"
BETWEEN = ":::"
# Columns of a table that are no label.
OF_ROWS = ("instance_id", "user_id", "user", "id", "displayed_text", "annotator_origin")
USERS = ("user_id", "user")
# What controls call their one value. Any other name is that of an option or of a text field.
SCALARS = frozenset({"slider", "number", "select-one", "value"})
TEXTS = frozenset({"text_box", "textbox", "free_response", "bad_text", "justification"})
# What forms store for an option that was chosen, and for one that was not.
CHOSEN, UNCHOSEN = ("true", "1", "on", "yes"), ("false", "0", "off", "no")
NOT_THE_EXPORT = (
    "expected user_state.json, annotated_instances, or annotations as Potato exports them: with "
    f"'{STATE}', '{OUTPUT}', or 'instance_id' and 'user_id'."
)
SPANS = CodedText("spans are not read yet", "spans")
LINKS = CodedText("links between spans are not read yet", "relations")
SURVEY = CodedText("answers to surveys are about no item", "survey")
UNNAMED = CodedText(
    "The file names no annotator: its folder does. Its annotations are read as one annotator's; "
    "import the zip of the folder annotation_output to read all.",
    "unnamed_annotator",
)
OTHER_FILES = CodedText(
    f"Only the files {STATE_FILE} and {OUTPUT_FILE} of the zip are read.", "other_files"
)
# The answers of one annotator about one instance: of each schema the values by label.
Labels = dict[str, dict[str, Any]]
Annotated = tuple[Row, str, str, Labels]


def read_potato(export: Export) -> list[Entry]:
    read: list[Annotated] = []
    if kind_of(export.path) == ".zip":
        with unpacked_members(export.path) as members:
            for member in members:
                if member.name.name == STATE_FILE or member.name.stem == OUTPUT_FILE:
                    read += _file(replace(export, path=member.path), member.name.parent.name)
                else:
                    export.report.note(OTHER_FILES)
    else:
        read += _file(export, "")
    schemas = _Schemas([labels for _row, _item, _user, labels in read])
    found = {id(row): (item, user, labels) for row, item, user, labels in read}
    return list(
        export.read_each(
            lambda row: _entries(export, schemas, row, *found[id(row)]),
            [row for row, *_rest in read],
        )
    )


def _file(export: Export, annotator: str) -> Iterator[Annotated]:
    for row in list(export.records()):
        with export.faults.noting():
            yield from _annotated(export, row, annotator)


def _annotated(export: Export, row: Row, annotator: str) -> Iterator[Annotated]:
    fields = row.fields
    if STATE in fields:
        yield from _state(export, row)
    elif OUTPUT in fields:
        if not annotator:
            export.report.note(UNNAMED)
        _count_spans(export, row, fields.get(OUTPUT_SPANS))
        yield row, "id", annotator or "annotator", _by_schema(inner(row, fields[OUTPUT], OUTPUT))
    elif "instance_id" in fields and (user := next((n for n in USERS if n in fields), "")):
        yield row, "instance_id", row.required(user, longest=254), _exported(export, row)
    else:
        raise row.refuse(NOT_THE_EXPORT, code="not_export")


def _state(export: Export, row: Row) -> Iterator[Annotated]:
    user = row.required("user_id", longest=254)
    answers = inner(row, row.fields[STATE] or {}, STATE)
    spans = inner(row, row.fields.get(STATE_SPANS) or {}, STATE_SPANS)
    surveys = inner(row, row.fields.get(SURVEYS) or {}, SURVEYS)
    for phase, pages in surveys.fields.items():
        for page, pairs in inner(surveys, pages, phase).fields.items():
            export.leave_out(SURVEY, row, _n_parts(pairs), detail=f"{phase}, {page}")
    instances = list(dict.fromkeys([*answers.fields, *spans.fields]))
    parts = [row.child({"id": instance}, f"{STATE}.{instance}") for instance in instances]
    export.split_record(row, parts)
    for instance, part in zip(instances, parts, strict=True):
        with export.faults.noting():
            export.leave_out(SPANS, part, _n_parts(spans.fields.get(instance)))
            pairs = answers.fields.get(instance) or []
            if not isinstance(pairs, list):
                raise part.refuse("expected a list of labels.", code="not_list")
            labels: Labels = {}
            for n, pair in enumerate(pairs):
                label, value = _pair(part, pair, n)
                labels.setdefault(label.required("schema"), {})[label.text("name")] = value
            yield part, "id", user, labels


def _pair(row: Row, pair: Any, n: int) -> tuple[Row, Any]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise row.refuse("expected a list of a label and its value.", f"[{n}]", code="not_pair")
    return inner(row, pair[0], f"[{n}]"), pair[1]


def _n_parts(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _by_schema(labels: Row) -> Labels:
    return {
        schema: dict(inner(labels, values, schema).fields)
        for schema, values in labels.fields.items()
    }


def _exported(export: Export, row: Row) -> Labels:
    if isinstance(row.fields.get("labels"), dict):
        _count_spans(export, row, row.fields.get("spans"))
        links = inner(row, row.fields.get("links") or {}, "links")
        export.leave_out(LINKS, row, sum(map(_n_parts, links.fields.values())))
        return {
            schema: dict(values) if isinstance(values, dict) else {"": values}
            for schema, values in inner(row, row.fields["labels"], "labels").fields.items()
        }
    found: Labels = {}
    for column in row.fields:
        schema, between, label = column.partition(BETWEEN if BETWEEN in column else ".")
        if label.startswith("_"):
            if label == "_spans" and row.text(column).strip():
                _count_spans(export, row, {schema: _json(row, column)})
        elif between and column not in OF_ROWS and row.text(column).strip():
            found.setdefault(schema, {})[label] = row.text(column).strip()
    return found


def _json(row: Row, column: str) -> Any:
    try:
        value = json.loads(row.text(column))
    except (ValueError, RecursionError):
        raise row.refuse("expected JSON.", column, code="not_json") from None
    return fit_row(row.child({column: value}, row.inside), ()).fields[column]


def _count_spans(export: Export, row: Row, spans: Any) -> None:
    lists = spans.values() if isinstance(spans, Mapping) else [spans]
    export.leave_out(SPANS, row, sum(map(_n_parts, lists)))


class _Schemas:
    def __init__(self, annotations: Sequence[Labels]) -> None:
        values: dict[str, dict[str, set[str]]] = {}
        for labels in annotations:
            for schema, chosen in labels.items():
                of_schema = values.setdefault(schema, {})
                for label, value in chosen.items():
                    of_schema.setdefault(label, set()).add(str(value).strip())
        self.values = values
        # Of those of which an annotator may choose several, an annotation without any has none.
        self.with_several = [
            schema
            for schema in values
            if self.are_options(schema)
            and any(len(labels.get(schema, {}).keys() - TEXTS) > 1 for labels in annotations)
        ]

    def are_options(self, schema: str) -> bool:
        """Whether the labels are options to choose, whose values say no more than that they were:
        the same word, a mark, or always the number of the same key."""
        labels = {
            label: {value for value in values if _is_chosen(label, value)}
            for label, values in self.values[schema].items()
            if label not in TEXTS
        }
        if not labels or labels.keys() & SCALARS or "" in labels:
            return False
        return all(
            all(_is_mark(label, value) for value in values)
            or (len(values) == 1 and len(labels) > 1 and number_of_text(*values) is not None)
            for label, values in labels.items()
        )


def _is_chosen(label: str, value: str) -> bool:
    return value == label or value.casefold() not in UNCHOSEN


def _is_mark(label: str, value: str) -> bool:
    return value == label or value.casefold() in CHOSEN or label in (f"scale_{value}", "")


def _entries(
    export: Export, schemas: _Schemas, row: Row, item: str, user: str, labels: Labels
) -> Iterator[Entry]:
    require_fields(row, named_texts(export.fields))
    about = texts(row, export.fields, response=row.text("displayed_text"))
    entry = Entry(row=row, item=item_key(row, export.fields.item or (item,)), **about)
    yield entry
    entry = Entry(row=row, item=entry.item, annotator=user, **about)
    unticked = [name for name in schemas.with_several if labels and name not in labels]
    if unticked:
        export.report.note(
            CodedText(
                "Potato stores no answer if no option is ticked: an annotated instance without "
                "one counts as an answer with no option, if annotators could choose several.",
                "check_boxes",
            )
        )
    for schema, values in (labels | {name: {} for name in unticked}).items():
        with export.faults.noting():
            _add(export, entry, row, schema, values, are_options=schemas.are_options(schema))
    yield entry


def _add(
    export: Export,
    entry: Entry,
    row: Row,
    schema: str,
    values: dict[str, Any],
    *,
    are_options: bool,
) -> None:
    question = short_name(row, schema)
    field = row.called(schema)
    if export.is_unwanted(question, row):
        return
    rest = {name: each for name, each in values.items() if name not in TEXTS or not are_options}
    for label in values.keys() - rest.keys():
        _add_value(export, entry, row, f"{question}:{label}", label, values[label], field)
    if not are_options:
        for label, value in rest.items():
            name = question if len(rest) == 1 else f"{question}:{label}"
            _add_value(export, entry, row, name, label, value, field)
        return
    chosen = [label for label, value in rest.items() if _is_chosen(label, str(value).strip())]
    if len(chosen) == 1 and (number := _number(chosen[0])) is not None:
        entry.add(question, "plain", number, field)
    elif chosen or rest or not values:
        entry.add(question, "categories", chosen, field)


def _number(label: str) -> str | None:
    text = label.removeprefix("scale_")
    return text if number_of_text(text) is not None else None


def _add_value(
    export: Export, entry: Entry, row: Row, question: str, label: str, value: Any, field: str
) -> None:
    text = row.child({label: value}, field).optional(label, longest=20_000)
    row.refuse_unless(
        len(question) <= LONGEST_QUESTION,
        f"a question's name has {LONGEST_QUESTION} characters at most.",
        field,
        code="too_long",
    )
    if not text:
        export.report.note_missing("")
    else:
        entry.add(question, "written" if label in TEXTS else "plain", text, field)
