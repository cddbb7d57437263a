import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from django.conf import settings
from django.utils.translation import gettext as _

from marketplace.exceptions import InvalidAmount, require

# More is a slip of the finger. Twelve digits before the point would still fit the ledger.
LARGEST_AMOUNT_USD = Decimal("1000000.00")
# No sign, exponent, separator of thousands, or digits of other scripts.
PLAIN_AMOUNT = re.compile(r"\$?([0-9]{1,12}(?:\.[0-9]{1,2})?)")


def parse_amount(text: str) -> Decimal:
    match = PLAIN_AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidAmount(
            _(
                "%(text)s is not an amount of dollars, such as 1000 or 49.50. Digits, and at most "
                "two after a point, are all that may be in it."
            )
            % {"text": repr(text)}
        )
    amount_usd = Decimal(match[1])
    require(
        amount_usd <= LARGEST_AMOUNT_USD,
        InvalidAmount(
            _("$%(amount)s is more than $%(largest)s at once.")
            % {"amount": f"{amount_usd:,}", "largest": f"{LARGEST_AMOUNT_USD:,}"},
            code="too_large",
        ),
    )
    return amount_usd


# What a marketplace charges on top of a reward, as data.

CENT = Decimal("0.01")


@dataclass(frozen=True)
class FeeSchedule:
    share_of_reward: Decimal
    large_hit_share: Decimal
    large_hit_assignments: int
    masters_share: Decimal
    share_of_bonus: Decimal
    minimum_usd: Decimal

    def per_assignment(
        self, *, reward_usd: Decimal, max_assignments: int, for_masters: bool
    ) -> Decimal:
        share = self.share_of_reward
        if max_assignments >= self.large_hit_assignments:
            share += self.large_hit_share
        if for_masters:
            share += self.masters_share
        # Work that is not paid for costs no fee: the least fee is of a reward.
        return self._rounded(reward_usd * share) if reward_usd else Decimal("0.00")

    def per_bonus(self, bonus_usd: Decimal) -> Decimal:
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
    return SCHEDULES[getattr(settings, "MARKETPLACE_FEE_SCHEDULE", "none")]
