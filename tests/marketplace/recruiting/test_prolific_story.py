"""A whole study at Prolific, with the answer of every kind of call dropped in turn: nobody is paid
twice, nobody is left unpaid, places are right and no item is over-assigned."""

from datetime import timedelta

import pytest
from django.test import Client

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    Hit,
    Intent,
    LedgerTransaction,
)
from marketplace.money.payouts import make_batch
from marketplace.money.reconciliation import store_audit
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.demographics import fetch_demographics
from marketplace.recruiting.posting import publish_study, set_places, stop_study
from tests.marketplace.prolific import (
    REASON,
    approve,
    ask_for_more,
    assignments,
    charges,
    connect,
    draft,
    join,
    minutes,
    paid,
    pay_in_pounds,
    session_of,
    submit_page,
    work,
)

CALLED = (
    *("me", "balance", "projects", "hook_secrets", "create_hook_secret", "subscriptions"),
    *("subscribe", "confirm_subscription", "calculate_cost", "project_studies", "create_group"),
    *("create_study", "study", "move_study", "change_study", "submission", "submissions"),
    *("move_submission", "prepare_bonuses", "pay_bonuses", "send_message", "add_to_group"),
    "demographic_export",
)


def pressed(what):
    """A person presses the button again where it said that it could not be done."""
    for _ in range(3):
        try:
            return what()
        except InvalidParameter:
            continue
    return what()


def open_link(study, submission):
    browser = Client()
    for _ in range(2):
        if join(study, submission, browser).status_code == 302:
            return browser
    raise AssertionError("not let in")


def opened(fake, requester, hit_type):
    """A published study, and the account that it is of."""
    connection, _account = pressed(lambda: connect(fake, requester))
    study, cost = pressed(lambda: draft(connection, hit_type))
    pressed(lambda: publish_study(study=study, confirmed=cost.total))
    return connection, study


def participated(fake, study):
    """Two hand in, one is late with the last HIT and the code, one leaves."""
    there = fake.world.studies[study.external_id]
    good, bad, late, left = came = [fake.world.arrive(there) for _ in range(4)]
    browsers = {one.id: open_link(study, one) for one in came}
    for one in (good, bad):
        work(browsers[one.id], times=2)
        fake.world.enter(one, session_of(one).code)
    work(browsers[late.id])
    held = assignments(late)[1]
    fake.world.leave(left)
    fake.world.leave(late, "TIMED-OUT")
    minutes(2)
    submit_page(held)
    fake.world.enter(late, session_of(late).code)
    return came


def decided(mturk, connection, good, bad, late):
    """What a program says of them."""
    approve(mturk, good, late)
    mturk.reject_assignment(AssignmentId=assignments(bad)[0], RequesterFeedback=REASON)
    pay_in_pounds(mturk, connection, good)
    worker = session_of(good).worker.worker_id
    mturk.notify_workers(Subject="Thanks", MessageText="It helped.", WorkerIds=[worker])
    mturk.create_worker_block(WorkerId=session_of(bad).worker.worker_id, Reason="Careless")


@pytest.mark.slow
@pytest.mark.parametrize("operation", CALLED)
def test_every_answer_is_dropped_in_turn(fake, mturk, requester, hit_type, operation):
    fake.fail_next(operation, "drop")
    connection, study = opened(fake, requester, hit_type)
    movements = LedgerTransaction.objects.count()  # what was held was released
    good, bad, late, left = participated(fake, study)
    decided(mturk, connection, good, bad, late)
    ask_for_more(mturk, hit_type)
    pressed(lambda: set_places(study=study, total=5))
    minutes(5)
    pressed(lambda: fetch_demographics(study=study))
    pressed(lambda: stop_study(study=study))
    clock.advance(timedelta(minutes=61))
    call_recruiters()
    assert fake.faults[operation] == []
    assert (good.status, bad.status, late.status) == ("APPROVED", "REJECTED", "APPROVED")
    states = [session_of(one).state for one in (good, bad, late, left)]
    assert states == ["approved", "rejected", "approved", "returned"]
    assert_all_is_paid_once(fake, study)
    assert {bad.participant} in fake.world.groups.values()
    unsure = Intent.objects.exclude(state="done")
    assert [one.kind for one in unsure] == (["message"] if operation == "send_message" else [])
    assert LedgerTransaction.objects.count() == movements
    assert make_batch() is None
    assert store_audit().n_problems == 0


def assert_all_is_paid_once(fake, study):
    there = fake.world.studies[study.external_id]
    assert (there.places, there.status) == (5, "COMPLETED")
    assert [one.status for one in fake.world.studies.values()] == ["COMPLETED"]
    assert (paid(fake, "reward"), paid(fake, "bonus")) == ([200, 200], [200])
    assert len(fake.world.messages) == 1
    assert (charges("bonus"), charges("reward")) == ([2], [2, 2])
    for hit in Hit.objects.all():
        taken = Assignment.objects.on(hit).exclude(status__in=["Returned", "Abandoned"])
        assert taken.filter(surplus_answer=None).count() <= hit.max_assignments
