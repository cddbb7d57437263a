"""What a batch costs: before any of it is spent, and by our record afterwards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import TYPE_CHECKING

from django.db.models import Count, Sum
from django.db.models.functions import Round
from django.utils.translation import gettext as _, ngettext

from annotation.assignment_facts import AssignmentPrice
from annotation.models import Study
from annotation.protocols.practice import n_attempts
from hits.connections import balance_usd
from hits.exceptions import FundsMissing
from hits.models import (
    Assignment,
    Batch,
    DeliveryState,
    Hit,
    Payment,
    PracticeHit,
    Recruiter,
    Recruitment,
)
from hits.models.recruiting import paid_of, set_aside_of
from hits.selections import items_without_hit, selected_items

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient


CENT = Decimal("0.01")
MANY_ASSIGNMENTS = 10


@dataclass(frozen=True)
class FeeSchedule:
    """Shares of the reward that a marketplace charges on top of it."""

    share: Decimal
    share_many: Decimal
    share_masters: Decimal
    minimum_usd: Decimal

    def fee_usd(
        self, reward_usd: Decimal, max_assignments: int, *, needs_masters: bool = False
    ) -> Decimal:
        """The fee on one assignment of a HIT that has so many."""
        share = self.share
        if max_assignments >= MANY_ASSIGNMENTS:
            share += self.share_many
        if needs_masters:
            share += self.share_masters
        return self._round_up(reward_usd * share)

    def bonus_fee_usd(self, amount_usd: Decimal) -> Decimal:
        """The fee on a bonus."""
        return self._round_up(amount_usd * self.share)

    def _round_up(self, fee_usd: Decimal) -> Decimal:
        return max(fee_usd.quantize(CENT, ROUND_HALF_UP), self.minimum_usd)


# Amazon's of 2015-07: 20%, 20% more from ten assignments on, 5% more for Masters, at least a
# cent; 20% of a bonus.
SCHEDULES = {
    "none": FeeSchedule(Decimal(0), Decimal(0), Decimal(0), Decimal(0)),
    "mturk": FeeSchedule(Decimal("0.20"), Decimal("0.20"), Decimal("0.05"), CENT),
}


@dataclass(frozen=True)
class Estimate:
    """Rewards and fees if every assignment is approved; `practice_usd` is what practice costs
    beside them, with its fees, if all of it is done."""

    n_hits: int
    n_assignments: int
    rewards_usd: Decimal
    fees_usd: Decimal
    practice_usd: Decimal = Decimal(0)

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.practice_usd

    def __add__(self, practice_usd: Decimal) -> Estimate:
        return replace(self, practice_usd=self.practice_usd + practice_usd)

    def __str__(self) -> str:
        if self.practice_usd:
            text = _(
                "{hits}, {assignments}: rewards ${rewards:.2f}, fees ${fees:.2f}, practice "
                "${practice:.2f}, in all ${total:.2f}"
            )
        else:
            text = _(
                "{hits}, {assignments}: rewards ${rewards:.2f}, fees ${fees:.2f}, in all "
                "${total:.2f}"
            )
        n = self.n_assignments
        return text.format(
            hits=ngettext("{n:,} HIT", "{n:,} HITs", self.n_hits).format(n=self.n_hits),
            assignments=ngettext("{n:,} assignment", "{n:,} assignments", n).format(n=n),
            rewards=self.rewards_usd,
            fees=self.fees_usd,
            practice=self.practice_usd,
            total=self.total_usd,
        )


def estimate(batch: Batch) -> Estimate:
    """What publishing the rest of a batch, or a drafted one, commits the requester to."""
    if batch.pk is None:
        return price_launch(batch, n_items=len(selected_items(batch)))
    rows = Hit.objects.of(batch).unpublished().order_by().values_list("max_assignments")
    sizes = Counter(own or batch.max_assignments for (own,) in rows)
    if batch.is_of_all_items:
        n_bare = items_without_hit(batch).count()
        sizes.update({size: n * n_bare for size, n in batch.n_hits_by_size.items()})
    unpublished = PracticeHit.objects.of(batch).unpublished()
    return price_hits(batch, sizes) + price_practice(batch, unpublished)


def price_launch(draft: Batch, *, n_items: int) -> Estimate:
    """What launching a batch of so many items commits the requester to, practice among it."""
    return price_items(draft, n_items=n_items) + price_practice(draft, unsaved_practice(draft))


def price_practice(batch: Batch, hits: Iterable[PracticeHit]) -> Decimal:
    """What so many practice HITs cost at most, with their fees."""
    prices = (hit.max_assignments * cost_of_practice(batch, hit) for hit in hits)
    return sum(prices, Decimal(0))


def cost_of_practice(batch: Batch, hit: PracticeHit) -> Decimal:
    """Reward and fee of one assignment of a practice HIT."""
    schedule = SCHEDULES[batch.connection.fees]
    return hit.reward_usd + schedule.fee_usd(
        hit.reward_usd, hit.max_assignments, needs_masters=batch.needs_masters
    )


def unsaved_practice(batch: Batch) -> list[PracticeHit]:
    """The practice HITs that a batch has from when it is planned: one for each attempt, so that
    who has used them up finds no other."""
    practice = batch.document.qualifications.practice
    if practice is None:
        return []
    return [
        PracticeHit(
            batch=batch,
            number=number,
            reward_usd=Decimal(str(practice.reward_usd)).quantize(CENT),
            max_assignments=practice.most_workers,
        )
        for number in range(n_attempts(practice))
    ]


def price_items(batch: Batch, *, n_items: int) -> Estimate:
    """What HITs for so many items of a batch commit the requester to, of all waves together."""
    return price_hits(batch, {size: n * n_items for size, n in batch.n_hits_by_size.items()})


def price(batch: Batch, *, n_hits: int) -> Estimate:
    """What so many HITs of a batch commit the requester to, where they are not in waves."""
    return price_hits(batch, {batch.max_assignments: n_hits})


def price_hits(batch: Batch, n_by_size: Mapping[int, int]) -> Estimate:
    """What HITs of a batch commit the requester to: how many there are of each size."""
    n_hits = n_assignments = 0
    total = Decimal(0)
    for size, n in n_by_size.items():
        n_hits += n
        n_assignments += n * size
        total += n * size * cost_of_assignment(batch, size)
    rewards = batch.reward_usd * n_assignments
    return Estimate(n_hits, n_assignments, rewards, total - rewards)


def cost_of_assignment(batch: Batch, max_assignments: int) -> Decimal:
    """Reward and fee of one assignment of a HIT that has so many; nothing of participants, whom
    their recruiter pays."""
    if batch.is_recruited:
        return Decimal(0)
    schedule = SCHEDULES[batch.connection.fees]
    return batch.reward_usd + schedule.fee_usd(
        batch.reward_usd, max_assignments, needs_masters=batch.needs_masters
    )


def latest_batch_of(study: Study) -> Batch | None:
    """The study's last batch that went to a marketplace, whose price its next may have."""
    started = Batch.objects.of(study).started().select_related("connection")
    return started.order_by("-pk").first()


def require_funds(*, cost: Estimate, client: MTurkClient) -> None:
    """Refuse what the requester's account cannot pay for, before any of it is published."""
    available = balance_usd(client)
    if available < cost.total_usd:
        raise FundsMissing(
            _("{cost}; but the account has only ${available:.2f}. Nothing was published.").format(
                cost=cost, available=available
            )
        )


def latest_assignment_price(study: Study) -> AssignmentPrice | None:
    """As the study's last batch pays and its marketplace charges; None before there is one,
    and of participants, whom their recruiter pays."""
    batch = latest_batch_of(study)
    if batch is None or batch.is_recruited:
        return None
    return AssignmentPrice(batch.reward_usd, partial(cost_of_assignment, batch))


NOTHING = Decimal("0.00")


@dataclass(frozen=True)
class Spend:
    rewards_usd: Decimal = NOTHING
    fees_usd: Decimal = NOTHING
    bonuses_usd: Decimal = NOTHING
    bonus_fees_usd: Decimal = NOTHING

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.bonuses_usd + self.bonus_fees_usd


def spend_of(batch: Batch) -> Spend:
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
