"""What time does, with no sweep and with one."""

import random
import re
from datetime import timedelta

import pytest

from marketplace import clock
from marketplace.exceptions import (
    AlreadyWorkedOn,
    AssignmentClosed,
    HitExpired,
    MarketplaceError,
    NoAssignmentsLeft,
)
from marketplace.hits import lifecycle
from marketplace.hits.amendments import delete_hit, update_expiration
from marketplace.hits.assignments import (
    accept_hit,
    accept_next,
    return_assignment,
    submit_assignment,
)
from marketplace.hits.review import approve_assignment, reject_assignment
from marketplace.models import Assignment, Hit
from marketplace.money import ledger
from tests.codes import refused
from tests.marketplace.conformance.refusals import status_of
from tests.marketplace.conftest import HIT, assert_ledger_balances, run, submit
from work.execution import run_job
from work.request import request_job

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def test_a_hit_goes_from_assignable_to_reviewable(mturk, hit_id, hit, worker):
    assert status_of(mturk, hit_id) == "Assignable"
    assignment = accept_hit(worker=worker, hit=hit)
    described = mturk.get_hit(HITId=hit_id)["HIT"]
    assert described["HITStatus"] == "Unassignable"
    assert described["NumberOfAssignmentsPending"] == 1
    submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    assert status_of(mturk, hit_id) == "Reviewable"


def test_a_returned_assignment_is_free_again_for_everybody(mturk, hit_id, hit, worker, make_worker):
    for taker in (worker, make_worker("ben"), worker):
        assignment = accept_hit(worker=taker, hit=hit)
        assert assignment.status == "Accepted"
        return_assignment(assignment=assignment)
        assert status_of(mturk, hit_id) == "Assignable"


def test_an_assignment_is_abandoned_at_its_deadline(mturk, hit_id, hit, worker):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(seconds=1200))
    assert status_of(mturk, hit_id) == "Assignable"
    assignment.refresh_from_db()
    assert assignment.status == "Abandoned"
    assert assignment.closed_at == assignment.deadline


def test_the_next_worker_can_take_an_abandoned_assignment_without_any_sweep(
    hit, worker, make_worker
):
    accept_hit(worker=worker, hit=hit)
    with pytest.raises(NoAssignmentsLeft):
        accept_next(worker=make_worker("ben"), hit_type=hit.hit_type)
    clock.advance(HOUR)
    assert accept_next(worker=make_worker("eve"), hit_type=hit.hit_type).hit == hit


def test_a_clock_that_is_put_back_makes_no_work_end_before_it_began(mturk, hit_id, hit, worker):
    clock.advance(HOUR)
    assignment = accept_hit(worker=worker, hit=hit)
    clock.reset()
    submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    [listed] = mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert listed["SubmitTime"] == listed["AcceptTime"]
    assert listed["AutoApprovalTime"] == listed["SubmitTime"] + 3 * DAY


def test_an_answer_that_comes_too_late_is_refused_and_the_assignment_is_free(mturk, hit, worker):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(HOUR)
    with refused(AssignmentClosed, "time_over"):
        submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    hit.refresh_from_db()
    assert hit.status == "Assignable"


def test_an_expired_hit_is_reviewable_and_costs_nothing(mturk, hit_id, hit, worker):
    clock.advance(DAY)
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.00"
    assert status_of(mturk, hit_id) == "Reviewable"
    with pytest.raises(HitExpired):
        accept_hit(worker=worker, hit=hit)


def test_whoever_works_when_a_hit_expires_may_finish(mturk, hit_id, hit, worker):
    clock.advance(DAY - SECOND)
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(SECOND)
    assert status_of(mturk, hit_id) == "Unassignable"
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.63"
    submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    assert status_of(mturk, hit_id) == "Reviewable"


def test_a_assignment_returned_after_the_expiration_is_lost(mturk, hit_id, hit, worker):
    assignment = accept_hit(worker=worker, hit=hit)
    mturk.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    return_assignment(assignment=assignment)
    assert status_of(mturk, hit_id) == "Reviewable"
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.00"


def test_work_nobody_decides_on_is_approved_and_paid_in_time(mturk, hit_id, worker):
    assignment_id = submit(worker, hit_id)
    clock.advance(timedelta(days=3))
    stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert stored["AssignmentStatus"] == "Approved"
    assert stored["ApprovalTime"] == stored["AutoApprovalTime"]
    assert str(ledger.balance_of(ledger.earnings_account(worker))) == "0.63"


def test_a_delay_of_zero_approves_at_once(mturk, worker):
    hit = mturk.create_hit(**HIT | {"AutoApprovalDelayInSeconds": 0})["HIT"]["HITId"]
    assignment_id = submit(worker, hit)
    assert Assignment.objects.get(public_id=assignment_id).status == "Approved"


def test_a_hit_is_disposed_of_after_120_quiet_days(mturk, hit_id):
    clock.advance(121 * DAY - SECOND)
    assert status_of(mturk, hit_id) == "Reviewable"
    clock.advance(SECOND)
    assert mturk.list_hits()["HITs"] == []
    assert status_of(mturk, hit_id) == "Disposed"


def test_a_long_absence_is_caught_up_with_in_order(mturk, hit_id, worker):
    assignment_id = submit(worker, hit_id)
    clock.advance(400 * DAY)
    lifecycle.sweep(clock.now())
    assert status_of(mturk, hit_id) == "Disposed"
    assert Assignment.objects.get(public_id=assignment_id).status == "Approved"


def test_a_sweep_does_only_what_is_due(mturk, hit_id):
    assert lifecycle.sweep(clock.now()) == 0
    clock.advance(DAY)
    assert lifecycle.sweep(clock.now()) == 1
    assert lifecycle.sweep(clock.now()) == 0


def test_a_hit_that_cannot_be_settled_holds_up_no_other(mturk, hit_id, worker, caplog):
    broken = submit(worker, hit_id)
    # More than was ever held: nobody can pay this.
    Assignment.objects.filter(public_id=broken).update(reward_usd=1_000_000)
    clock.advance(SECOND)
    sound = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    clock.advance(40 * DAY)
    assert lifecycle.sweep(clock.now()) == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    statuses = dict(Assignment.objects.values_list("public_id", "status"))
    assert statuses == {broken: "Submitted", sound: "Approved"}


def test_the_command_and_the_periodic_job_sweep(mturk, hit_id):
    clock.advance(DAY)
    assert re.findall("[0-9]+", run("sweep_marketplace")) == ["1"]
    assert status_of(mturk, hit_id) == "Reviewable"
    assert re.findall("[0-9]+", run("sweep_marketplace")) == ["0"]
    mturk.create_hit(**HIT)
    clock.advance(DAY)
    job = request_job(kind="sweep_marketplace")
    assert run_job(job.pk) == "done"
    job.refresh_from_db()
    assert job.message.startswith("1 ")


def test_a_worker_does_a_hit_with_several_assignments_once(mturk, worker):
    hit_id = mturk.create_hit(**HIT, MaxAssignments=5)["HIT"]["HITId"]
    hit = Hit.objects.get()
    assignment = accept_hit(worker=worker, hit=hit)
    with refused(AlreadyWorkedOn, "in_progress"):
        accept_hit(worker=worker, hit=hit)
    submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    assert status_of(mturk, hit_id) == "Assignable"
    with refused(AlreadyWorkedOn, "done_already"):
        accept_hit(worker=worker, hit=hit)


def test_the_next_hit_is_the_oldest_the_worker_has_not_done(mturk, worker, make_worker):
    first, second = (mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2))
    hit_type = Hit.objects.first().hit_type
    assert accept_next(worker=worker, hit_type=hit_type).hit.public_id == first
    assert accept_next(worker=worker, hit_type=hit_type).hit.public_id == second
    with pytest.raises(NoAssignmentsLeft):
        accept_next(worker=worker, hit_type=hit_type)


@pytest.mark.parametrize("seed", range(3))
def test_the_ledger_balances_after_any_story(mturk, requester, make_worker, seed):
    rng = random.Random(seed)
    workers = [make_worker(f"worker{number}") for number in range(4)]
    for _ in range(3):
        values = {"Reward": f"{rng.randint(0, 3)}.{rng.randint(0, 99):02}"}
        mturk.create_hit(**HIT | values, MaxAssignments=rng.randint(1, 4))
    done = 0
    for _ in range(60):
        try:
            _something_happens(rng, requester, workers)
            done += 1
        except MarketplaceError:
            pass  # refused, and so nothing may have moved
        assert_ledger_balances()
    assert done > 10


def _something_happens(rng, requester, workers):
    hit = rng.choice(list(Hit.objects.all()))
    assignment = Assignment.objects.order_by("?").first() if rng.random() < 0.9 else None
    action = rng.randrange(9)
    if action <= 2 or assignment is None:
        accept_hit(worker=rng.choice(workers), hit=hit)
    elif action == 3:
        return_assignment(assignment=assignment)
    elif action == 4:
        submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    elif action == 5:
        approve_assignment(
            requester=requester,
            public_id=assignment.public_id,
            feedback="",
            override_rejection=rng.random() < 0.5,
        )
    elif action == 6:
        reject_assignment(requester=requester, public_id=assignment.public_id, feedback="no")
    elif action == 7:
        clock.advance(timedelta(minutes=rng.choice([1, 19, 60, 60 * 24])))
    elif rng.random() < 0.3:
        delete_hit(requester=requester, public_id=hit.public_id)
    else:
        days = rng.choice([-1, 1, 2])
        update_expiration(
            requester=requester, public_id=hit.public_id, expire_at=clock.now() + days * DAY
        )
