"""Work that a recruiter pays for moves no money here: at the ledger, in the database, by audit."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from marketplace import clock
from marketplace.exceptions import NotQualified, PaidByRecruiter
from marketplace.hits.assignments import accept_hit, accept_next, create_assignment
from marketplace.hits.payers import let_recruiter_pay
from marketplace.models import Assignment, Hit, LedgerAccount, LedgerTransaction, PaidBy
from marketplace.money import ledger
from marketplace.money.payouts import make_batch
from marketplace.money.reconciliation import audit
from marketplace.people.enrolment import open_worker_account
from tests.boto_clients import in_process_client
from tests.codes import codes_of, refused
from tests.marketplace.conftest import HIT, submit

NOW = clock.now


@pytest.fixture
def participant(db):
    return open_worker_account(user=User.objects.create_user("p"), paid_by=PaidBy.RECRUITER)


@pytest.fixture
def recruited(mturk):
    """A HIT of two assignments whose type a recruiter pays for."""
    created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    hit = Hit.objects.select_related("hit_type").get(public_id=created["HITId"])
    let_recruiter_pay(hit.hit_type)
    return Hit.objects.select_related("hit_type", "requester").get(pk=hit.pk)


def take(hit, worker):
    with transaction.atomic():
        locked = Hit.objects.locked().get(pk=hit.pk)
        return create_assignment(locked, worker, is_qualified=False)


def available(requester):
    return ledger.balance_of(ledger.available_account(requester))


def test_what_was_held_is_the_requesters_again(mturk, recruited, requester):
    assert available(requester) == Decimal("100.00")
    assert ledger.held_for(recruited) == 0
    more = mturk.create_hit_with_hit_type(
        HITTypeId=recruited.hit_type.public_id,
        LifetimeInSeconds=3600,
        Question=HIT["Question"],
        MaxAssignments=3,
    )
    mturk.create_additional_assignments_for_hit(
        HITId=more["HIT"]["HITId"], NumberOfAdditionalAssignments=5
    )
    assert available(requester) == Decimal("100.00")
    assert more["HIT"]["Reward"] == "0.63"


def test_what_was_promised_before_is_paid_here(mturk, worker, requester):
    created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    held = submit(worker, created["HITId"])
    hit = Hit.objects.get(public_id=created["HITId"])
    price_usd = Assignment.objects.get().price_usd
    let_recruiter_pay(hit.hit_type)
    assert ledger.held_for(hit) == price_usd
    mturk.approve_assignment(AssignmentId=held)
    assert ledger.balance_of(ledger.earnings_account(worker)) == Decimal("0.63")
    assert available(requester) == 100 - price_usd


def test_a_participants_approved_work_moves_nothing(mturk, recruited, participant, requester):
    assignment = take(recruited, participant)
    assert (assignment.reward_usd, assignment.fee_usd) == (0, 0)
    before = LedgerTransaction.objects.count()
    Assignment.objects.filter(pk=assignment.pk).update(
        status="Submitted", submitted_at=NOW(), auto_approval_at=NOW()
    )
    mturk.approve_assignment(AssignmentId=assignment.public_id)
    assert LedgerTransaction.objects.count() == before
    assert make_batch() is None
    assert not LedgerAccount.objects.filter(worker=participant).exists()


def test_workers_and_participants_see_only_theirs(mturk, recruited, participant, worker, ada):
    assert recruited.hit_type.title not in ada.get("/worker/").content.decode()
    with refused(NotQualified, "other_payer"):
        accept_hit(worker=worker, hit=recruited)
    other = Hit.objects.get(
        public_id=mturk.create_hit(**HIT | {"Title": "Another"})["HIT"]["HITId"]
    )
    with refused(NotQualified, "other_payer"):
        accept_next(worker=participant, hit_type=other.hit_type)


def test_the_ledger_refuses_every_movement(recruited, participant, worker):
    assignment = take(recruited, participant)
    at = clock.now()
    available, one, none = LedgerAccount.Kind.AVAILABLE, Decimal("1.00"), Decimal(0)
    for move in (
        lambda: ledger.pay(assignment=assignment, source=available, at=at),
        lambda: ledger.pay_bonus(assignment=assignment, amount_usd=one, fee_usd=none, at=at),
        lambda: ledger.withdraw(worker=participant, amount_usd=one, at=at),
        lambda: ledger.hold(hit=recruited, amount_usd=one, at=at),
    ):
        with pytest.raises(PaidByRecruiter):
            move()
    assert audit() == []


def insert(payee_id, worker):
    """An account of earnings past the ledger's code."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO marketplace_ledgeraccount (kind, worker_id, payee_id) "
            "VALUES ('earnings', %s, %s)",
            [worker.pk, payee_id],
        )


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_a_participants_earnings(participant, worker):
    for payee_id in (None, participant.worker_id, worker.payee_id, ""):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(payee_id, participant)
    assert not LedgerAccount.objects.filter(worker=participant).exists()


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_to_turn_a_payee_into_a_participant(worker):
    for values in ({"paid_by": "recruiter"}, {"payee_id": None}):
        with pytest.raises(IntegrityError), transaction.atomic():
            type(worker).objects.filter(pk=worker.pk).update(**values)
    with pytest.raises(IntegrityError), transaction.atomic():
        type(worker).objects.filter(pk=worker.pk).update(paid_by="recruiter", payee_id=None)


def test_the_database_refuses_a_recruiters_assignment_that_promises_money(recruited, participant):
    assignment = take(recruited, participant)
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.filter(pk=assignment.pk).update(reward_usd=Decimal("0.63"))


def test_the_audit_finds_what_got_past(make_keys, worker, participant):
    lab = in_process_client(make_keys())
    created = lab.create_hit(**HIT, MaxAssignments=2)["HIT"]
    hit = Hit.objects.select_related("hit_type").get(public_id=created["HITId"])
    type(hit.hit_type).objects.filter(pk=hit.hit_type.pk).update(paid_by="recruiter")
    [held] = [problem for problem in audit() if problem.code == "recruiter_hold"]
    assert str(hit) in held
    hit.hit_type.refresh_from_db()
    assignment = take(hit, participant)
    LedgerTransaction.objects.create(kind="bonus", created_at=NOW(), assignment=assignment)
    assert "participant_payment" in codes_of(audit())


def test_a_hit_does_not_go_from_one_payer_to_the_other(mturk, recruited):
    other = mturk.create_hit(**HIT | {"Title": "Another"})["HIT"]
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.update_hit_type_of_hit(HITId=other["HITId"], HITTypeId=recruited.hit_type.public_id)
    assert found.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"
