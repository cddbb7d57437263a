"""What each operation accepts: the service model's constraints of 2017-01-17,
and the ranges its documentation adds to them. It is our own table, so that
it outlives botocore's copy of the model."""

from marketplace.api.shapes import Boolean, Integer, ListOf, Member, Structure, Text, Timestamp
from marketplace.models import QualificationRequirement, Transport
from marketplace.notifications.events import ASSIGNMENT_EVENTS, HIT_EVENTS, PING

DAY_SECONDS = 86_400
YEAR_SECONDS = 365 * DAY_SECONDS
LARGEST_INTEGER = 2**31 - 1
# As the service's model has it, and short enough for a column of money.
CURRENCY = Text(max_length=10, pattern=r"[0-9]+(\.)?[0-9]{0,2}")
ENTITY_ID = Text(min_length=1, max_length=64, pattern="[A-Z0-9]+")
WORKER_ID = Text(min_length=1, max_length=64, pattern="A[A-Z0-9]+")
TOKEN = Text(min_length=1, max_length=64)
# The protocol lets a question be 65,535 bytes: marketplace.documents counts them.
QUESTION = Text(min_length=1)
FEEDBACK = Text(max_length=1024)
INTEGER = Integer(-LARGEST_INTEGER - 1, LARGEST_INTEGER)
SECONDS = Integer(0, LARGEST_INTEGER)
COUNTRY = Text(min_length=2, max_length=2)

PAGE = {
    "NextToken": Member(Text(min_length=1, max_length=255)),
    "MaxResults": Member(Integer(1, 100), default=10),
}
LOCALE = Structure({"Country": Member(COUNTRY, is_required=True), "Subdivision": Member(COUNTRY)})
REQUIREMENT = Structure(
    {
        "QualificationTypeId": Member(Text(min_length=1, max_length=64), is_required=True),
        "Comparator": Member(
            Text(options=tuple(QualificationRequirement.Comparator.values)), is_required=True
        ),
        "IntegerValues": Member(ListOf(INTEGER, max_length=15)),
        "LocaleValues": Member(ListOf(LOCALE, max_length=30)),
        "RequiredToPreview": Member(Boolean()),
        "ActionsGuarded": Member(Text(options=tuple(QualificationRequirement.Guard.values))),
    }
)
REVIEW_POLICY = Structure(
    {
        "PolicyName": Member(Text(), is_required=True),
        "Parameters": Member(
            ListOf(
                Structure(
                    {
                        "Key": Member(Text()),
                        "Values": Member(ListOf(Text())),
                        "MapEntries": Member(
                            ListOf(
                                Structure({"Key": Member(Text()), "Values": Member(ListOf(Text()))})
                            )
                        ),
                    }
                )
            )
        ),
    }
)
LAYOUT_PARAMETER = Structure(
    {"Name": Member(Text(), is_required=True), "Value": Member(Text(), is_required=True)}
)
EVENT_TYPE = Text(options=(*ASSIGNMENT_EVENTS, *HIT_EVENTS, PING))
NOTIFICATION = Structure(
    {
        "Destination": Member(Text(min_length=1, max_length=1024), is_required=True),
        "Transport": Member(Text(options=tuple(Transport.values)), is_required=True),
        "Version": Member(Text(), is_required=True),
        "EventTypes": Member(ListOf(EVENT_TYPE), is_required=True),
    }
)
HIT_TYPE_VALUES = {
    "AutoApprovalDelayInSeconds": Member(Integer(0, 30 * DAY_SECONDS), default=30 * DAY_SECONDS),
    "AssignmentDurationInSeconds": Member(Integer(30, YEAR_SECONDS), is_required=True),
    "Reward": Member(CURRENCY, is_required=True),
    "Title": Member(Text(min_length=1, max_length=128), is_required=True),
    "Keywords": Member(Text(max_length=1000), default=""),
    "Description": Member(Text(min_length=1, max_length=2000), is_required=True),
    "QualificationRequirements": Member(ListOf(REQUIREMENT, max_length=10), default=()),
}
HIT_VALUES = {
    "MaxAssignments": Member(Integer(1, 1_000_000_000), default=1),
    "LifetimeInSeconds": Member(Integer(30, YEAR_SECONDS), is_required=True),
    "HITLayoutId": Member(ENTITY_ID),
    "HITLayoutParameters": Member(ListOf(LAYOUT_PARAMETER)),
    "Question": Member(QUESTION),
    "RequesterAnnotation": Member(Text(max_length=255), default=""),
    "UniqueRequestToken": Member(TOKEN),
    "AssignmentReviewPolicy": Member(REVIEW_POLICY),
    "HITReviewPolicy": Member(REVIEW_POLICY),
}
HIT_ID = {"HITId": Member(ENTITY_ID, is_required=True)}
HIT_TYPE_ID = {"HITTypeId": Member(ENTITY_ID, is_required=True)}
ASSIGNMENT_ID = {"AssignmentId": Member(ENTITY_ID, is_required=True)}
TYPE_ID = {"QualificationTypeId": Member(ENTITY_ID, is_required=True)}
ONE_WORKER = {"WorkerId": Member(WORKER_ID, is_required=True)}
REQUEST_ID = {"QualificationRequestId": Member(Text(min_length=1, max_length=64), is_required=True)}
STATUS = Text(options=("Active", "Inactive"))
# Of a qualification type, whether it is made or changed.
TEST_VALUES = {
    "Test": Member(QUESTION),
    "AnswerKey": Member(QUESTION),
    "TestDurationInSeconds": Member(Integer(1, YEAR_SECONDS)),
    "RetryDelayInSeconds": Member(SECONDS),
    "AutoGranted": Member(Boolean()),
    "AutoGrantedValue": Member(INTEGER),
}

INPUTS: dict[str, dict[str, Member]] = {
    "CreateHITType": HIT_TYPE_VALUES,
    "CreateHIT": HIT_TYPE_VALUES | HIT_VALUES,
    "CreateHITWithHITType": HIT_TYPE_ID | HIT_VALUES,
    "GetHIT": HIT_ID,
    "ListHITs": PAGE,
    "UpdateExpirationForHIT": HIT_ID | {"ExpireAt": Member(Timestamp(), is_required=True)},
    "UpdateHITTypeOfHIT": HIT_ID | HIT_TYPE_ID,
    "CreateAdditionalAssignmentsForHIT": HIT_ID
    | {
        "NumberOfAdditionalAssignments": Member(Integer(1, 1_000_000_000), is_required=True),
        "UniqueRequestToken": Member(TOKEN),
    },
    "DeleteHIT": HIT_ID,
    "UpdateHITReviewStatus": HIT_ID | {"Revert": Member(Boolean(), default=False)},
    "ListReviewableHITs": {
        "HITTypeId": Member(ENTITY_ID),
        "Status": Member(Text(options=("Reviewable", "Reviewing")), default="Reviewable"),
    }
    | PAGE,
    "ListReviewPolicyResultsForHIT": HIT_ID
    | PAGE
    | {
        "PolicyLevels": Member(ListOf(Text(options=("Assignment", "HIT")))),
        "RetrieveActions": Member(Boolean(), default=True),
        "RetrieveResults": Member(Boolean(), default=True),
        # A report is read whole where nothing else is asked for.
        "MaxResults": Member(Integer(1, 100), default=100),
    },
    "ListAssignmentsForHIT": HIT_ID
    | PAGE
    | {
        "AssignmentStatuses": Member(
            ListOf(Text(options=("Submitted", "Approved", "Rejected")), max_length=3)
        )
    },
    "GetAssignment": ASSIGNMENT_ID,
    "ApproveAssignment": ASSIGNMENT_ID
    | {
        "RequesterFeedback": Member(FEEDBACK, default=""),
        "OverrideRejection": Member(Boolean(), default=False),
    },
    "RejectAssignment": ASSIGNMENT_ID | {"RequesterFeedback": Member(FEEDBACK, is_required=True)},
    "GetFileUploadURL": ASSIGNMENT_ID
    | {"QuestionIdentifier": Member(Text(min_length=1), is_required=True)},
    "GetAccountBalance": {},
    "SendBonus": ONE_WORKER
    | ASSIGNMENT_ID
    | {
        "BonusAmount": Member(CURRENCY, is_required=True),
        "Reason": Member(Text(min_length=1), is_required=True),
        "UniqueRequestToken": Member(TOKEN),
    },
    "ListBonusPayments": PAGE | {"HITId": Member(ENTITY_ID), "AssignmentId": Member(ENTITY_ID)},
    "CreateQualificationType": TEST_VALUES
    | {
        "Name": Member(Text(min_length=1, max_length=200), is_required=True),
        "Keywords": Member(Text(max_length=1000), default=""),
        "Description": Member(Text(min_length=1, max_length=2000), is_required=True),
        "QualificationTypeStatus": Member(STATUS, is_required=True),
    },
    "GetQualificationType": TYPE_ID,
    "UpdateQualificationType": TYPE_ID
    | TEST_VALUES
    | {
        "Description": Member(Text(min_length=1, max_length=2000)),
        "QualificationTypeStatus": Member(STATUS),
    },
    "DeleteQualificationType": TYPE_ID,
    "ListQualificationTypes": PAGE
    | {
        "Query": Member(Text()),
        "MustBeRequestable": Member(Boolean(), is_required=True),
        "MustBeOwnedByCaller": Member(Boolean(), default=False),
    },
    "ListHITsForQualificationType": TYPE_ID | PAGE,
    "AssociateQualificationWithWorker": TYPE_ID
    | ONE_WORKER
    | {
        "IntegerValue": Member(INTEGER, default=1),
        "SendNotification": Member(Boolean(), default=True),
    },
    "DisassociateQualificationFromWorker": TYPE_ID
    | ONE_WORKER
    | {"Reason": Member(Text(), default="")},
    "GetQualificationScore": TYPE_ID | ONE_WORKER,
    "ListWorkersWithQualificationType": TYPE_ID
    | PAGE
    | {"Status": Member(Text(options=("Granted", "Revoked")))},
    "ListQualificationRequests": PAGE | {"QualificationTypeId": Member(ENTITY_ID)},
    "AcceptQualificationRequest": REQUEST_ID | {"IntegerValue": Member(INTEGER)},
    "RejectQualificationRequest": REQUEST_ID | {"Reason": Member(Text(), default="")},
    "CreateWorkerBlock": ONE_WORKER | {"Reason": Member(Text(min_length=1), is_required=True)},
    "DeleteWorkerBlock": ONE_WORKER | {"Reason": Member(Text(), default="")},
    "ListWorkerBlocks": PAGE,
    "NotifyWorkers": {
        "Subject": Member(Text(min_length=1, max_length=200), is_required=True),
        "MessageText": Member(Text(min_length=1, max_length=4096), is_required=True),
        "WorkerIds": Member(ListOf(WORKER_ID, max_length=100, min_length=1), is_required=True),
    },
    "UpdateNotificationSettings": HIT_TYPE_ID
    | {"Notification": Member(NOTIFICATION), "Active": Member(Boolean())},
    "SendTestEventNotification": {
        "Notification": Member(NOTIFICATION, is_required=True),
        "TestEventType": Member(EVENT_TYPE, is_required=True),
    },
}
