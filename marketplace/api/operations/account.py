from typing import Any

from marketplace import clock
from marketplace.api.outputs import dollars
from marketplace.api.registry import Parameters, operation
from marketplace.hits import lifecycle
from marketplace.models import Hit, Requester
from marketplace.money import ledger


@operation("GetAccountBalance")
def get_account_balance(requester: Requester, parameters: Parameters) -> dict[str, Any]:
    """What the requester can spend and what is held, after what time has released."""
    lifecycle.settle_due(Hit.objects.of(requester), now=clock.now())
    return {
        "AvailableBalance": dollars(ledger.balance_of(ledger.available_account(requester))),
        "OnHoldBalance": dollars(ledger.balance_of(ledger.held_account(requester))),
    }
