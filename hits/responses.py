"""Whether a marketplace's answer is whole, and another attempt where it is not.

A cut connection or a proxy on the way can leave of an answer a 200 with half a body or none.
boto3 takes that for an answer that says nothing; asked again, the marketplace says it whole.
Asking again is harmless: a HIT has its request token, and everything else but a decision
repeats itself, whose answer says nothing anyway.
"""

from __future__ import annotations

import json
import random
from http import HTTPStatus
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.model import OperationModel
from django.utils.translation import gettext as _

from hits.exceptions import MarketplaceUnreachable

MOST_ATTEMPTS = 6
LONGEST_DELAY_SECONDS = 10.0
# What `hits` reads of an answer: a member, and what it, or each of its elements, must hold.
ASSIGNMENT = (
    "AssignmentId",
    "WorkerId",
    "AssignmentStatus",
    "AcceptTime",
    "SubmitTime",
    "Answer",
)
REQUIRED_MEMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CreateHITType": ("HITTypeId", ()),
    "CreateHITWithHITType": ("HIT", ("HITId",)),
    "GetHIT": ("HIT", ("HITId", "HITStatus", "MaxAssignments", "Expiration")),
    "ListHITs": ("HITs", ("HITId",)),
    "ListAssignmentsForHIT": ("Assignments", ASSIGNMENT),
    "GetAssignment": ("Assignment", ("AssignmentStatus",)),
    # An empty list that was none would have a bonus paid twice.
    "ListBonusPayments": ("BonusPayments", ("AssignmentId", "BonusAmount", "Reason")),
    "GetAccountBalance": ("AvailableBalance", ()),
}


def is_complete(operation: str, answer: Any) -> bool:
    """Whether an answer holds all that is read of it."""
    if not isinstance(answer, dict):
        return False
    member, inner = REQUIRED_MEMBERS.get(operation, ("", ()))
    if not member:
        return True
    if member not in answer:
        return False
    value = answer[member]
    elements = value if isinstance(value, list) else [value]
    return not inner or all(
        isinstance(element, dict) and element.keys() >= set(inner) for element in elements
    )


def drop_partial_body(
    operation_model: OperationModel, response_dict: dict[str, Any], **event: Any
) -> None:
    """Leave botocore's parser nothing of a body that it would stumble over."""
    try:
        answer = json.loads(response_dict["body"] or b"{}")
    except (ValueError, RecursionError):  # half a character as well
        answer = None
    is_error = response_dict["status_code"] >= HTTPStatus.MULTIPLE_CHOICES
    if not (isinstance(answer, dict) and (is_error or is_complete(operation_model.name, answer))):
        response_dict["body"] = b""


def retry_delay_seconds(
    response: tuple[AWSResponse, dict[str, Any]] | None,
    operation: OperationModel,
    attempts: int,
    **event: Any,
) -> float | None:
    """How long to wait before asking again; None where the answer is whole, or enough is enough."""
    if response is None or attempts >= MOST_ATTEMPTS or not _is_cut_short(operation, *response):
        return None
    # Not all at once, where many were cut off at once.
    delay_seconds = min(0.1 * float(2**attempts), LONGEST_DELAY_SECONDS)
    return delay_seconds * random.uniform(0.5, 1)


def require_complete(
    http_response: AWSResponse,
    parsed: dict[str, Any],
    model: OperationModel,
    *,
    address: str,
    **event: Any,
) -> None:
    """Refuse an answer that is not whole after the last attempt, or is not a marketplace's."""
    parsed.setdefault("ResponseMetadata", {})["Address"] = address
    if http_response.status_code == HTTPStatus.OK and not _is_json(http_response):
        kind = http_response.headers.get("Content-Type") or "no JSON"
        raise MarketplaceUnreachable(
            _(
                "What answers at {address} is not a marketplace (it sends {kind}). "
                "Is its address right?"
            ).format(address=address, kind=kind),
            code="not_a_marketplace",
        )
    if _is_cut_short(model, http_response, parsed):
        raise MarketplaceUnreachable(
            _(
                "The marketplace at {address} was asked {n} times, and each answer to "
                "{operation} was cut short. What was done until then is stored; run it again to "
                "go on from there."
            ).format(address=address, n=MOST_ATTEMPTS, operation=model.name),
            code="cut_short",
        )


def _is_cut_short(
    operation: OperationModel, http_response: AWSResponse, parsed: dict[str, Any]
) -> bool:
    if not _is_json(http_response):
        return False
    if http_response.status_code == HTTPStatus.OK:
        return not is_complete(operation.name, parsed)
    # Without its code an error is named after its HTTP status.
    return str(parsed.get("Error", {}).get("Code", "")).isdigit()


def _is_json(http_response: AWSResponse) -> bool:
    return "json" in http_response.headers.get("Content-Type", "")
