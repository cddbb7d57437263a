"""Blocks and messages."""

import pytest

from marketplace.exceptions import NotQualified
from marketplace.hits.assignments import accept_next
from marketplace.models import HitType, WorkerMessage
from marketplace.qualifications import eligibility
from tests.codes import refused
from tests.marketplace.conformance.refusals import accept, all_pages, hand_in, publish
from tests.marketplace.conftest import submit


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
