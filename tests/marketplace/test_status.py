"""The operators' Status page, and the audit that is stored for it."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from marketplace.models import LedgerAudit, LedgerEntry, Notification, WorkerMessage
from tests.marketplace.prolific import numbers
from tests.marketplace.test_worker_site import text_of
from work.models import Job, PeriodicRun
from work.registry import job_kind
from work.request import request_job

STATUS = "/marketplace-operator/status/"


@pytest.fixture
def olga(db):
    browser = Client()
    browser.force_login(User.objects.create_user("olga", is_staff=True))
    return browser


@pytest.fixture(autouse=True)
def _immediate_tasks(settings):
    """What a worker would do at once is done at once."""
    backend = "django_tasks.backends.immediate.ImmediateBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": []}}


def audit():
    """As the periodic job does it."""
    request_job(kind="audit_ledger")


def test_a_quiet_site_has_no_audit_before_the_first(olga):
    context = olga.get(STATUS).context
    assert (context["audit"], context["is_late"]) == (None, False)
    audit()
    assert olga.get(STATUS).context["audit"].n_problems == 0
    assert job_kind("audit_ledger").every_seconds == 12 * 3600


@pytest.mark.django_db
def test_an_audit_is_stored_with_what_is_wrong(olga, requester, caplog):
    audit()
    assert LedgerAudit.objects.get().n_problems == 0
    LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal("1.00"))
    audit()
    assert LedgerAudit.objects.count() == 2
    latest = LedgerAudit.objects.latest()
    assert latest.n_problems == 1
    [problem] = latest.problems
    assert {"1.00", "100.00"} <= set(numbers(problem))
    assert problem in caplog.text
    assert problem in text_of(olga.get(STATUS))
    assert numbers(Job.objects.filter(kind="audit_ledger").latest("pk").message) == ["1"]


def test_jobs_and_messages_that_failed_are_listed(olga, requester, worker):
    now = timezone.now()
    job = {"kind": "x", "queue": "scoring", "title": "Scoring rouge1", "dedupe_key": "x"}
    failed = {"state": "failed", "message": "The endpoint said no.", "finished_at": now}
    Job.objects.create(**job, **failed)
    Job.objects.create(
        **job | {"title": "Of last week"}, **failed | {"finished_at": now - timedelta(days=7)}
    )
    message = {"requester": requester, "destination": "https://x.example", "transport": "HTTPS"}
    message |= {"event_type": "Ping", "body": "{}", "next_attempt_at": None, "attempts": 8}
    Notification.objects.create(**message, created_at=now, last_error="It answered 503.")
    Notification.objects.create(**message, created_at=now, sent_at=now, last_error="Sent later.")
    WorkerMessage.objects.create(
        worker=worker, requester=requester, subject="x", text="x", created_at=now, mail_attempts=8
    )
    PeriodicRun.objects.create(name="sweep", next_at=now - timedelta(minutes=6))
    page = text_of(olga.get(STATUS))
    assert "Scoring rouge1" in page
    assert "The endpoint said no." in page
    assert "It answered 503." in page
    assert "Of last week" not in page
    assert "Sent later." not in page
    context = olga.get(STATUS).context
    assert context["is_late"]
    given_up = {each.name: each.n_given_up for each in context["deliveries"]}
    assert given_up == {"Email": 0, "SQS": 0, "SNS": 0, "HTTPS": 1, "worker mail": 1}
