"""Fifty workers who ask for the last assignments of HITs, each on a connection of their own.

The same with ten thousand accepts over HTTP: ``python -m benchmarks.marketplace_accepts``.
"""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from accounts.models import User
from marketplace.exceptions import NoAssignmentsLeft
from marketplace.hits.assignments import accept_hit, accept_next
from marketplace.models import Assignment, Hit
from marketplace.people.enrolment import open_worker_account
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, assert_ledger_balances

pytestmark = pytest.mark.django_db(transaction=True)
WORKERS, HITS, MAX_ASSIGNMENTS = 50, 40, 3


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


def all_fifty(workers, work):
    """What each worker's work came to; an error of the database's is raised here."""
    barrier = threading.Barrier(len(workers))

    def one(worker):
        try:
            barrier.wait(timeout=60)
            return work(worker)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(one, workers))


def test_fifty_who_ask_for_every_hit_fill_each_and_overfill_none(workers, hits):
    def ask_for_every_hit(worker):
        mine = Counter()
        for hit in random.Random(worker.pk).sample(hits, len(hits)):
            try:
                mine[accept_hit(worker=worker, hit=hit).hit_id] += 1
            except NoAssignmentsLeft:
                mine["refused"] += 1
        return mine

    statuses = sum(all_fifty(workers, ask_for_every_hit), Counter())
    assert statuses == {hit.pk: MAX_ASSIGNMENTS for hit in hits} | {
        "refused": (WORKERS - MAX_ASSIGNMENTS) * HITS
    }
    assert Assignment.objects.count() == MAX_ASSIGNMENTS * HITS
    assert set(Hit.objects.values_list("status", flat=True)) == {"Unassignable"}


def test_fifty_who_take_whatever_is_next_get_all_there_is(workers, hits):
    def take_what_is_next(worker):
        count = 0
        try:
            while accept_next(worker=worker, hit_type=hits[0].hit_type):
                count += 1
        except NoAssignmentsLeft:
            return count

    assert sum(all_fifty(workers, take_what_is_next)) == MAX_ASSIGNMENTS * HITS
    assert Assignment.objects.count() == MAX_ASSIGNMENTS * HITS
