import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User
from config import middleware
from marketplace.people.enrolment import create_worker
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
LINKS = "/account/password-links/"


def signed_in(user):
    browser = Client()
    browser.force_login(user)
    return browser


def is_signed_in(browser, **headers):
    return browser.get("/teams/", headers=headers).status_code == 200


def test_only_a_session_that_is_used_goes_on_where_there_is_a_limit(rosa, settings, monkeypatch):
    settings.SESSION_IDLE_MINUTES = 0
    browser = signed_in(rosa)
    assert is_signed_in(browser)
    assert middleware.SEEN_AT not in browser.session
    settings.SESSION_IDLE_MINUTES = 30
    clock = [1_000_000.0]
    monkeypatch.setattr(middleware.time, "time", lambda: clock[0])
    browser = signed_in(rosa)
    for _ in range(3):
        assert is_signed_in(browser)
        clock[0] += 25 * 60
    # What a page asks by itself does not count.
    assert is_signed_in(browser)
    clock[0] += 20 * 60
    assert is_signed_in(browser, **{"HX-Request": "true"})
    clock[0] += 11 * 60
    assert not is_signed_in(browser)
    # What a page stores while somebody writes does.
    browser = signed_in(rosa)
    assert is_signed_in(browser)
    for _ in range(2):
        clock[0] += 20 * 60
        browser.post("/studies/new/", headers={"HX-Request": "true"})
    assert is_signed_in(browser)


def test_only_operators_make_links_for_a_new_password_and_none_for_operators(rosa):
    operator = User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    for user in (operator, rosa):
        browser = signed_in(user)
        browser.post(f"/account/again/?next={LINKS}", {"password": PASSWORD})
        for name in ("olga", "nobody"):
            assert "reset/" not in browser.post(LINKS, {"username": name}).content.decode()
    assert browser.get(LINKS).status_code == 403
    assert not AuditEntry.objects.exists()
    browser = signed_in(operator)
    browser.post(f"/account/again/?next={LINKS}", {"password": PASSWORD})
    page = browser.post(LINKS, {"username": "rosa"}).content.decode()
    link = re.search(r"http://127\.0\.0\.1:8000(/\S+/)<", page)[1]
    assert Client().get(link).status_code == 302
    # Who is in no team may be a worker, who can be erased; the log forgets nothing.
    entry = AuditEntry.objects.get(action="member.password_link")
    assert (entry.actor_name, entry.subject) == ("olga", f"account {rosa.pk}")


def test_a_worker_arrives_at_the_marketplace_and_a_researcher_at_the_studies(rosa):
    answer = signed_in(create_worker(username="wanda", password=PASSWORD).user).get("/")
    assert (answer.status_code, answer.url) == (302, reverse("marketplace:groups"))
    assert signed_in(rosa).get("/").status_code == 200
    assert Client().get("/").url.startswith("/login/")
