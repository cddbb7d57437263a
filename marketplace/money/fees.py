"""What a marketplace charges on top of a reward, as data."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from django.conf import settings

CENT = Decimal("0.01")


@dataclass(frozen=True)
class FeeSchedule:
    """Shares of the reward, and the least fee per assignment or bonus."""

    share_of_reward: Decimal
    large_hit_share: Decimal
    large_hit_assignments: int
    masters_share: Decimal
    share_of_bonus: Decimal
    minimum_usd: Decimal

    def per_assignment(
        self, *, reward_usd: Decimal, max_assignments: int, for_masters: bool
    ) -> Decimal:
        """The fee on one assignment, rounded half up to the cent."""
        share = self.share_of_reward
        if max_assignments >= self.large_hit_assignments:
            share += self.large_hit_share
        if for_masters:
            share += self.masters_share
        return self._rounded(reward_usd * share)

    def per_bonus(self, bonus_usd: Decimal) -> Decimal:
        """The fee on a bonus, rounded likewise."""
        return self._rounded(bonus_usd * self.share_of_bonus)

    def _rounded(self, fee_usd: Decimal) -> Decimal:
        return max(fee_usd.quantize(CENT, rounding=ROUND_HALF_UP), self.minimum_usd)


SCHEDULES = {
    "none": FeeSchedule(
        share_of_reward=Decimal(0),
        large_hit_share=Decimal(0),
        large_hit_assignments=10,
        masters_share=Decimal(0),
        share_of_bonus=Decimal(0),
        minimum_usd=Decimal("0.00"),
    ),
    # Amazon's of 2015-07: 20%, 20% more from ten assignments on, 5% more for Masters, at
    # least a cent; 20% on a bonus.
    "mturk": FeeSchedule(
        share_of_reward=Decimal("0.20"),
        large_hit_share=Decimal("0.20"),
        large_hit_assignments=10,
        masters_share=Decimal("0.05"),
        share_of_bonus=Decimal("0.20"),
        minimum_usd=CENT,
    ),
}


def fee_schedule() -> FeeSchedule:
    """The schedule this marketplace runs on: the setting MARKETPLACE_FEE_SCHEDULE, or none."""
    return SCHEDULES[getattr(settings, "MARKETPLACE_FEE_SCHEDULE", "none")]
