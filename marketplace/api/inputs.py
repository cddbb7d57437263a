"""What each operation accepts: the service model's constraints of 2017-01-17,
and the ranges its documentation adds to them. It is our own table, so that
it outlives botocore's copy of the model."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from marketplace.exceptions import ProtocolError, require
from marketplace.models import QualificationRequirement, Requester, Transport
from marketplace.notifications.events import ASSIGNMENT_EVENTS, HIT_EVENTS, PING

# The kinds of value a request can hold, and what is checked of each.
#
# A value of the wrong type is a SerializationException; values of the right type that break a
# constraint are gathered into one ValidationException. Both read as AWS's own do.

LONGEST_ECHO = 256


class Kind:
    def read(self, value: Any) -> Any:
        """The Python value; raises ProtocolError for a wrong type."""
        raise NotImplementedError

    def broken(self, value: Any) -> Iterator[str]:
        """Broken constraints, in AWS's words. A structure's members are checked one by one."""
        return iter(())


@dataclass(frozen=True)
class Text(Kind):
    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None
    options: tuple[str, ...] = ()

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise _mistyped(value, "String")
        require(_can_be_stored(value), _unreadable("A string holds a character that is not text."))
        return value

    def broken(self, value: str) -> Iterator[str]:
        if len(value) < self.min_length:
            yield f"Member must have length greater than or equal to {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            yield f"Member must have length less than or equal to {self.max_length}"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            yield f"Member must satisfy regular expression pattern: ^{self.pattern}$"
        if self.options and value not in self.options:
            yield f"Member must satisfy enum value set: [{', '.join(self.options)}]"


@dataclass(frozen=True)
class Integer(Kind):
    minimum: int
    maximum: int

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _mistyped(value, "Integer")
        return value

    def broken(self, value: int) -> Iterator[str]:
        if value < self.minimum:
            yield f"Member must have value greater than or equal to {self.minimum}"
        if value > self.maximum:
            yield f"Member must have value less than or equal to {self.maximum}"


@dataclass(frozen=True)
class Boolean(Kind):
    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise _mistyped(value, "Boolean")
        return value


@dataclass(frozen=True)
class Timestamp(Kind):
    def read(self, value: Any) -> datetime:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _mistyped(value, "Timestamp")
        try:
            return datetime.fromtimestamp(value, tz=UTC)
        except (OverflowError, ValueError, OSError) as error:
            raise _unreadable(f"{value} is not a time in epoch seconds.") from error


@dataclass(frozen=True)
class ListOf(Kind):
    member: Kind
    max_length: int | None = None
    min_length: int = 0

    def read(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _mistyped(value, "List")
        return [self.member.read(member) for member in value]

    def broken(self, value: list[Any]) -> Iterator[str]:
        if len(value) < self.min_length:
            yield f"Member must have length greater than or equal to {self.min_length}"
        if self.max_length is not None and len(value) > self.max_length:
            yield f"Member must have length less than or equal to {self.max_length}"
        inner = sorted({reason for member in value for reason in self.member.broken(member)})
        if inner:
            yield f"Member must satisfy constraint: [{', '.join(inner)}]"


@dataclass(frozen=True)
class Member:
    kind: Kind
    is_required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Structure(Kind):
    members: Mapping[str, Member]

    def read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _mistyped(value, "Structure")
        members = ((name, member, value.get(name)) for name, member in self.members.items())
        return {
            name: member.default if inner is None else member.kind.read(inner)
            for name, member, inner in members
        }


def read_request(members: Mapping[str, Member], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Every member, read, checked and with its default. Like AWS, unknown members are ignored and
    null is absent."""
    request = Structure(members)
    values = request.read(payload)
    problems = list(_problems_within(request, values, payload, ""))
    if problems:
        noun = "error" if len(problems) == 1 else "errors"
        raise ProtocolError(
            "ValidationException",
            f"{len(problems)} validation {noun} detected: {'; '.join(problems)}",
        )
    return values


def _problems_within(
    structure: Structure, values: Mapping[str, Any], payload: Mapping[str, Any], path: str
) -> Iterator[str]:
    for name, member in structure.members.items():
        inner = f"{path}.{_lower(name)}" if path else _lower(name)
        if payload.get(name) is not None:
            yield from _problems(member.kind, values[name], payload[name], inner)
        elif member.is_required:
            yield _problem("null", inner, "Member must not be null")


def _problems(kind: Kind, value: Any, payload: Any, path: str) -> Iterator[str]:
    for reason in kind.broken(value):
        yield _problem(f"'{_echo(payload)}'", path, reason)
    if isinstance(kind, Structure):
        yield from _problems_within(kind, value, payload, path)
    if isinstance(kind, ListOf) and isinstance(kind.member, Structure):
        for number, (member, raw) in enumerate(zip(value, payload, strict=True), 1):
            yield from _problems_within(kind.member, member, raw, f"{path}.{number}.member")


def _problem(echo: str, path: str, reason: str) -> str:
    return f"Value {echo} at '{path}' failed to satisfy constraint: {reason}"


def _can_be_stored(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return "\0" not in text


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _echo(value: Any) -> str:
    text = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST_ECHO else f"{text[:LONGEST_ECHO]}..."


def _mistyped(value: Any, expected: str) -> ProtocolError:
    received = {
        bool: "BOOLEAN_VALUE",
        str: "STRING_VALUE",
        int: "NUMBER_VALUE",
        float: "NUMBER_VALUE",
    }.get(type(value), "LIST_VALUE" if isinstance(value, list) else "STRUCTURE_VALUE")
    return _unreadable(f"{received} can not be converted to {expected}")


def _unreadable(message: str) -> ProtocolError:
    return ProtocolError("SerializationException", message)


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
    "HITLayoutParameters": Member(
        ListOf(
            Structure(
                {
                    "Name": Member(Text(), is_required=True),
                    "Value": Member(Text(), is_required=True),
                }
            )
        )
    ),
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


# The operations there are. A new one is a function with this decorator and a row in
# marketplace.api.inputs.

Parameters = dict[str, Any]
# None is an answer without members.
Operation = Callable[[Requester, Parameters], dict[str, Any] | None]
OPERATIONS: dict[str, Operation] = {}


def operation(name: str) -> Callable[[Operation], Operation]:
    def register(function: Operation) -> Operation:
        require(name not in OPERATIONS, ValueError(f"name {name} is registered twice"))
        OPERATIONS[name] = function
        return function

    return register
