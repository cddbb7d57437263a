import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.test import Client

from accounts.enrolment import create_user
from encryption import decrypt

PASSWORD = "a-long-and-winding-password"
SITES = ("/login/", "/worker/login/", "/requester-console/login/")


@pytest.fixture
def rosa(db):
    return create_user(username="rosa", password=PASSWORD)


def sign_in(name="rosa", password=PASSWORD, *, site="/login/", browser=None, **headers):
    """Try to sign in, in a new browser unless one is named; whether it worked."""
    browser = browser or Client()
    answer = browser.post(site, {"username": name, "password": password}, headers=headers)
    assert answer.status_code in (200, 302, 429)
    return answer.status_code == 302 and "_auth_user_id" in browser.session


@pytest.fixture
def mine(rosa):
    browser = Client()
    assert sign_in(browser=browser)
    return browser


def code_of(secret):
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def set_up(browser, password):
    page = browser.get("/account/second-factor/set-up/", follow=True)
    if page.request["PATH_INFO"] == "/account/again/":
        where = "/account/again/?next=/account/second-factor/set-up/"
        page = browser.post(where, {"password": password}, follow=True)
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page.content.decode())[1]
    answer = browser.post("/account/second-factor/set-up/", {"code": code_of(secret)})
    assert (answer.status_code, answer.url) == (302, "/account/second-factor/codes/")


def secret_of(user):
    return decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])
