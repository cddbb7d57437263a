from typing import Any

from marketplace.api.operations.hits import find_hit
from marketplace.api.outputs import review_action_output, review_result_output
from marketplace.api.pagination import next_token, position_of
from marketplace.api.registry import Parameters, operation
from marketplace.models import Requester, ReviewPolicy

Part = tuple[str, str, dict[str, Any]]


@operation("ListReviewPolicyResultsForHIT")
def list_review_policy_results(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """What a HIT's review policies computed and did. A page counts results and actions
    together: those of the assignments first, then those of the HIT."""
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
            output[f"{level}ReviewPolicy"] = _policy(policies[level])
            output[f"{level}ReviewReport"] = {f"Review{kind}": [] for kind in kinds}
            parts += _parts(policies[level], kinds)
    page = parts[start : start + parameters["MaxResults"]]
    for level, kind, detail in page:
        output[f"{level}ReviewReport"][f"Review{kind}"].append(detail)
    return output | ({"NextToken": next_token(scope, start + len(page))} if page else {})


def _policy(policy: ReviewPolicy) -> dict[str, Any]:
    parameters = [
        {name: value for name, value in parameter.items() if value is not None}
        for parameter in policy.parameters
    ]
    return {"PolicyName": policy.name, "Parameters": parameters}


def _parts(policy: ReviewPolicy, kinds: list[str]) -> list[Part]:
    details: dict[str, list[dict[str, Any]]] = {
        "Results": [review_result_output(row) for row in policy.results.order_by("pk")],
        "Actions": [review_action_output(row) for row in policy.actions.order_by("pk")],
    }
    return [(policy.level, kind, detail) for kind in kinds for detail in details[kind]]
