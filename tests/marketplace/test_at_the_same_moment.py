"""What happens when several ask at once: real threads, real connections."""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from botocore.exceptions import ClientError
from django.db import connection

from accounts.models import User
from marketplace import clock
from marketplace.exceptions import NoAssignmentsLeft, WorkRefused
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.models import (
    Assignment,
    Hit,
    Qualification,
    QualificationRequest,
    QualificationType,
)
from marketplace.people.enrolment import open_worker_account
from marketplace.qualifications.requests import request_qualification
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, assert_ledger_balances, submit

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8
WORKERS, HITS, MAX_ASSIGNMENTS = 50, 15, 3


def all_at_once(*calls):
    barrier = threading.Barrier(len(calls))

    def run(call):
        try:
            barrier.wait(timeout=60)
            return call()
        except (WorkRefused, ClientError) as error:
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
    yield list(Hit.objects.select_related("hit_type"))
    assert_ledger_balances()


@pytest.fixture
def lab_keys(transactional_db, make_keys):
    return make_keys()


@pytest.fixture
def lab(lab_keys):
    yield in_process_client(lab_keys)
    assert_ledger_balances()


def test_a_worker_who_asks_twice_at_once_gets_one_assignment(workers, lab):
    lab.create_hit(**HIT, MaxAssignments=5)
    hit = Hit.objects.get()
    results = all_at_once(*[lambda: accept_hit(worker=workers[0], hit=hit)] * 4)
    assert sum(isinstance(result, Assignment) for result in results) == 1
    assert Assignment.objects.count() == 1


def test_two_submissions_at_once_are_one(workers, lab):
    lab.create_hit(**HIT)
    public_id = accept_hit(worker=workers[0], hit=Hit.objects.get()).public_id

    def send(text):
        return lambda: submit_assignment(public_id=public_id, fields=[("a", [text])]).answer

    results = all_at_once(*[send(str(number)) for number in range(4)])
    assert len(set(results)) == 1


def test_approvals_at_once_pay_once(workers, lab):
    assignment_id = submit(workers[0], lab.create_hit(**HIT)["HIT"]["HITId"])
    call = lambda: lab.approve_assignment(AssignmentId=assignment_id)  # noqa: E731
    results = all_at_once(*[call] * 4)
    assert sum(isinstance(result, ClientError) for result in results) == 3
    assert lab.get_account_balance()["AvailableBalance"] == "99.37"


def test_one_token_at_once_is_one_hit(lab):
    call = lambda: lab.create_hit(**HIT, UniqueRequestToken="same")  # noqa: E731
    results = all_at_once(*[call] * 4)
    codes = [e.response["TurkErrorCode"] for e in results if isinstance(e, ClientError)]
    assert codes == ["AWS.MechanicalTurk.HitAlreadyExists"] * 3
    assert Hit.objects.count() == 1


def test_money_is_not_spent_twice_at_once(lab):
    values = HIT | {"Reward": "40.00"}
    calls = [lambda n=n: lab.create_hit(**values | {"Title": f"T{n}"}) for n in range(5)]
    codes = [e.response["TurkErrorCode"] for e in all_at_once(*calls) if isinstance(e, ClientError)]
    assert codes == ["AWS.MechanicalTurk.InsufficientFunds"] * 3
    assert lab.get_account_balance()["AvailableBalance"] == "20.00"


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


def test_a_request_is_granted_or_withdrawn_with_its_type_and_not_both(workers, lab):
    values = {"Name": "Chess", "Description": "Plays it.", "QualificationTypeStatus": "Active"}
    type_id = lab.create_qualification_type(**values)["QualificationType"]["QualificationTypeId"]
    row = QualificationType.objects.get()
    ids = [request_qualification(worker=w, qualification_type=row).public_id for w in workers[:8]]
    accept = lab.accept_qualification_request
    calls = [lambda each=each: accept(QualificationRequestId=each) for each in ids]
    all_at_once(lambda: lab.delete_qualification_type(QualificationTypeId=type_id), *calls)
    granted = QualificationRequest.objects.filter(status="Granted")
    assert granted.count() == Qualification.objects.count()


def test_what_may_be_requested_only_once_is_granted_once_to_all_tabs_of_a_worker(workers, lab):
    made = lab.create_qualification_type(
        Name="Reads", Description="d", QualificationTypeStatus="Active", AutoGranted=True
    )
    kind = QualificationType.objects.get(public_id=made["QualificationType"]["QualificationTypeId"])
    ask = partial(request_qualification, worker=workers[0], qualification_type=kind)
    results = all_at_once(*[ask] * THREADS)
    assert sum(isinstance(result, QualificationRequest) for result in results) == 1
    assert QualificationRequest.objects.count() == 1


@pytest.mark.slow
def test_fifty_who_ask_for_every_hit_fill_each_and_overfill_none(workers, hits):
    def ask_for_every_hit(worker):
        mine = Counter()
        for hit in random.Random(worker.pk).sample(hits, HITS):
            try:
                mine[accept_hit(worker=worker, hit=hit).hit_id] += 1
            except NoAssignmentsLeft:
                mine["refused"] += 1
        return mine

    calls = [partial(ask_for_every_hit, worker) for worker in workers]
    statuses = sum(all_at_once(*calls), Counter())
    assert statuses == {hit.pk: MAX_ASSIGNMENTS for hit in hits} | {
        "refused": (WORKERS - MAX_ASSIGNMENTS) * HITS
    }
    assert Assignment.objects.count() == MAX_ASSIGNMENTS * HITS
    assert set(Hit.objects.values_list("status", flat=True)) == {"Unassignable"}
