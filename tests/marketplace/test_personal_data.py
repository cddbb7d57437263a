"""What is kept about workers: each table is decided on, exported, explained, and erased in time."""

import json
import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client
from django.utils import timezone

from accounts.models import User
from config import jobs
from config.jobs import RULES
from marketplace.exceptions import ErasureRefused, InvalidParameter
from marketplace.hits.assignments import accept_hit
from marketplace.models import (
    Assignment,
    AuditEntry,
    Deposit,
    Hit,
    HitType,
    LedgerAudit,
    LedgerEntry,
    Notification,
    OutcomeCode,
    PayoutBatch,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
    WorkerAccount,
    WorkerMessage,
)
from marketplace.money import transfers
from marketplace.people.erasure import erase_worker
from marketplace.people.personal_data import TABLES
from tests.codes import codes_of, codes_on, field_codes
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT, PASSWORD, run, submit
from tests.marketplace.test_worker_site import text_of
from work.registry import job_kind

# Tables of the marketplace's that refer to the ones above, and hold nothing about workers.
OF_OTHERS = {
    RecruiterConnection: "a requester's account at a recruiter",
    RecruitedStudy: "a requester's",
    OutcomeCode: "of a study",
    Deposit: "a requester's money, which shares the ledger",
    PayoutBatch: "made by an operator",
    Requester: "its users are requesters",
}
# A user with rows in these is a researcher, too: such an account is not erased by itself.
ROOMS_OF_RESEARCHERS = {
    *("accounts", "annotation", "console", "hits", "metrics", "retrieval", "validation"),
    *("results", "simulation", "work"),
}
TABLES_OF_THEIRS = {"auth.Group", "auth.Permission"}


def undecided() -> set[str]:
    decided = {table.model for table in TABLES}
    personal, missing = set(decided), set()
    for model in apps.get_models():
        # The tables between two that refer to each other many times are theirs.
        fields = [*model._meta.concrete_fields, *model._meta.many_to_many]
        refers = any(field.remote_field and field.related_model in personal for field in fields)
        is_theirs = model._meta.app_label in ROOMS_OF_RESEARCHERS
        if refers and not is_theirs and model not in decided and model not in OF_OTHERS:
            missing.add(model._meta.label)
    return missing - TABLES_OF_THEIRS


def test_every_table_that_refers_to_workers_is_decided_on(monkeypatch):
    assert undecided() == set()
    monkeypatch.setattr("tests.marketplace.test_personal_data.TABLES", TABLES[:-3])
    assert undecided() == {
        "marketplace.Participant",
        "marketplace.WorkerBlock",
        "marketplace.AuditEntry",
    }


def test_a_worker_downloads_all_of_their_own_and_nothing_of_others(
    mturk, ada, worker, make_worker, browser_of
):
    eve = make_worker("eve")
    hit = mturk.create_hit(**HIT | {"MaxAssignments": 2})["HIT"]["HITId"]
    mine, hers = submit(worker, hit, reason="My own words"), submit(eve, hit, reason="Her words")
    mturk.reject_assignment(AssignmentId=mine, RequesterFeedback="Half is missing.")
    bonus = {"WorkerId": worker.worker_id, "BonusAmount": "1.50", "Reason": "For your time."}
    mturk.send_bonus(**bonus, AssignmentId=mine)
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Secret note")
    answer = ada.get("/worker/your-data/file.json")
    assert f'filename="worker-{worker.worker_id}.json"' in answer.headers["Content-Disposition"]
    exported = json.loads(answer.content)
    assert list(exported["data"]) == [table.model.__name__ for table in TABLES]
    data = exported["data"]
    assert data["User"][0]["username"] == "ada"
    assert data["Assignment"][0]["public_id"] == mine
    assert data["Assignment"][0]["hit.hit_type.title"] == HIT["Title"]
    assert "My own words" in data["Assignment"][0]["answer"]
    assert [row["amount_usd"] for row in data["BonusPayment"]] == ["1.50"]
    assert [row["transaction.kind"] for row in data["LedgerEntry"]] == ["bonus"]
    assert len(data["WorkerMessage"]) == 3
    page = text_of(ada.get("/worker/your-data/file.html"))
    for text in (page, answer.content.decode()):
        for secret in (hers, "Her words", eve.worker_id, "Secret note", worker.user.password):
            assert secret not in text
    assert "Half is missing." in page
    assert HitType.objects.get().title in page


def days_kept(row):
    page = text_of(Client().get("/worker/privacy/"))
    return re.findall("[0-9]+", page.split(f'data-kept="{row}"')[1].split("</tr>")[0])


def test_sign_in_data_outlive_signing_out_as_long_as_workers_read(worker, settings):
    browser = Client()
    browser.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    browser.post("/worker/logout/")
    [session] = UserSession.objects.filter(user=worker.user)
    assert session.ip
    rule = next(rule for rule in RULES if rule.model is UserSession)
    for days in (90, 7):
        settings.BROWSERS_KEEP_DAYS = days
        assert days_kept("browsers") == [str(days)]
        since = session.created_at
        assert not rule.expired(since + timedelta(days=days, seconds=-1)).exists()
        assert rule.expired(since + timedelta(days=days, seconds=1)).exists()
    settings.BROWSERS_KEEP_DAYS = 0
    assert days_kept("browsers") == []
    settings.MESSAGES_KEEP_DAYS = 30
    assert days_kept("messages") == ["30"]


ERASE = "/worker/your-data/erase/"


@pytest.fixture
def browser(worker):
    client = Client()
    client.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    return client


@pytest.fixture
def work(mturk, worker):
    user = worker.user
    EmailAddress.objects.create(user=user, email="ada@post.example", primary=True, verified=True)
    Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
    User.objects.filter(pk=user.pk).update(first_name="Ada", email="ada@post.example")
    WorkerAccount.objects.update(country="CA", subdivision="ON", languages=["fr"])
    hits = [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2)]
    paid, rejected = (submit(worker, hit, reason="My own words") for hit in hits)
    mturk.approve_assignment(AssignmentId=paid)
    mturk.reject_assignment(AssignmentId=rejected, RequesterFeedback="Half is missing.")
    return {"paid": paid, "rejected": rejected}


def pay_out():
    transfers.make_batch()
    transfers.mark_paid(PayoutBatch.objects.get().payouts.all())


def all_rows():
    rows = [list(table.model._default_manager.values()) for table in TABLES]
    return json.dumps(rows, cls=DjangoJSONEncoder)


def test_erasure_waits_for_open_work_and_money(mturk, browser, worker):
    def codes(proof=PASSWORD):
        page = browser.post(ERASE, {"proof": proof})
        worker.refresh_from_db()
        assert worker.erased_at is None
        shown = codes_on(text_of(page))  # after the messages of other pages
        obstacles = codes_of(page.context["obstacles"])
        assert shown[len(shown) - len(obstacles) :] == obstacles
        return codes_of(page.context["obstacles"]), field_codes(page.context["form"])

    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    held = accept_hit(worker=worker, hit=Hit.objects.get(public_id=hit))
    assert codes() == (["accepted_work"], {"__all__": ["accepted_work"]})
    browser.post(f"/worker/assignments/{held.public_id}/return/")
    submitted = submit(worker, hit)
    assert codes() == (["submitted_work"], {"__all__": ["submitted_work"]})
    mturk.approve_assignment(AssignmentId=submitted)
    assert codes() == (["unpaid_earnings"], {"__all__": ["unpaid_earnings"]})
    assert "$0.63" in text_of(browser.get(ERASE))
    transfers.make_batch()
    assert codes() == (["open_payout"], {"__all__": ["open_payout"]})
    transfers.mark_paid(PayoutBatch.objects.get().payouts.all())
    assert codes("wrong") == ([], {"proof": ["wrong_password"]})


def test_erasure_takes_the_person_and_leaves_work_and_books(browser, work, worker):
    pay_out()
    entries = LedgerEntry.objects.count()
    assert browser.post(ERASE, {"proof": PASSWORD}).url == "/worker/erased/"
    rows = all_rows()
    for trace in ('"ada"', '"Ada"', "ada@", "post.example", '"CA"', '"ON"'):
        assert trace not in rows
    kept = {"id", "user", "worker_id", "payee_id", "created_at", "erased_at"}
    for field in WorkerAccount._meta.concrete_fields:
        value = getattr(WorkerAccount.objects.get(), field.attname)
        assert field.name in kept or value == field.get_default(), field.name
    assert WorkerMessage.objects.count() == Authenticator.objects.count() == 0
    assert Assignment.objects.filter(worker=worker, status="Approved").count() == 1
    assert "My own words" in Assignment.objects.get(public_id=work["paid"]).answer
    assert LedgerEntry.objects.count() == entries
    # Nobody gets in, by the session that was open or by the password.
    assert "/login/" in browser.get("/worker/dashboard/").url
    for name in ("ada", User.objects.get(pk=worker.user_id).username):
        assert not Client().login(username=name, password=PASSWORD)
    erase_worker(worker)  # again changes nothing
    assert AuditEntry.objects.get(action="worker.erase").subject == worker.worker_id


def test_who_asks_by_letter_is_erased_by_the_operator(mturk, browser, work, worker):
    name = worker.worker_id
    for dry_run in (True, False):
        with pytest.raises(ErasureRefused):
            run("erase_worker", name, dry_run=dry_run)
    pay_out()
    exported = json.loads(run("export_worker", name))
    shown = json.loads(browser.get("/worker/your-data/file.json").content)
    assert exported | {"exported_at": ""} == shown | {"exported_at": ""}  # a second may go by
    assert "ada@post.example" in json.dumps(exported)
    assert name in run("erase_worker", name, dry_run=True)
    assert User.objects.get(pk=worker.user_id).username == "ada"
    assert name in run("erase_worker", name)
    worker.refresh_from_db()
    assert worker.erased_at is not None
    assert "ada@post.example" not in run("export_worker", name)
    assert AuditEntry.objects.get(action="worker.erase").subject == name
    assert f"{worker.erased_at:%Y}" in run("erase_worker", name)
    with pytest.raises(InvalidParameter) as caught:
        run("export_worker", "ADA")
    assert "ADA" in str(caught.value)


def test_requesters_can_neither_pay_nor_write_to_an_erased_worker(mturk, work, worker):
    pay_out()
    erase_worker(worker)
    ids = {"WorkerId": worker.worker_id}
    bonus = ids | {"AssignmentId": work["paid"], "BonusAmount": "1", "Reason": "x"}
    override = {"AssignmentId": work["rejected"], "OverrideRejection": True}
    assert turk_code(mturk.send_bonus, **bonus) == "InvalidParameterValue"
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"
    mturk.create_worker_block(**ids, Reason="x")
    answer = mturk.notify_workers(Subject="x", MessageText="x", WorkerIds=[worker.worker_id])
    assert len(answer["NotifyWorkersFailureStatuses"]) == 1
    assert WorkerMessage.objects.count() == 0


def test_a_participant_without_a_password_gives_the_worker_id(ada, worker):
    worker.user.set_unusable_password()
    worker.user.save()
    ada.force_login(worker.user)
    page = ada.post(ERASE, {"proof": "A0NOBODY"})
    assert field_codes(page.context["form"]) == {"proof": ["wrong_worker_id"]}
    assert ada.post(ERASE, {"proof": worker.worker_id}).url == "/worker/erased/"


def test_who_is_also_a_requester_is_not_erased(ada, worker, requester):
    requester.users.add(worker.user)
    page = ada.post(ERASE, {"proof": PASSWORD})
    assert codes_of(page.context["obstacles"]) == ["other_role"]
    assert User.objects.get().username == "ada"


NOW = timezone.now()


def days(n):
    return NOW - timedelta(days=n)


@pytest.fixture
def rows(requester, worker):
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
    return [line.split()[0] for line in printed.splitlines()]


def left():
    return (
        sorted(Notification.objects.values_list("last_error", flat=True)),
        sorted(WorkerMessage.objects.values_list("subject", flat=True)),
        LedgerAudit.objects.count(),
        list(UserSession.objects.values_list("session_key", flat=True)),
    )


def test_what_is_old_goes_and_what_is_of_use_stays(rows, settings, monkeypatch):
    monkeypatch.setattr(jobs, "ROWS_AT_ONCE", 1)
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
    for rule in jobs.RULES:
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
