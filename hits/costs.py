"""What a batch will cost, before any of it is spent."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from hits.endpoints import translated_errors
from hits.exceptions import FundsMissing
from hits.models import Batch, Hit

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
        return self._rounded(reward_usd * share)

    def bonus_fee_usd(self, amount_usd: Decimal) -> Decimal:
        """The fee on a bonus."""
        return self._rounded(amount_usd * self.share)

    def _rounded(self, fee_usd: Decimal) -> Decimal:
        return max(fee_usd.quantize(CENT, ROUND_HALF_UP), self.minimum_usd)


# Amazon's of 2015-07: 20%, 20% more from ten assignments on, 5% more for Masters, at least a
# cent; 20% of a bonus.
SCHEDULES = {
    "none": FeeSchedule(Decimal(0), Decimal(0), Decimal(0), Decimal(0)),
    "mturk": FeeSchedule(Decimal("0.20"), Decimal("0.20"), Decimal("0.05"), CENT),
}


@dataclass(frozen=True)
class Estimate:
    """Rewards and fees if every assignment is approved."""

    n_hits: int
    n_assignments: int
    rewards_usd: Decimal
    fees_usd: Decimal

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd

    def __str__(self) -> str:
        return (
            f"{self.n_hits} HITs, {self.n_assignments} assignments: "
            f"rewards ${self.rewards_usd:.2f}, fees ${self.fees_usd:.2f}, "
            f"in all ${self.total_usd:.2f}"
        )


def estimate(batch: Batch) -> Estimate:
    """What publishing the rest of a batch, or a drafted one, commits the requester to."""
    published = Hit.objects.filter(batch=batch.pk).published().values("item")
    return price(batch, n_hits=batch.study.items.exclude(pk__in=published).count())


def price(batch: Batch, *, n_hits: int) -> Estimate:
    """What so many HITs of a batch commit the requester to."""
    n_assignments = n_hits * batch.max_assignments
    fee = SCHEDULES[batch.connection.fees].fee_usd(
        batch.reward_usd, batch.max_assignments, needs_masters=batch.needs_masters
    )
    return Estimate(n_hits, n_assignments, batch.reward_usd * n_assignments, fee * n_assignments)


def require_funds(*, cost: Estimate, client: MTurkClient) -> None:
    """Refuse what the requester's account cannot pay for, before any of it is published."""
    with translated_errors():
        available = Decimal(client.get_account_balance()["AvailableBalance"])
    if available < cost.total_usd:
        raise FundsMissing(
            f"{cost}; but the account has only ${available:.2f}. Nothing was published."
        )
