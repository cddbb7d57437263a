"""Erasing a worker's personal data: when it is refused, what goes, what stays."""

import json

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.core.management import CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client

from accounts.models import User
from marketplace.hits.assignments import accept_hit
from marketplace.models import (
    Assignment,
    AuditEntry,
    Hit,
    LedgerEntry,
    PayoutBatch,
    WorkerAccount,
    WorkerMessage,
)
from marketplace.money import payouts
from marketplace.people.erasure import erase_worker
from marketplace.people.personal_data import TABLES
from tests.codes import codes_of, codes_on, field_codes
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT, PASSWORD, run, submit
from tests.marketplace.test_worker_site import text_of

ERASE = "/worker/your-data/erase/"


@pytest.fixture
def browser(worker):
    """Ada's, signed in with her password."""
    client = Client()
    client.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    return client


@pytest.fixture
def work(mturk, worker):
    """Ada, with a profile, an address and a second factor: work approved and rejected."""
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
    payouts.make_batch()
    payouts.mark_paid(PayoutBatch.objects.get().payouts.all())


def all_rows():
    """The rows of all personal tables, as one text."""
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
    payouts.make_batch()
    assert codes() == (["open_payout"], {"__all__": ["open_payout"]})
    payouts.mark_paid(PayoutBatch.objects.get().payouts.all())
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
        with pytest.raises(CommandError):
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
    with pytest.raises(CommandError) as caught:
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
