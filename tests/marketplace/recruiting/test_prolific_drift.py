"""The vendor's document against the schema written here: only what differs is found."""

import copy
import json
from contextlib import nullcontext

import pytest
import yaml

from benchmarks.fake_prolific.drift import main
from benchmarks.fake_prolific.server import document, known_operations

PREFIX = "/api/v1"


@pytest.fixture
def theirs():
    """An OpenAPI document that agrees: its ids have other names, its shapes are combined."""
    shapes = json.loads(
        json.dumps(document()["shapes"]).replace("#/shapes/", "#/components/schemas/")
    )
    paths = {}
    for operation in known_operations():
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
        with pytest.raises(SystemExit) if is_refused else nullcontext():
            main([str(file), "--json"])
        facts = json.loads(capsys.readouterr().out)
        assert facts["operations"] == len(known_operations())
        return facts["drift"]

    return run


def pointer(shape):
    return {"$ref": f"#/components/schemas/{shape}"}


def test_a_document_that_agrees_has_no_drift(check):
    assert check(is_refused=False) == []


def test_what_differs_is_found(check, theirs):
    shapes = theirs["components"]["schemas"]
    del theirs["paths"]["/api/v1/bulk-bonus-payments/{some_name}/pay"]
    theirs["paths"]["/api/v1/messages"]["post"]["responses"] = {200: {"description": "Fine."}}
    del shapes["Code"]["properties"]["actor"]
    shapes["Message"]["properties"]["subject"] = {"type": "string"}
    shapes["Message"]["required"].append("subject")
    shapes["CostQuestion"]["required"] = []
    shapes["StudyDraft"]["required"] = ["reward"]
    del shapes["Submission"]["properties"]["bonus_payments"]
    shapes["Submission"]["properties"]["status"]["enum"].append("ON HOLD")
    shapes["SubmissionMove"]["properties"]["rejection_category"]["enum"].remove("OTHER")
    shapes["BonusRows"]["properties"]["csv_bonuses"] = {"type": "array", "items": {}}
    assert {tuple(one[name] for name in ("operation", "field", "code")) for one in check()} == {
        ("pay_bonuses", "", "missing_operation"),
        ("send_message", "", "other_status"),
        ("send_message", "subject", "missing_field"),
        ("create_study", "completion_codes[].actor", "unknown_field"),
        ("create_study", "reward", "required_field"),
        ("submission", "bonus_payments", "unknown_field"),
        ("submission", "status", "new_word"),
        ("move_submission", "rejection_category", "unlisted_word"),
        ("move_submission", "status", "new_word"),
        ("request_return", "status", "new_word"),
        ("prepare_bonuses", "csv_bonuses", "other_type"),
    }


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
    with pytest.raises(SystemExit) as refused:
        main([str(file)])
    assert refused.value.__cause__.code == code


def test_a_shape_that_contains_itself_comes_to_an_end(check, theirs):
    schemas = theirs["components"]["schemas"]
    schemas["Cost"] = {"anyOf": [pointer("Cost"), copy.deepcopy(schemas["Cost"])]}
    check(is_refused=False)
