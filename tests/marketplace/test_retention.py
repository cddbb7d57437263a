"""What is deleted after how long, and what a dry run says of it."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.utils import timezone

from config import retention
from marketplace.models import LedgerAudit, Notification, WorkerMessage
from tests.marketplace.conftest import run
from work.registry import job_kind

NOW = timezone.now()


def days(n):
    return NOW - timedelta(days=n)


@pytest.fixture
def rows(requester, worker):
    """Of each kind one that is young, one that is old, and one that is old and still of use."""
    event = {"requester": requester, "destination": "https://x.example", "transport": "HTTPS"}
    event |= {"event_type": "Ping", "body": "{}"}
    for name, age, waits in (("young", 89, False), ("old", 91, False), ("unsent", 91, True)):
        Notification.objects.create(
            **event, created_at=days(age), last_error=name, next_attempt_at=NOW if waits else None
        )
    for name, age in (("young", 29), ("old", 31)):
        WorkerMessage.objects.create(
            worker=worker,
            requester=requester,
            subject=name,
            created_at=days(400),
            read_at=days(age),
        )
    WorkerMessage.objects.create(
        worker=worker, requester=requester, subject="unread", created_at=days(400)
    )
    for age in (399, 401):
        LedgerAudit.objects.create(created_at=days(age), duration_seconds=1, n_problems=0)
    for age in (1, 91):
        UserSession.objects.create(
            user=worker.user, ip="192.0.2.1", session_key=str(age), last_seen_at=days(age)
        )
    UserSession.objects.filter(session_key="91").update(last_seen_at=days(91))


def counts(printed):
    """How many rows each rule is about."""
    return [line.split()[0] for line in printed.splitlines()]


def left():
    return (
        sorted(Notification.objects.values_list("last_error", flat=True)),
        sorted(WorkerMessage.objects.values_list("subject", flat=True)),
        LedgerAudit.objects.count(),
        list(UserSession.objects.values_list("session_key", flat=True)),
    )


def test_what_is_old_goes_and_what_is_of_use_stays(rows, settings, monkeypatch):
    monkeypatch.setattr(retention, "ROWS_AT_ONCE", 1)
    settings.MESSAGES_KEEP_DAYS = 30
    before = left()
    printed = run("delete_expired", dry_run=True)
    assert left() == before
    # No batch has participants here: tests/hits/test_recruited_batches.py.
    assert counts(printed) == ["1", "1", "1", "0", "1"]
    [line] = [line for line in printed.splitlines() if "NOTIFICATIONS_KEEP_DAYS" in line]
    assert "90" in line
    assert counts(run("delete_expired")) == counts(printed)
    assert left() == (["unsent", "young"], ["unread", "young"], 1, ["1"])
    assert set(counts(run("delete_expired"))) == {"0"}


def test_a_rule_of_no_days_deletes_nothing(rows, settings):
    for rule in retention.RULES:
        setattr(settings, rule.setting, 0)
    before = left()
    assert set(counts(run("delete_expired"))) == {"0"}
    assert left() == before


def test_the_rules_are_applied_each_day(rows):
    kind = job_kind("delete_expired")
    assert kind.every_seconds == 24 * 3600
    # Workers' messages are kept for good unless somebody decides otherwise.
    assert kind.handler(None).startswith("3 ")
    assert left() == (["unsent", "young"], ["old", "unread", "young"], 1, ["1"])
