"""One valid request for every operation, for tests that break it in one place."""

from typing import Any

from tests.marketplace.conformance.refusals import ANSWER_KEY, QUESTION_FORM
from tests.marketplace.conftest import HIT, HIT_TYPE, HTML_QUESTION

REQUIREMENT = {
    "QualificationTypeId": "00000000000000000071",
    "Comparator": "In",
    "LocaleValues": [{"Country": "US", "Subdivision": "CA"}],
    "ActionsGuarded": "Accept",
    "RequiredToPreview": False,
}
POLICY = {
    "PolicyName": "ScoreMyKnownAnswers/2011-09-01",
    "Parameters": [
        {"Key": "AnswerKey", "MapEntries": [{"Key": "rating", "Values": ["4"]}]},
        {"Key": "ApproveReason", "Values": ["Right"]},
    ],
}
PLURALITY = {
    "PolicyName": "SimplePlurality/2011-09-01",
    "Parameters": [
        {"Key": "QuestionIds", "Values": ["rating"]},
        {"Key": "QuestionAgreementThreshold", "Values": ["50"]},
    ],
}
PAGE = {"NextToken": "token", "MaxResults": 10}
ONE_HIT = {"HITId": "HIT1"}
ONE_TYPE = {"QualificationTypeId": "TYPE1"}
ONE_WORKER = {"WorkerId": "A1WORKER"}
ONE_ASSIGNMENT = {"AssignmentId": "ASSIGNMENT1"}
ONE_REQUEST = {"QualificationRequestId": "REQUEST1"}
NOTIFICATION = {
    "Destination": "https://sqs.us-east-1.amazonaws.com/1/queue",
    "Transport": "SQS",
    "Version": "2006-05-05",
    "EventTypes": ["HITReviewable"],
}
TEST = {
    "Test": QUESTION_FORM,
    "AnswerKey": ANSWER_KEY,
    "TestDurationInSeconds": 60,
    "RetryDelayInSeconds": 60,
    "AutoGranted": False,
    "AutoGrantedValue": 1,
}
NEW_HIT = {
    "LifetimeInSeconds": 86_400,
    "MaxAssignments": 2,
    "Question": HTML_QUESTION,
    "RequesterAnnotation": "item 7",
    "UniqueRequestToken": "token",
    "HITLayoutId": "LAYOUT1",
    "HITLayoutParameters": [{"Name": "item", "Value": "7"}],
    "AssignmentReviewPolicy": POLICY,
    "HITReviewPolicy": PLURALITY,
}
NEW_TYPE = HIT_TYPE | {"QualificationRequirements": [REQUIREMENT]}

REQUESTS: dict[str, dict[str, Any]] = {
    "CreateHITType": NEW_TYPE,
    "CreateHIT": HIT | NEW_TYPE | NEW_HIT,
    "CreateHITWithHITType": {"HITTypeId": "TYPE1"} | NEW_HIT,
    "GetHIT": ONE_HIT,
    "ListHITs": PAGE,
    "UpdateExpirationForHIT": ONE_HIT | {"ExpireAt": 0},
    "UpdateHITTypeOfHIT": ONE_HIT | {"HITTypeId": "TYPE1"},
    "CreateAdditionalAssignmentsForHIT": ONE_HIT
    | {"NumberOfAdditionalAssignments": 1, "UniqueRequestToken": "token"},
    "DeleteHIT": ONE_HIT,
    "UpdateHITReviewStatus": ONE_HIT | {"Revert": True},
    "ListReviewableHITs": PAGE | {"HITTypeId": "TYPE1", "Status": "Reviewing"},
    "ListReviewPolicyResultsForHIT": ONE_HIT
    | PAGE
    | {"PolicyLevels": ["HIT"], "RetrieveActions": True, "RetrieveResults": True},
    "ListAssignmentsForHIT": ONE_HIT | PAGE | {"AssignmentStatuses": ["Submitted"]},
    "GetAssignment": ONE_ASSIGNMENT,
    "ApproveAssignment": ONE_ASSIGNMENT | {"RequesterFeedback": "", "OverrideRejection": False},
    "RejectAssignment": ONE_ASSIGNMENT | {"RequesterFeedback": "Empty"},
    "GetFileUploadURL": ONE_ASSIGNMENT | {"QuestionIdentifier": "photo"},
    "GetAccountBalance": {},
    "SendBonus": ONE_WORKER
    | ONE_ASSIGNMENT
    | {"BonusAmount": "1.00", "Reason": "Well done", "UniqueRequestToken": "token"},
    "ListBonusPayments": PAGE | ONE_HIT | ONE_ASSIGNMENT,
    "CreateQualificationType": TEST
    | {
        "Name": "Chess",
        "Keywords": "chess",
        "Description": "Knows the moves.",
        "QualificationTypeStatus": "Active",
    },
    "GetQualificationType": ONE_TYPE,
    "UpdateQualificationType": ONE_TYPE
    | TEST
    | {"Description": "Knows them.", "QualificationTypeStatus": "Inactive"},
    "DeleteQualificationType": ONE_TYPE,
    "ListQualificationTypes": PAGE
    | {"Query": "chess", "MustBeRequestable": True, "MustBeOwnedByCaller": True},
    "ListHITsForQualificationType": ONE_TYPE | PAGE,
    "AssociateQualificationWithWorker": ONE_TYPE
    | ONE_WORKER
    | {"IntegerValue": 80, "SendNotification": False},
    "DisassociateQualificationFromWorker": ONE_TYPE | ONE_WORKER | {"Reason": "Cheated"},
    "GetQualificationScore": ONE_TYPE | ONE_WORKER,
    "ListWorkersWithQualificationType": ONE_TYPE | PAGE | {"Status": "Granted"},
    "ListQualificationRequests": PAGE | ONE_TYPE,
    "AcceptQualificationRequest": ONE_REQUEST | {"IntegerValue": 80},
    "RejectQualificationRequest": ONE_REQUEST | {"Reason": "No"},
    "CreateWorkerBlock": ONE_WORKER | {"Reason": "Cheated"},
    "DeleteWorkerBlock": ONE_WORKER | {"Reason": "Did not"},
    "ListWorkerBlocks": PAGE,
    "NotifyWorkers": {"Subject": "Hello", "MessageText": "Thanks", "WorkerIds": ["A1WORKER"]},
    "UpdateNotificationSettings": {
        "HITTypeId": "TYPE1",
        "Notification": NOTIFICATION,
        "Active": True,
    },
    "SendTestEventNotification": {"Notification": NOTIFICATION, "TestEventType": "Ping"},
}
