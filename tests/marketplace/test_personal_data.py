"""What is kept about workers: every table is decided on, exported, and on the privacy page."""

import json
import re
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.apps import apps
from django.conf import settings
from django.test import Client

from config.retention import RULES
from marketplace.models import (
    Deposit,
    HitType,
    OutcomeCode,
    PayoutBatch,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
)
from marketplace.people.personal_data import TABLES
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_worker_site import text_of

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
    *("simulation", "work"),
}
TABLES_OF_THEIRS = {"auth.Group", "auth.Permission"}


def undecided() -> set[str]:
    """Tables with a relation to a worker's that nobody has decided on."""
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


def test_what_is_kept_is_said_where_workers_look(ada):
    for where in ("/worker/signup/", "/worker/dashboard/", "/worker/", "/worker/profile/"):
        browser = Client() if "signup" in where else ada
        assert '"/worker/privacy/"' in text_of(browser.get(where))
    assert '"/worker/your-data/"' in text_of(ada.get("/worker/profile/"))


# What the page of workers names, and the row of docs/data-processing.md that answers for it.
DOCUMENTED = {
    "account": "username, password's",
    "browsers": "browsers in which one signed in",
    "profile": "country, state, languages",
    "assignments": "answers, with times, reasons, dec",
    "drafts": "drafts",
    "devices": "a keyed hash of the device's address",
    "reports": "reports of problems",
    "qualifications": "qualifications, requests",
    "money": "the ledger",
    "payout": "how to be paid",
    "messages": "messages",
    "ids": "ids that a recr",
    "demographics": "demographics",
    "blocks": "blocks by requesters",
}


def test_the_documentation_has_every_row_that_workers_read(db):
    page = text_of(Client().get("/worker/privacy/"))
    rows = re.findall(r'<tr data-kept="([a-z]*)"><th scope="row">', page)
    assert rows == list(DOCUMENTED)
    assert page.count('<th scope="row">') == len(rows)
    documented = (settings.BASE_DIR / "docs/data-processing.md").read_text("utf-8")
    workers = documented.split("## Workers and participants")[1].split("\n## ")[0]
    for row, beginning in DOCUMENTED.items():
        assert f"\n| {beginning}" in workers, row


def days_kept(row):
    """The numbers in the row of the privacy page, which are of days."""
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
