import pytest
from django.db import connection
from django.test import Client

from tests.console.pages import words_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _urls_that_fail(settings):
    settings.ROOT_URLCONF = "tests.config.failing_urls"
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False


def asked(where):
    return Client(raise_request_exception=False).get(where)


def test_a_page_says_that_the_database_is_away_and_when_to_come_back():
    answer = asked("/away/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "try again in some seconds" in words_of(answer.content.decode())


def test_a_cache_that_is_away_is_worth_waiting_for_too(settings):
    redis_cache = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": redis_cache, "LOCATION": "redis://127.0.0.1:1/0"}}
    answer = asked("/cached/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's locks")
def test_what_others_hold_is_worth_waiting_for_too():
    answer = asked("/held/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_a_program_is_told_in_json():
    answer = asked("/api/v1/away/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "service_unavailable"


@pytest.mark.parametrize("where", ["/broken/", "/late/"])
def test_what_no_second_try_mends_stays_an_error(where):
    answer = asked(where)
    assert answer.status_code == 500
    assert "Something broke" in words_of(answer.content.decode())
