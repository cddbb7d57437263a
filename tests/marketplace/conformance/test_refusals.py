"""What is another requester's or does not exist, asked for through every operation."""

import pytest
from botocore import xform_name

from marketplace.models import QualificationType
from marketplace.qualifications.requests import request_qualification
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT, HIT_TYPE, HTML_QUESTION, submit

ADULT = "00000000000000000060"  # a type of the marketplace's own
NO_HIT, NO_HIT_TYPE = "HITDoesNotExist", "HITTypeDoesNotExist"
NO_ASSIGNMENT = "AssignmentDoesNotExist"
NO_TYPE, NO_REQUEST = "QualificationTypeDoesNotExist", "QualificationRequestDoesNotExist"
LIVE = {"LifetimeInSeconds": 60, "Question": HTML_QUESTION}
NO = {"RequesterFeedback": "no"}

# The operation, the id that it is given, its other parameters, and the code of the refusal.
REFUSALS = [
    ("GetHIT", "HITId", {}, NO_HIT),
    ("DeleteHIT", "HITId", {}, NO_HIT),
    ("UpdateExpirationForHIT", "HITId", {"ExpireAt": 0}, NO_HIT),
    ("UpdateHITReviewStatus", "HITId", {}, NO_HIT),
    ("UpdateHITTypeOfHIT", "HITId", {"HITTypeId": "OWN"}, NO_HIT),
    ("CreateAdditionalAssignmentsForHIT", "HITId", {"NumberOfAdditionalAssignments": 1}, NO_HIT),
    ("ListAssignmentsForHIT", "HITId", {}, NO_HIT),
    ("ListReviewPolicyResultsForHIT", "HITId", {}, NO_HIT),
    ("ListBonusPayments", "HITId", {}, NO_HIT),
    ("CreateHITWithHITType", "HITTypeId", LIVE, NO_HIT_TYPE),
    ("UpdateHITTypeOfHIT", "HITTypeId", {"HITId": "OWN"}, NO_HIT_TYPE),
    ("ListReviewableHITs", "HITTypeId", {}, NO_HIT_TYPE),
    ("UpdateNotificationSettings", "HITTypeId", {"Active": True}, NO_HIT_TYPE),
    ("GetAssignment", "AssignmentId", {}, NO_ASSIGNMENT),
    ("ApproveAssignment", "AssignmentId", {}, NO_ASSIGNMENT),
    ("RejectAssignment", "AssignmentId", NO, NO_ASSIGNMENT),
    ("GetFileUploadURL", "AssignmentId", {"QuestionIdentifier": "photo"}, NO_ASSIGNMENT),
    ("ListBonusPayments", "AssignmentId", {}, NO_ASSIGNMENT),
    (
        "SendBonus",
        "AssignmentId",
        {"WorkerId": "WORKER", "BonusAmount": "0.10", "Reason": "Good"},
        NO_ASSIGNMENT,
    ),
    ("UpdateQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("DeleteQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListWorkersWithQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListQualificationRequests", "QualificationTypeId", {}, NO_TYPE),
    ("AssociateQualificationWithWorker", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("DisassociateQualificationFromWorker", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("GetQualificationScore", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("AcceptQualificationRequest", "QualificationRequestId", {}, NO_REQUEST),
    ("RejectQualificationRequest", "QualificationRequestId", {}, NO_REQUEST),
]
READABLE_BY_ALL = [
    ("GetQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListHITsForQualificationType", "QualificationTypeId", {}, NO_TYPE),
]
OF_WORKERS = [
    ("AssociateQualificationWithWorker", "QualificationTypeId"),
    ("GetQualificationScore", "QualificationTypeId"),
    ("CreateWorkerBlock", None),
    ("DeleteWorkerBlock", None),
]


@pytest.fixture
def ids(mturk, worker):
    """One of everything that a requester has."""
    hit = mturk.create_hit(**HIT)["HIT"]
    chess = mturk.create_qualification_type(
        Name="Chess", Description="d", QualificationTypeStatus="Active"
    )["QualificationType"]["QualificationTypeId"]
    stored = QualificationType.objects.get()
    assignment = submit(worker, hit["HITId"])
    request = request_qualification(worker=worker, qualification_type=stored).public_id
    mturk.associate_qualification_with_worker(QualificationTypeId=chess, WorkerId=worker.worker_id)
    return {
        "HITId": hit["HITId"],
        "HITTypeId": hit["HITTypeId"],
        "AssignmentId": assignment,
        "QualificationTypeId": chess,
        "QualificationRequestId": request,
    }


def codes(client, rows, ids, own):
    """The codes with which the operations refuse these ids."""
    found = []
    for operation, name, others, _code in rows:
        filled = {key: own.get((key, value), value) for key, value in others.items()}
        call = getattr(client, xform_name(operation))
        found.append((operation, turk_code(call, **{name: ids[name]} | filled)))
    return found


def test_what_is_another_requesters_or_missing_does_not_exist(mturk, other_lab, ids, worker):
    own_hit = other_lab.create_hit(**HIT)["HIT"]["HITId"]
    own_type = other_lab.create_hit_type(**HIT_TYPE)["HITTypeId"]
    own = {("HITId", "OWN"): own_hit, ("HITTypeId", "OWN"): own_type}
    own |= {("WorkerId", "WORKER"): worker.worker_id}
    missing = dict.fromkeys(ids, "NONE")
    rows = [*REFUSALS, *READABLE_BY_ALL]
    expected = [(operation, code) for operation, _, _, code in rows]
    assert codes(other_lab, REFUSALS, ids, own) == expected[: len(REFUSALS)]
    assert codes(other_lab, rows, missing, own) == expected
    of_theirs = [row for row in REFUSALS if row[1] == "QualificationTypeId"][:5]
    for operation, code in codes(mturk, of_theirs, {"QualificationTypeId": ADULT}, own):
        assert code == NO_TYPE, operation
    assert other_lab.list_hits()["NumResults"] == 1
    assert other_lab.list_qualification_requests()["NumResults"] == 0
    kept = mturk.get_assignment(AssignmentId=ids["AssignmentId"])["Assignment"]
    assert kept["AssignmentStatus"] == "Submitted"


def test_a_worker_who_does_not_exist_is_an_invalid_parameter(mturk, ids):
    for operation, name in OF_WORKERS:
        parameters = {"WorkerId": "A0NOBODY"} | ({name: ids[name]} if name else {})
        if operation == "CreateWorkerBlock":
            parameters["Reason"] = "Bots"
        code = turk_code(getattr(mturk, xform_name(operation)), **parameters)
        assert code == "InvalidParameterValue", operation
