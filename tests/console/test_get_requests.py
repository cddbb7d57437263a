"""No GET request to the console or to an account's pages changes what people have stored."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts.models import User
from accounts.teams import create_team
from annotation.models import Study
from tests.annotation.studies import doubt
from tests.console.collection_addresses import PAGES_OF_A_COLLECTION, address_of
from tests.console.evaluated_collection import evaluated_collection
from tests.console.filled import add_assignment, add_batch
from tests.console.test_access import PRIVATE, PUBLIC, STORED, study
from tests.console.test_role_matrix import ACCOUNT
from tests.stored_changes import changed_tables

__all__ = ["study"]
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


# Pages request the results that they show, as jobs, and the audit log names who has seen workers.
ALLOWED = {
    *("work_job", "django_tasks_database_dbtaskresult"),
    *("accounts_auditentry", "accounts_auditchain"),
}


def addresses_of_a_study(slug: str) -> Iterator[str]:
    """Every address of the console, about a study and what it has."""
    for name, parts in (PRIVATE | PUBLIC).items():
        known: dict[str, Any] = dict(parts) | ({"slug": slug} if "slug" in parts else {})
        stored = {part: model.objects.first() for part, model in STORED.items() if part in parts}
        known |= {part: row.pk for part, row in stored.items() if row}
        yield reverse(f"console:{name}", kwargs=known)


def addresses_of_an_account() -> Iterator[str]:
    for name in sorted(ACCOUNT):
        with suppress(NoReverseMatch):  # those that name a key or a token
            yield reverse(name)


def changes_by_get(browser: Client, places: Iterable[str]) -> dict[str, set[str]]:
    """The tables that change, besides those that may, by address."""
    changes = {where: changed_tables(browser.get, where) - ALLOWED for where in places}
    return {where: tables for where, tables in changes.items() if tables}


def test_no_page_of_a_study_a_team_or_an_account_changes_data_by_get(
    client: Client, researcher: User, study: Study
) -> None:
    add_assignment(add_batch(study, round=2).hits.first())
    doubt(study.items.first().submissions.first())
    create_team(name="Lab", owner=researcher)
    client.force_login(researcher)
    places = [*addresses_of_a_study("mine"), *addresses_of_an_account()]
    assert changes_by_get(client, places) == {}


def test_no_page_of_a_collection_changes_data_by_get(client: Client, researcher: User) -> None:
    evaluated_collection(create_team(name="Lab", owner=researcher), researcher)
    client.force_login(researcher)
    assert changes_by_get(client, map(address_of, PAGES_OF_A_COLLECTION)) == {}
