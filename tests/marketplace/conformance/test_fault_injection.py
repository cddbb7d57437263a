"""Rate limits, and what is offered to those who test their programs here."""

import json
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest
from botocore.config import Config
from botocore.exceptions import HTTPClientError

from marketplace import api, clock, models
from tests.boto_clients import in_process_client, network_client
from tests.marketplace.conformance.refusals import error_code, error_of
from tests.marketplace.conftest import HIT


def ask(url, method="GET", **body):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data=data, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


@pytest.fixture
def fault_injection(settings, live_server, keys):
    settings.MARKETPLACE_TESTING = True
    config = Config(retries={"mode": "standard", "total_max_attempts": 3}, read_timeout=10)
    client = network_client(f"{live_server.url}/requester", keys, config)
    return client, f"{live_server.url}/testing"


# Rate limits


def test_more_calls_than_a_key_may_make_are_throttled(mturk, make_keys, settings):
    settings.MARKETPLACE_REQUESTS_PER_SECOND = 0.001
    settings.MARKETPLACE_REQUEST_BURST = 3
    for _ in range(3):
        mturk.get_account_balance()
    assert models.AccessKey.objects.get().last_used_at is not None
    assert error_code(mturk.get_account_balance) == "ThrottlingException"
    in_process_client(make_keys()).get_account_balance()  # a limit is each key's own


def test_a_bucket_fills_with_time_up_to_the_burst(requester, settings):
    settings.MARKETPLACE_REQUESTS_PER_SECOND = 2
    settings.MARKETPLACE_REQUEST_BURST = 4
    key, now = models.AccessKey.objects.get(), datetime(2026, 1, 1, tzinfo=UTC)

    def calls(at):
        for count in range(10):
            try:
                api.authentication.take_token(key, now=at)
            except api.authentication.ProtocolError:
                return count
        return 10

    assert calls(now) == 4
    assert calls(now + timedelta(seconds=1)) == 2
    assert calls(now + timedelta(hours=1)) == 4


# Off unless asked for


def test_nothing_of_this_is_there_or_left_over_unless_it_is_switched_on(client, mturk, settings):
    settings.MARKETPLACE_TESTING = True
    client.post("/testing/faults", {"kind": "throttle", "times": 9}, "application/json")
    client.post("/testing/clock", {"advance_seconds": 86_400}, "application/json")
    assert clock.now() - datetime.now(UTC) > timedelta(hours=23)
    settings.MARKETPLACE_TESTING = False
    mturk.get_account_balance()
    assert clock.now() - datetime.now(UTC) < timedelta(hours=1)
    for page in ("clock", "faults", "sweep"):
        assert client.get(f"/testing/{page}").status_code in (404, 405)
        response = client.post(f"/testing/{page}", {"advance_seconds": 60}, "application/json")
        assert response.status_code == 404


def test_a_wish_that_cannot_be_granted_is_refused(client, db, settings):
    for page, body in (
        ("faults", {"kind": "flood"}),
        ("faults", {"kind": "drop", "times": 0}),
        ("faults", {"kind": "drop", "times": "many"}),
        ("faults", {"kind": "delay", "delay_seconds": 3600}),
        ("clock", {}),
        ("clock", {"now": "noon"}),
        ("clock", {"advance_seconds": "long"}),
    ):
        settings.MARKETPLACE_TESTING = True
        response = client.post(f"/testing/{page}", body, "application/json")
        assert response.status_code == 400
        assert response.json()["error"]


# The clock


def test_the_clock_is_set_and_time_does_its_work(fault_injection):
    client, url = fault_injection
    hit = client.create_hit(**HIT)["HIT"]
    ask(f"{url}/clock", "POST", advance_seconds=HIT["LifetimeInSeconds"] + 1)
    assert client.get_hit(HITId=hit["HITId"])["HIT"]["HITStatus"] == "Reviewable"
    ask(f"{url}/clock", "POST", now="2030-06-01T12:00:00Z")
    assert ask(f"{url}/clock")["now"].startswith("2030-06-01T12:00:0")
    assert ask(f"{url}/sweep", "POST") == {"hits": 1, "notifications": 0}
    assert client.get_hit(HITId=hit["HITId"])["HIT"]["HITStatus"] == "Disposed"
    ask(f"{url}/clock", "DELETE")
    assert datetime.fromisoformat(ask(f"{url}/clock")["now"]) - datetime.now(UTC) < timedelta(
        minutes=1
    )


# Faults


@pytest.mark.slow
def test_the_next_calls_of_an_operation_are_throttled_and_boto3_tries_again(fault_injection):
    client, url = fault_injection
    ask(f"{url}/faults", "POST", operation="CreateHIT", kind="throttle", times=2)
    assert client.get_account_balance()["ResponseMetadata"]["RetryAttempts"] == 0
    assert client.create_hit(**HIT)["ResponseMetadata"]["RetryAttempts"] == 2
    ask(f"{url}/faults", "POST", kind="throttle", times=3)
    assert error_code(client.list_hits) == "ThrottlingException"
    assert ask(f"{url}/faults") == {"faults": []}


def test_faults_are_taken_back_and_an_answer_is_delayed(fault_injection):
    client, url = fault_injection
    assert ask(f"{url}/faults", "POST", operation="ListHITs", kind="throttle", times=7)[
        "faults"
    ] == [{"operation": "ListHITs", "kind": "throttle", "remaining": 7, "delay_seconds": 0}]
    ask(f"{url}/faults", "DELETE")
    assert client.list_hits()["ResponseMetadata"]["RetryAttempts"] == 0
    ask(f"{url}/faults", "POST", operation="ListHITs", kind="delay", delay_seconds=0.3)
    start = time.monotonic()
    client.list_hits()
    assert time.monotonic() - start >= 0.3


def test_a_dropped_answer_leaves_two_hits_and_with_a_token_one(fault_injection, keys):
    """boto3 tries again by itself. Without a token the client pays for two, as at Amazon; with
    one it learns which HIT there is. A client that does not try again sees a broken connection."""
    client, url = fault_injection
    ask(f"{url}/faults", "POST", operation="CreateHIT", kind="drop")
    assert client.create_hit(**HIT)["ResponseMetadata"]["RetryAttempts"] == 1
    assert client.get_account_balance()["OnHoldBalance"] == "1.26"
    ask(f"{url}/faults", "POST", operation="CreateHIT", kind="drop")
    response = error_of(client.create_hit, **HIT, UniqueRequestToken="item 7")
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.HitAlreadyExists"
    assert response["ResponseMetadata"]["RetryAttempts"] == 1
    assert models.Hit.objects.latest("pk").public_id in response["Error"]["Message"]
    assert client.get_account_balance()["OnHoldBalance"] == "1.89"
    ask(f"{url}/faults", "POST", operation="CreateHIT", kind="drop")
    once = network_client(url.replace("/testing", "/requester"), keys)
    with pytest.raises(HTTPClientError):
        once.create_hit(**HIT)
    assert models.Hit.objects.count() == 4
