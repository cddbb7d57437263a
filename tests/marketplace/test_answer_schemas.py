"""What a page says an answer must be, checked when it is submitted."""

import json
import time

import jsonschema
import pytest
from django.test import Client
from hypothesis import given, settings, strategies as st

from marketplace.documents import answer_schemas as json_schema
from marketplace.documents.answer_schemas import (
    Budget,
    TooManySteps,
    answer_errors,
    answer_schemas,
    check_schema,
    errors_of,
)
from marketplace.exceptions import InvalidQuestion
from marketplace.hits.assignments import accept_hit
from marketplace.models import Assignment, Hit
from tests.codes import refused
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT, HTML_QUESTION

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.5, "", "a", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
numbers, sizes = st.integers(-3, 3), st.integers(0, 3)
leaves = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(list(json_schema.TYPES))
        | st.lists(st.sampled_from(list(json_schema.TYPES)), min_size=1, max_size=2, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": numbers, "maximum": numbers, "exclusiveMinimum": numbers,
        "exclusiveMaximum": numbers, "minLength": sizes, "maxLength": sizes, "minItems": sizes,
        "maxItems": sizes, "minProperties": sizes, "maxProperties": sizes,
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    },
)  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("items", "contains", "not", "additionalProperties"), inner),
            **dict.fromkeys(("if", "then", "else"), inner),
            **dict.fromkeys(
                sorted(json_schema.SUBSCHEMAS), st.lists(inner, min_size=1, max_size=2)
            ),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "minContains": sizes, "maxContains": sizes,
        },
    ),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow
@given(schemas, values)
@settings(max_examples=500)
def test_schemas_are_read_as_the_reference_library_reads_them(schema, value):
    check_schema(schema)
    right = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (errors_of(value, schema) == []) is right


NAMES = [f"n{number}" for number in range(2_500)]


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"required": NAMES}, {}),
        ({"type": ["string"] * len(NAMES)}, {}),
        ({"properties": dict.fromkeys(NAMES, True)}, {}),
        ({"properties": {"n0": True}, "additionalProperties": True}, dict.fromkeys(NAMES)),
        ({"prefixItems": [True] * len(NAMES)}, NAMES),
        ({"uniqueItems": True}, NAMES),
        ({"enum": NAMES}, {}),
        ({"const": NAMES}, {}),
        ({"const": {}}, NAMES),
    ],
)
def test_each_loop_over_a_schema_or_an_answer_counts_its_steps(schema, part):
    schema = {"contains": schema}
    check_schema(schema)
    budget = Budget()
    with pytest.raises(TooManySteps):
        errors_of([part] * 1_000, schema, budget)
    assert -len(NAMES) - 1 <= budget.steps_left < 0


def test_an_answer_of_many_records_is_checked():
    record = {"at": 1.5, "kind": "key", "n": 2, "is_last": False, "path": [1]}
    parts = {"at": "number", "kind": "string", "n": "integer", "is_last": "boolean"}
    schema = {
        "type": "object", "required": [*record], "additionalProperties": False,
        "properties": {name: {"type": kind} for name, kind in parts.items()}
        | {"path": {"type": "array", "items": {"type": "integer"}}},
    }  # fmt: skip
    assert errors_of([record] * 5_000, {"items": schema}) == []


def test_costly_steps_end_with_their_time():
    # Multiples of this prime have the same hash, so that a set compares each with all others.
    colliding = [(2**61 - 1) * number for number in range(20_000)]
    began = time.thread_time()
    with pytest.raises(TooManySteps):
        errors_of(colliding, {"uniqueItems": True})
    assert time.thread_time() - began < 3 * json_schema.MOST_SECONDS


def test_all_fields_of_a_submission_share_one_budget():
    schema = json.dumps({"uniqueItems": True})
    fields = [f"field{number}" for number in range(5)]
    html = "".join(SCRIPT.format(schema).replace('"answer"', f'"{field}"') for field in fields)
    answer = json.dumps(list(range(json_schema.MOST_STEPS // 4)))
    assert answer_errors(html, [(field, ["[]"]) for field in fields]) == []
    assert len(answer_errors(html, [(field, [answer]) for field in fields])) == 2


def test_scripts_without_an_end_are_read_once():
    began = time.process_time()
    for html in ("<script>" * 8_000, "<script " * 8_000, "<script x>y" * 6_000 + "</script>"):
        assert answer_schemas(html) == {}
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(a+)+$"}, {"$ref": "#"}, {"format": "email"}, {"type": "text"}, {"type": 7},
        {"minLength": "3"}, {"minItems": True}, {"properties": []}, {"allOf": {}}, {"items": [{}]},
        {"enum": "abc"}, [], 7, {"if": "x"}, {"patternProperties": {}},
    ],
)  # fmt: skip
def test_a_schema_that_would_not_be_checked_whole_is_refused(schema):
    with pytest.raises(InvalidQuestion):
        check_schema(schema)


def test_a_schema_is_bounded_in_size_and_depth_and_its_check_in_steps():
    with refused(InvalidQuestion, "schema_too_large"):
        check_schema({"allOf": [True] * json_schema.MOST_NODES})
    deep = True
    for _ in range(json_schema.DEEPEST + 1):
        deep = {"not": deep}
    with refused(InvalidQuestion, "schema_too_deep"):
        check_schema(deep)
    costly = {"items": {"allOf": [True] * 1000}}
    check_schema(costly)
    with pytest.raises(TooManySteps):
        errors_of([0] * 1000, costly)


SCHEMA = {
    "type": "object", "required": ["value"],
    "properties": {"value": {"type": "integer", "minimum": 0, "maximum": 100}},
}  # fmt: skip
SCRIPT = '<script type="application/schema+json" data-field="answer">{}</script>'


def with_schema(text):
    return HTML_QUESTION.replace("<form", SCRIPT.format(text) + "<form")


def test_only_scripts_that_name_a_field_are_schemas():
    other = '<script type="application/schema+json">{"pattern": 1}</script><script>1</script>'
    assert answer_schemas(other + SCRIPT.format('{"type": "null"}')) == {"answer": {"type": "null"}}
    assert answer_errors(other, [("answer", ["x"])]) == []


@pytest.mark.parametrize("text", ["{", '{"pattern": "x"}', '{"a": ' + "9" * 40_000 + "}"])
def test_a_hit_whose_schema_cannot_be_checked_is_refused_when_it_is_made(mturk, text):
    code = turk_code(mturk.create_hit, **HIT | {"Question": with_schema(text)})
    assert code == "XMLParseError"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("{}", "value"), ('{"value": 101}', "100"), ('{"value": NaN}', "JSON"),
        ("[" * 100_000, "JSON"), ("", "JSON"), ('{"value": true}', "integer"), ("[]", "object"),
    ],
)  # fmt: skip
def test_an_answer_that_the_page_forbids_is_refused_and_can_be_mended(
    mturk, worker, answer, problem
):
    mturk.create_hit(**HIT | {"Question": with_schema(json.dumps(SCHEMA))})
    assignment = accept_hit(worker=worker, hit=Hit.objects.get())
    fields = {"assignmentId": assignment.public_id, "answer": answer}
    accept = {"Accept": "application/json"}
    answered = Client().post("/mturk/externalSubmit", fields, headers=accept)
    assert (answered.status_code, answered.json()["code"]) == (422, "answer_refused")
    assert problem in answered.json()["error"]
    page = Client().post("/mturk/externalSubmit", {"assignmentId": assignment.public_id, "x": "1"})
    assert (page.status_code, page.context["code"]) == (422, "answer_refused")
    assert Assignment.objects.get().status == "Accepted"
    right = fields | {"answer": '{"value": 7}'}
    assert Client().post("/mturk/externalSubmit", right).status_code == 200
    # Once it is in, anything sent again gets the same receipt.
    assert Client().post("/mturk/externalSubmit", fields).status_code == 200
