import re
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from botocore.config import Config

from hits import endpoints
from hits.endpoints import AccessKey, connect, translated_errors
from hits.exceptions import (
    CredentialsMissing,
    MarketplaceRefused,
    MarketplaceUnreachable,
    ProfileUnknown,
)
from tests.boto_clients import ENDPOINT_URL
from tests.hits.wire import Wire, refusal

KEY = AccessKey("AKIDEXAMPLE", "secret")


@pytest.fixture
def one_attempt(monkeypatch):
    monkeypatch.setattr(endpoints, "PATIENCE", Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def no_aws_account(monkeypatch, tmp_path):
    """A machine on which boto3 finds no key of its own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)


def request_balance(client) -> None:
    with translated_errors():
        client.get_account_balance()


def test_the_local_profile_goes_where_the_settings_say(settings):
    settings.MARKETPLACE_ENDPOINT_URL = "http://market.example:8000/requester"
    assert connect(key=KEY).meta.endpoint_url == "http://market.example:8000/requester"


@pytest.mark.parametrize("name", ["sandbox", "production"])
def test_amazons_profiles_have_gone_and_what_to_use_instead_is_said(name):
    with pytest.raises(ProfileUnknown, match=r"closed.*connection to another Assay.*mturk_bridge"):
        connect(name, key=KEY)


def test_a_request_is_signed_with_the_key_of_the_settings(keys, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]
    request_balance(Wire(connect(endpoint_url=ENDPOINT_URL)).client)


@pytest.mark.parametrize("name", ["MARKETPLACE_ACCESS_KEY_ID", "MARKETPLACE_SECRET_ACCESS_KEY"])
def test_a_key_that_is_not_whole_is_missing(settings, name):
    settings.MARKETPLACE_ACCESS_KEY_ID = settings.MARKETPLACE_SECRET_ACCESS_KEY = "x"
    setattr(settings, name, "")
    with pytest.raises(CredentialsMissing, match="create_requester"):
        connect()


def test_an_unknown_profile_is_told_with_those_there_are():
    with pytest.raises(ProfileUnknown, match=r"'elsewhere'\. Profiles: local\."):
        connect("elsewhere", key=KEY)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "market.example",
        "ftp://market.example",
        "http://",
        "http://my market/requester",
        "http://127.0.0.1:99999/",
        "http://[::1/",
    ],
)
def test_what_is_no_web_address_is_refused_at_once(address):
    message = re.escape(f"'{address}' is not a marketplace's address")
    with pytest.raises(MarketplaceUnreachable, match=message):
        connect(key=KEY, endpoint_url=address)


def test_an_aws_profile_that_is_not_there_is_a_missing_key(no_aws_account, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    with pytest.raises(CredentialsMissing, match="nosuch"):
        connect(key=KEY)


def test_nobody_listens(one_attempt):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with pytest.raises(MarketplaceUnreachable, match=f"127.0.0.1:{port}.*make run"):
            request_balance(connect(key=KEY, endpoint_url=f"http://127.0.0.1:{port}/requester"))


class SomebodyElse(BaseHTTPRequestHandler):
    """A web server that is no marketplace."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "15")
        self.end_headers()
        self.wfile.write(b"<!doctype html>")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(params=[405, 200])
def elsewhere(request) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), SomebodyElse) as server:
        server.status = request.param
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_another_web_server_is_not_taken_for_a_marketplace(elsewhere, one_attempt):
    with pytest.raises(MarketplaceUnreachable, match="is not a marketplace"):
        request_balance(connect(key=KEY, endpoint_url=elsewhere))


def test_a_wrong_secret_is_a_refusal(keys):
    key = AccessKey(keys["access_key_id"], "not the secret")
    with pytest.raises(MarketplaceRefused) as refusal:
        request_balance(Wire(connect(key=key, endpoint_url=ENDPOINT_URL)).client)
    assert refusal.value.has_code("InvalidSignatureException")


def test_a_refusal_tells_code_and_message_whatever_the_namespace(client):
    with pytest.raises(MarketplaceRefused) as refusal, translated_errors():
        client.get_hit(HITId="3NOSUCHHIT")
    assert refusal.value.code == "AWS.MechanicalTurk.HITDoesNotExist"
    assert refusal.value.has_code("HITDoesNotExist")
    assert refusal.value.has_code("hitdoesnotexist")
    assert not refusal.value.has_code("DoesNotExist")
    assert "3NOSUCHHIT does not exist" in str(refusal.value)


def test_an_error_before_the_operation_has_amazons_own_code(wire, client):
    wire.fail("GetAccountBalance", refusal("AccessDeniedException"))
    with pytest.raises(MarketplaceRefused, match=r"\(AccessDeniedException\): Not now\."):
        request_balance(client)


def test_a_throttled_call_is_tried_again(keys):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(connect(key=key, endpoint_url=ENDPOINT_URL))
    wire.fail("GetAccountBalance", refusal("ThrottlingException"))
    request_balance(wire.client)
    assert wire.calls["GetAccountBalance"] == 2


def test_what_is_no_fault_of_the_marketplace_passes_through():
    with pytest.raises(ZeroDivisionError), translated_errors():
        _ = 1 / 0
