"""What happens when several ask at once, with real threads and connections; and requesters' money
moves without waiting for other requesters' (docs/adr/0009)."""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, TimeoutError as TookTooLong
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest
from botocore.exceptions import ClientError
from django.db import connection, transaction

from accounts.models import User
from marketplace import clock, exceptions, models, money
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.money.transfers import deposit
from marketplace.people.enrolment import create_worker, open_worker_account
from marketplace.qualifications.requests import request_qualification
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, assert_ledger_balances, make_type, submit

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8
WORKERS, HITS, MAX_ASSIGNMENTS = 50, 15, 3


def all_at_once(*calls):
    barrier = threading.Barrier(len(calls))

    def run(call):
        try:
            barrier.wait(timeout=60)
            return call()
        except (exceptions.WorkRefused, ClientError) as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.fixture
def workers(transactional_db):
    users = User.objects.bulk_create(User(username=f"w{number}") for number in range(WORKERS))
    return [open_worker_account(user=user) for user in users]


@pytest.fixture
def hits(transactional_db, make_keys):
    lab = in_process_client(make_keys(deposit="1000"))
    for _ in range(HITS):
        lab.create_hit(**HIT, MaxAssignments=MAX_ASSIGNMENTS)
    yield list(models.Hit.objects.select_related("hit_type"))
    assert_ledger_balances()


@pytest.fixture
def lab_keys(transactional_db, make_keys):
    return make_keys()


@pytest.fixture
def lab(lab_keys):
    yield in_process_client(lab_keys)
    assert_ledger_balances()


def test_who_asks_submits_or_approves_at_once_does_it_once(workers, lab):
    lab.create_hit(**HIT)
    public_id = accept_hit(worker=workers[0], hit=models.Hit.objects.get()).public_id

    def send(text):
        return lambda: submit_assignment(public_id=public_id, fields=[("a", [text])]).answer

    results = all_at_once(*[send(str(number)) for number in range(4)])
    assert len(set(results)) == 1
    call = lambda: lab.approve_assignment(AssignmentId=public_id)  # noqa: E731
    results = all_at_once(*[call] * 4)
    assert sum(isinstance(result, ClientError) for result in results) == 3
    assert lab.get_account_balance()["AvailableBalance"] == "99.37"
    lab.create_hit(**HIT, MaxAssignments=5)
    hit = models.Hit.objects.latest("pk")
    results = all_at_once(*[lambda: accept_hit(worker=workers[0], hit=hit)] * 4)
    assert sum(isinstance(result, models.Assignment) for result in results) == 1
    assert models.Assignment.objects.on(hit).count() == 1


def test_one_token_at_once_is_one_hit_and_money_is_not_spent_twice(lab):
    call = lambda: lab.create_hit(**HIT, UniqueRequestToken="same")  # noqa: E731
    results = all_at_once(*[call] * 4)
    codes = [e.response["TurkErrorCode"] for e in results if isinstance(e, ClientError)]
    assert codes == ["AWS.MechanicalTurk.HitAlreadyExists"] * 3
    assert models.Hit.objects.count() == 1
    values = HIT | {"Reward": "40.00"}
    calls = [lambda n=n: lab.create_hit(**values | {"Title": f"T{n}"}) for n in range(5)]
    codes = [e.response["TurkErrorCode"] for e in all_at_once(*calls) if isinstance(e, ClientError)]
    assert codes == ["AWS.MechanicalTurk.InsufficientFunds"] * 3
    assert lab.get_account_balance()["AvailableBalance"] == "19.37"


@pytest.mark.slow
def test_holding_and_paying_at_once_wait_for_each_other(workers, lab):
    for _ in range(3):
        hit_id = lab.create_hit(**HIT, MaxAssignments=3)["HIT"]["HITId"]
        for worker in workers[:2]:
            submit(worker, hit_id)
    clock.advance(timedelta(days=3))  # of each HIT two are paid, and the third is released
    results = all_at_once(lab.get_account_balance, *[lambda: lab.create_hit(**HIT)] * 3)
    assert not [result for result in results if isinstance(result, ClientError)]
    assert lab.get_account_balance()["OnHoldBalance"] == "1.89"


def test_a_request_is_granted_once_and_not_withdrawn_with_its_type(workers, lab):
    kind = models.QualificationType.objects.get(public_id=make_type(lab, "Reads", AutoGranted=True))
    ask = partial(request_qualification, worker=workers[0], qualification_type=kind)
    results = all_at_once(*[ask] * THREADS)
    assert sum(isinstance(result, models.QualificationRequest) for result in results) == 1
    assert models.QualificationRequest.objects.count() == 1
    type_id = make_type(lab)
    row = models.QualificationType.objects.get(public_id=type_id)
    ids = [request_qualification(worker=w, qualification_type=row).public_id for w in workers[:8]]
    accept = lab.accept_qualification_request
    calls = [lambda each=each: accept(QualificationRequestId=each) for each in ids]
    all_at_once(lambda: lab.delete_qualification_type(QualificationTypeId=type_id), *calls)
    granted = models.QualificationRequest.objects.filter(status="Granted")
    assert granted.count() == models.Qualification.objects.count()


@pytest.mark.slow
def test_fifty_who_ask_for_every_hit_fill_each_and_overfill_none(workers, hits):
    def ask_for_every_hit(worker):
        mine = Counter()
        for hit in random.Random(worker.pk).sample(hits, HITS):
            try:
                mine[accept_hit(worker=worker, hit=hit).hit_id] += 1
            except exceptions.NoAssignmentsLeft:
                mine["refused"] += 1
        return mine

    calls = [partial(ask_for_every_hit, worker) for worker in workers]
    assert sum(all_at_once(*calls), Counter()) == {hit.pk: MAX_ASSIGNMENTS for hit in hits} | {
        "refused": (WORKERS - MAX_ASSIGNMENTS) * HITS
    }
    assert models.Assignment.objects.count() == MAX_ASSIGNMENTS * HITS
    assert set(models.Hit.objects.values_list("status", flat=True)) == {"Unassignable"}


# Several requesters


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
def three(transactional_db):
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
def test_money_moves_while_another_requesters_transaction_is_open(labs, three):
    ours, theirs = labs[:2]
    held, free = (submit(three[0], lab.create_hit(**HIT)["HIT"]["HITId"]) for lab in labs[:2])

    def everything():
        theirs.create_hit(**HIT)
        theirs.approve_assignment(AssignmentId=free)
        bonus = {"WorkerId": three[0].worker_id, "AssignmentId": free, "BonusAmount": "1.00"}
        theirs.send_bonus(**bonus, Reason="Good work.")
        deposit(requester=models.Requester.objects.get(name="Lab 1"), amount_usd=Decimal(5))
        assert money.transfers.make_batch() is not None
        return theirs.get_account_balance()["AvailableBalance"]

    with elsewhere() as call, transaction.atomic():
        # The same worker, the fees and the world outside, all with money of this requester's.
        ours.create_hit(**HIT)
        ours.approve_assignment(AssignmentId=held)
        deposit(requester=models.Requester.objects.get(name="Lab 0"), amount_usd=Decimal(5))
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
def test_both_accounts_of_a_requester_are_locked_whichever_is_used(labs, three):
    assignment_id = submit(three[0], labs[0].create_hit(**HIT)["HIT"]["HITId"])
    requester = models.Requester.objects.get(name="Lab 0")
    with transaction.atomic():
        money.ledger.lock_accounts(requester)
        with elsewhere() as call:
            skipping = models.LedgerAccount.objects.filter(requester=requester)
            skipping = skipping.select_for_update(no_key=True, skip_locked=True)
            free = call(lambda: transaction.atomic()(lambda: list(skipping))())
            assert free.result(timeout=PATIENCE_SECONDS) == []
    labs[0].approve_assignment(AssignmentId=assignment_id)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_everything_at_once_ends_without_a_deadlock(labs, three, seed):
    """Each lab's two HITs are done by the same three; then time approves one of them while
    the other is approved by hand, bonuses are paid, new HITs are made and earnings are taken."""
    rng = random.Random(seed)
    by_hand = {}
    for lab in labs:
        timed = lab.create_hit(**HIT, MaxAssignments=4)["HIT"]["HITId"]
        for worker in rng.sample(three, len(three)):
            submit(worker, timed)
    clock.advance(timedelta(days=3))
    for lab in labs:
        hit_id = lab.create_hit(**HIT, MaxAssignments=3)["HIT"]["HITId"]
        by_hand[lab] = [(worker, submit(worker, hit_id)) for worker in three]
    calls = [money.transfers.make_batch]
    for lab in labs:
        calls += [lab.get_account_balance, lambda lab=lab: lab.create_hit(**HIT)]
        for worker, assignment_id in rng.sample(by_hand[lab], 2):
            calls.append(lambda lab=lab, it=assignment_id: lab.approve_assignment(AssignmentId=it))
            bonus = {"WorkerId": worker.worker_id, "AssignmentId": assignment_id}
            bonus |= {"BonusAmount": "0.10", "Reason": "Good work."}
            calls.append(lambda lab=lab, bonus=bonus: lab.send_bonus(**bonus))
    rng.shuffle(calls)
    assert not [result for result in all_at_once(*calls) if isinstance(result, ClientError)]
    paid = {lab.get_account_balance()["OnHoldBalance"] for lab in labs}
    assert paid == {"1.52"}  # one assignment that nobody decided, and one new HIT
