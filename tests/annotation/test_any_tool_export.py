"""Exports of annotation tools with any value anywhere: they are imported, or refused with a code.

Answers without a mark count, and whatever else is left out is counted.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings, strategies as st

from annotation import exceptions, imports, models
from annotation.readers.drafts import StudyDraft
from annotation.readers.tool_exports import entries, questions, studies
from tests.annotation.importing import as_zip, write_file
from tests.annotation.tool_export_drafts import FOLDER, counts, read_draft, written_file

pytestmark = pytest.mark.django_db

ARGILLA = [
    {
        "id": f"r{n}",
        "fields": {"prompt": "p", "response": "x"},
        "metadata": {"group": "a"},
        "responses": {
            "rating": [{"value": 1, "user_id": "u1"}, {"value": 2, "user_id": "u2"}],
            "label": [{"value": ["a", "b"], "user_id": "u1"}, {"value": [], "user_id": "u2"}],
            "one": [{"value": "a", "user_id": "u1"}, {"value": "b", "user_id": "u2"}],
            "order": [{"value": [{"value": "x", "rank": 1}, {"value": "y", "rank": 2}],
                       "user_id": "u1"}],
            "spans": [{"value": [{"start": 0, "end": 1, "label": "l"}], "user_id": "u1"}],
        },
        "status": "completed",
    }
    for n in range(2)
]  # fmt: skip
ARGILLA_API = [
    {"id": "r0", "fields": {"response": "x"},
     "responses": [{"user_id": "u1", "status": "submitted",
                    "values": {"label": {"value": ["a"]}, "rating": {"value": 2}}}]}
]  # fmt: skip
LABEL_STUDIO = [
    {"id": 0, "data": {"text": "t"}, "annotations": [
        {"id": 1, "completed_by": who, "lead_time": 3.5, "created_at": "2026-01-02T03:04:05Z",
         "result": [
            {"from_name": "s", "to_name": "t", "type": "choices", "value": {"choices": ["a"]}},
            {"from_name": "r", "to_name": "t", "type": "rating", "value": {"rating": 3}},
            {"from_name": "n", "to_name": "t", "type": "number", "value": {"number": 3}},
            {"from_name": "w", "to_name": "t", "type": "textarea", "value": {"text": ["ok"]}},
            {"from_name": "l", "to_name": "t", "type": "labels", "value": {"labels": ["x"]}},
         ]} for who in (1, {"id": 2})]},
    {"id": 1, "data": {"text": "t"}, "annotations": [
        {"id": 1, "completed_by": 1, "result": [
            {"from_name": "p", "to_name": "a,b", "type": "pairwise",
             "value": {"selected": "left"}}]}]},
]  # fmt: skip
DOCCANO = [{"id": n, "text": "t", "label": ["a", "b"][: n + 1]} for n in range(2)]
DOCCANO_BY_USER = [
    {"id": 1, "text": "t", "annotations": [{"label": 3, "user": 1}, {"label": 4, "user": 2}]}
]
FORM = [{"scale": {"1": False, "2": True}, "agreed": True, "why": "good", "n": 3}]
BATCH: dict[str, Any] = {
    "HITId": "H1", "WorkerId": "W1", "AssignmentStatus": "Approved", "AcceptTime": "",
    "WorkTimeInSeconds": "3", "Input.text": "t", "Answer.tone": "2", "Answer.fit.no": "false",
    "Answer.fit.yes": "true", "Answer.taskAnswers": FORM,
}  # fmt: skip
TABLE: dict[str, Any] = {"item": "i", "system": "s", "who": "w", "round": "1", "value": "2"}
PLAIN = entries.FieldNames(item=("item",), annotator="who", system="system", values=("value",))
JSON_EXPORTS = {
    "argilla": ("argilla", ARGILLA, entries.FieldNames()),
    "argilla-api": ("argilla", ARGILLA_API, entries.FieldNames()),
    "label-studio": ("label-studio", LABEL_STUDIO, entries.FieldNames()),
    "doccano": ("doccano", DOCCANO, entries.FieldNames()),
    "doccano-by-user": ("doccano", DOCCANO_BY_USER, entries.FieldNames()),
    "csv": ("csv", [TABLE, TABLE | {"item": "j"}], PLAIN),
}
EMPTY = [[], {}, "", None, [""], [None], [[]], [{}], 0, False]
TEXTS = st.text(max_size=8) | st.sampled_from(["\x00", "\ud800", "nan", "1e999", "_", "=1", "#"])
NUMBERS = st.integers() | st.floats() | st.just(10**400)
VALUES = st.sampled_from(EMPTY) | st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
QUICK = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each part of a JSON value."""
    if place:
        yield place
    if isinstance(value, list | dict):
        for key, part in dict_of(value).items():
            yield from places(part, (*place, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with something else at a place; a slice is all of a list."""
    if not place:
        return new
    key, rest = place[0], place[1:]
    if isinstance(key, slice):
        return [changed(each, rest, new) if has(each, rest) else each for each in value]
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[key] = changed(value[key], rest, new)
    return copy


def has(value: Any, place: tuple[Any, ...]) -> bool:
    """Whether there is something at a place."""
    if not place:
        return True
    key, rest = place[0], place[1:]
    if isinstance(key, slice):
        return isinstance(value, list)
    return isinstance(value, list | dict) and key in dict_of(value) and has(value[key], rest)


def dict_of(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else dict(enumerate(value))


@st.composite
def altered(
    draw: st.DrawFn, value: Any, *, most: int = 2, values: st.SearchStrategy[Any] = VALUES
) -> Any:
    """A JSON value with others at one or two places, of this element of lists or of all."""
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.sampled_from(sorted(places(value), key=repr) or [()]))
        if draw(st.booleans()):
            place = tuple(slice(None) if isinstance(key, int) else key for key in place)
        value = changed(value, place, draw(values))
    return value


def read(path: Path, tool: str, fields: entries.FieldNames, **options: Any) -> StudyDraft | None:
    """What an export is read and imported as; None if it is refused, which needs a code."""
    try:
        with transaction.atomic():
            draft = studies.read_tool_export(
                path, tool, fields=fields, settings=questions.QuestionSettings(**options)
            )
            imports.import_study(draft=draft, path=path, slug="s", title="S", owner=None)
            transaction.set_rollback(True)
    except exceptions.AnnotationError as refusal:
        require_codes(refusal)
        return None
    return draft


def require_codes(refusal: exceptions.AnnotationError) -> None:
    faults = refusal.faults if isinstance(refusal, exceptions.FileFaults) else [refusal]
    assert all(fault.code and str(fault) for fault in faults)


def assert_read_or_refused(path: Path, tool: str, most: float = float("inf")) -> None:
    try:
        report = read_draft(path, tool).report
    except exceptions.AnnotationError as refusal:
        require_codes(refusal)
    else:
        assert 0 < report.n_used <= report.n_rows <= most


@pytest.mark.parametrize("name", JSON_EXPORTS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_every_example_is_imported(tmp_path, name, suffix):
    tool, records, fields = JSON_EXPORTS[name]
    lines = json.dumps(records) if suffix == ".json" else "\n".join(map(json.dumps, records))
    draft = read(written_file(tmp_path, lines, f"export{suffix}"), tool, fields)
    assert draft is not None
    assert draft.submissions


@QUICK
@pytest.mark.parametrize("name", JSON_EXPORTS)
@given(data=st.data())
def test_any_value_anywhere_is_imported_or_refused(tmp_path, name, data):
    tool, records, fields = JSON_EXPORTS[name]
    read(written_file(tmp_path, data.draw(altered(records))), tool, fields)


@QUICK
@given(data=st.data())
def test_any_cell_of_a_batch_or_table_is_imported_or_refused(tmp_path, data):
    batch = BATCH | {"Answer.taskAnswers": json.dumps(data.draw(altered(FORM)))}
    tool, row, fields = data.draw(
        st.sampled_from([("mturk", batch, entries.FieldNames()), ("csv", TABLE, PLAIN)])
    )
    cells = st.sampled_from(["", "[]", "{}", "null", "[[1, 2]]", "[[[1, 2]]]", "[{}]"]) | TEXTS
    rows = [row | data.draw(st.dictionaries(st.sampled_from(sorted(row)), cells, max_size=3))
            for _ in range(data.draw(st.integers(1, 3)))]  # fmt: skip
    content = io.StringIO()
    writer = csv.DictWriter(content, list(row))
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / "export.csv"
    path.write_text(content.getvalue(), errors="surrogatepass")
    read(path, tool, fields)


@QUICK
@pytest.mark.parametrize("tool", ["label-studio", "argilla", "doccano", "mturk", "csv"])
@given(data=st.data())
def test_any_bytes_are_imported_or_refused(tmp_path, tool, data):
    lines = "\n".join(map(json.dumps, DOCCANO)).encode()
    packed = as_zip({"ann.jsonl": lines, "bob.csv": lines}, ZIP_DEFLATED)
    whole = data.draw(st.sampled_from([lines, packed, json.dumps(ARGILLA).encode(), b""]))
    start, n = data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, 40))
    content = whole[:start] + data.draw(st.binary(max_size=20)) + whole[start + n :]
    suffix = data.draw(st.sampled_from([".json", ".jsonl", ".csv", ".tsv", ".zip", ".json.gz"]))
    path = write_file(tmp_path / f"export{suffix}", content)
    read(path, tool, PLAIN if tool == "csv" else entries.FieldNames())


def n_of(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def n_in_label_studio(records: Any) -> int:
    """The answers in tasks; an annotation that is skipped or empty is one too."""
    return sum(
        sum(max(1, n_of(annotation.get("result"))) for annotation in task["annotations"])
        + n_of(task.get("drafts"))
        + n_of(task.get("predictions"))
        for task in records
    )


def n_in_argilla(records: Any) -> int:
    """The answers in records, of which those with spans count by their spans."""
    by_question = [one["responses"] for one in records if isinstance(one["responses"], dict)]
    responses = [answers for each in by_question for answers in each.values()]
    values = [answer.get("value") for one in responses for answer in one]
    return sum(len(one) if is_of_spans(one) else 1 for one in values)


def is_of_spans(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) for one in value)
        and not all({"rank", "value"} <= one.keys() for one in value)
    )


def n_in_doccano(records: Any) -> int:
    """The labeled examples, of which those with spans count by their spans."""
    labels = [record["label"] for record in records]
    spans = [
        [one for one in each if isinstance(one, list | dict)] if isinstance(each, list) else []
        for each in labels
    ]
    return sum(len(each) or 1 for each in spans)


# What a project may have next to annotations that count.
SKIPPED = [
    {"id": 2, "data": {"text": "t"}, "predictions": [{"result": []}], "drafts": [{"result": []}],
     "annotations": [
        {"id": 1, "completed_by": 1, "was_cancelled": True, "result": [
            {"from_name": "s", "to_name": "t", "type": "choices", "value": {"choices": ["a"]}}]},
        {"id": 2, "completed_by": 2, "result": []},
        {"id": 3, "result": [
            {"from_name": "s", "to_name": "t", "type": "choices", "value": {"choices": ["a"]}},
            {"from_name": "v", "to_name": "t", "type": "choices",
             "value": {"start": 1, "end": 2, "choices": ["a"]}},
            {"type": "relation", "from_id": "a", "to_id": "b"}]}]},
]  # fmt: skip
COUNTED: dict[str, tuple[str, Any, Callable[[Any], int]]] = {
    "label-studio": ("label-studio", [*LABEL_STUDIO, *SKIPPED], n_in_label_studio),
    "argilla": ("argilla", ARGILLA, n_in_argilla),
    "doccano": ("doccano", DOCCANO, n_in_doccano),
}


@QUICK
@pytest.mark.parametrize("name", COUNTED)
@given(data=st.data())
def test_every_answer_of_any_file_is_used_or_counted(tmp_path, name, data):
    tool, records, n_in = COUNTED[name]
    changed_records = data.draw(altered(records, values=st.sampled_from(EMPTY)))
    path = written_file(tmp_path, changed_records)
    try:
        draft = read_draft(path, tool)
    except exceptions.AnnotationError:
        return
    report = draft.report
    assert report.n_rows == len(changed_records)
    used = sum(
        len({answer["question"] for answer in json.loads(submission.raw)})
        for submission in draft.submissions
    )
    # Answers without a category and times are parts of answers that are kept.
    not_used = sum(counts(report).values()) - sum(
        counts(report).get(code, 0) for code in ("no_answer", "no_category", "unread_time")
    )
    assert used + not_used + report.missing.total() == n_in(changed_records)
    answered = {item.key for item in draft.items} & {each.item for each in draft.submissions}
    assert report.n_used <= report.n_rows
    assert bool(report.n_used) == bool(answered)


LAYOUTS = {
    "label_studio_regions.json": "label-studio",
    "label_studio_min.json": "label-studio",
    "argilla_2.json": "argilla",
    "argilla_2_dataset.jsonl": "argilla",
    "argilla_1_feedback.jsonl": "argilla",
    "argilla_1_records.json": "argilla",
    "argilla_1_multi.jsonl": "argilla",
    "potato/ann/user_state.json": "potato",
    "potato_annotations.jsonl": "potato",
    "prolific_task_builder.json": "prolific",
    "langfuse.json": "langfuse",
    "phoenix.json": "phoenix",
    "langsmith.jsonl": "langsmith",
    "prodigy_choice.jsonl": "prodigy",
    "inception_cas.json": "inception",
    "pearmut.json": "pearmut",
    "alt_test_human.json": "alt-test",
}
TABLES = {
    "label_studio.csv": "label-studio",
    "potato_annotations.csv": "potato",
    "qualtrics_split.csv": "qualtrics",
    "surveymonkey.csv": "surveymonkey",
    "google_forms.csv": "google-forms",
    "otree_wide.csv": "otree",
    "prolific_submissions.csv": "prolific",
    "phoenix.csv": "phoenix",
}


@QUICK
@pytest.mark.parametrize("name", LAYOUTS)
@given(data=st.data())
def test_any_change_of_a_layout_is_read_or_refused(tmp_path, name, data):
    text = (FOLDER / name).read_text()
    is_of_lines = name.endswith(".jsonl")
    records = [json.loads(line) for line in text.splitlines()] if is_of_lines else json.loads(text)
    assert_read_or_refused(written_file(tmp_path, data.draw(altered(records))), LAYOUTS[name])


@QUICK
@pytest.mark.parametrize("name", TABLES)
@given(data=st.data())
def test_any_cell_of_a_layout_is_read_or_refused(tmp_path, name, data):
    header, *rows = csv.reader((FOLDER / name).read_text().splitlines())
    cells = st.sampled_from(["", "[]", "{}", "null", "[[1]]", "[{}]", '{"choices": 3}']) | TEXTS
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(cells)
    content = io.StringIO()
    csv.writer(content).writerows([header, *rows])
    path = tmp_path / name
    path.write_text(content.getvalue(), errors="surrogatepass")
    # Further header rows are among the rows, and a row without cells is none.
    assert_read_or_refused(path, TABLES[name], most=len(rows))


def argilla(*values: Any, question: str = "label", rated: bool = True) -> list[dict[str, Any]]:
    """A record that each user answers by one of the values, and rates."""
    users = [f"u{n}" for n in range(len(values))]
    answers = [{"value": value, "user_id": user} for value, user in zip(values, users, strict=True)]
    ratings = [{"value": n + 1, "user_id": user} for n, user in enumerate(users)]
    responses = {"rating": ratings, question: answers} if rated else {question: answers}
    return [{"id": "r0", "fields": {"text": "t"}, "responses": responses}]


def label_studio(*values: Any, rated: bool = True) -> list[dict[str, Any]]:
    """A task that each user answers by one of the lists of choices, and rates."""
    annotations = [
        {"completed_by": n, "result": [
            {"from_name": "rating", "to_name": "t", "type": "rating", "value": {"rating": n + 1}},
            {"from_name": "label", "to_name": "t", "type": "choices", "value": {"choices": value}},
        ][not rated:]} for n, value in enumerate(values)
    ]  # fmt: skip
    return [{"id": "r0", "data": {"text": "t"}, "annotations": annotations}]


EXPORTS: dict[str, Callable[..., Any]] = {"argilla": argilla, "label-studio": label_studio}


def drafted(tmp_path: Path, tool: str, records: list[dict[str, Any]], **options: Any) -> StudyDraft:
    path = written_file(tmp_path, records)
    draft = read(path, tool, entries.FieldNames(), **options)
    assert draft is not None
    imports.import_study(draft=draft, path=path, slug="s", title="S", owner=None)
    return draft


@pytest.mark.parametrize("tool", EXPORTS)
def test_a_question_without_any_category_is_left_out_and_counted(tmp_path, tool):
    draft = drafted(tmp_path, tool, EXPORTS[tool]([], []))
    assert [question.name for question in draft.questions] == ["rating"]
    [group] = draft.report.parts.values()
    assert (group.reason.code, group.n, group.places) == ("no_category", 2, ["label"])
    # what annotators answered is kept as it is
    answers = [answer for submission in draft.submissions for answer in json.loads(submission.raw)]
    assert [one["value"] for one in answers if one["question"] == "label"] == [[], []]
    assert sorted(models.Judgment.objects.values_list("value", flat=True)) == [1, 2]


@pytest.mark.parametrize("tool", EXPORTS)
def test_an_answer_without_a_category_is_an_answer(tmp_path, tool):
    draft = drafted(tmp_path, tool, EXPORTS[tool](["a"], [], ["b"]))
    assert [question.name for question in draft.questions] == ["rating", "label:a", "label:b"]
    [note] = draft.report.notes
    assert note.code == "answers_without_category"
    assert "'label'" in note
    judgments = [judgment for submission in draft.submissions for judgment in submission.judgments]
    for name, values in (("a", [1, 0, 0]), ("b", [0, 0, 1])):
        assert [one.value for one in judgments if one.question == f"label:{name}"] == values


def test_an_empty_text_is_no_category_and_may_be_a_written_answer(tmp_path):
    draft = drafted(tmp_path, "argilla", argilla("", "a"))
    assert [question.name for question in draft.questions] == ["rating", "label:a"]
    models.Study.objects.all().delete()
    draft = drafted(tmp_path, "argilla", argilla("", "a"), written=frozenset({"label"}))
    written = [each.text for submission in draft.submissions for each in submission.written]
    assert written == ["", "a"]


def test_parts_of_a_form_that_cannot_be_read_are_counted(tmp_path):
    form = [{"category": [{"label": "pos"}], "none": {}, "rating": 2}]
    row = BATCH | {"Answer.taskAnswers": json.dumps(form)}
    draft = read(written_file(tmp_path, row, "export.jsonl"), "mturk", entries.FieldNames())
    assert draft is not None
    assert {question.name for question in draft.questions} == {"tone", "rating", "fit"}
    places = {code: group.places for code, group in draft.report.parts.items()}
    assert "category" in places["unread"][0]
    assert places["no_category"] == ["none"]
