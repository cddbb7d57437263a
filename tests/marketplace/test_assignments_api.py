"""Reviewing and paying, through an unmodified boto3 client."""

from datetime import timedelta
from xml.etree import ElementTree

import pytest

from marketplace import clock
from marketplace.hits.assignments import return_assignment
from marketplace.models import Assignment
from marketplace.money import ledger
from tests.marketplace.conformance.refusals import accept, balances, publish, turk_code
from tests.marketplace.conftest import submit


@pytest.fixture
def hit_id(mturk):
    return publish(mturk, MaxAssignments=2)


@pytest.fixture
def assignment_id(worker, hit_id):
    return submit(worker, hit_id, rating="4", reason="fits")


def earned(worker):
    return ledger.balance_of(ledger.earnings_account(worker))


def test_submitted_work_is_listed_with_its_answer_and_times(mturk, worker, hit_id, assignment_id):
    (listed,) = mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert listed["AssignmentId"] == assignment_id
    assert listed["WorkerId"] == worker.worker_id
    assert listed["AssignmentStatus"] == "Submitted"
    assert listed["AutoApprovalTime"] - listed["SubmitTime"] == timedelta(days=3)
    assert listed["Deadline"] - listed["AcceptTime"] == timedelta(seconds=1200)
    texts = [element.text for element in ElementTree.fromstring(listed["Answer"]).iter()]
    assert texts == [None, None, "rating", "4", None, "reason", "fits"]


def test_one_assignment_comes_with_its_hit(mturk, hit_id, assignment_id):
    answer = mturk.get_assignment(AssignmentId=assignment_id)
    assert answer["Assignment"]["AssignmentId"] == assignment_id
    assert answer["HIT"] == mturk.get_hit(HITId=hit_id)["HIT"]


def test_work_that_is_not_handed_in_is_neither_read_nor_decided_nor_rewarded(mturk, worker, hit_id):
    assignment = accept(worker, hit_id)
    assert mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"] == []
    bonus = {"WorkerId": worker.worker_id, "BonusAmount": "1.00", "Reason": "Early"}
    for is_returned in (False, True):
        if is_returned:
            return_assignment(assignment=Assignment.objects.get(public_id=assignment))
        for call, others in (
            (mturk.get_assignment, {}),
            (mturk.approve_assignment, {}),
            (mturk.reject_assignment, {"RequesterFeedback": "no"}),
            (mturk.send_bonus, bonus),
        ):
            code = turk_code(call, AssignmentId=assignment, **others)
            assert code == "InvalidAssignmentState"


def test_the_statuses_asked_for_are_the_statuses_listed(mturk, make_worker, hit_id, assignment_id):
    second = submit(make_worker("ben"), hit_id)
    mturk.approve_assignment(AssignmentId=assignment_id)

    def listed(*statuses):
        response = mturk.list_assignments_for_hit(HITId=hit_id, AssignmentStatuses=statuses)
        return [each["AssignmentId"] for each in response["Assignments"]]

    assert listed("Approved") == [assignment_id]
    assert listed("Submitted", "Rejected") == [second]
    assert listed() == [assignment_id, second]


def test_approval_pays_the_worker_from_what_is_held(mturk, worker, hit_id, assignment_id):
    mturk.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="Thank you")
    assert balances(mturk) == ("98.74", "0.63")
    assert str(earned(worker)) == "0.63"
    stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert (stored["AssignmentStatus"], stored["RequesterFeedback"]) == ("Approved", "Thank you")
    assert stored["ApprovalTime"] >= stored["SubmitTime"]
    assert mturk.get_hit(HITId=hit_id)["HIT"]["NumberOfAssignmentsCompleted"] == 1


def test_what_is_approved_is_neither_paid_again_nor_rejected(mturk, worker, assignment_id):
    mturk.approve_assignment(AssignmentId=assignment_id)
    for call, others in (
        (mturk.approve_assignment, {}),
        (mturk.approve_assignment, {"OverrideRejection": True}),
        (mturk.reject_assignment, {"RequesterFeedback": "no"}),
    ):
        code = turk_code(call, AssignmentId=assignment_id, **others)
        assert code == "InvalidAssignmentState"
    assert str(earned(worker)) == "0.63"


def test_rejection_gives_the_money_back_and_not_the_assignment(
    mturk, worker, hit_id, assignment_id
):
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    assert balances(mturk) == ("99.37", "0.63")
    assert earned(worker) == 0
    hit = mturk.get_hit(HITId=hit_id)["HIT"]
    assert (hit["NumberOfAssignmentsAvailable"], hit["NumberOfAssignmentsCompleted"]) == (1, 1)
    stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert (stored["AssignmentStatus"], stored["RequesterFeedback"]) == ("Rejected", "Empty.")


def test_a_rejection_is_overridden_only_when_asked(mturk, worker, assignment_id):
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    code = turk_code(mturk.approve_assignment, AssignmentId=assignment_id)
    assert code == "InvalidAssignmentState"
    mturk.approve_assignment(AssignmentId=assignment_id, OverrideRejection=True)
    assert str(earned(worker)) == "0.63"
    assert balances(mturk) == ("98.74", "0.63")
    override = {"AssignmentId": assignment_id, "OverrideRejection": True}
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"


def test_a_rejection_is_final_after_thirty_days_or_with_its_hit(mturk, make_worker):
    late, deleted = publish(mturk), publish(mturk)
    first, second = submit(make_worker("ben"), late), submit(make_worker("eve"), deleted)
    for assignment in (first, second):
        mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Empty.")
    mturk.delete_hit(HITId=deleted)
    parameters = {"AssignmentId": second, "OverrideRejection": True}
    assert turk_code(mturk.approve_assignment, **parameters) == "InvalidAssignmentState"
    clock.advance(timedelta(days=30, seconds=1))
    parameters = {"AssignmentId": first, "OverrideRejection": True}
    assert turk_code(mturk.approve_assignment, **parameters) == "InvalidAssignmentState"


def test_overriding_a_rejection_takes_money_that_is_there(mturk, worker, assignment_id):
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    publish(mturk, Reward="99.37", Title="Dear")
    parameters = {"AssignmentId": assignment_id, "OverrideRejection": True}
    assert turk_code(mturk.approve_assignment, **parameters) == "InsufficientFunds"
    stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert stored["AssignmentStatus"] == "Rejected"
    assert earned(worker) == 0


@pytest.mark.parametrize("feedback", ["a\x07b", "\x1f"])
def test_feedback_with_control_characters_is_refused(mturk, assignment_id, feedback):
    parameters = {"AssignmentId": assignment_id, "RequesterFeedback": feedback}
    assert turk_code(mturk.reject_assignment, **parameters) == "InvalidParameterValue"


def test_work_for_nothing_can_be_approved_too(mturk, worker):
    assignment = submit(worker, publish(mturk, Reward="0"))
    mturk.approve_assignment(AssignmentId=assignment)
    assert earned(worker) == 0


def test_a_fee_is_held_and_paid_where_the_marketplace_charges_one(mturk, worker, settings):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    hit = publish(mturk, MaxAssignments=10)
    assert balances(mturk) == ("91.20", "8.80")  # 10 x (0.63 + 40%, half up: 0.25)
    mturk.approve_assignment(AssignmentId=submit(worker, hit))
    assert balances(mturk) == ("91.20", "7.92")
    assert str(earned(worker)) == "0.63"
    assert str(ledger.balance_of(ledger.fees_account())) == "0.25"
