"""Review, payment, bonuses and fees; blocks of workers and messages to them."""

from datetime import timedelta
from decimal import Decimal
from xml.etree import ElementTree

import pytest

from marketplace import clock, exceptions, qualifications
from marketplace.hits.assignments import accept_next, return_assignment
from marketplace.models import Assignment, BonusPayment, HitType, WorkerMessage
from marketplace.money import ledger
from tests.codes import refused
from tests.marketplace.conformance.refusals import (
    accept,
    all_pages,
    balances,
    error_of,
    hand_in,
    publish,
    turk_code,
)
from tests.marketplace.conftest import submit


@pytest.fixture
def assignment(mturk, worker):
    return submit(worker, publish(mturk))


@pytest.fixture
def bonus(worker, assignment):
    ids = {"WorkerId": worker.worker_id, "AssignmentId": assignment}
    return ids | {"BonusAmount": "2.50", "Reason": "Thorough"}


def test_a_bonus_that_can_be_paid_is_paid_once_for_a_token_and_listed(
    mturk, bonus, worker, assignment
):
    for change, code in (
        ({"BonusAmount": "0"}, "InvalidParameterValue"),
        ({"BonusAmount": "100.00"}, "InsufficientFunds"),
        ({"WorkerId": "A0SOMEBODYELSE"}, "InvalidParameterValue"),
    ):
        before = balances(mturk)
        assert turk_code(mturk.send_bonus, **bonus | change) == code
        assert balances(mturk) == before
    mturk.send_bonus(**bonus, UniqueRequestToken="t")
    assert balances(mturk) == ("96.87", "0.63")
    assert ledger.balance_of(ledger.earnings_account(worker)) == Decimal("2.50")
    (paid,) = mturk.list_bonus_payments(AssignmentId=assignment)["BonusPayments"]
    assert {name: paid[name] for name in bonus} == bonus
    hit = mturk.get_assignment(AssignmentId=assignment)["Assignment"]["HITId"]
    assert mturk.list_bonus_payments(HITId=hit)["BonusPayments"] == [paid]
    for wrong in ({}, {"HITId": hit, "AssignmentId": assignment}):
        assert turk_code(mturk.list_bonus_payments, **wrong) == "InvalidParameterValue"
    response = error_of(mturk.send_bonus, **bonus, UniqueRequestToken="t")
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.DuplicateRequest"
    assert BonusPayment.objects.get().public_id in response["Error"]["Message"]
    assert balances(mturk) == ("96.87", "0.63")


def test_amazons_fees_are_held_and_paid_and_masters_cost_five_percent_more(
    mturk, make_worker, settings
):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    bea = make_worker("bea")
    hit = publish(mturk, Reward="1.00", MaxAssignments=2)
    assert balances(mturk) == ("97.60", "2.40")
    ids = {"WorkerId": bea.worker_id, "AssignmentId": submit(bea, hit)}
    mturk.approve_assignment(AssignmentId=ids["AssignmentId"])
    assert balances(mturk) == ("97.60", "1.20")
    mturk.send_bonus(**ids, BonusAmount="0.02", Reason="Quick")
    assert balances(mturk) == ("97.57", "1.20")
    assert ledger.balance_of(ledger.shared_account(ledger.AccountKind.FEES)) == Decimal("0.21")
    masters = [{"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}]
    for n, held in ((1, "2.45"), (10, "16.95")):
        publish(mturk, Reward="1.00", MaxAssignments=n, QualificationRequirements=masters)
        assert balances(mturk)[1] == held


@pytest.fixture
def block(worker):
    return {"WorkerId": worker.worker_id, "Reason": "Straight lines"}


def test_a_blocked_worker_accepts_nothing_of_that_requester_until_unblocked(
    mturk, worker, block, other_lab
):
    hit, under_way = publish(mturk), accept(worker, publish(mturk))
    mturk.create_worker_block(**block)
    hand_in(under_way)
    mturk.approve_assignment(AssignmentId=under_way)
    mturk.create_worker_block(**block | {"Reason": "Bots"})
    assert [each["Reason"] for each in mturk.list_worker_blocks()["WorkerBlocks"]] == ["Bots"]
    for _ in range(2):
        mturk.delete_worker_block(WorkerId=worker.worker_id, Reason="They explained")
    assert mturk.list_worker_blocks()["WorkerBlocks"] == []
    assert accept(worker, hit)
    hit = publish(mturk)
    mturk.create_worker_block(**block)
    assert all_pages(mturk.list_worker_blocks, "WorkerBlocks") == [block]
    hit_type = HitType.objects.get()
    (unmet,) = qualifications.eligibility.qualifies(worker, hit_type)
    assert not unmet.forbids_preview
    assert "Straight lines" not in unmet.reason
    with refused(exceptions.NotQualified, "blocked"):
        accept(worker, hit)
    with refused(exceptions.NotQualified, "blocked"):
        accept_next(worker=worker, hit_type=hit_type)
    assert submit(worker, publish(other_lab))
    assert other_lab.list_worker_blocks()["WorkerBlocks"] == []
    other_lab.delete_worker_block(WorkerId=worker.worker_id)
    assert mturk.list_worker_blocks()["NumResults"] == 1


def test_only_workers_one_knows_are_written_to(mturk, make_worker):
    known, waiting, stranger = (make_worker(name) for name in ("bea", "cleo", "dora"))
    mturk.approve_assignment(AssignmentId=submit(known, publish(mturk)))
    submit(waiting, publish(mturk))
    ids = [known.worker_id, waiting.worker_id, stranger.worker_id, "A0NOBODY", known.worker_id]
    answer = mturk.notify_workers(Subject="Part two", MessageText="Is open.", WorkerIds=ids)
    failed = answer["NotifyWorkersFailureStatuses"]
    failures = {each["WorkerId"]: each["NotifyWorkersFailureCode"] for each in failed}
    refused_ids = (waiting.worker_id, stranger.worker_id, "A0NOBODY")
    assert failures == dict.fromkeys(refused_ids, "HardFailure")
    message = WorkerMessage.objects.get()
    assert (message.worker, message.subject, message.text) == (known, "Part two", "Is open.")


@pytest.fixture
def hit_id(mturk):
    return publish(mturk, MaxAssignments=2)


@pytest.fixture
def assignment_id(worker, hit_id):
    return submit(worker, hit_id, rating="4", reason="fits")


def earned(worker):
    return ledger.balance_of(ledger.earnings_account(worker))


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
            assert turk_code(call, AssignmentId=assignment, **others) == "InvalidAssignmentState"


def test_approval_pays_the_worker_once_from_what_is_held(mturk, worker, hit_id, assignment_id):
    mturk.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="Thank you")
    assert balances(mturk) == ("98.74", "0.63")
    stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert (stored["AssignmentStatus"], stored["RequesterFeedback"]) == ("Approved", "Thank you")
    assert stored["ApprovalTime"] >= stored["SubmitTime"]
    assert mturk.get_hit(HITId=hit_id)["HIT"]["NumberOfAssignmentsCompleted"] == 1
    for call, others in (
        (mturk.approve_assignment, {}),
        (mturk.approve_assignment, {"OverrideRejection": True}),
        (mturk.reject_assignment, {"RequesterFeedback": "no"}),
    ):
        assert turk_code(call, AssignmentId=assignment_id, **others) == "InvalidAssignmentState"
    mturk.approve_assignment(AssignmentId=submit(worker, publish(mturk, Reward="0")))
    assert str(earned(worker)) == "0.63"


def test_rejection_gives_the_money_back_until_it_is_overridden(
    mturk, worker, hit_id, assignment_id
):
    mturk.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Empty.")
    assert balances(mturk) == ("99.37", "0.63")
    assert earned(worker) == 0
    hit = mturk.get_hit(HITId=hit_id)["HIT"]
    assert (hit["NumberOfAssignmentsAvailable"], hit["NumberOfAssignmentsCompleted"]) == (1, 1)

    def check_rejected():
        stored = mturk.get_assignment(AssignmentId=assignment_id)["Assignment"]
        assert (stored["AssignmentStatus"], stored["RequesterFeedback"]) == ("Rejected", "Empty.")

    check_rejected()
    code = turk_code(mturk.approve_assignment, AssignmentId=assignment_id)
    assert code == "InvalidAssignmentState"
    override = {"AssignmentId": assignment_id, "OverrideRejection": True}
    dear = publish(mturk, Reward="99.37", Title="Dear")
    assert turk_code(mturk.approve_assignment, **override) == "InsufficientFunds"
    check_rejected()
    assert earned(worker) == 0
    mturk.update_expiration_for_hit(HITId=dear, ExpireAt=0)
    bonus = {"WorkerId": worker.worker_id, "BonusAmount": "2.50", "Reason": "Thorough"}
    mturk.send_bonus(**bonus, AssignmentId=assignment_id)
    assert balances(mturk) == ("96.87", "0.63")
    mturk.approve_assignment(**override)
    assert str(earned(worker)) == "3.13"
    assert balances(mturk) == ("96.24", "0.63")
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"


def test_a_rejection_is_final_after_thirty_days_or_with_its_hit(mturk, make_worker):
    late, deleted = publish(mturk), publish(mturk)
    first, second = submit(make_worker("ben"), late), submit(make_worker("eve"), deleted)
    for assignment in (first, second):
        mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Empty.")
    mturk.delete_hit(HITId=deleted)
    for rejected in (second, first):
        parameters = {"AssignmentId": rejected, "OverrideRejection": True}
        assert turk_code(mturk.approve_assignment, **parameters) == "InvalidAssignmentState"
        clock.advance(timedelta(days=30, seconds=1))


def test_submitted_work_is_listed_with_its_answer_times_and_status(
    mturk, assignment_id, worker, hit_id, make_worker
):
    for feedback in ("a\x07b", "\x1f"):
        parameters = {"AssignmentId": assignment_id, "RequesterFeedback": feedback}
        assert turk_code(mturk.reject_assignment, **parameters) == "InvalidParameterValue"
    (listed,) = mturk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert (listed["AssignmentId"], listed["WorkerId"]) == (assignment_id, worker.worker_id)
    assert listed["AssignmentStatus"] == "Submitted"
    assert listed["AutoApprovalTime"] - listed["SubmitTime"] == timedelta(days=3)
    assert listed["Deadline"] - listed["AcceptTime"] == timedelta(seconds=1200)
    texts = [element.text for element in ElementTree.fromstring(listed["Answer"]).iter()]
    assert texts == [None, None, "rating", "4", None, "reason", "fits"]
    answer = mturk.get_assignment(AssignmentId=assignment_id)
    assert answer["Assignment"]["AssignmentId"] == assignment_id
    assert answer["HIT"] == mturk.get_hit(HITId=hit_id)["HIT"]
    second = submit(make_worker("ben"), hit_id)
    mturk.approve_assignment(AssignmentId=assignment_id)

    def listed(*statuses):
        response = mturk.list_assignments_for_hit(HITId=hit_id, AssignmentStatuses=statuses)
        return [each["AssignmentId"] for each in response["Assignments"]]

    assert listed("Approved") == [assignment_id]
    assert listed("Submitted", "Rejected") == [second]
    assert listed() == [assignment_id, second]
