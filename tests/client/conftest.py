from decimal import Decimal

import pytest

from accounts import models, roles, teams
from accounts.tokens import create_personal_token
from assay_client import Client
from hits.connections import connect_this_site
from tests.console.work import work_off


@pytest.fixture
def rosa(db):
    return models.User.objects.create_user("rosa")


@pytest.fixture
def team(rosa):
    return teams.create_team(name="Lab", owner=rosa)


@pytest.fixture
def token(rosa):
    scopes = [scope.value for scope in roles.Scope]
    return create_personal_token(user=rosa, name="tests", scopes=scopes, days=7).text


@pytest.fixture
def connection(live_server, settings, team, rosa):
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    return connect_this_site(team=team, name="Here", actor=rosa, test_funds_usd=Decimal(20))


@pytest.fixture
def client(live_server, token):
    """Rosa's client, over HTTP; what it waits for is done by the background worker."""
    options = {"on_progress": lambda job: work_off(), "seconds_between": 0.01}
    with Client(live_server.url, token, **options) as client:
        yield client
