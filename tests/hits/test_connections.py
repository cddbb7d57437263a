"""Teams connected to marketplaces: whose key is used, where it is stored, who is whose worker."""

from decimal import Decimal

import pytest
from cryptography.fernet import Fernet

from accounts.models import AuditEntry
from accounts.teams import create_team
from encryption import UndecryptableSecret, decrypt
from hits import exceptions, limits, models
from hits.account_requests import request_connection
from hits.connections import (
    balance_usd,
    client_of,
    close_connection,
    connect_marketplace,
    connect_this_site,
    site_connection,
)
from hits.endpoints import AccessKey
from marketplace.models import Requester
from marketplace.people.enrolment import issue_access_key
from tests.annotation.importing import command_output
from tests.codes import refused
from work import execution, tasks
from work.models import Job

INTERNAL_HOSTS = ["127.0.0.1:9", "169.254.169.254", "10.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]
INTERNAL_HOSTS += ["[64:ff9b::7f00:1]", "[::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "localhost"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team(ada):
    return create_team(name="Lab", owner=ada)


@pytest.fixture
def key(funded_site):
    access_key = issue_access_key(name="Lab elsewhere", deposit_usd=Decimal(5))
    return AccessKey(access_key.access_key_id, access_key.secret_access_key)


@pytest.mark.usefixtures("funded_site")
def test_a_team_is_a_requester_on_this_site_in_one_step(team, ada):
    connection = connect_this_site(team=team, name="Here", actor=ada, test_funds_usd=Decimal(20))
    assert connection.is_on_this_site
    assert balance_usd(client_of(connection)) == 20
    requester = Requester.objects.get()
    assert (requester.name, requester.name_for_participants) == ("Lab (lab)", "Lab")
    other = connect_this_site(team=create_team(name="Other", owner=ada), name="Here", actor=ada)
    assert balance_usd(client_of(other)) == 0


def test_a_connection_has_a_name_once_and_its_secret_is_stored_encrypted(key, team, ada):
    connection = connect_marketplace(team=team, name="Lab", key=key, actor=ada)
    assert key.secret_access_key not in connection.encrypted_secret
    assert decrypt(connection.encrypted_secret) == key.secret_access_key
    logged = str(list(AuditEntry.objects.values_list("details", flat=True)))
    assert key.secret_access_key not in logged
    with refused(exceptions.ConnectionUnfit, "name_taken"):
        connect_marketplace(team=team, name="Lab ", key=key, actor=ada)
    connect_marketplace(team=create_team(name="Other", owner=ada), name="Lab", key=key, actor=ada)
    # A closed one stays in the audit log.
    close_connection(connection=connection, actor=ada)
    assert not models.Connection.objects.of(team).usable().exists()
    actions = AuditEntry.objects.of(team).values_list("action", flat=True)
    assert list(actions)[:2] == ["connection.close", "connection.create"]


@pytest.mark.parametrize(
    ("address", "name", "fees"),
    [
        ("https://assay.example.org:443/requester/", "local", "none"),
        ("http://ASSAY.example.org/requester", "local", "none"),
        ("https://Other.example.org:443/requester/", "other.example.org", None),
        ("https://assay.example.org:8443/requester", "assay.example.org:8443", None),
        ("http://local/requester", "local:80", None),
    ],
)
def test_an_address_is_one_marketplace_however_it_is_spelled(settings, address, name, fees):
    settings.SITE_URL = "https://assay.example.org"
    settings.MARKETPLACE_ENDPOINT_URL = "https://assay.example.org/requester"
    there = limits.marketplace_at(address)
    assert (there.name, there.fees) == (name, fees)


def test_a_request_that_failed_keeps_no_key(funded_site, team, ada):
    def request():
        facts = {"name": "Lab", "endpoint_url": f"{funded_site}/requester", "fees": "none"}
        return request_connection(team=team, key=AccessKey("AKIAX", "y"), actor=ada, **facts)

    failed = request()
    assert execution.run_job(failed.pk) == "failed"
    failed.refresh_from_db()
    assert (failed.arguments["encrypted_secret"], failed.arguments["name"]) == ("", "Lab")
    stopped = request()
    Job.objects.filter(pk=stopped.pk).update(state=Job.State.STOPPED)
    waiting = request()
    execution.run_job(tasks.request_job(kind="forget_secrets").pk)
    stopped.refresh_from_db()
    waiting.refresh_from_db()
    assert stopped.arguments["encrypted_secret"] == ""
    assert waiting.arguments["encrypted_secret"]


@pytest.mark.parametrize("name", ["sandbox", "production"])
def test_what_was_published_at_amazon_says_that_it_has_closed(name):
    with refused(exceptions.ProfileUnknown, "amazon_closed"):
        site_connection(name)
    connection, _ = models.Connection.objects.get_or_create(
        team=None, name=name, defaults={"marketplace": name, "fees": "mturk"}
    )
    with refused(exceptions.ProfileUnknown, "amazon_closed"):
        client_of(connection)


@pytest.mark.slow
def test_a_connection_that_cannot_be_made_is_not_stored(key, team, ada, settings):
    def connect(address, key=key):
        connect_marketplace(team=team, name="Lab", key=key, endpoint_url=address, actor=ada)

    with pytest.raises(exceptions.MarketplaceRefused):
        connect("", AccessKey("AKIAX", "y"))
    for address in ("ftp://127.0.0.1/", "http://127.0.0.1:9/requester"):
        with pytest.raises(exceptions.MarketplaceUnreachable):
            connect(address)
    for address in (
        "https://MTURK-requester.us-east-1.amazonaws.com./",
        "http://mturk-requester-sandbox.us-east-1.amazonaws.com:80",
    ):
        with refused(exceptions.ConnectionUnfit, "amazon_closed"):
            connect(address)
    # A public site calls no address inside its own network.
    settings.OWN_MACHINE = False
    for host in INTERNAL_HOSTS:
        with refused(exceptions.ConnectionUnfit, "internal_address"):
            connect(f"http://{host}/requester")
    assert not models.Connection.objects.of(team).exists()


def test_after_a_change_of_keys_connections_and_requests_go_on(team, ada, key, settings):
    facts = {"team": team, "key": key, "fees": "none", "actor": ada}
    made = connect_marketplace(name="There", endpoint_url="", **facts)
    request = request_connection(name="Two", endpoint_url="https://x.example.org", **facts)
    former, new = settings.ENCRYPTION_KEYS, Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [new, *former]
    for report in ("2", "0"):
        assert command_output("reencrypt_connections").split()[0] == report
    command_output("reencrypt_secrets")  # of the marketplace, which is here too
    settings.ENCRYPTION_KEYS = [new]
    made.refresh_from_db()
    request.refresh_from_db()
    assert balance_usd(client_of(made)) == 5
    assert decrypt(request.arguments["encrypted_secret"]) == key.secret_access_key
    settings.ENCRYPTION_KEYS = former
    with pytest.raises(UndecryptableSecret):
        decrypt(made.encrypted_secret)
