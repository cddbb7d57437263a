"""News that Prolific sends: lost, doubled, late, overtaken or forged, the end is the same."""

import base64
import dataclasses
import hashlib
import hmac
import json
import time
from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from benchmarks.fake_prolific import world as hooks
from marketplace import clock
from marketplace.models import Assignment, RecruiterConnection, RecruiterEvent, Session
from marketplace.recruiting.calls import call_recruiters, delete_old_events, follow_all_events
from marketplace.recruiting.connections import disconnect
from tests.marketplace.prolific import arrive, connect, hand_in, minutes
from work.models import Job

BODY = {"event_type": "submission.status.change", "resource_id": "a" * 24, "status": "RETURNED"}


@pytest.fixture
def sends(fake, settings):
    def send(url, headers, body):
        path = url.removeprefix(settings.SITE_URL)
        return (
            Client()
            .post(path, body, content_type=headers["Content-Type"], headers=headers)
            .status_code
        )

    return lambda: fake.send_events(send)


@pytest.fixture
def arrived(fake, posted, sends):
    submission, _browser, _answer = arrive(fake, posted)
    sends()
    return submission


def address_of(connection):
    return f"/marketplace-api/v1/recruiters/{connection.public_id}/events"


def send_by_hand(connection, secret, body=BODY, *, sent_at=None, content=None, **headers):
    content = content or json.dumps(body).encode()
    sent_at = str(int(time.time())) if sent_at is None else sent_at
    digest = hmac.digest(secret.encode(), sent_at.encode() + content, hashlib.sha256)
    headers = {
        "X-Prolific-Request-Timestamp": sent_at,
        "X-Prolific-Request-Signature": base64.b64encode(digest).decode(),
        "X-Event-ID": "e1",
    } | headers
    where = address_of(connection)
    return Client().post(where, content, content_type="application/json", headers=headers)


def test_connecting_subscribes_once_and_disconnecting_ends_the_own_subscriptions(
    fake, requester, connection
):
    hooks = fake.world.hooks
    secret = hooks.secret
    assert {one.event_type for one in hooks.subscriptions.values() if one.is_enabled} == {
        "submission.status.change",
        "study.status.change",
    }
    connection.refresh_from_db()
    assert secret not in connection.encrypted_webhook_secret
    again, _account = connect(fake, requester, project=fake.world.project)
    assert again.pk == connection.pk
    assert (hooks.secret, len(hooks.subscriptions)) == (secret, 2)
    assert all(address_of(connection) in one.target_url for one in hooks.subscriptions.values())
    others = dataclasses.replace(next(iter(hooks.subscriptions.values())), id="0" * 24)
    others.target_url = "https://elsewhere.example/"
    hooks.subscriptions[others.id] = others
    connection.refresh_from_db()
    disconnect(connection=connection)
    assert list(hooks.subscriptions.values()) == [others]


@pytest.mark.parametrize("fault", ["drop", "lose", "500"])
@pytest.mark.parametrize("operation", ["subscriptions", "delete_subscription"])
def test_an_absent_recruiter_does_not_block_disconnecting(fake, connection, operation, fault):
    fake.fail_next(operation, *[fault] * 5)
    connection.refresh_from_db()
    disconnect(connection=connection)
    connection.refresh_from_db()
    assert (connection.encrypted_token, connection.encrypted_webhook_secret) == ("", "")


@pytest.mark.parametrize("fault", ["drop", "lose", "500"])
@pytest.mark.parametrize(
    "operation", ["hook_secrets", "create_hook_secret", "subscribe", "confirm_subscription"]
)
def test_whatever_is_lost_while_subscribing_is_made_good(fake, requester, operation, fault):
    fake.fail_next(operation, *[fault] * 3)
    connect(fake, requester)
    minutes(4)
    enabled = [one.event_type for one in fake.world.hooks.subscriptions.values() if one.is_enabled]
    assert len(enabled) == len(set(enabled)) == 2
    assert fake.calls.count("create_hook_secret") == 1 or fault != "drop"


def test_what_is_sent_is_followed_before_the_next_minute(fake, arrived, sends):
    fake.world.leave(arrived)
    assert sends() == 1
    assert fake.world.hooks.sent[-1][1] == 200
    event = RecruiterEvent.objects.get(kind="submission.status.change")
    assert (event.submission_id, event.followed_at) == (arrived.id, None)
    assert arrived.participant not in str(RecruiterEvent.objects.values())
    assert Job.objects.filter(kind="follow_recruiter_events").exists()
    before = len(fake.calls)
    assert follow_all_events() == 1
    assert sorted(fake.calls[before:]) == ["study", "submission"]
    assert Session.objects.get().state == "returned"
    assert follow_all_events() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "fates", [("lose", "double", "late", "forge"), ("forge", "lose", "double", "late")]
)
def test_the_end_is_the_same_whatever_becomes_of_the_news(fake, posted, sends, fates, monkeypatch):
    """Somebody hands in and is approved there, somebody's time is over and the code comes late,
    two leave: with news that go wrong in every order, and without any. A second goes by with each
    that is sent."""
    seconds = count(time.time())
    monkeypatch.setattr(hooks, "time", SimpleNamespace(time=lambda: next(seconds)))
    done = hand_in(fake, posted)
    others = [arrive(fake, posted)[0] for _ in range(3)]
    sends()
    fake.world.hooks.fates = list(fates)
    fake.world.approve(done)
    fake.world.leave(others[0])
    sends()
    fake.world.leave(others[1], "TIMED-OUT")
    fake.world.leave(others[2])
    sends()
    follow_all_events()
    fake.world.pass_time(timedelta(hours=2))
    sends()
    follow_all_events()
    call_recruiters()
    states = {one.submission_id: one.state for one in Session.objects.all()}
    wanted = ["approved", "returned", "timed_out", "returned"]
    assert [states[one.id] for one in (done, *others)] == wanted
    assert Assignment.objects.filter(status=Assignment.Status.APPROVED).count() == 2
    assert not Assignment.objects.filter(status=Assignment.Status.ACCEPTED).exists()
    assert [status for _event, status in fake.world.hooks.sent if status != 200] == [401]
    assert RecruiterEvent.objects.filter(kind="submission.status.change").count() <= 3


def test_news_of_a_study_are_followed_here(fake, posted, sends):
    sends()
    fake.world.studies[posted.external_id].status = "PAUSED"
    sends()
    follow_all_events()
    posted.refresh_from_db()
    assert posted.state == "paused"


def test_what_is_not_signed_by_the_workspace_is_refused(fake, connection):
    secret, now = fake.world.hooks.secret, int(time.time())
    assert send_by_hand(connection, secret).status_code == 200
    for given, facts, status in (
        ("another", {}, 401),
        ("", {}, 401),
        (secret, {"sent_at": str(now - 3 * 86_400)}, 401),
        (secret, {"sent_at": str(now + 3600)}, 401),
        (secret, {"sent_at": "soon"}, 401),
        (secret, {"body": [1]}, 401),
        (secret, {"body": {"event_type": "a\0b"}}, 401),
        (secret, {"content": b"[" * 60_000}, 401),
        (secret, {"body": {"x": "y" * 70_000}}, 413),
        (secret, {"X-Prolific-Request-Timestamp": str(now - 1)}, 401),
    ):
        assert send_by_hand(connection, given, **facts).status_code == status, facts.keys()
    assert RecruiterEvent.objects.count() == 1
    assert Client().get(address_of(connection)).status_code == 405
    nobody = Client().post("/marketplace-api/v1/recruiters/3NOBODY/events", b"{}", "text/plain")
    assert nobody.status_code == 401
    RecruiterConnection.objects.update(encrypted_webhook_secret="")
    assert send_by_hand(connection, "").status_code == 401


def test_one_event_is_one_whatever_id_it_is_sent_again_under(fake, connection, posted):
    secret, sent_at = fake.world.hooks.secret, str(int(time.time()))
    for number in range(4):
        again = send_by_hand(connection, secret, sent_at=sent_at, **{"X-Event-ID": f"e{number}"})
        assert again.status_code == 200
    assert RecruiterEvent.objects.count() == 1
    strange = ({}, {"resource_id": "../users/me"}, {"resource_id": 7}, {"resource_id": "b" * 24})
    for number, body in enumerate((BODY, *strange)):
        sent = send_by_hand(connection, secret, body, **{"X-Event-ID": f"e{number}"})
        assert sent.status_code == 200
    assert follow_all_events() == 0
    assert RecruiterEvent.objects.filter(followed_at=None).count() == 0


@pytest.mark.slow
def test_what_is_forged_has_the_secret_asked_for_once_in_a_while(fake, connection, posted):
    def calls():
        before = len(fake.calls)
        for _request in range(3):
            assert send_by_hand(connection, "forged").status_code == 401
        call_recruiters()
        return fake.calls[before:].count("hook_secrets")

    assert [calls() for _minute in range(3)] == [0, 0, 0]
    clock.advance(timedelta(minutes=6))
    assert [calls() for _minute in range(3)] == [1, 0, 0]


def test_a_secret_that_somebody_else_changed_is_asked_for_again(fake, connection, arrived, sends):
    fake.world.hooks.secret = "changed-elsewhere"
    clock.advance(timedelta(minutes=6))
    fake.world.leave(arrived)
    sends()
    assert fake.world.hooks.sent[-1][1] == 401
    call_recruiters()
    fake.world.pass_time(timedelta(minutes=2))
    sends()
    assert fake.world.hooks.sent[-1][1] == 200
    assert Session.objects.get().state == "returned"


def test_subscriptions_that_were_ended_there_are_made_anew_within_a_day(fake, connection, posted):
    for one in fake.world.hooks.subscriptions.values():
        one.is_enabled = False
    call_recruiters()
    assert not any(one.is_enabled for one in fake.world.hooks.subscriptions.values())
    clock.advance(timedelta(days=1))
    call_recruiters()
    assert [one.is_enabled for one in fake.world.hooks.subscriptions.values()] == [True, True]


def test_an_event_whose_question_got_no_answer_is_asked_about_again(fake, arrived, sends):
    fake.world.leave(arrived)
    sends()
    fake.fail_next("submission", *["lose"] * 3)
    assert follow_all_events() == 0
    assert RecruiterEvent.objects.filter(followed_at=None).exists()
    assert follow_all_events() == 1


def test_events_are_forgotten_and_their_secret_changes_its_key(fake, connection, settings, capsys):
    send_by_hand(connection, fake.world.hooks.secret)
    assert delete_old_events(clock.now() + timedelta(days=6)) == 0
    assert delete_old_events(clock.now() + timedelta(days=8)) == 1
    connection.refresh_from_db()
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    assert send_by_hand(connection, fake.world.hooks.secret).status_code == 200
