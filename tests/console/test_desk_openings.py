"""Who opens the review desk sees who the workers are: what the audit log says of that, and what
writing it costs."""

import time

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from annotation.access import give_to_team
from tests.annotation.studies import rating_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def cookie_name(researcher):
    """Of the cookie that remembers an opening of the study's desk."""
    study = rating_study(n_items=1, owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return f"desk-{study.pk}"


def n_openings():
    return AuditEntry.objects.filter(action="workers.view").count()


def n_statements(client):
    with CaptureQueriesContext(connection) as statements:
        assert client.get(reverse("console:review", args=["ratings"])).status_code == 200
    return len(statements)


def test_the_opening_of_the_desk_is_in_the_audit_log_once(cookie_name, rosa):
    for _ in range(3):
        later = n_statements(rosa)
    assert n_openings() == 1
    cookie = rosa.cookies[cookie_name]
    assert cookie["path"] == reverse("console:review", args=["ratings"])
    assert (cookie["max-age"], cookie["samesite"], bool(cookie["httponly"])) == (1800, "Lax", True)
    del rosa.cookies[cookie_name]
    first = n_statements(rosa)
    assert n_openings() == 2
    assert first - later == 3, "the end of the log, the entry, the new end"


def test_an_opening_is_of_one_session(cookie_name, rosa):
    n_statements(rosa)
    elsewhere = Client()
    elsewhere.force_login(User.objects.get(username="rosa"))
    elsewhere.cookies[cookie_name] = rosa.cookies[cookie_name].value
    n_statements(elsewhere)
    assert n_openings() == 2


def test_half_an_hour_later_it_is_another_opening(cookie_name, rosa, monkeypatch):
    n_statements(rosa)
    late = time.time() + 1801
    monkeypatch.setattr("django.core.signing.time.time", lambda: late)
    n_statements(rosa)
    assert n_openings() == 2
