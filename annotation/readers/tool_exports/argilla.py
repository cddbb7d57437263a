"""Argilla's records, as `dataset.records.to_json` writes them or its API gives them.

https://docs.argilla.io/latest/reference/argilla/records/records/
"""

from collections.abc import Iterator
from typing import Any

from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Answer,
    Entry,
    Export,
    inner,
    inner_list,
    item_key,
    named_texts,
    placed,
    require_fields,
    texts,
)


def read_argilla(export: Export) -> list[Entry]:
    entries: list[Entry] = []
    for row in export.records():
        with export.faults.noting():
            entries += _record(export, row)
    return entries


def _record(export: Export, row: Row) -> Iterator[Entry]:
    if "fields" not in row.fields or "responses" not in row.fields:
        raise row.refuse(
            "expected a record with 'fields' and 'responses', as dataset.records.to_json() "
            "of Argilla 2 writes it.",
            code="not_export",
        )
    displayed = inner(row, row.fields["fields"], "fields")
    metadata = inner(row, row.fields.get("metadata") or {}, "metadata")
    named = row.child(metadata.fields | displayed.fields, "fields")
    require_fields(named, named_texts(export.fields))
    several = [value for value in displayed.fields.values() if isinstance(value, str)]
    about = texts(named, export.fields, response=several[0] if len(several) == 1 else "")
    key = item_key(named, export.fields.item) if export.fields.item else row.required("id")
    yield Entry(row=row, item=key, **about)
    by_user: dict[str, Entry] = {}
    for answered in _answers(export, row):
        with export.faults.noting():
            user = answered.required("user_id")
            if user not in by_user:
                by_user[user] = Entry(row=row, item=key, annotator=user, **about)
            _add(export, by_user[user], answered, displayed)
    yield from by_user.values()


def _answers(export: Export, row: Row) -> Iterator[Row]:
    """Each answer as an object of `question`, `user_id` and `value`."""
    if isinstance(row.fields["responses"], list):
        yield from _api_answers(export, row)
        return
    responses = inner(row, row.fields["responses"], "responses")
    for question in responses.fields:
        for index, value in enumerate(inner_list(responses, question)):
            with export.faults.noting():
                answer = inner(responses, value, f"{question}[{index}]")
                if answer.fields.get("status", "submitted") != "submitted":
                    export.left_out.add("drafts and discarded responses")
                    continue
                answer.fields = {**answer.fields, "question": question}
                yield answer


def _api_answers(export: Export, row: Row) -> Iterator[Row]:
    """The API has a response for each user, with the values of all questions."""
    for index, value in enumerate(inner_list(row, "responses")):
        with export.faults.noting():
            response = inner(row, value, f"responses[{index}]")
            if response.fields.get("status", "submitted") != "submitted":
                export.left_out.add("drafts and discarded responses")
                continue
            values = inner(response, response.fields.get("values"), "values")
            for question, answered in values.fields.items():
                answer = inner(values, answered, question)
                who = response.fields.get("user_id")
                answer.fields = {**answer.fields, "question": question, "user_id": who}
                yield answer


def _add(export: Export, entry: Entry, answer: Row, displayed: Row) -> None:
    question = answer.required("question", longest=LONGEST_QUESTION)
    field, value = answer.called("value"), answer.fields.get("value")
    candidate = entry.candidates[0].key
    if _is_ranking(value):
        _add_ranking(entry, answer, displayed)
    elif isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        entry.answers.append(Answer(question, "categories", value, field, candidate))
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        export.left_out.add("spans")
    elif isinstance(value, list):
        raise answer.refuse("expected a list of texts.", "value", code="not_texts")
    elif isinstance(value, str):
        labels = [value] if value else []
        entry.answers.append(Answer(question, "categories", labels, field, candidate))
    else:
        number = answer.number("value")
        entry.answers.append(Answer(question, "points", number, field, candidate))


def _is_ranking(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and {"rank", "value"} <= set(one) for one in value)
    )


def _add_ranking(entry: Entry, answer: Row, displayed: Row) -> None:
    """Options in order, of which equal ranks are ties; an option may be a field's name."""
    ranks: dict[str, float] = {}
    for index, value in enumerate(answer.fields["value"]):
        option = inner(answer, value, f"value[{index}]")
        ranks[option.required("value", longest=100)] = option.number("rank")
    known = {candidate.key: candidate for candidate in entry.candidates}
    for name in sorted(ranks):
        text = displayed.text(name) if name in displayed.fields else ""
        known.setdefault(name, CandidateDraft(key=name, system=name, text=text))
    entry.candidates = tuple(known.values())
    question = answer.required("question", longest=LONGEST_QUESTION)
    for name, share in placed(ranks).items():
        entry.answers.append(Answer(question, "placed", share, answer.called("value"), name))
