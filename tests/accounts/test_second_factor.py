import re

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from accounts.enrolment import create_user
from tests.accounts.conftest import PASSWORD, SITES, code_of, secret_of, set_up, sign_in
from tests.processes import run_python

SIGN_IN = "/account/second-factor/sign-in/"
PAGES = ["/", "/marketplace-operator/", "/marketplace-operator/payouts/", "/requester-console/"]


@pytest.fixture
def mine(mine):
    set_up(mine, PASSWORD)
    return mine


@pytest.fixture
def strict(settings):
    settings.OPERATORS_WITHOUT_SECOND_FACTOR = False


@pytest.fixture
def olga(db, strict):
    return create_user(username="olga", password=PASSWORD, is_staff=True)


@pytest.fixture
def operator(olga):
    browser = Client()
    browser.post("/login/", {"username": "olga", "password": PASSWORD})
    return browser


def next_code(user):
    cache.clear()  # The half minute that a code holds is over.
    return code_of(secret_of(user))


@pytest.mark.parametrize("site", SITES)
def test_the_password_alone_signs_nobody_in_who_has_a_second_factor(rosa, mine, site):
    browser = Client()
    assert browser.post(site, {"username": "rosa", "password": PASSWORD}).url == SIGN_IN
    assert "_auth_user_id" not in browser.session
    assert browser.get("/").status_code == 302
    assert browser.post(SIGN_IN, {"code": "000000"}).status_code == 200
    assert "_auth_user_id" not in browser.session
    browser.post(SIGN_IN, {"code": next_code(rosa)})
    assert browser.get("/").status_code == 200


@pytest.mark.parametrize("kind", ["app", "recovery"])
def test_a_code_holds_once(rosa, mine, kind):
    page = mine.get("/account/second-factor/codes/").content.decode()
    code = next_code(rosa) if kind == "app" else re.search(r"<code>([0-9]+)</code>", page)[1]
    entered = []
    for _ in range(2):
        browser = Client()
        browser.post("/login/", {"username": "rosa", "password": PASSWORD})
        browser.post(SIGN_IN, {"code": code})
        entered.append("_auth_user_id" in browser.session)
    assert entered == [True, False]


def test_codes_are_not_guessed_without_end_and_open_nothing_without_a_password(rosa, mine):
    browser = Client()
    assert browser.get(SIGN_IN).status_code == 302
    browser.post(SIGN_IN, {"code": next_code(rosa)})
    assert "_auth_user_id" not in browser.session
    browser.post("/login/", {"username": "rosa", "password": PASSWORD})
    for guess in range(10):
        browser.post(SIGN_IN, {"code": f"{guess:06}"})
    assert browser.post(SIGN_IN, {"code": code_of(secret_of(rosa))}).status_code == 200
    assert "_auth_user_id" not in browser.session


def test_what_codes_rest_on_is_encrypted_and_goes_with_the_factor(rosa, mine, settings):
    former = {row.type: dict(row.data) for row in Authenticator.objects.all()}
    secret = secret_of(rosa)
    assert secret not in str(former)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_second_factors")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    assert secret_of(rosa) == secret
    mine.post("/account/second-factor/remove/")
    assert not Authenticator.objects.exists()
    assert sign_in()


@pytest.mark.slow
def test_a_browser_found_open_changes_no_second_factor(rosa, mine):
    session = mine.session
    del session["account_authentication_methods"]
    session.save()
    for page in ("codes/", "codes/new/", "codes/file/", "remove/", "set-up/"):
        if page == "set-up/":
            Authenticator.objects.all().delete()
        path = f"/account/second-factor/{page}"
        answers = [mine.get(path), mine.post(path, {"code": "1"})]
        for answer in [each for each in answers if each.status_code != 405]:
            assert answer.status_code == 302
            assert answer.url.startswith(("/account/again/", "/account/second-factor/again/"))


def test_an_operator_sets_a_second_factor_up_and_keeps_it(operator):
    for path in ("/marketplace-operator/payouts/", "/api/studies/", "/worker/profile/"):
        assert operator.post(path).status_code == 403
    assert operator.get("/api/studies/").status_code == 403
    for path in PAGES:
        assert operator.get(path).url == "/account/second-factor/set-up/"
    set_up(operator, PASSWORD)
    assert operator.get("/marketplace-operator/").status_code == 200
    operator.post("/account/second-factor/remove/")
    assert Authenticator.objects.filter(type="totp").exists()


def test_an_operator_without_a_second_factor_can_sign_out(operator):
    assert operator.post("/logout/").status_code == 302


def test_a_session_that_no_code_was_given_in_opens_nothing_to_an_operator(olga, operator):
    """Such as one that was there before, or one that another way of signing in began."""
    set_up(operator, PASSWORD)
    other = Client()
    other.force_login(olga)
    answer = other.get("/marketplace-operator/")
    assert answer.url == "/account/second-factor/again/?next=%2Fmarketplace-operator%2F"
    assert other.post("/marketplace-operator/payouts/").status_code == 403
    for page in ("codes/", "codes/file/", "remove/", "set-up/"):
        path = f"/account/second-factor/{page}"
        other.post(f"/account/again/?next={path}", {"password": PASSWORD})
        assert other.get(path).url.startswith("/account/second-factor/again/")
        assert other.get("/account/email/").url.startswith("/account/second-factor/again/")
    other.post(answer.url, {"code": next_code(olga)})
    assert other.get("/marketplace-operator/").status_code == 200


def test_sessions_from_before_the_second_factor_end_with_it(rosa, strict):
    before, browser = Client(), Client()
    assert sign_in(browser=before)
    assert sign_in(browser=browser)
    # Only operators need a second factor.
    assert browser.get("/").status_code == 200
    set_up(browser, PASSWORD)
    assert before.get("/account/").status_code == 302
    assert browser.get("/account/").status_code == 200


@pytest.mark.slow
def test_operators_do_without_only_on_a_machine_of_ones_own():
    program = "from django.conf import settings; print(settings.OPERATORS_WITHOUT_SECOND_FACTOR)"
    keys = {
        "SECRET_KEY": "k" * 25 + "abcdefghijklmnopqrstuvwxyz",
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    }
    assert [
        run_python("-c", program, SITE_URL=url, **keys).stdout.strip()
        for url in ("http://127.0.0.1:8000", "https://assay.example.org")
    ] == ["True", "False"]
