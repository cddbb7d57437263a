"""What a launch pays for an hour: of a HIT, on a line of wages, and of practice."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

from annotation.protocols.practice import n_attempts
from hits.costs import CENT
from hits.models import Batch
from hits.wages import Duration, Wage, practice_duration, wage_of

# The hourly pay that a reward is suggested for where the team has set no floor.
SUGGESTED_HOURLY_USD = Decimal(12)


def duration_words(seconds: float) -> str:
    """Minutes and seconds, in words."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return _("%(s)s s") % {"s": rest}
    return _("%(m)s min %(s)s s") % {"m": minutes, "s": rest}


@dataclass(frozen=True)
class PracticeOffer:
    """The practice HITs of a launch, and what one pays in an hour with its feedback read."""

    n_hits: int
    n_workers: int
    reward_usd: Decimal
    hourly_usd: Decimal
    time: str


def practice_offer(draft: Batch, duration: Duration) -> PracticeOffer | None:
    """None where the workers of the launch do not practise."""
    practice = draft.document.qualifications.practice
    if practice is None:
        return None
    reward_usd = Decimal(str(practice.reward_usd)).quantize(CENT)
    of_practice = practice_duration(practice, duration)
    return PracticeOffer(
        n_hits=n_attempts(practice),
        n_workers=practice.most_workers,
        reward_usd=reward_usd,
        hourly_usd=wage_of(reward_usd, of_practice).typical_usd,
        time=duration_words(of_practice.typical_seconds),
    )


def wage_line(wage: Wage, floor_usd: Decimal | None) -> dict[str, int | None]:
    """Where on a line of 600 the wages stand, from nothing to a little more than the most."""
    most = max(wage.most_usd, floor_usd or 0, CENT) * Decimal("1.1")
    marks = {"least": wage.least_usd, "typical": wage.typical_usd, "most": wage.most_usd}
    line: dict[str, int | None] = {name: int(600 * usd / most) for name, usd in marks.items()}
    return line | {"floor": None if floor_usd is None else int(600 * floor_usd / most)}
