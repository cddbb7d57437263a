import re
import time

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value

from accounts.models import User
from encryption import decrypt


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def set_up(browser, password: str) -> None:
    page = browser.get("/account/second-factor/set-up/", follow=True)
    if page.request["PATH_INFO"] == "/account/again/":
        where = "/account/again/?next=/account/second-factor/set-up/"
        page = browser.post(where, {"password": password}, follow=True)
    secret = re.search(r"<code>([A-Z2-7]{32})</code>", page.content.decode())[1]
    answer = browser.post("/account/second-factor/set-up/", {"code": code_of(secret)})
    assert (answer.status_code, answer.url) == (302, "/account/second-factor/codes/")


def secret_of(user: User) -> str:
    return decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])
