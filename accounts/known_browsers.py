"""Browsers in which somebody has signed in before, known again by a signed cookie.

A stranger's wrong guesses never count against such a browser, so nobody is locked out of the
browser they always use (OWASP: "device cookies"). The cookie says nothing about who signed in
to those who lack SECRET_KEY, and opens nothing by itself.
"""

from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string, salted_hmac

COOKIE = "assay_browser"
SALT = "accounts.known_browsers"
MAX_AGE_SECONDS = 180 * 86_400
# On a computer that many share, the last ones.
MAX_NAMES = 8


def known_browser(request: HttpRequest, username: str) -> str | None:
    """The id of this browser if this user has signed in here before."""
    content = _read(request)
    return content["id"] if _digest(username) in content["names"] else None


def remember_browser(request: HttpRequest, response: HttpResponse, username: str) -> None:
    """Let the browser show, next time, that this user has signed in here."""
    content, digest = _read(request), _digest(username)
    names = [digest, *(name for name in content["names"] if name != digest)][:MAX_NAMES]
    response.set_cookie(
        COOKIE,
        signing.dumps({"id": content["id"] or get_random_string(22), "names": names}, salt=SALT),
        max_age=MAX_AGE_SECONDS,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )


def _read(request: HttpRequest) -> dict[str, Any]:
    try:
        content: dict[str, Any] = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=MAX_AGE_SECONDS
        )
    except signing.BadSignature:
        return {"id": None, "names": []}
    return content


def _digest(username: str) -> str:
    return salted_hmac(SALT, username.casefold(), algorithm="sha256").hexdigest()[:32]
