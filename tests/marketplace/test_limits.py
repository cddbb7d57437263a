"""What time does, with a sweep and without one, and the limits of time and money from both sides.

`benchmarks.mutants` moves the limits.
"""

import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from hits.connections import signed_headers
from hits.endpoints import AccessKey
from marketplace import clock, exceptions, models, money
from marketplace.hits import assignments, lifecycle
from marketplace.money.amounts import LARGEST_AMOUNT_USD, parse_amount
from tests.codes import refused
from tests.marketplace.conformance.refusals import status_of, turk_code
from tests.marketplace.conftest import HIT, HIT_TYPE, run, submit
from work import execution, tasks

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_a_rejection_is_overridden_for_thirty_days_and_a_bonus_paid_for_183(mturk, hit_id, worker):
    assignment_id = submit(worker, hit_id)
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    clock.advance(30 * DAY - MINUTE)
    mturk.approve_assignment(AssignmentId=assignment_id, OverrideRejection=True)
    assert models.Assignment.objects.get().status == "Approved"
    bonus = {"AssignmentId": assignment_id, "WorkerId": worker.worker_id}
    bonus |= {"BonusAmount": "1.00", "Reason": "Good work."}
    clock.advance(153 * DAY)  # a minute before the 183 are over
    mturk.send_bonus(**bonus)
    clock.advance(2 * MINUTE)
    assert turk_code(mturk.send_bonus, **bonus) == "InvalidParameterValue"


def test_the_largest_bonus_is_ten_thousand_dollars(make_keys, mturk, hit_id, worker):
    make_keys(deposit="10100")
    bonus = {"AssignmentId": submit(worker, hit_id), "WorkerId": worker.worker_id}
    bonus["Reason"] = "Good work."
    assert turk_code(mturk.send_bonus, **bonus, BonusAmount="10000.01") == "InvalidParameterValue"
    mturk.send_bonus(**bonus, BonusAmount="10000.00")
    assert parse_amount("1000000") == LARGEST_AMOUNT_USD == Decimal(1_000_000)


def test_work_is_approved_at_the_end_of_its_delay_and_not_before(mturk, hit_id, worker):
    submit(worker, hit_id)
    assert models.Hit.objects.get().next_transition_at == models.Hit.objects.get().expiration
    clock.advance(3 * DAY - MINUTE)
    lifecycle.sweep(clock.now())
    assignment = models.Assignment.objects.get()
    assert assignment.status == "Submitted"
    assert models.Hit.objects.get().next_transition_at == assignment.auto_approval_at
    assert assignment.auto_approval_at - assignment.submitted_at == 3 * DAY
    assert lifecycle.sweep(assignment.auto_approval_at) == 1
    assignment.refresh_from_db()
    assert (assignment.status, assignment.approved_at) == ("Approved", assignment.auto_approval_at)
    assert str(money.ledger.balance_of(money.ledger.earnings_account(worker))) == "0.63"
    hit = mturk.create_hit(**HIT | {"AutoApprovalDelayInSeconds": 0})["HIT"]["HITId"]
    assert models.Assignment.objects.get(public_id=submit(worker, hit)).status == "Approved"
    clock.advance(400 * DAY)
    lifecycle.sweep(clock.now())
    assert status_of(mturk, hit_id) == "Disposed"


def test_a_hit_that_is_worked_on_is_not_due_for_disposal(mturk, worker):
    """Else every read would settle it again, from the 120th day on until the deadline."""
    mturk.create_hit(**HIT | {"AssignmentDurationInSeconds": 300 * 86_400})
    assignment = assignments.accept_hit(worker=worker, hit=models.Hit.objects.get())
    clock.advance(130 * DAY)
    assert lifecycle.sweep(clock.now()) == 1  # it expired on the first day
    assert models.Hit.objects.get().next_transition_at == assignment.deadline
    assert lifecycle.sweep(clock.now()) == 0


def test_what_is_held_follows_cheaper_and_dearer_types_and_states(mturk, worker, make_worker):
    def held():
        return mturk.get_account_balance()["OnHoldBalance"]

    hit_id = mturk.create_hit(**HIT, MaxAssignments=3)["HIT"]["HITId"]
    assert held() == "1.89"
    accepted = assignments.accept_hit(worker=worker, hit=models.Hit.objects.get())
    submit(make_worker("ben"), hit_id)
    assert held() == "1.89"
    for reward, total in (
        ("2.00", "4.63"),  # 0.63 submitted, and two that may come for 2.00
        ("0.10", "1.36"),  # 0.63 accepted, 0.63 submitted, 0.10 for whoever comes now
    ):
        other = mturk.create_hit_type(**HIT_TYPE | {"Reward": reward})["HITTypeId"]
        mturk.update_hit_type_of_hit(HITId=hit_id, HITTypeId=other)
        assert held() == total
    assignments.return_assignment(assignment=accepted)
    assert held() == "0.83"
    late = assignments.accept_hit(worker=make_worker("eve"), hit=models.Hit.objects.get())
    mturk.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    assignments.return_assignment(assignment=late)
    assert status_of(mturk, hit_id) == "Reviewable"
    assert held() == "0.63"


SECOND = timedelta(seconds=1)


def test_a_returned_assignment_is_free_again_for_everybody(mturk, hit_id, hit, worker, make_worker):
    for taker in (worker, make_worker("ben"), worker):
        assignment = assignments.accept_hit(worker=taker, hit=hit)
        assert assignment.status == "Accepted"
        assignments.return_assignment(assignment=assignment)
        assert status_of(mturk, hit_id) == "Assignable"
    clock.advance(HOUR)
    assignment = assignments.accept_hit(worker=worker, hit=hit)
    clock.reset()
    assignments.submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    [listed] = mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert listed["SubmitTime"] == listed["AcceptTime"]
    assert listed["AutoApprovalTime"] == listed["SubmitTime"] + 3 * DAY


def test_an_assignment_is_abandoned_and_free_at_its_deadline(mturk, hit, worker, make_worker):
    assignment = assignments.accept_hit(worker=worker, hit=hit)
    assert assignment.deadline - assignment.accepted_at == timedelta(seconds=1200)
    assert lifecycle.sweep(assignment.deadline - SECOND) == 0
    with pytest.raises(exceptions.NoAssignmentsLeft):
        assignments.accept_next(worker=make_worker("ben"), hit_type=hit.hit_type)
    clock.advance(HOUR)
    late = assignments.accept_next(
        worker=make_worker("eve"), hit_type=hit.hit_type
    )  # without any sweep
    assert late.hit == hit
    clock.advance(HOUR)
    with refused(exceptions.AssignmentClosed, "time_over"):
        assignments.submit_assignment(public_id=late.public_id, fields=[("a", ["1"])])
    hit.refresh_from_db()
    assert hit.status == "Assignable"
    swept = assignments.accept_hit(worker=make_worker("fay"), hit=hit)
    assert lifecycle.sweep(swept.deadline) == 1
    for each in (late, swept):
        each.refresh_from_db()
        assert (each.status, each.closed_at) == ("Abandoned", each.deadline)


def test_whoever_works_when_a_hit_expires_may_finish(mturk, hit_id, hit, worker):
    clock.advance(DAY - SECOND)
    assignment = assignments.accept_hit(worker=worker, hit=hit)
    clock.advance(SECOND)
    assert status_of(mturk, hit_id) == "Unassignable"
    assert mturk.get_hit(HITId=hit_id)["HIT"]["NumberOfAssignmentsPending"] == 1
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.63"
    assignments.submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    assert status_of(mturk, hit_id) == "Reviewable"


def test_a_hit_is_disposed_of_after_120_quiet_days(mturk, hit_id, hit, worker):
    clock.advance(DAY)
    assert mturk.get_account_balance()["OnHoldBalance"] == "0.00"
    assert status_of(mturk, hit_id) == "Reviewable"
    with refused(exceptions.WorkRefused, "hit_expired"):
        assignments.accept_hit(worker=worker, hit=hit)
    clock.advance(120 * DAY - MINUTE)
    assert status_of(mturk, hit_id) == "Reviewable"
    clock.advance(MINUTE)
    assert mturk.list_hits()["HITs"] == []
    assert status_of(mturk, hit_id) == "Disposed"


def test_a_hit_that_cannot_be_settled_holds_up_no_other(mturk, hit_id, worker, caplog):
    broken = submit(worker, hit_id)
    # More than was ever held: nobody can pay this.
    models.Assignment.objects.filter(public_id=broken).update(reward_usd=1_000_000)
    clock.advance(SECOND)
    sound = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    clock.advance(40 * DAY)
    assert lifecycle.sweep(clock.now()) == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    statuses = dict(models.Assignment.objects.values_list("public_id", "status"))
    assert statuses == {broken: "Submitted", sound: "Approved"}


def test_the_command_and_the_periodic_job_sweep(mturk, hit_id):
    clock.advance(DAY)
    assert re.findall("[0-9]+", run("sweep_marketplace")) == ["1"]
    assert status_of(mturk, hit_id) == "Reviewable"
    assert re.findall("[0-9]+", run("sweep_marketplace")) == ["0"]
    mturk.create_hit(**HIT)
    clock.advance(DAY)
    job = tasks.request_job(kind="sweep_marketplace")
    assert execution.run_job(job.pk) == "done"
    job.refresh_from_db()
    assert job.message.startswith("1 ")


def test_a_worker_does_a_hit_once_and_next_the_oldest_not_done(mturk, worker, make_worker):
    hit_id = mturk.create_hit(**HIT, MaxAssignments=5)["HIT"]["HITId"]
    hit = models.Hit.objects.get()
    assignment = assignments.accept_hit(worker=worker, hit=hit)
    with refused(exceptions.AlreadyWorkedOn, "in_progress"):
        assignments.accept_hit(worker=worker, hit=hit)
    assignments.submit_assignment(public_id=assignment.public_id, fields=[("a", ["1"])])
    assert status_of(mturk, hit_id) == "Assignable"
    with refused(exceptions.AlreadyWorkedOn, "done_already"):
        assignments.accept_hit(worker=worker, hit=hit)
    first, second = (mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2))
    hit_type = models.Hit.objects.first().hit_type
    assert assignments.accept_next(worker=worker, hit_type=hit_type).hit.public_id == first
    assert assignments.accept_next(worker=worker, hit_type=hit_type).hit.public_id == second
    with pytest.raises(exceptions.NoAssignmentsLeft):
        assignments.accept_next(worker=worker, hit_type=hit_type)


# Texts that not every database keeps, in requests to what Assay has beside the Requester API.
PREFIX = {"annotation_prefix": "{text}"}
REQUESTS = [
    ("statement", PREFIX),
    ("devices", PREFIX),
    ("shared-traits", PREFIX),
    ("recruiting", PREFIX),
    ("appeals/answer", {"assignment_id": "{text}", "answer": "Yes."}),
    ("appeals/answer", {"assignment_id": "3A", "answer": "{text}"}),
    ("recruiting/draft", {"excluded": ["{text}"]}),
    ("webhook-secret", {"{text}": True}),
]


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "half a pair"])
def test_a_text_that_no_database_keeps_is_refused(keys, text):
    key = AccessKey(keys["access_key_id"], keys["secret_access_key"])
    for path, content in REQUESTS:
        address = f"/marketplace-api/v1/{path}"
        body = json.dumps(content).replace("{text}", json.dumps(text)[1:-1]).encode()
        signed = signed_headers(key, f"http://testserver{address}", body) | {"host": "testserver"}
        answer = Client().post(address, body, content_type="application/json", headers=signed)
        assert answer.status_code == 400, path
        assert answer.json()["error"]
