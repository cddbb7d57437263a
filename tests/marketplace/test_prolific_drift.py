"""The vendor's document against the schema written here: only what differs is found."""

import copy
import json

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
    """Run the command on the document as it is now: the lines that it prints."""

    def run(is_refused=True):
        file = tmp_path / "openapi.yaml"
        file.write_text(yaml.safe_dump(theirs), encoding="utf-8")
        if is_refused:
            with pytest.raises(CommandError):
                call_command("check_prolific_schema", file)
        else:
            call_command("check_prolific_schema", file)
        return capsys.readouterr().out.splitlines()

    return run


def pointer(shape):
    return {"$ref": f"#/components/schemas/{shape}"}


def shape(theirs, name):
    return theirs["components"]["schemas"][name]


def test_a_document_that_agrees(check):
    assert check(is_refused=False) == [
        f"The document agrees on all {len(operations())} operations."
    ]


def test_an_operation_that_is_gone(check, theirs):
    del theirs["paths"]["/api/v1/bulk-bonus-payments/{some_name}/pay"]
    assert check() == [
        "pay_bonuses operation: POST /bulk-bonus-payments/{id}/pay/ is not in the document."
    ]


def test_another_status(check, theirs):
    there = theirs["paths"]["/api/v1/messages"]["post"]
    there["responses"] = {200: {"description": "Fine."}}
    assert check() == ["send_message status: 204 is expected here, and the document lists 200."]


def test_a_field_that_is_not_known_there(check, theirs):
    del shape(theirs, "Code")["properties"]["actor"]
    assert check() == [
        "create_study request completion_codes[].actor: sent here, and not in the document."
    ]


def test_a_field_that_is_wanted_there(check, theirs):
    message = shape(theirs, "Message")
    message["properties"]["subject"] = {"type": "string"}
    message["required"].append("subject")
    shape(theirs, "CostQuestion")["required"] = []
    shape(theirs, "StudyDraft")["required"] = ["reward"]
    assert check() == [
        "create_study request reward: required there, and may be left out here.",
        "send_message request subject: required there, and never sent here.",
    ]


def test_a_field_that_is_no_longer_answered(check, theirs):
    del shape(theirs, "Submission")["properties"]["bonus_payments"]
    assert check() == ["submission answer bonus_payments: read here, and not in the document."]


def test_words_that_came_and_went(check, theirs):
    shape(theirs, "Submission")["properties"]["status"]["enum"].append("ON HOLD")
    shape(theirs, "SubmissionMove")["properties"]["rejection_category"]["enum"].remove("OTHER")
    assert check() == [
        "submission answer status: “ON HOLD” may be said there.",
        "move_submission request rejection_category: “OTHER” is sent here, and not listed there.",
        "move_submission answer status: “ON HOLD” may be said there.",
        "request_return answer status: “ON HOLD” may be said there.",
    ]


def test_another_type(check, theirs):
    shape(theirs, "BonusRows")["properties"]["csv_bonuses"] = {"type": "array", "items": {}}
    assert check() == ["prepare_bonuses request csv_bonuses: string here, array there."]


def test_what_is_known_is_said_and_is_no_failure(check, theirs):
    del shape(theirs, "Page")["properties"]["_links"]
    lines = check(is_refused=False)
    assert lines[0].startswith("projects answer _links: read here, and not in the document. Known")


def test_for_programs(theirs, tmp_path, capsys):
    file = tmp_path / "openapi.json"
    del theirs["paths"]["/api/v1/messages"]
    file.write_text(json.dumps(theirs), encoding="utf-8")
    with pytest.raises(CommandError, match="1 place"):
        call_command("check_prolific_schema", file, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["operations"] == len(operations())
    assert [each["operation"] for each in told["drift"]] == ["send_message"]


@pytest.mark.parametrize("content", ["[", "paths", "openapi: 3.1.0"])
def test_files_that_are_no_such_document(content, tmp_path):
    file = tmp_path / "openapi.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CommandError, match="is no"):
        call_command("check_prolific_schema", file)
    with pytest.raises(CommandError, match="can't be read"):
        call_command("check_prolific_schema", tmp_path / "missing.yaml")


def test_a_shape_that_contains_itself_comes_to_an_end(check, theirs):
    schemas = theirs["components"]["schemas"]
    schemas["Cost"] = {"anyOf": [pointer("Cost"), copy.deepcopy(schemas["Cost"])]}
    check(is_refused=False)
