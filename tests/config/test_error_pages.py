import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.console.pages import words_of

pytestmark = pytest.mark.django_db
LOGIN = "/login/"
BOUNDARY = "multipart/form-data; boundary=b"


def refused(**options):
    answer = Client().post(LOGIN, **options)
    page = words_of(answer.content.decode())
    assert answer.status_code == 400
    assert "The request was refused" in page
    return page


def test_a_refused_request_says_what_was_too_much_or_wrong(settings, admin_client):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    assert "2 fields at most" in refused(data={str(n): "x" for n in range(3)})
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    assert "can be 1 MiB at most" in refused(data={"text": "x" * 2**20})
    head = f'--b\r\nContent-Disposition: form-data; name="f"; filename="{"x" * 5000}"\r\n\r\n'
    page = refused(data=f"{head}text\r\n--b--\r\n".encode(), content_type=BOUNDARY)
    assert "their names may be too long" in page
    answer = Client().get("/", headers={"host": "evil"})
    assert answer.status_code == 400
    assert "not served at the address" in words_of(answer.content.decode())
    answer = admin_client.get("/studies/any/collect/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert "This address belongs to a button" in words_of(answer.content.decode())
    assert not admin_client.get("/studies/any/collect/", headers={"accept": "text/csv"}).content


@pytest.fixture
def asked(settings):
    settings.ROOT_URLCONF = "tests.config.failing_urls"
    settings.DEBUG_PROPAGATE_EXCEPTIONS = False
    return Client(raise_request_exception=False).get


def test_a_database_or_a_cache_that_is_away_is_worth_waiting_for(asked, settings):
    answer = asked("/away/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "try again in a few seconds" in words_of(answer.content.decode())
    answer = asked("/api/v1/away/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "service_unavailable"
    redis_cache = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": redis_cache, "LOCATION": "redis://127.0.0.1:1/0"}}
    answer = asked("/cached/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's locks")
def test_what_others_hold_is_worth_waiting_for_too(asked):
    answer = asked("/held/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.parametrize("where", ["/broken/", "/late/"])
def test_what_no_second_try_mends_stays_an_error(asked, where):
    answer = asked(where)
    assert answer.status_code == 500
    assert "Something broke" in words_of(answer.content.decode())


def has_navigation(answer):
    page = answer.content.decode()
    return f'href="{reverse("console:teams")}"' in page and "<main" in page


def test_every_error_page_leads_on(asked, admin_client):
    assert has_navigation(admin_client.get("/nowhere/"))
    assert has_navigation(admin_client.get("/studies/any/collect/"))
    assert all(has_navigation(asked(where)) for where in ("/away/", "/broken/"))
    assert has_navigation(Client().get("/", headers={"host": "evil"}))
    outdated = Client(enforce_csrf_checks=True)
    outdated.force_login(get_user_model().objects.get())
    answer = outdated.post("/logout/")
    assert answer.status_code == 403
    assert has_navigation(answer)
    # Whoever is not signed in is led to no list of studies, and a worker to the tasks.
    assert not has_navigation(Client().get("/nowhere/"))
    assert (
        f'href="{reverse("marketplace:groups")}"'
        in admin_client.get("/worker/nowhere/").content.decode()
    )
