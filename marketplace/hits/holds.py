"""How much of a requester's money is held for a HIT."""

from datetime import datetime
from decimal import Decimal

from marketplace.hits.tallies import Tally, count_assignments
from marketplace.models import Assignment, Hit
from marketplace.money import ledger
from marketplace.money.fees import CENT

Status = Assignment.Status


def hold_what_is_promised(hit: Hit, *, now: datetime, tally: Tally | None = None) -> None:
    """Hold what the HIT can still cost: for each open assignment what it was promised, for
    each assignment that can still be taken today's price. An accepted assignment may come back
    as a free one, so it holds the dearer of the two; returning one never needs money."""
    if hit.status == Hit.Status.DISPOSED:
        ledger.hold(hit=hit, amount_usd=ledger.NOTHING, at=now)
        return
    tally = tally or count_assignments(hit)
    ledger.hold(hit=hit, amount_usd=_promised(hit, tally, now=now), at=now)


def hold_for_new(hit: Hit, *, now: datetime) -> None:
    """Hold what a HIT may cost that was stored in this very transaction: nothing is held yet."""
    ledger.hold_more(hit=hit, more_usd=_promised(hit, Tally(), now=now), at=now)


def _promised(hit: Hit, tally: Tally, *, now: datetime) -> Decimal:
    price_usd = hit.price_usd if hit.expiration > now else ledger.NOTHING
    total_usd = (hit.max_assignments - tally.taken) * price_usd
    for (status, promised_usd), count in tally.by_price.items():
        if status == Status.ACCEPTED:
            total_usd += max(promised_usd, price_usd) * count
        elif status == Status.SUBMITTED:
            total_usd += promised_usd * count
    return total_usd.quantize(CENT)
