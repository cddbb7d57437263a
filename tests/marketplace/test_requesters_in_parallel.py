"""Requesters' money moves without waiting for other requesters' (docs/adr/0009)."""

import random
from concurrent.futures import ThreadPoolExecutor, TimeoutError as TookTooLong
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError
from django.db import connection, transaction

from marketplace import clock
from marketplace.models import LedgerAccount, Requester
from marketplace.money import ledger, transfers
from marketplace.money.transfers import deposit
from marketplace.people.enrolment import create_worker
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, assert_ledger_balances, submit
from tests.marketplace.test_at_the_same_moment import all_at_once

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECONDS = 30
row_locks = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)


@pytest.fixture
def labs(transactional_db, make_keys, settings):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    yield [in_process_client(make_keys(f"Lab {number}")) for number in range(4)]
    assert_ledger_balances()


@pytest.fixture
def workers(transactional_db):
    return [create_worker(username=f"w{number}", password="x") for number in range(3)]


@contextmanager
def elsewhere():
    with ThreadPoolExecutor(1) as pool:

        def call(function):
            def run():
                try:
                    return function()
                finally:
                    connection.close()

            return pool.submit(run)

        yield call


@row_locks
def test_money_moves_while_another_requesters_transaction_is_open(labs, workers):
    ours, theirs = labs[:2]
    held, free = (submit(workers[0], lab.create_hit(**HIT)["HIT"]["HITId"]) for lab in labs[:2])

    def everything():
        theirs.create_hit(**HIT)
        theirs.approve_assignment(AssignmentId=free)
        bonus = {"WorkerId": workers[0].worker_id, "AssignmentId": free, "BonusAmount": "1.00"}
        theirs.send_bonus(**bonus, Reason="Good work.")
        deposit(requester=Requester.objects.get(name="Lab 1"), amount_usd=Decimal(5))
        assert transfers.make_batch() is not None
        return theirs.get_account_balance()["AvailableBalance"]

    with elsewhere() as call, transaction.atomic():
        # The same worker, the fees and the world outside, all with money of this requester's.
        ours.create_hit(**HIT)
        ours.approve_assignment(AssignmentId=held)
        deposit(requester=Requester.objects.get(name="Lab 0"), amount_usd=Decimal(5))
        assert call(everything).result(timeout=PATIENCE_SECONDS) == "102.28"
    assert ours.get_account_balance()["AvailableBalance"] == "103.48"


@pytest.mark.slow
@row_locks
def test_money_of_one_requester_takes_turns(labs):
    with elsewhere() as call:
        with transaction.atomic():
            labs[0].create_hit(**HIT)
            waiting = call(lambda: labs[0].create_hit(**HIT))
            with pytest.raises(TookTooLong):
                waiting.result(timeout=1)
        waiting.result(timeout=PATIENCE_SECONDS)
    assert labs[0].get_account_balance()["AvailableBalance"] == "98.48"


@row_locks
def test_both_accounts_of_a_requester_are_locked_whichever_is_used(labs, workers):
    assignment_id = submit(workers[0], labs[0].create_hit(**HIT)["HIT"]["HITId"])
    requester = Requester.objects.get(name="Lab 0")
    with transaction.atomic():
        ledger.lock_accounts(requester)
        with elsewhere() as call:
            skipping = LedgerAccount.objects.filter(requester=requester)
            skipping = skipping.select_for_update(no_key=True, skip_locked=True)
            free = call(lambda: transaction.atomic()(lambda: list(skipping))())
            assert free.result(timeout=PATIENCE_SECONDS) == []
    labs[0].approve_assignment(AssignmentId=assignment_id)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_everything_at_once_ends_without_a_deadlock(labs, workers, seed):
    """Each lab's two HITs are done by the same workers; then time approves one of them while
    the other is approved by hand, bonuses are paid, new HITs are made and earnings are taken."""
    rng = random.Random(seed)
    by_hand = {}
    for lab in labs:
        timed = lab.create_hit(**HIT, MaxAssignments=4)["HIT"]["HITId"]
        for worker in rng.sample(workers, len(workers)):
            submit(worker, timed)
    clock.advance(timedelta(days=3))
    for lab in labs:
        hit_id = lab.create_hit(**HIT, MaxAssignments=3)["HIT"]["HITId"]
        by_hand[lab] = [(worker, submit(worker, hit_id)) for worker in workers]
    calls = [transfers.make_batch]
    for lab in labs:
        calls += [lab.get_account_balance, lambda lab=lab: lab.create_hit(**HIT)]
        for worker, assignment_id in rng.sample(by_hand[lab], 2):
            calls.append(lambda lab=lab, it=assignment_id: lab.approve_assignment(AssignmentId=it))
            bonus = {"WorkerId": worker.worker_id, "AssignmentId": assignment_id}
            bonus |= {"BonusAmount": "0.10", "Reason": "Good work."}
            calls.append(lambda lab=lab, bonus=bonus: lab.send_bonus(**bonus))
    rng.shuffle(calls)
    results = all_at_once(*calls)
    assert not [result for result in results if isinstance(result, ClientError)]
    paid = {lab.get_account_balance()["OnHoldBalance"] for lab in labs}
    assert paid == {"1.52"}  # one assignment that nobody decided, and one new HIT
