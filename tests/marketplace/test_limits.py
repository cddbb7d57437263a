"""Where limits of time and money lie, from both sides of each. `benchmarks.mutants` moves them."""

from datetime import timedelta
from decimal import Decimal

import pytest

from marketplace import clock
from marketplace.hits import lifecycle
from marketplace.hits.assignments import accept_hit, return_assignment
from marketplace.models import Assignment, Hit
from marketplace.money.amounts import LARGEST_AMOUNT_USD, parse_amount
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT, HIT_TYPE, submit

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_a_rejection_can_be_overridden_for_thirty_days(mturk, hit_id, worker):
    assignment_id = submit(worker, hit_id)
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    clock.advance(30 * DAY - MINUTE)
    mturk.approve_assignment(AssignmentId=assignment_id, OverrideRejection=True)
    assert Assignment.objects.get().status == "Approved"


@pytest.mark.parametrize("is_late", [False, True])
def test_a_bonus_can_be_paid_for_183_days(mturk, hit_id, worker, is_late):
    bonus = {"AssignmentId": submit(worker, hit_id), "WorkerId": worker.worker_id}
    bonus |= {"BonusAmount": "1.00", "Reason": "Good work."}
    clock.advance(183 * DAY + (MINUTE if is_late else -MINUTE))
    if is_late:
        assert turk_code(mturk.send_bonus, **bonus) == "InvalidParameterValue"
    else:
        mturk.send_bonus(**bonus)


def test_the_largest_bonus_is_ten_thousand_dollars(make_keys, mturk, hit_id, worker):
    make_keys(deposit="10100")
    bonus = {"AssignmentId": submit(worker, hit_id), "WorkerId": worker.worker_id}
    bonus["Reason"] = "Good work."
    code = turk_code(mturk.send_bonus, **bonus, BonusAmount="10000.01")
    assert code == "InvalidParameterValue"
    mturk.send_bonus(**bonus, BonusAmount="10000.00")


def test_work_is_approved_at_the_end_of_its_delay_and_not_before(mturk, hit_id, worker):
    submit(worker, hit_id)
    clock.advance(3 * DAY - MINUTE)
    lifecycle.sweep(clock.now())
    assignment = Assignment.objects.get()
    assert assignment.status == "Submitted"
    assert assignment.auto_approval_at - assignment.submitted_at == 3 * DAY
    assert lifecycle.sweep(assignment.auto_approval_at) == 1
    assignment.refresh_from_db()
    assert (assignment.status, assignment.approved_at) == ("Approved", assignment.auto_approval_at)


def test_an_assignment_is_abandoned_at_its_deadline_and_not_before(hit_id, worker):
    assignment = accept_hit(worker=worker, hit=Hit.objects.get())
    assert assignment.deadline - assignment.accepted_at == timedelta(seconds=1200)
    assert lifecycle.sweep(assignment.deadline - timedelta(seconds=1)) == 0
    assert lifecycle.sweep(assignment.deadline) == 1
    assignment.refresh_from_db()
    assert assignment.status == "Abandoned"


def test_a_hit_that_is_worked_on_is_not_due_for_disposal(mturk, worker):
    """Else every read would settle it again, from the 120th day on until the deadline."""
    values = {"AssignmentDurationInSeconds": 300 * 86_400}
    mturk.create_hit(**HIT | values)
    assignment = accept_hit(worker=worker, hit=Hit.objects.get())
    clock.advance(130 * DAY)
    assert lifecycle.sweep(clock.now()) == 1  # it expired on the first day
    assert Hit.objects.get().next_transition_at == assignment.deadline
    assert lifecycle.sweep(clock.now()) == 0


def test_a_hit_that_waits_for_a_decision_is_due_when_that_is_made_for_it(mturk, hit_id, worker):
    submit(worker, hit_id)
    assignment, hit = Assignment.objects.get(), Hit.objects.get()
    assert hit.next_transition_at == hit.expiration
    clock.advance(DAY)
    lifecycle.sweep(clock.now())
    assert Hit.objects.get().next_transition_at == assignment.auto_approval_at


def test_what_is_held_follows_assignments_prices_and_states(mturk, worker, make_worker):
    def held():
        return mturk.get_account_balance()["OnHoldBalance"]

    hit_id = mturk.create_hit(**HIT, MaxAssignments=3)["HIT"]["HITId"]
    assert held() == "1.89"
    accepted = accept_hit(worker=worker, hit=Hit.objects.get())
    submit(make_worker("ben"), hit_id)
    assert held() == "1.89"
    cheaper = mturk.create_hit_type(**HIT_TYPE | {"Reward": "0.10"})
    mturk.update_hit_type_of_hit(HITId=hit_id, HITTypeId=cheaper["HITTypeId"])
    assert held() == "1.36"  # 0.63 accepted, 0.63 submitted, 0.10 for whoever comes now
    return_assignment(assignment=accepted)
    assert held() == "0.83"
    clock.advance(DAY)
    assert held() == "0.63"


def test_a_dearer_type_makes_an_accepted_assignment_dearer(mturk, worker):
    hit_id = mturk.create_hit(**HIT)["HIT"]["HITId"]
    accept_hit(worker=worker, hit=Hit.objects.get())
    dearer = mturk.create_hit_type(**HIT_TYPE | {"Reward": "2.00"})
    mturk.update_hit_type_of_hit(HITId=hit_id, HITTypeId=dearer["HITTypeId"])
    assert mturk.get_account_balance()["OnHoldBalance"] == "2.00"


def test_the_largest_amount_is_a_million_dollars():
    assert parse_amount("1000000") == LARGEST_AMOUNT_USD == Decimal(1_000_000)
