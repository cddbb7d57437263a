"""Participants who had everything erased, and are still listed at their recruiter."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from cryptography.fernet import Fernet
from django.db import connection as database, connections
from django.db.models import F

from marketplace import clock
from marketplace.exceptions import ErasureRefused
from marketplace.hits import lifecycle, review
from marketplace.models import (
    Assignment,
    ErasedSubmission,
    Hit,
    Intent,
    Participant,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterEvent,
    Session,
    WorkerAccount,
)
from marketplace.people.erasure import erase_worker
from marketplace.recruiting import intents
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.places import free_and_needed
from tests.codes import refused
from tests.marketplace.prolific import (
    approve,
    arrive,
    assignments,
    connect,
    hand_in,
    join,
    minutes,
    paid,
    session_of,
)
from tests.marketplace.recruiting.test_recruiter_events import send_by_hand
from tests.marketplace.recruiting.test_recruiters_faults import answer_wrongly


@pytest.fixture
def erased(fake, posted):
    submission = hand_in(fake, posted)
    RecruiterEvent.objects.create(
        connection=posted.connection,
        event_id="e1",
        submission_id=submission.id,
        received_at=clock.now(),
    )
    Assignment.objects.update(status="Rejected")
    erase_worker(Session.objects.get().worker)
    return submission


def nobody_is_known():
    return not Session.objects.exists() and not Participant.objects.exists()


def test_what_their_recruiter_lists_brings_nobody_back(fake, posted, erased):
    minutes(3)
    assert nobody_is_known()
    assert not Intent.objects.exists()
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert (erased.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert nobody_is_known()


@pytest.mark.slow
def test_who_was_erased_before_time_paid_them_is_charged_for_once(fake, posted, erased):
    call_recruiters()
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.pass_time(timedelta(days=22))
    minutes(3)
    [charge] = RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert erased.id not in charge.external_id
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "n_paid"), [("left", 0), ("approved by time", 1)])
def test_whose_approval_was_not_sent_is_charged_for_if_paid(
    fake, posted, mturk, how, n_paid, handed_in
):
    disconnect(connection=posted.connection)
    approve(mturk, handed_in)
    erase_worker(Session.objects.get().worker)
    if how == "left":
        fake.world.leave(handed_in)
    fake.world.pass_time(timedelta(days=22))
    connect(fake, posted.requester)
    minutes(3)
    charges = RecruiterCharge.objects.filter(kind="reward")
    assert (charges.count(), len(paid(fake, "reward"))) == (n_paid, n_paid)
    assert nobody_is_known()


@pytest.mark.parametrize("how", ["RETURNED", "TIMED-OUT"])
def test_who_left_and_was_erased_holds_no_place(fake, posted, how):
    before = free_and_needed(posted)
    submission, _browser, _answer = arrive(fake, posted)
    fake.world.leave(submission, how)
    call_recruiters()
    assert free_and_needed(posted) == before == (4, 4)
    erase_worker(Session.objects.get().worker)
    call_recruiters()
    assert free_and_needed(posted) == before


@pytest.mark.slow
def test_erased_work_holds_a_place_if_paid_and_none_if_rejected(fake, posted, erased):
    call_recruiters()
    free, _needed = free_and_needed(posted)
    fake.world.reject(erased)
    call_recruiters()
    assert free_and_needed(posted)[0] == free + 1
    erased.status = "AWAITING REVIEW"  # taken back, and paid
    fake.world.approve(erased)
    call_recruiters()
    assert free_and_needed(posted)[0] == free


@pytest.mark.slow
def test_the_link_of_an_erased_participation_is_refused(fake, posted, erased):
    answer = join(posted, erased)
    assert (answer.status_code, answer.context["code"]) == (400, "erased")
    assert nobody_is_known()


@pytest.mark.slow
def test_nothing_that_is_kept_says_which_submission_it_was(fake, posted, erased, settings):
    assert ErasedSubmission.objects.get().seal != erased.id
    assert RecruiterEvent.objects.get().submission_id == ""
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_recruiters()
    assert nobody_is_known()  # recognised by the earlier key, too


@pytest.mark.slow
def test_neither_news_that_come_later_nor_charges_name_the_submission(fake, posted, handed_in):
    fake.world.approve(handed_in)
    call_recruiters()
    charge = RecruiterCharge.objects.get(kind="reward")
    assert charge.external_id == handed_in.id
    erase_worker(Session.objects.get().worker)
    body = {"event_type": "submission.status.change", "resource_id": handed_in.id}
    assert send_by_hand(posted.connection, fake.world.hooks.secret, body).status_code == 200
    assert not RecruiterEvent.objects.exclude(submission_id="").exists()
    call_recruiters()
    [after] = RecruiterCharge.objects.filter(kind="reward")
    assert (after.amount, after.external_id) == (charge.amount, f"erased:{charge.pk}")


@pytest.mark.slow
def test_pay_before_an_erasure_is_charged_once_its_price_is_known(fake, posted, monkeypatch):
    fake.world.approve(hand_in(fake, posted))
    with monkeypatch.context() as unheard:
        is_price = lambda path, _query: "cost-calc" in path  # noqa: E731
        answer_wrongly(unheard, is_price, {"total_cost": None})
        call_recruiters()
    assert Session.objects.get().state == "approved"
    erase_worker(Session.objects.get().worker)
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    minutes(2)
    [charge] = RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert paid(fake, "reward") == [200]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["written", "sent", "uncertain"])
def test_erasure_waits_for_a_decision_that_is_not_settled_there(state, handed_in):
    Assignment.objects.update(status="Approved")
    session = session_of(handed_in)
    Intent.objects.create(
        connection=session.connection,
        session=session,
        kind="approve",
        key="approve:1",
        state=state,
        created_at=clock.now(),
    )
    with refused(ErasureRefused, "open_calls"):
        erase_worker(session.worker)
    clock.advance(timedelta(days=31))
    erase_worker(session.worker)
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.skipif(database.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_an_erasure_and_a_decision_do_not_wait_for_each_other(posted, monkeypatch, kind, handed_in):
    """Time approves; or work is rejected that the ledger pays for, whose worker reads why."""
    worker, is_held = Session.objects.get().worker, Event()
    if kind == "approve":
        RecruitedStudy.objects.update(n_payable_there=0)
        clock.advance(timedelta(days=4))
        lifecycle.settle_due(Hit.objects.all(), now=clock.now())
        module, name, decide = intents, "last_decision", intents.approve_overdue
    else:
        WorkerAccount.objects.update(paid_by="ledger", payee_id=F("pk"))
        Assignment.objects.update(paid_by="ledger")
        first, second = assignments(handed_in)
        Assignment.objects.filter(public_id=second).update(status="Rejected")
        module, name = review, "reject"
        facts = {"public_id": first, "feedback": "Not careful. " * 10}
        decide = partial(intents.reject_assignment, requester=posted.requester, **facts)
    real = getattr(module, name)

    def slowly(*args, **facts):
        is_held.set()  # the session is held; its study is not yet, and nothing is written
        time.sleep(1)
        return real(*args, **facts)

    def erase():
        is_held.wait(timeout=30)
        with refused(ErasureRefused, "open_calls"):
            erase_worker(worker)

    def closing(do):
        try:
            return do()
        finally:
            connections.close_all()

    monkeypatch.setattr(module, name, slowly)
    with ThreadPoolExecutor(2) as pool:
        assert next(iter(pool.map(closing, (decide, erase)))) == (1 if kind == "approve" else None)
    assert Intent.objects.get(kind=kind).state == "written"
    assert worker.messages.count() == (0 if kind == "approve" else 1)
