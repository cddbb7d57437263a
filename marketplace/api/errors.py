"""The one border where this app's exceptions become the protocol's errors."""

from datetime import datetime
from typing import Any

from marketplace import exceptions

PREFIX = "AWS.MechanicalTurk."
TURK_ERROR_CODES: dict[type[exceptions.MarketplaceError], str] = {
    exceptions.InsufficientFunds: "InsufficientFunds",
    exceptions.HitDoesNotExist: "HITDoesNotExist",
    exceptions.HitTypeDoesNotExist: "HITTypeDoesNotExist",
    exceptions.AssignmentDoesNotExist: "AssignmentDoesNotExist",
    exceptions.HitAlreadyExists: "HitAlreadyExists",
    exceptions.InvalidParameter: "InvalidParameterValue",
    exceptions.NotificationUndeliverable: "InvalidTransportEndpoint",
    exceptions.InvalidQuestion: "XMLParseError",
    exceptions.InvalidHitState: "InvalidHITState",
    exceptions.InvalidAssignmentState: "InvalidAssignmentState",
    exceptions.HitLayoutDoesNotExist: "HITLayoutDoesNotExist",
    exceptions.QualificationTypeDoesNotExist: "QualificationTypeDoesNotExist",
    exceptions.QualificationDoesNotExist: "QualificationDoesNotExist",
    exceptions.QualificationRequestDoesNotExist: "QualificationRequestDoesNotExist",
    exceptions.QualificationTypeAlreadyExists: "QualificationTypeAlreadyExists",
    exceptions.InvalidQualificationState: "InvalidQualificationState",
    exceptions.InvalidQualificationTypeState: "InvalidQualificationTypeState",
    exceptions.InvalidQualificationRequestState: "InvalidQualificationRequestState",
    exceptions.InvalidMaximumAssignmentsIncrease: "InvalidMaximumAssignmentsIncrease",
    # Ours: Amazon knows no participants of recruiters.
    exceptions.PaidByRecruiter: "PaidByRecruiter",
    # Ours: Amazon documents the error and its text, not its code.
    exceptions.DuplicateRequest: "DuplicateRequest",
}


def describe(error: exceptions.MarketplaceError, *, now: datetime) -> tuple[int, dict[str, Any]]:
    """HTTP status and body for an error of ours."""
    if isinstance(error, exceptions.ProtocolError):
        return error.status, {"__type": error.code, "Message": str(error)}
    if isinstance(error, exceptions.NotOffered):
        # 501 rather than another 5xx: clients don't retry it.
        return 501, {"__type": "NotImplementedException", "Message": str(error)}
    return 400, {
        "__type": "RequestError",
        "Message": f"{error} ({_epoch_ms(now)})",
        "TurkErrorCode": PREFIX + TURK_ERROR_CODES[type(error)],
    }


def describe_fault(*, now: datetime) -> tuple[int, dict[str, Any]]:
    """HTTP status and body where the fault is ours; clients try again."""
    message = f"The marketplace could not answer this request. ({_epoch_ms(now)})"
    return 500, {
        "__type": "ServiceFault",
        "Message": message,
        "TurkErrorCode": "AWS.ServiceFault",
    }


def _epoch_ms(now: datetime) -> int:
    return int(now.timestamp() * 1000)
