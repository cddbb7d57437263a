from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import Team, User
from accounts.roles import Scope
from accounts.teams import create_team
from accounts.tokens import create_personal_token
from assay_client import Client
from hits.connections import connect_this_site
from hits.models import Connection
from tests.console.work import work_off


@pytest.fixture
def rosa(db: None) -> User:
    return User.objects.create_user("rosa")


@pytest.fixture
def team(rosa: User) -> Team:
    return create_team(name="Lab", owner=rosa)


@pytest.fixture
def token(rosa: User) -> str:
    scopes = [scope.value for scope in Scope]
    return create_personal_token(user=rosa, name="tests", scopes=scopes, days=7).text


@pytest.fixture
def connection(live_server: Any, settings: Any, team: Team, rosa: User) -> Connection:
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    return connect_this_site(team=team, name="Here", actor=rosa, test_funds_usd=Decimal(20))


@pytest.fixture
def client(live_server: Any, token: str) -> Iterator[Client]:
    """Rosa's client, over HTTP; what it waits for is done by the background worker."""
    options: dict[str, Any] = {"on_progress": lambda job: work_off(), "seconds_between": 0.01}
    with Client(live_server.url, token, **options) as client:
        yield client
