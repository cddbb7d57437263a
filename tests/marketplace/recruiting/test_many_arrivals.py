"""Fifty browsers' worth of participants who arrive at once: no item is promised twice, and nobody
is left without items or a code.

The same with ten thousand arrivals: ``python -m benchmarks.recruited_arrivals``.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from marketplace.models import Assignment, Hit, HitType, Session, SessionItem
from marketplace.recruiting.arrivals import enter, recognise
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, assert_ledger_balances

ARRIVALS, THREADS, HITS, MAX_ASSIGNMENTS, ITEMS = 120, 50, 60, 2, 2


@pytest.fixture
def study(transactional_db, make_keys):
    lab = in_process_client(make_keys(deposit="1000"))
    for _ in range(HITS):
        lab.create_hit(**HIT, MaxAssignments=MAX_ASSIGNMENTS)
    hit_type = HitType.objects.get()
    values = StudyValues(name="Many", kind="panel", items_per_session=ITEMS, **PROLIFIC)
    yield open_study(requester=hit_type.requester, hit_type=hit_type, values=values)
    assert_ledger_balances()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_as_many_arrivals_as_twice_the_places(study):
    def arrive(number):
        query = {"PROLIFIC_PID": f"p{number}", "STUDY_ID": "s", "SESSION_ID": f"x{number}"}
        try:
            return enter(recognise(study.token, query), known=None).outcome
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(arrive, range(ARRIVALS)))
    n_places = HITS * MAX_ASSIGNMENTS // ITEMS
    assert outcomes.count("") == n_places
    assert outcomes.count("no_more_items") == ARRIVALS - n_places
    assert SessionItem.objects.count() == Assignment.objects.count() == HITS * MAX_ASSIGNMENTS
    for session in Session.objects.filter(outcome=""):
        assert session.items.values("assignment__hit").distinct().count() == ITEMS
    assert not Session.objects.exclude(outcome="").filter(code="").exists()
    for hit in Hit.objects.with_counts():
        assert hit.accepted_count == MAX_ASSIGNMENTS


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_submission_in_fifty_tabs_is_one_session(study):
    def arrive(_number):
        query = {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"}
        try:
            return enter(recognise(study.token, query), known=None).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(arrive, range(THREADS)))) == 1
    assert Assignment.objects.count() == ITEMS
