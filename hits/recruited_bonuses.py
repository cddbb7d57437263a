"""Bonuses of participants, in the currency of their recruiter's account: one for a reason."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.study_jobs import RECRUIT, jobs_of
from hits.exceptions import RecruitingRefused
from hits.models import Batch, RecruiterCall, Recruitment
from work.models import Job

if TYPE_CHECKING:
    from work.models import JobQuerySet

CENT = Decimal("0.01")
BONUS = "bonus"


def bonuses_of(batch: Batch) -> JobQuerySet:
    """Bonuses that were requested for a batch's participants, and not refused, the latest first."""
    bonuses = (
        jobs_of(batch.study)
        .of_kind(RECRUIT)
        .filter(arguments__batch=batch.pk, arguments__action=BONUS)
    )
    # One that failed after the marketplace had written it down is paid.
    is_over = Q(state__in=[Job.State.FAILED, Job.State.STOPPED])
    return bonuses.exclude(is_over & ~Q(arguments__is_sent=True))


def refused_bonuses(batch: Batch) -> set[tuple[str, Decimal]]:
    """Workers and amounts of bonuses that the recruiter refused, as for want of money."""
    calls = RecruiterCall.objects.filter(
        recruitment__batch=batch, kind=BONUS, is_uncertain=False, amount__isnull=False
    )
    return {(call.worker_id, (call.amount or Decimal(0)).quantize(CENT)) for call in calls}


def key_of(bonus: Job) -> tuple[str, Decimal]:
    """By which a bonus that was requested is known among those that were refused."""
    return bonus.arguments["worker_id"], Decimal(bonus.arguments["amount"]).quantize(CENT)


def require_first_bonus(recruitment: Recruitment, values: Mapping[str, Any]) -> None:
    """A participant gets one bonus for a reason, however often it is pressed."""
    same = {f"arguments__{name}": values[name] for name in ("worker_id", "reason")}
    refused = refused_bonuses(recruitment.batch)
    earlier = next(
        (one for one in bonuses_of(recruitment.batch).filter(**same) if key_of(one) not in refused),
        None,
    )
    if earlier is not None:
        text = _(
            "{worker} had a bonus of {amount} for the same reason on {day}. If another is meant, "
            "say what it is for."
        )
        facts = {"worker": values["worker_id"], "amount": earlier.arguments["amount"]}
        raise RecruitingRefused(text.format(day=f"{earlier.created_at:%Y-%m-%d}", **facts))
