import json
import logging
import uuid
from datetime import datetime
from typing import Any, NoReturn

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import override
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace import exceptions
from marketplace.api import (
    authentication,
    fault_injection,
    hit_operations as _hit_operations,  # noqa: F401 - registers its operations
    worker_operations as _worker_operations,  # noqa: F401
)
from marketplace.api.authentication import amazon_host_of, authenticated_key, read_body
from marketplace.api.fault_injection import disconnect
from marketplace.api.inputs import INPUTS, OPERATIONS, read_request
from marketplace.exceptions import MarketplaceError, ProtocolError, require

# The one border where this app's exceptions become the protocol's errors.

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


def _epoch_ms(now: datetime) -> int:
    return int(now.timestamp() * 1000)


CONTENT_TYPE = "application/x-amz-json-1.1"
SERVICE_TARGET = "MTurkRequesterServiceV20170117"

logger = logging.getLogger(__name__)


@csrf_exempt
@login_not_required
@require_POST
def requester_api(request: HttpRequest) -> HttpResponse:
    """One call of the Requester API.

    Access: whoever signs with an active access key; acts for its requester alone.
    """
    try:
        with override("en"):  # the wire's own language, whatever the client's browser prefers
            return _perform(request)
    except MarketplaceError as error:
        return refusal(error)
    except Exception:
        logger.exception("The requester API failed at %s", request.headers.get("X-Amz-Target"))
        # Clients try again after a 500.
        message = f"The marketplace could not answer this request. ({_epoch_ms(timezone.now())})"
        return _answer(
            500, {"__type": "ServiceFault", "Message": message, "TurkErrorCode": "AWS.ServiceFault"}
        )


def refusal(error: MarketplaceError) -> HttpResponse:
    return _answer(*describe(error, now=timezone.now()))


def _perform(request: HttpRequest) -> HttpResponse:
    body = read_body(request)
    key = authenticated_key(request, body, signed_host=amazon_host_of(request.headers))
    authentication.take_token(key, now=timezone.now())
    prefix, name = request.headers.get("X-Amz-Target", "").rpartition(".")[::2]
    require(
        prefix == SERVICE_TARGET and name in OPERATIONS,
        ProtocolError("UnknownOperationException", "The operation is not one of this API's."),
    )
    parameters = read_request(INPUTS[name], _payload(body))
    fault_injection.before_operation(name)
    content = OPERATIONS[name](key.requester, parameters) or {}
    return disconnect(request) if fault_injection.must_drop(name) else _answer(200, content)


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("SerializationException", "The body is not JSON.") from error
    if not isinstance(payload, dict):
        raise ProtocolError("SerializationException", "The body is not a JSON object.")
    return payload


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _answer(status: int, content: dict[str, Any]) -> HttpResponse:
    return HttpResponse(
        json.dumps(content),
        status=status,
        content_type=CONTENT_TYPE,
        headers={"x-amzn-RequestId": str(uuid.uuid4())},
    )
