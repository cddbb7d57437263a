"""Argilla's records, as versions 1 and 2 write them.

Nested, as `dataset.records.to_json` of Argilla 2 and the API write them; flat, as `to_datasets` of
Argilla 2 (`QUESTION.responses`) and `format_as("datasets")` of a FeedbackDataset of Argilla 1 (a
column per question) do; and records of Argilla 1 with the one `annotation` of an
`annotation_agent`.
https://docs.argilla.io/latest/reference/argilla/records/records/
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from annotation.readers.json_rows import fit_row
from annotation.readers.rows import Row, inner, inner_list, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    named_texts,
    parse_json,
    place_of,
    placed,
    require_fields,
    show_candidates,
    sole_text,
    texts,
)
from error_codes import CodedText

NOT_THE_EXPORT = (
    "expected a record of Argilla: with 'fields' and 'responses', as dataset.records.to_json() and "
    "the API write it, with columns 'QUESTION.responses', as to_datasets() does, or with "
    "'annotation' and 'annotation_agent'."
)
SUBMITTED = "submitted"
RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
# A FeedbackDataset of Argilla 1 has this column of each question.
SUGGESTION = "-suggestion"
# The names that a record may have for itself, the best first.
OWN_KEYS = ("id", "external_id", "_server_id")
# What records of Argilla 1 have besides the text.
OF_RECORDS = frozenset(
    {"prediction", "prediction_agent", "annotation", "annotation_agent", "vectors", "status"}
    | {"multi_label", "explanation", "id", "metadata", "event_timestamp", "metrics", "tokens"}
)
DRAFTS = CodedText("drafts and discarded responses are not submitted", "drafts")
SPANS = CodedText("spans are not read yet", "spans")
UNREAD = CodedText("answers that are objects are not read", "unread")


def read_argilla(export: Export) -> list[Entry]:
    entries = list(export.read_each(partial(_record, export)))
    _read_rankings(export, entries)
    return entries


def _record(export: Export, row: Row) -> Iterator[Entry]:
    shown, answers = _layout(export, row)
    require_fields(shown, named_texts(export.fields))
    displayed = _displayed(row, shown)
    about = texts(shown, export.fields, response=sole_text(displayed, export.fields))
    key = item_key(shown, export.fields.item) if export.fields.item else _own_key(row)
    yield Entry(row=row, item=key, **about)
    by_user: dict[str, Entry] = {}
    for answered in answers:
        with export.faults.noting():
            user = answered.required("user_id")
            if user not in by_user:
                by_user[user] = Entry(row=row, item=key, annotator=user, **about)
            _add(export, by_user[user], answered, displayed)
    yield from by_user.values()


def _own_key(row: Row) -> str:
    name = next((name for name in OWN_KEYS if row.fields.get(name) not in (None, "")), None)
    return row.required(name) if name else place_of(row)


def _layout(export: Export, row: Row) -> tuple[Row, Iterator[Row]]:
    fields = row.fields
    if "fields" in fields and "responses" in fields:
        displayed = inner(row, fields["fields"], "fields")
        shown = row.child(_metadata(row) | displayed.fields, displayed.inside)
        answers = _api_answers if isinstance(fields["responses"], list) else _answers
        return shown, answers(export, row)
    shown = row.child(_metadata(row) | fields, row.inside)
    if any(name.endswith(RESPONSES) for name in fields):
        return shown, _flat_answers(export, row)
    if "annotation" in fields and "annotation_agent" in fields:
        return shown, _one_answer(export, row)
    if any(name.endswith(SUGGESTION) for name in fields):
        return shown, _feedback_answers(export, row)
    raise row.refuse(NOT_THE_EXPORT, code="not_export")


def _metadata(row: Row) -> dict[str, Any]:
    value = row.fields.get("metadata") or {}
    if isinstance(value, str):
        value = parse_json(value, None)
    return fit_row(inner(row, value, "metadata"), ()).fields


def _displayed(row: Row, shown: Row) -> dict[str, Any]:
    fields = row.fields.get("fields")
    if isinstance(fields, dict):
        return fields
    metadata = _metadata(row)
    questions = [name.removesuffix(SUGGESTION) for name in row.fields if SUGGESTION in name]
    return {
        name: value
        for name, value in shown.fields.items()
        if name not in (*OF_RECORDS, *OWN_KEYS, *metadata, *questions)
        and not any(part in name for part in (".responses", ".suggestion", SUGGESTION))
    }


def _answers(export: Export, row: Row) -> Iterator[Row]:
    responses = inner(row, row.fields["responses"] or {}, "responses")
    for question in responses.fields:
        for index, value in enumerate(inner_list(responses, question)):
            with export.faults.noting():
                yield from _submitted(
                    export, inner(responses, value, f"{question}[{index}]"), question
                )


def _submitted(export: Export, answer: Row, question: str) -> Iterator[Row]:
    if (answer.fields.get("status") or SUBMITTED) != SUBMITTED:
        export.leave_out(DRAFTS, answer)
    else:
        yield answer.child({**answer.fields, "question": question}, answer.inside)


def _api_answers(export: Export, row: Row) -> Iterator[Row]:
    for index, value in enumerate(inner_list(row, "responses")):
        with export.faults.noting():
            response = inner(row, value, f"responses[{index}]")
            values = response.fields.get("values")
            if (response.fields.get("status") or SUBMITTED) != SUBMITTED:
                export.leave_out(DRAFTS, response, len(values) if isinstance(values, dict) else 1)
                continue
            values = inner(response, values or {}, "values")
            who = response.fields.get("user_id")
            for question, answered in values.fields.items():
                answer = inner(values, answered, question)
                answer.fields = {**answer.fields, "question": question, "user_id": who}
                yield answer


def _flat_answers(export: Export, row: Row) -> Iterator[Row]:
    for column in [name for name in row.fields if name.endswith(RESPONSES)]:
        question = column.removesuffix(RESPONSES)
        with export.faults.noting():
            if row.fields[column] is None:
                continue
            values = inner_list(row, column)
            users = inner_list(row, f"{question}{USERS}")
            statuses = row.fields.get(f"{question}{STATUS}") or [None] * len(values)
            if not isinstance(statuses, list) or not len(values) == len(users) == len(statuses):
                raise row.refuse(
                    "expected one user and one status per value.",
                    f"{question}{USERS}",
                    code="other_length",
                )
            for index, (value, user, status) in enumerate(
                zip(values, users, statuses, strict=True)
            ):
                fields = {"value": value, "user_id": user, "status": status}
                yield from _submitted(
                    export, row.child(fields, row.called(f"{column}[{index}]")), question
                )


def _feedback_answers(export: Export, row: Row) -> Iterator[Row]:
    for name in [name for name in row.fields if name.endswith(SUGGESTION)]:
        question = name.removesuffix(SUGGESTION)
        if row.fields.get(question) is None:
            continue
        for index, value in enumerate(inner_list(row, question)):
            with export.faults.noting():
                yield from _submitted(export, inner(row, value, f"{question}[{index}]"), question)


def _one_answer(export: Export, row: Row) -> Iterator[Row]:
    value = row.fields["annotation"]
    if value is None:
        return
    fields = {
        "value": value,
        "user_id": row.fields["annotation_agent"],
        "status": "discarded" if row.fields.get("status") == "Discarded" else SUBMITTED,
    }
    yield from _submitted(export, row.child(fields, row.called("annotation")), "annotation")


def _add(export: Export, entry: Entry, answer: Row, displayed: Mapping[str, Any]) -> None:
    question = answer.required("question", longest=LONGEST_QUESTION)
    answer.fields["value"] = value = _objects(answer.fields.get("value"))
    field = answer.called("value")
    if export.is_unwanted(question, answer):
        return
    if value is None:
        export.report.note_missing("")
    elif _is_ranking(value):
        _add_ranking(entry, answer, displayed)
    elif isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        entry.add(question, "categories", value, field)
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        export.leave_out(SPANS, answer, len(value))
    elif isinstance(value, list):
        raise answer.refuse("expected a list of texts.", "value", code="not_texts")
    elif isinstance(value, str):
        entry.add(question, "categories", [value] if value else [], field)
    elif isinstance(value, dict):
        export.leave_out(UNREAD, answer)
    else:
        entry.add(question, "points", answer.number("value"), field)


def _objects(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    lists = list(value.values())
    if not all(isinstance(one, list) and len(one) == len(lists[0]) for one in lists):
        return value
    return [dict(zip(value, parts, strict=True)) for parts in zip(*lists, strict=True)]


def _is_ranking(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and {"rank", "value"} <= set(one) for one in value)
    )


def _add_ranking(entry: Entry, answer: Row, displayed: Mapping[str, Any]) -> None:
    ranks: dict[str, float] = {}
    for index, value in enumerate(answer.fields["value"]):
        option = inner(answer, value, f"value[{index}]")
        ranks[option.required("value", longest=100)] = option.number("rank")

    def text(name: str) -> str:
        return value if isinstance(value := displayed.get(name), str) else ""

    show_candidates(entry, sorted(ranks), text)
    question = answer.required("question", longest=LONGEST_QUESTION)
    for name, share in placed(ranks).items():
        entry.add(question, "placed", share, answer.called("value"), name)


def _read_rankings(export: Export, entries: list[Entry]) -> None:
    orders: dict[str, list[tuple[str, ...]]] = {}
    for entry in entries:
        for answer in entry.answers:
            known = orders.setdefault(answer.question, [])
            known.append(tuple(answer.value) if isinstance(answer.value, list) else ())
    for question, lists in orders.items():
        options = set(lists[0])
        is_complete = all(set(each) == options and len(each) == len(options) for each in lists)
        if len(options) < 2 or not is_complete or len(set(lists)) == 1:
            continue
        export.report.note(
            CodedText(
                f"'{question}' is read as a ranking: each answer has the same options in an order.",
                "ranking",
            )
        )
        for entry in entries:
            for answer in [one for one in entry.answers if one.question == question]:
                entry.answers.remove(answer)
                show_candidates(entry, sorted(options))
                for name, share in placed(
                    {name: float(n) for n, name in enumerate(answer.value)}
                ).items():
                    entry.add(question, "placed", share, answer.field, name)
