"""A name that leads elsewhere when it is looked up again leads nobody there (DNS rebinding)."""

import pytest
from botocore.config import Config

from hits import endpoints, marketplace_api
from hits.connections import balance_usd
from hits.endpoints import AccessKey, connect
from hits.exceptions import ConnectionUnfit, MarketplaceUnreachable
from tests.codes import refused
from tests.foreign_names import NAME, PUBLIC, Site, resolve, write_certificate

KEY = AccessKey("AKIDEXAMPLE", "secret")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def public_site(settings, monkeypatch):
    """A site that others reach, whose calls go through no proxy, and are made once."""
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
        return balance_usd(connect(key=KEY, endpoint_url=f"{address}/requester"))
    return marketplace_api.post(address, "/appeals", {}, signature=lambda _address, _body: {})


both = pytest.mark.parametrize("is_requester_api", [True, False])


@both
def test_a_name_that_leads_into_the_network_once_it_was_checked_is_not_followed(
    public_site, site, monkeypatch, is_requester_api
):
    resolver = resolve(monkeypatch, "127.0.0.1")
    with refused(ConnectionUnfit, "internal_address"):
        call(is_requester_api, f"http://{NAME}:{site.port}")
    assert (site.hosts, resolver.n_lookups) == ([], 1)


@both
def test_the_address_that_was_checked_is_called_under_the_marketplaces_name(
    public_site, site, monkeypatch, is_requester_api
):
    resolver = resolve(monkeypatch, PUBLIC)
    call(is_requester_api, f"http://{NAME}:{site.port}")
    assert site.hosts == [f"{NAME}:{site.port}"]
    assert resolver.n_lookups == 1


@both
def test_a_certificate_is_for_the_name_and_not_for_the_address(
    public_site, secure_site, monkeypatch, is_requester_api
):
    resolver = resolve(monkeypatch, PUBLIC)
    call(is_requester_api, f"https://{NAME}:{secure_site.port}")
    assert (secure_site.names, secure_site.hosts) == ([NAME], [f"{NAME}:{secure_site.port}"])
    assert resolver.n_lookups == 1


@both
def test_a_proxy_is_asked_for_a_tunnel_to_the_address_that_was_checked(
    public_site, site, monkeypatch, is_requester_api
):
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{site.port}")
    resolve(monkeypatch, PUBLIC)
    with pytest.raises(MarketplaceUnreachable):
        call(is_requester_api, f"https://{NAME}")
    assert set(site.hosts) == {f"{PUBLIC}:443"}


@both
def test_this_sites_own_marketplace_may_be_on_this_machine(
    public_site, site, settings, is_requester_api
):
    settings.MARKETPLACE_ENDPOINT_URL = f"http://127.0.0.1:{site.port}/requester"
    call(is_requester_api, f"http://127.0.0.1:{site.port}")
    assert len(site.hosts) == 1
