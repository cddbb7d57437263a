import io
import sys

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from accounts import apps, exceptions, models
from accounts.enrolment import create_user
from marketplace.people.enrolment import open_worker_account
from tests.accounts.conftest import PASSWORD, sign_in
from tests.codes import field_codes, refused_naming
from tests.processes import run_python

NEW = "another-winding-password"


def test_the_first_researcher_is_made_by_a_command_without_a_password_in_it(db, monkeypatch):
    monkeypatch.delenv("NEW_USER_PASSWORD", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with refused_naming(CommandError, "NEW_USER_PASSWORD"):
        call_command("create_user", "rosa")
    assert not models.User.objects.exists()
    monkeypatch.setenv("NEW_USER_PASSWORD", PASSWORD)
    call_command("create_user", "rosa")
    assert sign_in()
    rosa = models.User.objects.get(username="rosa")
    assert (rosa.is_staff, rosa.is_superuser) == (False, False)
    call_command("create_user", "olga", "--staff")
    olga = Client()
    assert sign_in("olga", site="/requester-console/login/", browser=olga)
    assert olga.get("/marketplace-operator/").status_code == 200


@pytest.mark.parametrize(
    ("name", "password"),
    [("rosa", "short"), ("rosa", "password1234"), ("", PASSWORD), ("rosa\u3164", PASSWORD)],
)
def test_a_user_that_cannot_be_is_refused_in_words(db, name, password):
    with pytest.raises(exceptions.InvalidAccount) as caught:
        create_user(username=name, password=password)
    assert str(caught.value)
    assert not models.User.objects.exists()


def test_nobody_takes_a_name_in_other_letters(rosa):
    with pytest.raises(exceptions.NameTaken):
        create_user(username="Rosa", password=PASSWORD)
    with pytest.raises(IntegrityError), transaction.atomic():
        models.User.objects.create(username="ROSA")
    with pytest.raises(ValidationError):
        models.User(username="ROSA", password="x").full_clean()
    form = {"username": "ROSA", "password1": NEW, "password2": NEW}
    assert list(field_codes(Client().post("/worker/signup/", form).context["form"])) == ["username"]
    assert sign_in("Rosa")


def test_a_password_is_changed_by_who_knows_the_old_one(rosa):
    here, elsewhere = Client(), Client()
    assert sign_in(browser=here)
    assert sign_in(browser=elsewhere)
    form = {"oldpassword": PASSWORD, "password1": "elevenchars", "password2": "elevenchars"}
    page = here.post("/account/password/", form)
    assert "password1" in field_codes(page.context["form"])
    form = {"oldpassword": "a guess", "password1": NEW, "password2": NEW}
    page = here.post("/account/password/", form)
    assert list(field_codes(page.context["form"])) == ["oldpassword"]
    answer = here.post("/account/password/", form | {"oldpassword": PASSWORD}, follow=True)
    assert len(answer.context["messages"]) == 1
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert not sign_in()
    assert sign_in(password=NEW)


@pytest.mark.parametrize("site", ["/worker/", "/requester-console/", "/marketplace-operator/"])
def test_every_site_leads_to_the_change_of_one_s_password_and_back(rosa, site):
    browser = Client()
    browser.force_login(rosa)
    assert 'href="/account/"' in browser.get("/").content.decode()
    assert 'href="/account/password/"' in browser.get("/account/").content.decode()
    models.User.objects.update(is_staff=True)
    open_worker_account(user=rosa)
    address = f"/account/password/?next={site}"
    assert f'href="{address}"' in browser.get(site).content.decode()
    assert f'href="{site}"' in browser.get(address).content.decode()
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW, "next": site}
    assert browser.post("/account/password/", form)["Location"] == site
    # To no page elsewhere.
    browser.force_login(models.User.objects.get())
    address = "/account/password/?next=https://elsewhere.example/"
    assert 'href="https://elsewhere' not in browser.get(address).content.decode()


def test_who_may_no_longer_sign_in_is_signed_out_and_told_so(rosa):
    browser = Client()
    assert sign_in(browser=browser)
    models.User.objects.update(is_active=False)
    assert browser.get("/").status_code == 302
    answer = Client().post("/login/", {"username": "rosa", "password": PASSWORD})
    assert answer.status_code == 403
    assert "accounts/inactive.html" in [template.name for template in answer.templates]
    assert not sign_in(password="a guess")


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        ({"ALLAUTH_TRUSTED_PROXY_COUNT": 0}, ["accounts.W002"]),
        ({"ALLAUTH_TRUSTED_PROXY_COUNT": 1}, []),
        ({"ALLAUTH_TRUSTED_CLIENT_IP_HEADER": "X-Real-IP"}, []),
        ({"SECURE_PROXY_SSL_HEADER": None}, []),
    ],
)
def test_checks_warn_of_what_sign_in_limits_lack(settings, changes, warnings):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache"}}
    for name, value in changes.items():
        setattr(settings, name, value)
    assert [warning.id for warning in apps.check_sign_in(None)] == warnings


@pytest.mark.slow
def test_check_deploy_names_what_sign_in_limits_lack():
    server = {
        "SITE_URL": "https://assay.example.org",
        "SECRET_KEY": "k" * 25 + "abcdefghijklmnopqrstuvwxyz",
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "CACHE_URL": "locmemcache://",
    }
    done = run_python("manage.py", "check", "--deploy", "--fail-level", "WARNING", **server)
    assert done.returncode != 0
    assert all(name in done.stderr for name in ("accounts.W001", "accounts.W002"))
