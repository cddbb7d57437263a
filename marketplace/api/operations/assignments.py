import re
from datetime import datetime
from typing import Any

from django.db.models import Q

from marketplace.api.operations.hits import find_hit
from marketplace.api.outputs import assignment_output, hit_output
from marketplace.api.pagination import next_token, position_of
from marketplace.api.registry import Parameters, operation
from marketplace.exceptions import InvalidAssignmentState, InvalidParameter
from marketplace.hits import review
from marketplace.models import Assignment, Requester
from marketplace.recruiting import intents

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


@operation("ListAssignmentsForHIT")
def list_assignments_for_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """What was handed in for a HIT, in the order it came in, so that what comes in
    between two pages is on a later one."""
    hit = find_hit(requester, parameters["HITId"])
    statuses = sorted(set(parameters["AssignmentStatuses"] or Assignment.HANDED_IN_STATUSES))
    scope = f"ListAssignmentsForHIT:{hit.pk}:{''.join(status[0] for status in statuses)}"
    assignments = Assignment.objects.on(hit).filter(status__in=statuses).select_related("worker")
    position = position_of(parameters["NextToken"], scope)
    if position is not None:
        submitted_at, key = datetime.fromisoformat(position[0]), position[1]
        is_later = Q(submitted_at__gt=submitted_at) | Q(submitted_at=submitted_at, pk__gt=key)
        assignments = assignments.filter(is_later)
    page = list(assignments.order_by("submitted_at", "pk")[: parameters["MaxResults"]])
    output: dict[str, Any] = {
        "NumResults": len(page),
        "Assignments": [assignment_output(each, hit_id=hit.public_id) for each in page],
    }
    return output | ({"NextToken": next_token(scope, _position(page[-1]))} if page else {})


@operation("GetAssignment")
def get_assignment(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """One assignment that was handed in, with its HIT."""
    assignment = review.find_assignment(requester, parameters["AssignmentId"])
    if assignment.status not in Assignment.HANDED_IN_STATUSES:
        raise InvalidAssignmentState(
            "This operation can be called with a status of: Reviewable,Approved,Rejected"
        )
    hit = find_hit(requester, assignment.hit.public_id)
    return {
        "Assignment": assignment_output(assignment, hit_id=hit.public_id),
        "HIT": hit_output(hit),
    }


@operation("ApproveAssignment")
def approve_assignment(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Approve and pay."""
    intents.approve_assignment(
        requester=requester,
        public_id=parameters["AssignmentId"],
        feedback=_feedback(parameters),
        override_rejection=parameters["OverrideRejection"],
    )
    return {}


@operation("RejectAssignment")
def reject_assignment(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Reject, with the reason the worker will read."""
    intents.reject_assignment(
        requester=requester,
        public_id=parameters["AssignmentId"],
        feedback=_feedback(parameters),
    )
    return {}


@operation("GetFileUploadURL")
def get_file_upload_url(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """The address of a file that a worker uploaded. There can be none: Amazon took uploads out
    of QuestionForm in 2017, and this marketplace refuses them when a HIT is made."""
    assignment = review.find_assignment(requester, parameters["AssignmentId"])
    raise InvalidParameter(
        f"The question {parameters['QuestionIdentifier']} of assignment {assignment.public_id} "
        "has no uploaded file."
    )


def _feedback(parameters: Parameters) -> str:
    feedback: str = parameters["RequesterFeedback"]
    if CONTROL_CHARACTERS.search(feedback):
        raise InvalidParameter(
            "RequesterFeedback may not hold ASCII characters 0-8, 11, 12 and 14-31."
        )
    return feedback


def _position(assignment: Assignment) -> list[Any]:
    submitted_at = assignment.submitted_at
    return [submitted_at.isoformat() if submitted_at else "", assignment.pk]
