"""What is deleted after how long, and what a dry run says of it."""

import io
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.core.management import call_command
from django.utils import timezone

from config import retention
from marketplace.models import LedgerAudit, Notification, WorkerMessage
from work.registry import job_kind

NOW = timezone.now()


def days(n):
    return NOW - timedelta(days=n)


def run(**options):
    out = io.StringIO()
    call_command("delete_expired", stdout=out, **options)
    return out.getvalue()


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
    printed = run(dry_run=True)
    assert left() == before
    # No batch has participants here: tests/hits/test_recruited_batches.py.
    assert [line.split()[0] for line in printed.splitlines()] == ["1", "1", "1", "0", "1"]
    assert "NOTIFICATIONS_KEEP_DAYS: kept for 90 days" in printed
    assert run().replace(" deleted", " would be deleted") == printed
    assert left() == (["unsent", "young"], ["unread", "young"], 1, ["1"])
    assert {line.split()[0] for line in run().splitlines()} == {"0"}


def test_a_rule_of_no_days_deletes_nothing(rows, settings):
    for rule in retention.RULES:
        setattr(settings, rule.setting, 0)
    before = left()
    assert "kept for good" in run()
    assert left() == before


def test_the_rules_are_applied_each_day(rows):
    kind = job_kind("delete_expired")
    assert kind.every_seconds == 24 * 3600
    # Workers' messages are kept for good unless somebody decides otherwise.
    assert kind.handler(None) == "3 rows deleted."
    assert left() == (["unsent", "young"], ["old", "unread", "young"], 1, ["1"])
