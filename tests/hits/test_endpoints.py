"""Clients of marketplaces; no name that is looked up again leads elsewhere (DNS rebinding)."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from botocore.config import Config

from hits import connections, endpoints, exceptions
from hits.endpoints import AccessKey, connect, translated_errors
from tests.boto_clients import ENDPOINT_URL
from tests.codes import refused, refused_naming
from tests.foreign_names import NAME, PUBLIC, Site, resolve, write_certificate
from tests.hits.wire import Wire, refusal

KEY = AccessKey("AKIDEXAMPLE", "secret")


@pytest.fixture
def one_attempt(monkeypatch):
    monkeypatch.setattr(endpoints, "PATIENCE", Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def no_aws_account(monkeypatch, tmp_path):
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
    with refused(exceptions.ProfileUnknown, "unknown_profile") as error:
        connect("elsewhere", key=KEY)
    assert all(name in str(error.value) for name in ("'elsewhere'", "local"))


@pytest.mark.parametrize("name", ["MARKETPLACE_ACCESS_KEY_ID", "MARKETPLACE_SECRET_ACCESS_KEY"])
def test_a_key_that_is_not_whole_is_missing(settings, name):
    settings.MARKETPLACE_ACCESS_KEY_ID = settings.MARKETPLACE_SECRET_ACCESS_KEY = "x"
    setattr(settings, name, "")
    with refused(exceptions.CredentialsMissing, "no_key"):
        connect()


def test_what_is_no_web_address_is_refused_at_once():
    for address in (
        "localhost:8000",
        "market.example",
        "ftp://market.example",
        "http://",
        "http://my market/requester",
        "http://127.0.0.1:99999/",
        "http://[::1/",
    ):
        with refused(exceptions.MarketplaceUnreachable, "not_an_address") as error:
            connect(key=KEY, endpoint_url=address)
        assert f"'{address}'" in str(error.value)


def test_an_aws_profile_that_is_not_there_is_a_missing_key(no_aws_account, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    with refused_naming(exceptions.CredentialsMissing, "nosuch"):
        connect(key=KEY)


class SomebodyElse(BaseHTTPRequestHandler):
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
    with refused(exceptions.MarketplaceUnreachable, "not_a_marketplace"):
        request_balance(connect(key=KEY, endpoint_url=elsewhere))


def test_a_refusal_tells_code_and_message_whatever_the_namespace(client, wire):
    with pytest.raises(exceptions.MarketplaceRefused) as error, translated_errors():
        client.get_hit(HITId="3NOSUCHHIT")
    assert error.value.code == "AWS.MechanicalTurk.HITDoesNotExist"
    assert error.value.has_code("HITDoesNotExist")
    assert error.value.has_code("hitdoesnotexist")
    assert not error.value.has_code("DoesNotExist")
    assert "3NOSUCHHIT" in str(error.value)
    # An error before the operation has Amazon's own code.
    wire.fail("GetAccountBalance", refusal("AccessDeniedException"))
    with refused(exceptions.MarketplaceRefused, "AccessDeniedException") as error:
        request_balance(client)
    assert error.value.message == "Not now."


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def public_site(settings, monkeypatch):
    settings.OWN_MACHINE = False
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(endpoints, "PATIENCE", Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def site():
    site = Site()
    yield site
    site.stop()


@pytest.fixture
def secure_site(tmp_path, monkeypatch):
    write_certificate(tmp_path)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.setenv(name, str(tmp_path / "cert.pem"))
    site = Site(tmp_path)
    yield site
    site.stop()


def call(is_requester_api, address):
    if is_requester_api:
        return connections.balance_usd(connect(key=KEY, endpoint_url=f"{address}/requester"))
    return connections.post_json(address, "/appeals", {}, signature=lambda _address, _body: {})


both = pytest.mark.parametrize("is_requester_api", [True, False])


@both
def test_no_name_leads_into_the_network_later(public_site, site, monkeypatch, is_requester_api):
    resolver = resolve(monkeypatch, "127.0.0.1")
    with refused(exceptions.ConnectionUnfit, "internal_address"):
        call(is_requester_api, f"http://{NAME}:{site.port}")
    assert (site.hosts, resolver.n_lookups) == ([], 1)


@both
def test_the_checked_address_is_called_by_name(public_site, site, monkeypatch, is_requester_api):
    resolver = resolve(monkeypatch, PUBLIC)
    call(is_requester_api, f"http://{NAME}:{site.port}")
    assert (site.hosts, resolver.n_lookups) == ([f"{NAME}:{site.port}"], 1)


@both
@pytest.mark.usefixtures("public_site")
def test_a_certificate_is_for_the_name_alone(secure_site, monkeypatch, is_requester_api):
    resolver = resolve(monkeypatch, PUBLIC)
    call(is_requester_api, f"https://{NAME}:{secure_site.port}")
    assert (secure_site.names, secure_site.hosts) == ([NAME], [f"{NAME}:{secure_site.port}"])
    assert resolver.n_lookups == 1


@both
def test_a_proxy_tunnels_to_the_checked_address(public_site, site, monkeypatch, is_requester_api):
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{site.port}")
    resolve(monkeypatch, PUBLIC)
    with pytest.raises(exceptions.MarketplaceUnreachable):
        call(is_requester_api, f"https://{NAME}")
    assert set(site.hosts) == {f"{PUBLIC}:443"}


@both
@pytest.mark.usefixtures("public_site")
def test_this_sites_own_marketplace_may_be_on_this_machine(site, settings, is_requester_api):
    settings.MARKETPLACE_ENDPOINT_URL = f"http://127.0.0.1:{site.port}/requester"
    call(is_requester_api, f"http://127.0.0.1:{site.port}")
    assert len(site.hosts) == 1


def test_a_throttled_call_is_tried_again(keys):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    wire = Wire(connect(key=key, endpoint_url=ENDPOINT_URL))
    wire.fail("GetAccountBalance", refusal("ThrottlingException"))
    request_balance(wire.client)
    assert wire.calls["GetAccountBalance"] == 2
