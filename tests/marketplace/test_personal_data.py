"""What is kept about workers: every table is decided on, exported, and on the privacy page."""

import json

from django.apps import apps
from django.test import Client

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
from tests.marketplace.conftest import HIT, submit
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
    page = text_of(Client().get("/worker/privacy/"))
    assert "Requesters know you by your Worker ID only." in page
    for where in ("/worker/signup/", "/worker/dashboard/", "/worker/", "/worker/profile/"):
        browser = Client() if "signup" in where else ada
        assert '"/worker/privacy/"' in text_of(browser.get(where))
    assert '"/worker/your-data/"' in text_of(ada.get("/worker/profile/"))
