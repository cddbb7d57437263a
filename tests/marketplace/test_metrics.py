"""/metrics: who may read it, what it counts, and that its figures are the database's."""

import os
import re
import socket
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal

import pytest
import requests
from django.conf import settings as site
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from marketplace.hits.assignments import accept_hit
from marketplace.models import Hit, LedgerEntry, Notification
from marketplace.money import transfers
from marketplace.money.reconciliation import store_audit
from marketplace.people.enrolment import create_worker
from tests.marketplace.conftest import HIT, PASSWORD, submit
from work.models import Job

TOKEN = "a-token-of-the-test"
HOST = {"host": "localhost"}


@pytest.fixture
def read(settings):
    settings.METRICS_TOKEN = TOKEN

    def samples():
        from django.core.cache import cache

        cache.clear()
        answer = Client(headers=HOST | {"authorization": f"Bearer {TOKEN}"}).get("/metrics")
        assert answer.status_code == 200
        return parsed(answer.content.decode())

    return samples


def parsed(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples, name, **labels):
    return samples[(name, *sorted(labels.items()))]


@pytest.mark.django_db
@pytest.mark.parametrize("sent", [None, "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}"])
def test_only_who_has_the_token_reads(settings, sent):
    settings.METRICS_TOKEN = TOKEN
    headers = HOST | ({"authorization": sent} if sent else {})
    answer = Client(headers=headers).get("/metrics")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"assay_" not in answer.content
    settings.METRICS_TOKEN = ""
    assert Client(headers=headers).get("/metrics").status_code == 404


@pytest.mark.django_db
def test_requests_are_counted_by_view_and_no_stranger_invents_a_label(read):
    before = read()
    browser = Client(headers=HOST)
    for address in ("/healthz", "/healthz", "/invented-1", "/invented-2"):
        browser.get(address)
    after = read()

    def more(view, status):
        key = {"method": "GET", "view": view, "status": status}
        name = ("assay_requests_total", *sorted(key.items()))
        return after[name] - before.get(name, 0)

    assert (more("healthz", "200"), more("", "404")) == (2, 2)
    assert of(after, "assay_request_duration_seconds_count", view="healthz") >= 2
    assert "invented" not in str(after)


@pytest.mark.django_db
def test_jobs_are_counted_by_queue_with_the_age_of_the_oldest(read):
    now = timezone.now()

    def job(state, **values):
        made = Job.objects.create(
            kind="x", queue="scoring", title="x", dedupe_key=os.urandom(8).hex(), state=state
        )
        Job.objects.filter(pk=made.pk).update(**values)

    job("queued", created_at=now - timedelta(seconds=900))
    job("queued", created_at=now - timedelta(seconds=60))
    job("queued", created_at=now - timedelta(hours=9), run_after=now + timedelta(minutes=5))
    job("running")
    job("failed", finished_at=now - timedelta(hours=1))
    job("failed", finished_at=now - timedelta(hours=25))
    job("done", finished_at=now)
    samples = read()
    for state, n in (("waiting", 2), ("retrying", 1), ("running", 1)):
        assert of(samples, "assay_jobs", queue="scoring", state=state) == n
        assert of(samples, "assay_jobs", queue="interactive", state=state) == 0
    assert of(samples, "assay_job_oldest_seconds", queue="scoring") == pytest.approx(900, abs=5)
    assert of(samples, "assay_job_oldest_seconds", queue="interactive") == 0
    assert of(samples, "assay_jobs_failed", queue="scoring") == 1


def test_hits_and_money_are_those_of_the_ledger(read, mturk, worker):
    paid, waiting = (mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2))
    mturk.approve_assignment(AssignmentId=submit(worker, paid))
    accept_hit(worker=worker, hit=Hit.objects.get(public_id=waiting))
    samples = read()
    assert of(samples, "assay_hits", status="Reviewable") == 1
    assert of(samples, "assay_hits", status="Unassignable") == 1
    assert of(samples, "assay_assignments", status="Approved") == 1
    assert of(samples, "assay_assignments", status="Accepted") == 1
    held = LedgerEntry.objects.filter(account__kind="held").order_by("pk").last().balance_usd
    assert held > 0
    assert of(samples, "assay_balance_usd", account="held") == float(held)
    assert of(samples, "assay_balance_usd", account="earnings") == 0.63
    assert of(samples, "assay_earned_usd_total") == 0.63
    assert of(samples, "assay_paid_out_usd_total") == 0
    transfers.mark_paid(transfers.make_batch().payouts.all())
    samples = read()
    assert of(samples, "assay_balance_usd", account="earnings") == 0
    assert of(samples, "assay_earned_usd_total") == of(samples, "assay_paid_out_usd_total") == 0.63


def test_the_latest_audit_and_what_was_not_delivered_are_shown(read, requester):
    assert ("assay_ledger_problems",) not in read()
    store_audit()
    now = timezone.now()
    message = {"requester": requester, "destination": "https://x.example", "transport": "HTTPS"}
    message |= {"event_type": "Ping", "body": "{}", "created_at": now}
    Notification.objects.create(**message, attempts=8, next_attempt_at=None, last_error="503")
    Notification.objects.create(**message, attempts=1, next_attempt_at=now)
    samples = read()
    assert of(samples, "assay_ledger_problems") == 0
    LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal("1.00"))
    store_audit()
    samples = read()
    assert of(samples, "assay_ledger_problems") == 1
    assert of(samples, "assay_ledger_audit_age_seconds") < 60
    assert of(samples, "assay_undelivered", transport="HTTPS", state="given up") == 1
    assert of(samples, "assay_undelivered", transport="HTTPS", state="retrying") == 1
    assert of(samples, "assay_undelivered", transport="SQS", state="given up") == 0


@pytest.mark.django_db
def test_a_scrape_asks_the_database_seldom(read, django_assert_max_num_queries):
    create_worker(username="ada", password=PASSWORD)
    with django_assert_max_num_queries(14):
        read()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.slow
@pytest.mark.once
def test_several_processes_answer_for_all_of_them(tmp_path):
    """As docs/operations.md starts them: whichever process is asked, the counts are whole."""
    port = free_port()
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/site.sqlite3",
        "METRICS_TOKEN": TOKEN,
        "TMPDIR": str(tmp_path),
    }
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, env=environment, cwd=site.BASE_DIR, check=True)
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--config", "python:config.gunicorn", "--workers", "3", "--preload"]
    server = subprocess.Popen(command, env=environment, cwd=site.BASE_DIR)
    try:
        n = 60
        asked = [ask(f"http://127.0.0.1:{port}/healthz") for _ in range(n)]
        assert asked == [200] * n
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for _ in range(6):
            text = requests.get(
                f"http://127.0.0.1:{port}/metrics", headers=headers, timeout=20
            ).text
            key = {"method": "GET", "view": "healthz", "status": "200"}
            assert of(parsed(text), "assay_requests_total", **key) == n
        processes = {re.sub(r"\D", "", file.name) for file in tmp_path.glob("assay-metrics-*/*.db")}
        assert len(processes) > 1
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert not list(tmp_path.glob("assay-metrics-*"))


def ask(address):
    for _ in range(300):
        try:
            return requests.get(address, timeout=20).status_code
        except requests.ConnectionError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


@pytest.mark.django_db
def test_figures_are_there_while_the_redis_of_the_cache_is_away(settings):
    settings.METRICS_TOKEN = TOKEN
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        }
    }
    answer = Client(headers=HOST | {"authorization": f"Bearer {TOKEN}"}).get("/metrics")
    assert answer.status_code == 200
    assert of(parsed(answer.content.decode()), "assay_background_work_late") == 0
