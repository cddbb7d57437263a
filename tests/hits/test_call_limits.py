import time

import pytest
from botocore.config import Config

from accounts.models import User
from accounts.teams import create_team
from annotation.study_facts import COLLECT_NEW, request_study_job
from encryption import encrypt
from hits import connections, endpoints, limits
from hits.connections import balance_usd, client_of
from hits.exceptions import MarketplaceSlow, MarketplaceUnreachable
from hits.limits import call_time
from hits.models import Batch, Connection, Hit
from tests.annotation.studies import rating_study
from tests.console.filled import add_batch
from tests.hits.foreign_site import foreign_site
from work.execution import run_job
from work.models import Job
from work.tasks import request_job

pytestmark = pytest.mark.django_db(transaction=True)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400000\r\n\r\n"


def drip(head):
    def pieces(number):
        yield head
        for _each in range(200):
            time.sleep(0.02)
            yield b" "

    return pieces


@pytest.fixture
def site():
    with foreign_site() as site:
        yield site


@pytest.fixture
def connection(site, monkeypatch):
    once = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})
    monkeypatch.setattr(endpoints, "PATIENCE", once)
    return Connection.objects.create(
        team=create_team(name="Slow", owner=User.objects.create_user("eve")),
        name="slow",
        marketplace="slow.example.org",
        endpoint_url=site.endpoint_url,
        access_key_id="AKIA",
        encrypted_secret=encrypt("secret"),
    )


def call(connection, is_requester_api):
    if is_requester_api:
        balance_usd(client_of(connection))
    else:
        connections.post(connection, "/appeals", {})


@pytest.mark.parametrize("head", [HEAD, b"HTTP/1.1 200 O"], ids=["a slow body", "a slow head"])
@pytest.mark.parametrize("is_requester_api", [True, False])
def test_an_answer_that_drips_ends_with_the_time_there_is(connection, site, head, is_requester_api):
    site.answers |= {"GetAccountBalance": drip(head), "/appeals": drip(head)}
    began = time.monotonic()
    with pytest.raises((MarketplaceSlow, MarketplaceUnreachable)), call_time(0.2):
        call(connection, is_requester_api)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("is_requester_api", [True, False])
def test_an_answer_is_not_larger_than_it_may_be(connection, site, monkeypatch, is_requester_api):
    monkeypatch.setattr(limits, "MOST_BYTES", 10_000)
    monkeypatch.setattr(connections, "PAUSES_SECONDS", ())
    large = {"AvailableBalance": "1.00", "rest": "x" * 20_000}
    site.answers |= {"GetAccountBalance": large, "/appeals": large}
    with pytest.raises(MarketplaceUnreachable):
        call(connection, is_requester_api)


@pytest.mark.slow
def test_a_slow_marketplace_is_left_for_later_and_reported(connection, site, monkeypatch):
    monkeypatch.setattr("hits.jobs.PERIODIC_CALL_SECONDS", 0.5)
    batch = add_batch(rating_study("slow"), n_published=3)
    Batch.objects.filter(pk=batch.pk).update(connection=connection)

    def list_of_none(number):
        time.sleep(0.3)
        return {"Assignments": []}

    site.answers["ListAssignmentsForHIT"] = list_of_none
    assert run_job(request_study_job(study=batch.study, kind=COLLECT_NEW).pk) == "done"
    assert Hit.objects.of(batch).exclude(collected_at=None).count() in (1, 2)
    site.answers["ListAssignmentsForHIT"] = drip(HEAD)
    assert run_job(request_study_job(study=batch.study, kind=COLLECT_NEW).pk) == "failed"
    connection.refresh_from_db()
    assert connection.problem
    run_job(request_job(kind="collect_all").pk)
    assert not Job.objects.of_kind(COLLECT_NEW).queued().exists()
