"""Bonuses, fees and what they do to balances; blocks of workers and messages to them."""

from decimal import Decimal

import pytest

from marketplace.exceptions import NotQualified
from marketplace.hits.assignments import accept_next
from marketplace.models import BonusPayment, HitType, WorkerMessage
from marketplace.money import ledger
from marketplace.qualifications import eligibility
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
    return {
        "WorkerId": worker.worker_id,
        "AssignmentId": assignment,
        "BonusAmount": "2.50",
        "Reason": "Thorough",
    }


def test_a_bonus_is_paid_at_once_and_listed(mturk, worker, bonus, assignment):
    mturk.send_bonus(**bonus)
    assert balances(mturk) == ("96.87", "0.63")
    assert ledger.balance_of(ledger.earnings_account(worker)) == Decimal("2.50")
    (paid,) = mturk.list_bonus_payments(AssignmentId=assignment)["BonusPayments"]
    assert {name: paid[name] for name in bonus} == bonus
    hit = mturk.get_assignment(AssignmentId=assignment)["Assignment"]["HITId"]
    assert mturk.list_bonus_payments(HITId=hit)["BonusPayments"] == [paid]


def test_any_number_of_bonuses_can_be_paid_and_are_listed_page_by_page(mturk, bonus, assignment):
    for cents in range(1, 6):
        mturk.send_bonus(**bonus | {"BonusAmount": f"0.0{cents}"})
    payments = all_pages(
        mturk.list_bonus_payments, "BonusPayments", AssignmentId=assignment, MaxResults=2
    )
    assert [each["BonusAmount"] for each in payments] == [f"0.0{cents}" for cents in range(1, 6)]


def test_a_repeated_token_pays_nothing_and_names_the_payment(mturk, bonus):
    mturk.send_bonus(**bonus, UniqueRequestToken="t")
    before = balances(mturk)
    response = error_of(mturk.send_bonus, **bonus, UniqueRequestToken="t")
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.DuplicateRequest"
    assert BonusPayment.objects.get().public_id in response["Error"]["Message"]
    assert balances(mturk) == before


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"BonusAmount": "0"}, "InvalidParameterValue"),
        ({"BonusAmount": "10000.01"}, "InvalidParameterValue"),
        ({"BonusAmount": "100.00"}, "InsufficientFunds"),
        ({"WorkerId": "A0SOMEBODYELSE"}, "InvalidParameterValue"),
    ],
)
def test_a_bonus_that_cannot_be_paid_is_refused(mturk, bonus, change, code):
    before = balances(mturk)
    assert turk_code(mturk.send_bonus, **bonus | change) == code
    assert balances(mturk) == before


def test_rejected_work_can_have_a_bonus(mturk, bonus, assignment):
    mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Incomplete")
    mturk.send_bonus(**bonus)
    assert balances(mturk) == ("97.50", "0.00")


def test_bonuses_are_listed_for_one_hit_or_one_assignment(mturk, assignment):
    assert turk_code(mturk.list_bonus_payments) == "InvalidParameterValue"
    both = {"HITId": "HIT1", "AssignmentId": assignment}
    assert turk_code(mturk.list_bonus_payments, **both) == "InvalidParameterValue"


def test_amazons_fees_are_held_and_paid(mturk, make_worker, settings):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    bea = make_worker("bea")
    hit = publish(mturk, Reward="1.00", MaxAssignments=2)
    assert balances(mturk) == ("97.60", "2.40")
    assignment = submit(bea, hit)
    mturk.approve_assignment(AssignmentId=assignment)
    assert balances(mturk) == ("97.60", "1.20")
    mturk.send_bonus(
        WorkerId=bea.worker_id, AssignmentId=assignment, BonusAmount="0.02", Reason="Quick"
    )
    assert balances(mturk) == ("97.57", "1.20")
    assert ledger.balance_of(ledger.fees_account()) == Decimal("0.21")


def test_masters_cost_five_percent_more(mturk, settings):
    settings.MARKETPLACE_FEE_SCHEDULE = "mturk"
    masters = [{"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}]
    publish(mturk, Reward="1.00", QualificationRequirements=masters)
    assert balances(mturk)[1] == "1.25"
    publish(mturk, Reward="1.00", MaxAssignments=10, QualificationRequirements=masters)
    assert balances(mturk)[1] == "15.75"


@pytest.fixture
def block(worker):
    return {"WorkerId": worker.worker_id, "Reason": "Straight lines"}


def test_a_blocked_worker_accepts_nothing_of_that_requester(mturk, worker, block, other_lab):
    hit = publish(mturk)
    mturk.create_worker_block(**block)
    assert all_pages(mturk.list_worker_blocks, "WorkerBlocks") == [block]
    hit_type = HitType.objects.get()
    (unmet,) = eligibility.qualifies(worker, hit_type)
    assert not unmet.forbids_preview
    assert "Straight lines" not in unmet.reason
    with refused(NotQualified, "blocked"):
        accept(worker, hit)
    with refused(NotQualified, "blocked"):
        accept_next(worker=worker, hit_type=hit_type)
    assert submit(worker, publish(other_lab))
    assert other_lab.list_worker_blocks()["WorkerBlocks"] == []
    other_lab.delete_worker_block(WorkerId=worker.worker_id)
    assert mturk.list_worker_blocks()["NumResults"] == 1


def test_what_is_under_way_when_the_block_comes_may_be_finished(mturk, worker, block):
    assignment = accept(worker, publish(mturk))
    mturk.create_worker_block(**block)
    hand_in(assignment)
    mturk.approve_assignment(AssignmentId=assignment)


def test_blocking_again_changes_the_reason_and_unblocking_again_nothing(mturk, worker, block):
    hit = publish(mturk)
    mturk.create_worker_block(**block)
    mturk.create_worker_block(**block | {"Reason": "Bots"})
    assert [each["Reason"] for each in mturk.list_worker_blocks()["WorkerBlocks"]] == ["Bots"]
    for _ in range(2):
        mturk.delete_worker_block(WorkerId=worker.worker_id, Reason="They explained")
    assert mturk.list_worker_blocks()["WorkerBlocks"] == []
    assert accept(worker, hit)


def test_blocks_are_listed_page_by_page(mturk, make_worker):
    workers = [make_worker(f"worker{number}").worker_id for number in range(5)]
    for worker_id in workers:
        mturk.create_worker_block(WorkerId=worker_id, Reason="Bots")
    blocks = all_pages(mturk.list_worker_blocks, "WorkerBlocks", MaxResults=2)
    assert [each["WorkerId"] for each in blocks] == workers


def test_only_workers_one_knows_are_written_to(mturk, make_worker):
    known, waiting, stranger = (make_worker(name) for name in ("bea", "cleo", "dora"))
    mturk.approve_assignment(AssignmentId=submit(known, publish(mturk)))
    submit(waiting, publish(mturk))
    ids = [known.worker_id, waiting.worker_id, stranger.worker_id, "A0NOBODY", known.worker_id]
    answer = mturk.notify_workers(Subject="Part two", MessageText="Is open.", WorkerIds=ids)
    failures = {
        each["WorkerId"]: each["NotifyWorkersFailureCode"]
        for each in answer["NotifyWorkersFailureStatuses"]
    }
    refused_ids = (waiting.worker_id, stranger.worker_id, "A0NOBODY")
    assert failures == dict.fromkeys(refused_ids, "HardFailure")
    message = WorkerMessage.objects.get()
    assert (message.worker, message.subject, message.text) == (known, "Part two", "Is open.")
