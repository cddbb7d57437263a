from decimal import Decimal
from typing import Any

from marketplace.api.registry import Parameters, operation
from marketplace.hits.creation import HitTypeValues
from marketplace.hits.creation import create_hit_type as publish_hit_type
from marketplace.models import Requester
from marketplace.qualifications.requirements import read_requirements


@operation("CreateHITType")
def create_hit_type(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """A new HIT type, or the one that has these values already."""
    hit_type = publish_hit_type(requester=requester, values=type_values(parameters))
    return {"HITTypeId": hit_type.public_id}


def type_values(parameters: Parameters) -> HitTypeValues:
    """The HIT type a request describes."""
    return HitTypeValues(
        title=parameters["Title"],
        description=parameters["Description"],
        keywords=parameters["Keywords"],
        reward_usd=Decimal(parameters["Reward"]),
        assignment_duration_seconds=parameters["AssignmentDurationInSeconds"],
        auto_approval_delay_seconds=parameters["AutoApprovalDelayInSeconds"],
        requirements=read_requirements(parameters["QualificationRequirements"]),
    )
