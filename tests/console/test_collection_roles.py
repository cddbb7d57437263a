"""Every address of a collection × everybody who may ask for it."""

from collections.abc import Iterator

import pytest
from django.urls import reverse

from accounts.models import User
from accounts.roles import PERMISSIONS, Permission, Role
from tests.console.collection_addresses import (
    ACTIONS_OF_A_COLLECTION,
    PAGES_OF_A_COLLECTION,
    address_of,
)
from tests.console.test_role_matrix import browser, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
STRANGERS = ("other_team", "worker", "operator")


@pytest.fixture
def users(team_users: dict[str, User]) -> dict[str, User]:
    return team_users


def lines() -> Iterator[tuple[str, str, Permission, bool]]:
    for table, is_action in ((PAGES_OF_A_COLLECTION, False), (ACTIONS_OF_A_COLLECTION, True)):
        for name, permission in table.items():
            yield name, address_of(name), permission, is_action


@pytest.mark.slow
@pytest.mark.parametrize("role", [role.value for role in Role])
def test_a_role_opens_what_it_may_and_nothing_else(tracks, users, role):
    client, permissions = browser(users[role]), PERMISSIONS[Role(role)]
    for name, where, permission, is_action in lines():
        status = status_of(client, name, where, is_action=is_action)
        if Permission.VIEW_SYSTEMS not in permissions:
            assert status == 404, name
        elif permission in permissions:
            assert status in {200, 202, 302, 422}, name
        else:
            assert status == 403, name


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.ANALYST])
def test_whoever_views_a_result_takes_the_data_of_its_charts_but_rows_only_who_may_export(
    tracks, users, role
):
    client = browser(users[role.value])
    page = client.get("/collections/tracks/evaluation/").content.decode()
    data = "/collections/tracks/evaluation/topics.csv/picture/"
    assert f'href="{data}?' in page
    for form in ("csv", "json", "svg"):
        assert client.get(data.replace("topics.csv", f"topics.{form}")).status_code == 200
    may_export = Permission.EXPORT in PERMISSIONS[role]
    assert ("/evaluation/means.csv" in page) is may_export
    for name in ("means.csv", "topics.csv", "evaluation.json"):
        answer = client.get(f"/collections/tracks/evaluation/{name}")
        assert answer.status_code == (200 if may_export else 403)


@pytest.mark.parametrize("person", STRANGERS)
def test_to_strangers_a_teams_collections_are_not_there(tracks, users, person):
    client = browser(users[person])
    for name, where, _, is_action in lines():
        assert status_of(client, name, where, is_action=is_action) == 404, name
    assert b"Tracks" not in client.get(reverse("console:collections")).content


def test_nobody_gets_in_without_signing_in(tracks):
    client = browser(None)
    for name, where, _, is_action in lines():
        assert status_of(client, name, where, is_action=is_action) == 302, name


def test_who_adjudicates_blind_finds_no_collection(tracks, users):
    page = browser(users["adjudicator"]).get(reverse("console:collections"))
    assert b"Tracks" not in page.content
