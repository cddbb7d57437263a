"""The vendor's document against the schema written here: only what differs is found."""

import copy
import json
from contextlib import nullcontext

import pytest
import yaml
from django.core.management import CommandError, call_command

from marketplace.recruiting.fake_prolific.schema import document, operations

PREFIX = "/api/v1"


@pytest.fixture
def theirs():
    """An OpenAPI document that agrees: its ids have other names, its shapes are combined."""
    shapes = json.loads(
        json.dumps(document()["shapes"]).replace("#/shapes/", "#/components/schemas/")
    )
    paths = {}
    for operation in operations():
        path = PREFIX + operation.path.replace("{id}", "{some_name}").rstrip("/")
        there = {"responses": {operation.status: {"description": "Fine."}}}
        if operation.request:
            there["requestBody"] = {
                "content": {"application/json": {"schema": pointer(operation.request)}}
            }
        if operation.answer:
            schema = {"allOf": [pointer(operation.answer), {"properties": {"more": {}}}]}
            there["responses"][operation.status]["content"] = {
                "application/json": {"schema": schema}
            }
        paths.setdefault(path, {})[operation.method.lower()] = there
    return copy.deepcopy({"openapi": "3.1.0", "paths": paths, "components": {"schemas": shapes}})


@pytest.fixture
def check(theirs, tmp_path, capsys):
    """Run the command on the document as it is now; return the differences that are not known."""

    def run(is_refused=True):
        file = tmp_path / "openapi.yaml"
        file.write_text(yaml.safe_dump(theirs), encoding="utf-8")
        with pytest.raises(CommandError) if is_refused else nullcontext():
            call_command("check_prolific_schema", file, "--json")
        facts = json.loads(capsys.readouterr().out)
        assert facts["operations"] == len(operations())
        return facts["drift"]

    return run


def pointer(shape):
    return {"$ref": f"#/components/schemas/{shape}"}


def test_a_document_that_agrees_has_no_drift(check):
    assert check(is_refused=False) == []


def drop_operation(theirs):
    del theirs["paths"]["/api/v1/bulk-bonus-payments/{some_name}/pay"]


def change_status(theirs):
    there = theirs["paths"]["/api/v1/messages"]["post"]
    there["responses"] = {200: {"description": "Fine."}}


def drop_sent_field(theirs):
    del theirs["components"]["schemas"]["Code"]["properties"]["actor"]


def require_fields(theirs):
    shapes = theirs["components"]["schemas"]
    shapes["Message"]["properties"]["subject"] = {"type": "string"}
    shapes["Message"]["required"].append("subject")
    shapes["CostQuestion"]["required"] = []
    shapes["StudyDraft"]["required"] = ["reward"]


def drop_read_field(theirs):
    del theirs["components"]["schemas"]["Submission"]["properties"]["bonus_payments"]


def change_words(theirs):
    shapes = theirs["components"]["schemas"]
    shapes["Submission"]["properties"]["status"]["enum"].append("ON HOLD")
    shapes["SubmissionMove"]["properties"]["rejection_category"]["enum"].remove("OTHER")


def change_type(theirs):
    rows = theirs["components"]["schemas"]["BonusRows"]["properties"]
    rows["csv_bonuses"] = {"type": "array", "items": {}}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            drop_operation,
            ["pay_bonuses operation  missing_operation /bulk-bonus-payments/{id}/pay/"],
        ),
        (change_status, ["send_message status  other_status 200"]),
        (drop_sent_field, ["create_study request completion_codes[].actor unknown_field "]),
        (
            require_fields,
            [
                "create_study request reward required_field ",
                "send_message request subject missing_field ",
            ],
        ),
        (drop_read_field, ["submission answer bonus_payments unknown_field "]),
        (
            change_words,
            [
                "submission answer status new_word ON HOLD",
                "move_submission request rejection_category unlisted_word OTHER",
                "move_submission answer status new_word ON HOLD",
                "request_return answer status new_word ON HOLD",
            ],
        ),
        (change_type, ["prepare_bonuses request csv_bonuses other_type array"]),
    ],
)
def test_what_differs_is_found(check, theirs, change, expected):
    change(theirs)
    for one, line in zip(check(), expected, strict=True):
        *facts, value = line.split(" ", 4)
        assert [one[name] for name in ("operation", "part", "field", "code")] == facts
        assert value in one["text"]


def test_what_is_known_is_shown_and_is_no_failure(check, theirs):
    del theirs["components"]["schemas"]["Page"]["properties"]["_links"]
    first = check(is_refused=False)[0]
    assert (first["operation"], first["field"]) == ("projects", "_links")
    assert first["known"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("[", "not_yaml"),
        ("paths", "not_openapi"),
        ("openapi: 3.1.0", "not_openapi"),
        (None, "unreadable_file"),
    ],
)
def test_files_that_are_no_such_document_are_refused(content, code, tmp_path):
    file = tmp_path / "openapi.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(CommandError) as refused:
        call_command("check_prolific_schema", file)
    assert refused.value.__cause__.code == code


def test_a_shape_that_contains_itself_comes_to_an_end(check, theirs):
    schemas = theirs["components"]["schemas"]
    schemas["Cost"] = {"anyOf": [pointer("Cost"), copy.deepcopy(schemas["Cost"])]}
    check(is_refused=False)
