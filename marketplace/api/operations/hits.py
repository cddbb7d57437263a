from decimal import Decimal
from typing import Any

from marketplace import clock
from marketplace.api.inputs import Parameters, operation
from marketplace.api.outputs import (
    hit_output,
    new_hit_output,
    next_token,
    position_of,
    with_output_fields,
)
from marketplace.exceptions import HitDoesNotExist
from marketplace.hits import creation, lifecycle
from marketplace.hits.creation import HitTypeValues, create_hit_type as publish_hit_type
from marketplace.models import Hit, HitQuerySet, Requester, ReviewPolicy
from marketplace.qualifications.definitions import find_type
from marketplace.qualifications.requirements import read_requirements
from marketplace.qualifications.system import find_system
from marketplace.recruiting import rules


@operation("CreateHITType")
def create_hit_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit_type = publish_hit_type(requester=requester, values=type_values(parameters))
    return {"HITTypeId": hit_type.public_id}


def type_values(parameters: Parameters) -> HitTypeValues:
    return HitTypeValues(
        title=parameters["Title"],
        description=parameters["Description"],
        keywords=parameters["Keywords"],
        reward_usd=Decimal(parameters["Reward"]),
        assignment_duration_seconds=parameters["AssignmentDurationInSeconds"],
        auto_approval_delay_seconds=parameters["AutoApprovalDelayInSeconds"],
        requirements=read_requirements(parameters["QualificationRequirements"]),
    )


@operation("CreateHIT")
def create_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit = rules.create_hit(
        requester=requester,
        type_values=type_values(parameters),
        values=_hit_values(parameters),
    )
    return {"HIT": new_hit_output(hit)}


@operation("CreateHITWithHITType")
def create_hit_with_hit_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit_type = creation.find_hit_type(requester, parameters["HITTypeId"])
    hit = rules.create_hit_with_hit_type(
        requester=requester, hit_type=hit_type, values=_hit_values(parameters)
    )
    return {"HIT": new_hit_output(hit)}


@operation("GetHIT")
def get_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """A deleted HIT has the status Disposed."""
    return {"HIT": hit_output(find_hit(requester, parameters["HITId"]))}


@operation("ListHITs")
def list_hits(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hits = Hit.objects.of(requester)
    return _list(hits, f"ListHITs:{requester.pk}", parameters)


@operation("ListReviewableHITs")
def list_reviewable_hits(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    status, hits = parameters["Status"], Hit.objects.of(requester)
    type_id = parameters["HITTypeId"]
    if type_id is not None:
        hits = hits.in_group(creation.find_hit_type(requester, type_id))
    scope = f"ListReviewableHITs:{requester.pk}:{type_id}:{status}"
    return _list(hits, scope, parameters, status=status)


@operation("ListHITsForQualificationType")
def list_hits_for_qualification_type(
    requester: Requester, parameters: Parameters
) -> dict[str, Any]:
    type_id = parameters["QualificationTypeId"]
    if find_system(type_id):
        requiring = Hit.objects.filter(hit_type__requirements__system_id=type_id)
    else:
        required = find_type(type_id)
        requiring = Hit.objects.filter(hit_type__requirements__qualification_type=required)
    hits = Hit.objects.of(requester).filter(pk__in=requiring.values("pk"))
    return _list(hits, f"ListHITsForQualificationType:{requester.pk}:{type_id}", parameters)


@operation("UpdateExpirationForHIT")
def update_expiration_for_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    creation.update_expiration(
        requester=requester, public_id=parameters["HITId"], expire_at=parameters["ExpireAt"]
    )
    return {}


@operation("DeleteHIT")
def delete_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    creation.delete_hit(requester=requester, public_id=parameters["HITId"])
    return {}


@operation("UpdateHITTypeOfHIT")
def update_hit_type_of_hit(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    hit_type = creation.find_hit_type(requester, parameters["HITTypeId"])
    creation.change_type(requester=requester, public_id=parameters["HITId"], hit_type=hit_type)
    return {}


@operation("CreateAdditionalAssignmentsForHIT")
def create_additional_assignments(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    creation.add_assignments(
        requester=requester,
        public_id=parameters["HITId"],
        additional=parameters["NumberOfAdditionalAssignments"],
        token=parameters["UniqueRequestToken"],
    )
    return {}


@operation("UpdateHITReviewStatus")
def update_hit_review_status(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    creation.set_reviewing(
        requester=requester, public_id=parameters["HITId"], revert=parameters["Revert"]
    )
    return {}


def find_hit(requester: Requester, public_id: str) -> Hit:
    """The requester's HIT, settled and with its counts."""
    rows = Hit.objects.of(requester).filter(public_id=public_id)
    lifecycle.settle_due(rows, now=clock.now())
    hit = with_output_fields(rows).first()
    if hit is None:
        raise HitDoesNotExist(public_id)
    return hit


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
