import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q

from marketplace import clock
from marketplace.api.inputs import Parameters, operation
from marketplace.api.outputs import (
    assignment_output,
    bonus_output,
    hit_output,
    next_token,
    page_of,
    position_of,
    review_action_output,
    review_result_output,
    with_output_fields,
)
from marketplace.exceptions import (
    HitDoesNotExist,
    InvalidAssignmentState,
    InvalidParameter,
    first_or_raise,
    require,
)
from marketplace.hits import creation, lifecycle, review
from marketplace.hits.creation import HitTypeValues, create_hit_type as publish_hit_type
from marketplace.models import Assignment, BonusPayment, Hit, HitQuerySet, Requester, ReviewPolicy
from marketplace.qualifications.definitions import find_type, read_requirement
from marketplace.qualifications.system import find_system
from marketplace.recruiting import intents, rules


@operation("CreateHITType")
def create_hit_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    return {
        "HITTypeId": publish_hit_type(requester=requester, values=type_values(parameters)).public_id
    }


def type_values(parameters: Parameters) -> HitTypeValues:
    return HitTypeValues(
        title=parameters["Title"],
        description=parameters["Description"],
        keywords=parameters["Keywords"],
        reward_usd=Decimal(parameters["Reward"]),
        assignment_duration_seconds=parameters["AssignmentDurationInSeconds"],
        auto_approval_delay_seconds=parameters["AutoApprovalDelayInSeconds"],
        requirements=tuple(map(read_requirement, parameters["QualificationRequirements"])),
    )


@operation("CreateHIT")
def create_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit = rules.create_hit(
        requester=requester,
        type_values=type_values(parameters),
        values=_hit_values(parameters),
    )
    return {"HIT": hit_output(hit, is_new=True)}


@operation("CreateHITWithHITType")
def create_hit_with_hit_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit = rules.create_hit_with_hit_type(
        requester=requester,
        hit_type=creation.find_hit_type(requester, parameters["HITTypeId"]),
        values=_hit_values(parameters),
    )
    return {"HIT": hit_output(hit, is_new=True)}


@operation("GetHIT")
def get_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    # A deleted HIT has the status Disposed.
    return {"HIT": hit_output(find_hit(requester, parameters["HITId"]))}


@operation("ListHITs")
def list_hits(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    return _list(Hit.objects.of(requester), f"ListHITs:{requester.pk}", parameters)


@operation("ListReviewableHITs")
def list_reviewable_hits(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    status, hits = parameters["Status"], Hit.objects.of(requester)
    type_id = parameters["HITTypeId"]
    if type_id is not None:
        hits = hits.in_group(creation.find_hit_type(requester, type_id))
    return _list(
        hits, f"ListReviewableHITs:{requester.pk}:{type_id}:{status}", parameters, status=status
    )


@operation("ListHITsForQualificationType")
def list_hits_for_qualification_type(
    requester: Requester, parameters: Parameters
) -> dict[str, Any]:
    type_id = parameters["QualificationTypeId"]
    if find_system(type_id):
        requiring = Hit.objects.filter(hit_type__requirements__system_id=type_id)
    else:
        requiring = Hit.objects.filter(
            hit_type__requirements__qualification_type=find_type(type_id)
        )
    hits = Hit.objects.of(requester).filter(pk__in=requiring.values("pk"))
    return _list(hits, f"ListHITsForQualificationType:{requester.pk}:{type_id}", parameters)


@operation("UpdateExpirationForHIT")
def update_expiration_for_hit(requester: Requester, parameters: Parameters) -> None:
    creation.update_expiration(
        requester=requester, public_id=parameters["HITId"], expire_at=parameters["ExpireAt"]
    )


@operation("DeleteHIT")
def delete_hit(requester: Requester, parameters: Parameters) -> None:
    creation.delete_hit(requester=requester, public_id=parameters["HITId"])


@operation("UpdateHITTypeOfHIT")
def update_hit_type_of_hit(requester: Requester, parameters: Parameters) -> None:
    creation.change_type(
        requester=requester,
        public_id=parameters["HITId"],
        hit_type=creation.find_hit_type(requester, parameters["HITTypeId"]),
    )


@operation("CreateAdditionalAssignmentsForHIT")
def create_additional_assignments(requester: Requester, parameters: Parameters) -> None:
    creation.add_assignments(
        requester=requester,
        public_id=parameters["HITId"],
        additional=parameters["NumberOfAdditionalAssignments"],
        token=parameters["UniqueRequestToken"],
    )


@operation("UpdateHITReviewStatus")
def update_hit_review_status(requester: Requester, parameters: Parameters) -> None:
    creation.set_reviewing(
        requester=requester, public_id=parameters["HITId"], revert=parameters["Revert"]
    )


def find_hit(requester: Requester, public_id: str) -> Hit:
    rows = Hit.objects.of(requester).filter(public_id=public_id)
    lifecycle.settle_due(rows, now=clock.now())
    return first_or_raise(with_output_fields(rows), HitDoesNotExist(public_id))


def _hit_values(parameters: Parameters) -> creation.HitValues:
    return creation.HitValues(
        question=parameters["Question"],
        max_assignments=parameters["MaxAssignments"],
        lifetime_seconds=parameters["LifetimeInSeconds"],
        requester_annotation=parameters["RequesterAnnotation"],
        unique_request_token=parameters["UniqueRequestToken"],
        layout_id=parameters["HITLayoutId"],
        review_policies={
            level: policy
            for level in ReviewPolicy.Level
            if (policy := parameters[f"{level.value}ReviewPolicy"]) is not None
        },
    )


def _list(
    hits: HitQuerySet, scope: str, parameters: Parameters, *, status: str | None = None
) -> dict[str, Any]:
    lifecycle.settle_due(hits, now=clock.now())
    hits = hits.listed() if status is None else hits.filter(status=status)
    before = position_of(parameters["NextToken"], scope)
    if before is not None:
        hits = hits.filter(pk__lt=before)
    page = list(hits.order_by("-pk").values_list("pk", flat=True)[: parameters["MaxResults"]])
    rows = with_output_fields(Hit.objects.filter(pk__in=page)).order_by("-pk")
    output: dict[str, Any] = {"NumResults": len(page), "HITs": [hit_output(hit) for hit in rows]}
    return output | ({"NextToken": next_token(scope, page[-1])} if page else {})


CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


@operation("ListAssignmentsForHIT")
def list_assignments_for_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    # In the order of submission, so that work submitted between two pages is on a later one.
    hit = find_hit(requester, parameters["HITId"])
    statuses = sorted(set(parameters["AssignmentStatuses"] or Assignment.HANDED_IN_STATUSES))
    scope = f"ListAssignmentsForHIT:{hit.pk}:{''.join(status[0] for status in statuses)}"
    assignments = Assignment.objects.on(hit).filter(status__in=statuses).select_related("worker")
    position = position_of(parameters["NextToken"], scope)
    if position is not None:
        submitted_at, key = datetime.fromisoformat(position[0]), position[1]
        assignments = assignments.filter(
            Q(submitted_at__gt=submitted_at) | Q(submitted_at=submitted_at, pk__gt=key)
        )
    page = list(assignments.order_by("submitted_at", "pk")[: parameters["MaxResults"]])
    output: dict[str, Any] = {
        "NumResults": len(page),
        "Assignments": [assignment_output(each, hit_id=hit.public_id) for each in page],
    }
    return output | ({"NextToken": next_token(scope, _position(page[-1]))} if page else {})


@operation("GetAssignment")
def get_assignment(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    assignment = review.find_assignment(requester, parameters["AssignmentId"])
    require(
        assignment.status in Assignment.HANDED_IN_STATUSES,
        InvalidAssignmentState(
            "This operation can be called with a status of: Reviewable,Approved,Rejected"
        ),
    )
    hit = find_hit(requester, assignment.hit.public_id)
    return {
        "Assignment": assignment_output(assignment, hit_id=hit.public_id),
        "HIT": hit_output(hit),
    }


@operation("ApproveAssignment")
def approve_assignment(requester: Requester, parameters: Parameters) -> None:
    intents.approve_assignment(
        requester=requester,
        public_id=parameters["AssignmentId"],
        feedback=_feedback(parameters),
        override_rejection=parameters["OverrideRejection"],
    )


@operation("RejectAssignment")
def reject_assignment(requester: Requester, parameters: Parameters) -> None:
    intents.reject_assignment(
        requester=requester,
        public_id=parameters["AssignmentId"],
        feedback=_feedback(parameters),
    )


@operation("GetFileUploadURL")
def get_file_upload_url(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    # Amazon removed uploads from QuestionForm in 2017, and this marketplace refuses them, so there
    # is no file.
    assignment = review.find_assignment(requester, parameters["AssignmentId"])
    raise InvalidParameter(
        f"The question {parameters['QuestionIdentifier']} of assignment {assignment.public_id} "
        "has no uploaded file."
    )


def _feedback(parameters: Parameters) -> str:
    feedback: str = parameters["RequesterFeedback"]
    require(
        not CONTROL_CHARACTERS.search(feedback),
        InvalidParameter("RequesterFeedback may not hold ASCII characters 0-8, 11, 12 and 14-31."),
    )
    return feedback


def _position(assignment: Assignment) -> list[Any]:
    submitted_at = assignment.submitted_at
    return [submitted_at.isoformat() if submitted_at else "", assignment.pk]


@operation("SendBonus")
def send_bonus(requester: Requester, parameters: Parameters) -> None:
    bonus = review.Bonus(
        assignment_id=parameters["AssignmentId"],
        worker_id=parameters["WorkerId"],
        amount_usd=Decimal(parameters["BonusAmount"]),
        reason=parameters["Reason"],
        token=parameters["UniqueRequestToken"],
    )
    if not intents.request_bonus(requester=requester, bonus=bonus):
        review.send_bonus(requester=requester, bonus=bonus)


@operation("ListBonusPayments")
def list_bonus_payments(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit_id, assignment_id = parameters["HITId"], parameters["AssignmentId"]
    if (hit_id is None) == (assignment_id is None):
        raise InvalidParameter("Give either HITId or AssignmentId.")
    payments = BonusPayment.objects.filter(requester=requester)
    if hit_id is not None:
        payments = payments.filter(assignment__hit=find_hit(requester, hit_id))
    else:
        payments = payments.filter(assignment=review.find_assignment(requester, assignment_id))
    return page_of(
        payments.select_related("assignment__worker"),
        f"ListBonusPayments:{hit_id}:{assignment_id}",
        parameters,
        member="BonusPayments",
        describe=bonus_output,
    )


Part = tuple[str, str, dict[str, Any]]


@operation("ListReviewPolicyResultsForHIT")
def list_review_policy_results(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    # A page counts results and actions together, those of assignments first.
    hit = find_hit(requester, parameters["HITId"])
    levels = sorted(set(parameters["PolicyLevels"] or ReviewPolicy.Level.values))
    kinds = [name for name in ("Results", "Actions") if parameters[f"Retrieve{name}"]]
    scope = f"ListReviewPolicyResultsForHIT:{hit.pk}:{levels}:{kinds}"
    start = position_of(parameters["NextToken"], scope) or 0
    policies = {policy.level: policy for policy in ReviewPolicy.objects.filter(hit=hit)}
    output: dict[str, Any] = {"HITId": hit.public_id}
    parts: list[Part] = []
    for level in levels:
        if level in policies:
            output[f"{level}ReviewPolicy"] = {
                "PolicyName": policies[level].name,
                "Parameters": [
                    {name: value for name, value in parameter.items() if value is not None}
                    for parameter in policies[level].parameters
                ],
            }
            output[f"{level}ReviewReport"] = {f"Review{kind}": [] for kind in kinds}
            parts += _parts(policies[level], kinds)
    page = parts[start : start + parameters["MaxResults"]]
    for level, kind, detail in page:
        output[f"{level}ReviewReport"][f"Review{kind}"].append(detail)
    return output | ({"NextToken": next_token(scope, start + len(page))} if page else {})


def _parts(policy: ReviewPolicy, kinds: list[str]) -> list[Part]:
    details: dict[str, list[dict[str, Any]]] = {
        "Results": [review_result_output(row) for row in policy.results.order_by("pk")],
        "Actions": [review_action_output(row) for row in policy.actions.order_by("pk")],
    }
    return [(policy.level, kind, detail) for kind in kinds for detail in details[kind]]
