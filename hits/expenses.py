"""What was spent, by our record: approved assignments with their fees, and payments beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Sum
from django.db.models.functions import Round

from hits.costs import cost_of_assignment, cost_of_practice
from hits.models import (
    Assignment,
    Batch,
    DeliveryState,
    Payment,
    PracticeHit,
    Recruiter,
    Recruitment,
)
from hits.models.recruiting import paid_of, set_aside_of

NOTHING = Decimal("0.00")


@dataclass(frozen=True)
class Spend:
    """Money that has left the requester's account for a batch."""

    rewards_usd: Decimal = NOTHING
    fees_usd: Decimal = NOTHING
    bonuses_usd: Decimal = NOTHING
    bonus_fees_usd: Decimal = NOTHING

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.bonuses_usd + self.bonus_fees_usd


def spend_of(batch: Batch) -> Spend:
    """What our record says was paid for a batch."""
    return spend_by_batch([batch])[batch.pk]


def spend_by_batch(batches: Iterable[Batch]) -> Mapping[int, Spend]:
    """Approved assignments, of practice too, and confirmed payments beside them, of each batch.

    What a recruiter pays participants has not left the requester's account.
    """
    by_key = {batch.pk: batch for batch in batches}
    rewards_usd, prices_usd = dict.fromkeys(by_key, NOTHING), dict.fromkeys(by_key, NOTHING)
    approvals = Assignment.objects.filter(
        hit__batch__in=by_key, status=Assignment.Status.APPROVED
    ).order_by()
    sizes = approvals.values_list("hit__batch", "hit__max_assignments").annotate(n=Count("*"))
    for key, size, n in sizes:
        batch = by_key[key]
        rewards_usd[key] += n * batch.reward_usd
        prices_usd[key] += n * cost_of_assignment(batch, size or batch.max_assignments)
    practised = [key for key, batch in by_key.items() if batch.practice_type_id]
    rows = PracticeHit.objects.filter(batch__in=practised).order_by()
    for hit in rows.paid() if practised else ():
        rewards_usd[hit.batch_id] += hit.n_paid * hit.reward_usd
        prices_usd[hit.batch_id] += hit.n_paid * cost_of_practice(by_key[hit.batch_id], hit)
    payments = Payment.objects.filter(
        assignment__hit__batch__in=by_key,
        assignment__hit__batch__is_recruited=False,
        state=DeliveryState.CONFIRMED,
    ).order_by()
    totals = payments.values_list("assignment__hit__batch").annotate(
        # SQLite adds in binary: some hundred amounts are a trifle off the cent.
        amount=Round(Sum("amount_usd"), 2),
        fee=Round(Sum("fee_usd"), 2),
    )
    paid_usd = {key: (amount, fee) for key, amount, fee in totals}
    return {
        key: Spend(rewards_usd[key], prices_usd[key] - rewards_usd[key], *paid_usd.get(key, ()))
        for key in by_key
    }


def paid_by_recruiters(study_ids: Iterable[int]) -> Mapping[int, Mapping[str, Decimal]]:
    """What recruiters have paid participants of each study, fees included, by currency: beside
    what has left the requester's account, and never summed with it."""
    sums: dict[int, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    rows = Recruitment.objects.filter(batch__study__in=list(study_ids)).exclude(charges={})
    for study, currency, charges in rows.values_list(
        "batch__study", "recruiter__currency", "charges"
    ):
        sums[study][currency] += paid_of(charges)
    return {study: {key: paid for key, paid in one.items() if paid} for study, one in sums.items()}


def charges_of(recruiter: Recruiter) -> tuple[Decimal, Decimal]:
    """What a recruiter has paid participants, fees included, and what it still sets aside for
    places of studies that are open, both in its account's currency."""
    rows = recruiter.recruitments.all()
    still_aside = [set_aside_of(one.charges) for one in rows if one.is_live]
    return sum((paid_of(one.charges) for one in rows), NOTHING), sum(still_aside, NOTHING)
