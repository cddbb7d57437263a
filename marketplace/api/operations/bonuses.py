from decimal import Decimal
from typing import Any

from marketplace.api.operations.hits import find_hit
from marketplace.api.outputs import bonus_output
from marketplace.api.pagination import page_of
from marketplace.api.registry import Parameters, operation
from marketplace.exceptions import InvalidParameter
from marketplace.hits import bonuses, review
from marketplace.models import BonusPayment, Requester
from marketplace.recruiting import intents


@operation("SendBonus")
def send_bonus(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """Pay a worker more than the reward."""
    bonus = bonuses.Bonus(
        assignment_id=parameters["AssignmentId"],
        worker_id=parameters["WorkerId"],
        amount_usd=Decimal(parameters["BonusAmount"]),
        reason=parameters["Reason"],
        token=parameters["UniqueRequestToken"],
    )
    if not intents.request_bonus(requester=requester, bonus=bonus):
        bonuses.send_bonus(requester=requester, bonus=bonus)
    return {}


@operation("ListBonusPayments")
def list_bonus_payments(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """The bonuses paid for a HIT or for one assignment, the oldest first."""
    hit_id, assignment_id = parameters["HITId"], parameters["AssignmentId"]
    if (hit_id is None) == (assignment_id is None):
        raise InvalidParameter("Give either HITId or AssignmentId.")
    payments = BonusPayment.objects.filter(requester=requester)
    if hit_id is not None:
        payments = payments.filter(assignment__hit=find_hit(requester, hit_id))
    else:
        assignment = review.find_assignment(requester, assignment_id)
        payments = payments.filter(assignment=assignment)
    return page_of(
        payments.select_related("assignment__worker"),
        f"ListBonusPayments:{hit_id}:{assignment_id}",
        parameters,
        member="BonusPayments",
        describe=bonus_output,
    )
