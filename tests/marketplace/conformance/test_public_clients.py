"""Ways in which programs written for Amazon use the API: loops until a page is empty, boto3's
paginators, errors distinguished by code and text. Each test names whose way it is; none of their
code is here."""

import re
from datetime import UTC, datetime

import pytest

from tests.marketplace.conformance.refusals import error_of, publish
from tests.marketplace.conformance.test_qualification_types import CHESS
from tests.marketplace.conftest import submit

# The beginning of a text of Amazon's that programs look for.
WRONG_STATUS = "This operation can be called with a status of:"


def test_boto3s_own_paginators_come_to_an_end(mturk, worker):
    hit = publish(mturk)
    assignment = submit(worker, hit)
    type_id = mturk.create_qualification_type(**CHESS)["QualificationType"]["QualificationTypeId"]
    mturk.associate_qualification_with_worker(
        QualificationTypeId=type_id, WorkerId=worker.worker_id
    )
    required = {"QualificationTypeId": type_id, "Comparator": "DoesNotExist"}
    publish(mturk, QualificationRequirements=[required])
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Bots")
    mturk.send_bonus(
        WorkerId=worker.worker_id, AssignmentId=assignment, BonusAmount="0.10", Reason="Quick"
    )
    of_type, of_hit = {"QualificationTypeId": type_id}, {"HITId": hit}
    for operation, member, parameters, least in (
        ("list_hits", "HITs", {}, 2),
        ("list_reviewable_hits", "HITs", {}, 1),
        ("list_assignments_for_hit", "Assignments", of_hit, 1),
        ("list_bonus_payments", "BonusPayments", of_hit, 1),
        ("list_qualification_types", "QualificationTypes", {"MustBeRequestable": False}, 2),
        ("list_qualification_requests", "QualificationRequests", {}, 0),
        ("list_worker_blocks", "WorkerBlocks", {}, 1),
        ("list_workers_with_qualification_type", "Qualifications", of_type, 1),
        ("list_hits_for_qualification_type", "HITs", of_type, 1),
    ):
        paginator = mturk.get_paginator(operation)
        pages = list(paginator.paginate(**parameters, PaginationConfig={"PageSize": 1}))
        rows = [str(row) for page in pages for row in page[member]]
        assert len(set(rows)) == len(rows) >= least, operation
        assert (pages[-1]["NumResults"], "NextToken" in pages[-1]) == (0, False), operation


@pytest.mark.parametrize("at", [0, datetime(2015, 1, 1, tzinfo=UTC), "2015-01-01"])
def test_a_hit_is_expired_with_whatever_moment_of_the_past(mturk, at):
    """Scripts send 0, datetime(2015, 1, 1) or a string."""
    hit = publish(mturk)
    mturk.update_expiration_for_hit(HITId=hit, ExpireAt=at)
    assert mturk.get_hit(HITId=hit)["HIT"]["HITStatus"] == "Reviewable"


def test_a_second_approval_is_distinguished_from_other_errors_by_its_text(mturk, worker):
    """Mephisto reads the state out of the message to make approving idempotent."""
    assignment = submit(worker, publish(mturk))
    mturk.approve_assignment(AssignmentId=assignment)
    message = error_of(mturk.approve_assignment, AssignmentId=assignment)["Error"]["Message"]
    assert message.startswith(f"{WRONG_STATUS} Submitted (")


def test_a_missing_hit_is_an_error_of_the_service_and_says_so(mturk):
    """Dallinger reads the text."""
    message = error_of(mturk.get_hit, HITId="XYZ")["Error"]["Message"]
    assert re.fullmatch(r"Hit XYZ does not exist\. \(\d{13}\)", message)
