import pytest
from django.test import Client

from accounts.enrolment import create_user
from accounts.models import User

PASSWORD = "a-long-and-winding-password"
SITES = ("/login/", "/worker/login/", "/requester-console/login/")


@pytest.fixture
def rosa(db: None) -> User:
    return create_user(username="rosa", password=PASSWORD)


def sign_in(
    name: str = "rosa",
    password: str = PASSWORD,
    *,
    site: str = "/login/",
    browser: Client | None = None,
    **headers: str,
) -> bool:
    """Try to sign in, in a new browser unless one is named; whether it worked."""
    browser = browser or Client()
    answer = browser.post(site, {"username": name, "password": password}, headers=headers)
    assert answer.status_code in (200, 302, 429)
    return answer.status_code == 302 and "_auth_user_id" in browser.session
