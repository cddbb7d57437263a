"""Requesters and workers enrolled over HTTP, by whoever holds the operator secret."""

import hmac
import json
import time
from decimal import Decimal

import pytest
from django.test import Client

from accounts.models import User
from hits.connections import enrol_requester, enrol_worker, operator_headers
from hits.exceptions import MarketplaceRefused, MarketplaceUnreachable
from marketplace.api.endpoints import MAX_BODY_BYTES, WINDOW_SECONDS
from marketplace.models import AccessKey as StoredKey, AuditEntry, Requester, WorkerAccount
from tests.boto_clients import in_process_client, network_client
from tests.marketplace.conftest import PASSWORD

PATH = "/marketplace-api/v1/requesters"
SECRET = "of the people who run the marketplace"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def operator_secret(settings):
    settings.MARKETPLACE_OPERATOR_SECRET = SECRET


def send(body, headers, **more):
    return (
        Client()
        .post(PATH, body, content_type="application/json", headers=headers, **more)
        .status_code
    )


def post(content, *, path=PATH, headers=None, secret=SECRET, **changes):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    signed = operator_headers(secret=secret, path=path, body=body) | (headers or {})
    return Client().post(
        changes.get("to", path),
        changes.get("sent", body),
        content_type="application/json",
        headers=signed,
    )


def nothing_was_done():
    return not (Requester.objects.exists() or User.objects.exists())


def test_a_requester_who_is_known_gets_another_key(live_server):
    first, second = (enrol_requester(site_url=live_server.url, name="Vision lab") for _ in "ab")
    assert first != second
    assert Requester.objects.get().access_keys.count() == 2
    named = {"name": "Vision lab", "display_name": "Vision"}
    assert post(named).status_code == 201
    assert Requester.objects.get().name_for_participants == "Vision"
    assert post(named | {"display_name": "\u2800"}).status_code == 400
    enrol_requester(site_url=live_server.url, name="Vision lab")
    assert Requester.objects.get().name_for_participants == "Vision"
    for key in (first, second):
        assert in_process_client(vars(key)).get_account_balance()["AvailableBalance"] == "0.00"
    key = enrol_requester(
        site_url=live_server.url, name="Motion lab", test_funds_usd=Decimal("49.50")
    )
    client = network_client(f"{live_server.url}/requester", vars(key))
    assert client.get_account_balance()["AvailableBalance"] == "49.50"


def test_what_goes_wrong_is_reported_and_a_worker_can_sign_in(live_server, settings):
    settings.MARKETPLACE_TEST_FUNDS = False
    with pytest.raises(MarketplaceRefused) as refused:
        enrol_requester(site_url=live_server.url, name="Lab", test_funds_usd=Decimal(1))
    assert not refused.value.has_code("NameTaken")
    assert nothing_was_done()
    for site_url in (f"{live_server.url}/worker", "http://127.0.0.1:9"):
        with pytest.raises(MarketplaceUnreachable) as unreachable:
            enrol_requester(site_url=site_url, name="Lab")
        assert site_url in str(unreachable.value)
    worker_id = enrol_worker(site_url=live_server.url, username="ada", password=PASSWORD)
    assert WorkerAccount.objects.get().worker_id == worker_id
    answer = Client().post("/worker/login/", {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 302
    with pytest.raises(MarketplaceRefused) as refused:
        enrol_worker(site_url=live_server.url, username="ada", password=PASSWORD)
    assert refused.value.has_code("NameTaken")


def test_what_is_not_signed_as_it_stands_is_refused(monkeypatch):
    for changes in (
        {"secret": "a guess"},
        {"secret": ""},
        {"sent": b'{"name": "Another lab"}'},
        {"to": "/marketplace-api/v1/workers"},
        {"to": f"{PATH}?more=1"},
        {"headers": {"X-Assay-Signature": "é"}},
        {"headers": {"X-Assay-Nonce": "another-nonce-of-22-signs"}},
        {"headers": {"X-Assay-Nonce": ""}},
        {"headers": {"X-Assay-Timestamp": ""}},
        {"headers": {"X-Assay-Timestamp": "٣"}},
        {"headers": {"X-Assay-Timestamp": "9" * 400}},
    ):
        assert post({"name": "Lab"}, **changes).status_code == 401
        assert nothing_was_done()
    assert Client().post(PATH, {"name": "Lab"}, content_type="application/json").status_code == 401
    assert nothing_was_done()
    assert Client().get(PATH).status_code == 405
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(
        hmac, "compare_digest", lambda one, other: compared.append(one) or real(one, other)
    )
    post({"name": "Lab"}, secret="a guess")
    assert compared


@pytest.mark.parametrize("shift", [-WINDOW_SECONDS - 5, WINDOW_SECONDS + 5])
def test_a_request_of_another_time_is_refused(monkeypatch, shift):
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + shift)
        headers = operator_headers(secret=SECRET, path=PATH, body=b'{"name": "Lab"}')
    assert send(b'{"name": "Lab"}', headers) == 401


def test_a_request_is_taken_once_and_its_key_is_in_the_audit_log_alone():
    body = b'{"name": "Lab"}'
    headers = operator_headers(secret=SECRET, path=PATH, body=body)
    assert [send(body, headers) for _ in range(3)] == [201, 401, 401]
    assert StoredKey.objects.count() == 1
    answer = post({"name": "Lab"})
    assert answer.status_code == 201
    assert "no-store" in answer.headers["Cache-Control"]
    content = answer.json()
    assert content.keys() == {
        *("requester", "requester_id", "access_key_id", "secret_access_key", "balance_usd")
    }
    assert AuditEntry.objects.filter(action="key.issue", subject=content["access_key_id"]).exists()


def test_a_body_that_cannot_be_is_refused():
    for content, status in (
        (b" " * (MAX_BODY_BYTES + 1), 413),
        (b"no JSON", 400),
        (b"[" * 10_000, 400),
        (b"[]", 400),
        ({}, 400),
        ({"name": 7}, 400),
        ({"name": ""}, 400),
        (b'{"name": "Lab", "test_funds_usd": "\\ud800"}', 400),
        ({"name": "Lab", "owner": "me"}, 400),
        ({"name": "Lab", "test_funds_usd": "much"}, 400),
    ):
        answer = post(content)
        assert answer.status_code == status
        assert answer.json()["error"]
        assert nothing_was_done()
    worker = b'{"username": "ada", "password": "\\ud800-a-long-password"}'
    assert post(worker, path="/marketplace-api/v1/workers").status_code == 400
    assert nothing_was_done()
    body = b" " * (MAX_BODY_BYTES + 1)
    headers = operator_headers(secret=SECRET, path=PATH, body=body)
    assert send(body, headers, CONTENT_LENGTH="many") == 413
