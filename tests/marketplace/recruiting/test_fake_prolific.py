"""The fake of Prolific, over HTTP."""

import pytest
import requests

from benchmarks.fake_prolific import operations
from benchmarks.fake_prolific.server import FakeProlific, known_operations

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


def test_every_operation_is_there():
    assert all(callable(getattr(operations, each.name)) for each in known_operations())


def test_places_cost_what_is_set_aside_and_work_is_approved_after_21_days(
    fake, call, study, handed_in
):
    assert balance(call, fake) == 100_000 - 2 * 200
    call("PATCH", f"/studies/{study}/", {"total_available_places": 3})
    assert balance(call, fake) == 100_000 - 3 * 200
    fewer = call("PATCH", f"/studies/{study}/", {"total_available_places": 1})
    assert fewer.status_code == 400
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
