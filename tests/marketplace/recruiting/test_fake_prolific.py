"""The fake of Prolific, over HTTP; and the vendor's document against the schema written here: only
what differs is found."""

import copy
import json
from contextlib import nullcontext

import pytest
import requests
import yaml

from benchmarks.fake_prolific import drift
from benchmarks.fake_prolific.server import FakeProlific, document, known_operations

STUDY = {
    "name": "Rate dialogues", "internal_name": "t-1", "description": "Read.", "reward": 150,
    "total_available_places": 2, "external_study_url": "https://study.example/",
    "maximum_allowed_time": 30,
    "completion_codes": [
        {"code": "GOOD", "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]},
    ],
}  # fmt: skip


@pytest.fixture
def fake():
    with FakeProlific() as running:
        yield running
        running.world.check()


@pytest.fixture
def call(fake):
    def send(method, path, body=None, root="/api/v1"):
        headers = {"Authorization": "Token token"}
        return requests.request(method, f"{fake.url}{root}{path}", json=body, headers=headers)

    return send


@pytest.fixture
def study(call):
    made = call("POST", "/studies/", STUDY).json()["id"]
    assert call("POST", f"/studies/{made}/transition/", {"action": "PUBLISH"}).status_code == 200
    return made


@pytest.fixture
def handed_in(call, study):
    def arrive():
        key = call("POST", "/arrive/", {"study": study}, root="/driver").json()["id"]
        return call("POST", "/enter/", {"submission": key, "code": "GOOD"}, root="/driver").json()

    return arrive


def balance(call, fake):
    return call("GET", f"/workspaces/{fake.world.workspace}/balance/").json()["available_balance"]


def test_places_cost_what_is_set_aside_and_work_is_approved_after_21_days(
    fake, call, study, handed_in
):
    assert balance(call, fake) == 100_000 - 2 * 200
    call("PATCH", f"/studies/{study}/", {"total_available_places": 3})
    assert balance(call, fake) == 100_000 - 3 * 200
    assert call("PATCH", f"/studies/{study}/", {"total_available_places": 1}).status_code == 400
    waiting = f"/submissions/{handed_in()['id']}/"
    late = call("POST", "/arrive/", {"study": study}, root="/driver").json()["id"]
    call("POST", "/time/", {"seconds": 31 * 60}, root="/driver")
    assert call("GET", f"/submissions/{late}/").json()["status"] == "TIMED-OUT"
    taken = call("POST", "/enter/", {"submission": late, "code": "GOOD"}, root="/driver")
    assert taken.json()["status"] == "AWAITING REVIEW"
    verdict = {"action": "REJECT", "rejection_category": "LOW_EFFORT", "message": "Bad."}
    refused = call("POST", f"/submissions/{late}/transition/", verdict)
    assert refused.status_code == 400
    assert "$.message" in refused.json()["error"]["detail"][0]
    rejected = call("POST", f"/submissions/{late}/transition/", verdict | {"message": "x" * 100})
    assert rejected.json()["status"] == "REJECTED"
    call("POST", "/time/", {"seconds": 21 * 86_400}, root="/driver")
    assert call("GET", waiting).json()["status"] == "APPROVED"
    assert [amount for _, _, amount in fake.world.paid] == [200]


def test_a_bonus_paid_twice_is_paid_twice_though_an_answer_is_lost(call, fake, study, handed_in):
    one = handed_in()["id"]
    rows = {"study_id": study, "csv_bonuses": f"{one},1.50\n"}
    prepared = call("POST", "/submissions/bonus-payments/", rows).json()
    assert prepared["total_amount"] == 200
    pay = f"/bulk-bonus-payments/{prepared['id']}/pay/"
    fake.fail_next("pay_bonuses", "drop")
    with pytest.raises(requests.ConnectionError):
        call("POST", pay)
    assert call("GET", f"/submissions/{one}/").json()["bonus_payments"] == [150]
    assert call("POST", pay).status_code == 202
    assert call("GET", f"/submissions/{one}/").json()["bonus_payments"] == [150, 150]


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
            drift.main([str(file), "--json"])
        facts = json.loads(capsys.readouterr().out)
        assert facts["operations"] == len(known_operations())
        return facts["drift"]

    return run


def pointer(shape):
    return {"$ref": f"#/components/schemas/{shape}"}


def test_a_document_that_agrees_or_contains_itself_has_no_drift_but_known_ones(check, theirs):
    assert check(is_refused=False) == []
    del theirs["components"]["schemas"]["Page"]["properties"]["_links"]
    first = check(is_refused=False)[0]
    assert (first["operation"], first["field"]) == ("projects", "_links")
    assert first["known"]
    schemas = theirs["components"]["schemas"]
    schemas["Cost"] = {"anyOf": [pointer("Cost"), copy.deepcopy(schemas["Cost"])]}
    check(is_refused=False)


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
