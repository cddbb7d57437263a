import os
import subprocess
import sys

import pytest
from django.conf import settings as site
from django.core.cache import caches
from django.test import Client

from accounts.enrolment import create_user
from config import settings as site_settings
from tests.accounts.conftest import PASSWORD, SITES, sign_in
from tests.codes import field_codes

BY_ADDRESS, BY_NAME_AND_ADDRESS, BY_NAME = 20, 10, 100


def guess(times, **where):
    return [sign_in(password=f"guess-{number}", **where) for number in range(times)]


@pytest.mark.parametrize("path", SITES)
def test_a_stranger_with_many_addresses_locks_nobody_out(rosa, settings, path):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    for number in range(24):
        wrong = {"x_forwarded_for": f"198.51.100.{number}"}
        assert not sign_in(password="a guess", site=path, **wrong)
    for _ in range(6):
        assert sign_in(site=path, x_forwarded_for="203.0.113.7")


@pytest.mark.slow
def test_one_password_cannot_be_tried_on_many_names(db):
    for number in range(60):
        create_user(username=f"person-{number}", password=PASSWORD)
    entered = [sign_in(f"person-{number}", "Summer2026!") for number in range(60)]
    assert not any(entered)
    # The address has used up its attempts: now even a right password is refused there...
    assert not sign_in("person-59")
    # ...and nowhere else.
    elsewhere = Client(REMOTE_ADDR="203.0.113.7")
    assert sign_in("person-59", browser=elsewhere)


MADE_UP = "198.51.100.{}"
BEHIND_PROXY = "198.51.100.{}, 192.0.2.1"


@pytest.mark.parametrize(("n_proxies", "forwarded"), [(0, MADE_UP), (1, BEHIND_PROXY)])
def test_addresses_that_a_client_makes_up_do_not_count(rosa, settings, n_proxies, forwarded):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = n_proxies
    for number in range(BY_NAME_AND_ADDRESS):
        sign_in(password="a guess", x_forwarded_for=forwarded.format(number))
    assert not sign_in(x_forwarded_for=forwarded.format(200))
    # Somebody else's address, named by the same stranger, is not refused.
    elsewhere = Client(REMOTE_ADDR="127.0.0.1" if n_proxies else "203.0.113.7")
    assert sign_in(browser=elsewhere, x_forwarded_for="192.0.2.1, 198.51.100.0")


def test_the_header_of_a_trusted_proxy_names_the_client(rosa, settings):
    settings.ALLAUTH_TRUSTED_CLIENT_IP_HEADER = "X-Real-IP"
    guess(BY_NAME_AND_ADDRESS, x_real_ip="192.0.2.1")
    assert not sign_in(x_real_ip="192.0.2.1", x_forwarded_for="203.0.113.7")
    assert sign_in(x_real_ip="203.0.113.7")


def test_an_ipv6_network_is_one_client(rosa):
    for number in range(BY_NAME_AND_ADDRESS):
        guess(1, browser=Client(REMOTE_ADDR=f"2001:db8::{number}"))
    assert not sign_in(browser=Client(REMOTE_ADDR="2001:db8::ffff"))
    assert sign_in(browser=Client(REMOTE_ADDR="2001:db8:0:1::1"))
    # IPv4 clients of an IPv6 socket are no such network.
    guess(BY_ADDRESS + 5, browser=Client(REMOTE_ADDR="::ffff:198.51.100.1"))
    assert not sign_in(browser=Client(REMOTE_ADDR="::ffff:198.51.100.1"))
    assert sign_in(browser=Client(REMOTE_ADDR="::ffff:203.0.113.7"))


@pytest.mark.slow
def test_a_browser_that_is_known_is_not_kept_out_by_its_neighbours(rosa):
    mine = Client()
    assert sign_in(browser=mine)
    mine.post("/logout/")
    # Nor does one address use up the guesses that a name has.
    guess(BY_NAME + 5)
    assert not sign_in()
    assert sign_in(browser=mine)
    assert sign_in(browser=Client(REMOTE_ADDR="203.0.113.7"))


@pytest.mark.slow
def test_guesses_from_everywhere_end_and_leave_known_browsers_alone(rosa, settings):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    mine = Client()
    assert sign_in(browser=mine)
    mine.post("/logout/")
    for number in range(BY_NAME):
        sign_in(password="a guess", x_forwarded_for=f"198.51.{number}.1")
    assert not sign_in(x_forwarded_for="203.0.113.7")
    assert sign_in(browser=mine, x_forwarded_for="203.0.113.7")


@pytest.mark.slow
def test_counts_outlive_those_of_many_other_names(rosa, settings):
    settings.CACHES = site_settings.CACHES
    guess(BY_NAME_AND_ADDRESS)
    for number in range(160):
        stranger = Client(REMOTE_ADDR=f"198.51.100.{number}")
        sign_in(f"nobody-{number}", "a guess", browser=stranger)
    assert not sign_in()


@pytest.mark.parametrize("forwarded", ["198.51.100.1", "unknown"])
def test_who_came_by_fewer_proxies_counts_by_the_connection(rosa, settings, forwarded):
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    guess(BY_NAME_AND_ADDRESS, x_forwarded_for=forwarded)
    assert not sign_in(x_forwarded_for="198.51.100.200")
    assert sign_in(browser=Client(REMOTE_ADDR="203.0.113.7"), x_forwarded_for=forwarded)


@pytest.mark.parametrize("name", ["rosa", "carl"])
def test_a_known_browser_allows_no_endless_guesses_and_is_known_for_one_name(rosa, name):
    create_user(username="carl", password=PASSWORD)
    browser = Client()
    assert sign_in(name, browser=browser)
    browser.post("/logout/")
    guess(BY_NAME_AND_ADDRESS, browser=browser)
    assert not sign_in(browser=browser)


def test_a_cookie_that_somebody_made_up_counts_for_nothing(rosa):
    browser = Client()
    sign_in(browser=browser)
    cookie = browser.cookies["assay_browser"]
    # Scripts cannot read it, and it names nobody.
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert "rosa" not in cookie.value
    guess(BY_NAME_AND_ADDRESS)
    for made_up in ("", "rosa", "eyJpZCI6IngiLCJuYW1lcyI6W119:1abc:forged"):
        stranger = Client()
        stranger.cookies["assay_browser"] = made_up
        assert not sign_in(browser=stranger)


@pytest.mark.slow
def test_guesses_count_for_all_sites_and_spellings_and_right_passwords_do_not(rosa):
    for _ in range(BY_ADDRESS + 5):
        assert sign_in()
    guess(5, site=SITES[0])
    guess(5, name="ROSA")
    assert not sign_in("Rosa")
    assert not any(sign_in(site=path) for path in SITES)
    answer = Client().post("/login/", {"username": "rosa", "password": PASSWORD})
    assert field_codes(answer.context["form"]) == {"__all__": ["too_many_login_attempts"]}


@pytest.mark.slow
def test_accounts_are_not_opened_without_end(db):
    form = {"password1": PASSWORD, "password2": PASSWORD}
    answers = {
        Client().post("/worker/signup/", form | {"username": f"new-{number}"}).status_code
        for number in range(61)
    }
    assert answers == {302, 429}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_processes_count_together(settings):
    """As the site does unless CACHE_URL names another store: in the database."""
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}
    }
    caches["default"].clear()
    program = (
        "import sys, django; from django.conf import settings\n"
        "settings.DATABASES['default']['NAME'] = sys.argv[1]\n"
        "settings.ALLOWED_HOSTS.append('testserver')\n"
        "django.setup()\n"
        "from tests.accounts.conftest import sign_in\n"
        "assert not any([sign_in(password='a guess') for _ in range(5)])\n"
    )
    create_user(username="rosa", password=PASSWORD)
    environment = {name: value for name, value in os.environ.items() if name != "CACHE_URL"}
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", program, str(site.DATABASES["default"]["NAME"])],
            check=True,
            cwd=site.BASE_DIR,
            env=environment,
        )
    assert not sign_in()
    assert sign_in(browser=Client(REMOTE_ADDR="203.0.113.7"))
    caches["default"].clear()
