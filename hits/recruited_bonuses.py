"""Bonuses of participants, in the currency of their recruiter's account: one for a reason."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.study_jobs import RECRUIT, jobs_of
from hits.exceptions import RecruitingRefused
from hits.models import Batch, RecruiterCall, Recruitment
from work.models import Job

if TYPE_CHECKING:
    from work.models import JobQuerySet

BONUS = "bonus"


def bonuses_of(batch: Batch) -> JobQuerySet:
    """Bonuses that were requested for a batch's participants, the latest first, but those that the
    marketplace would not write down."""
    jobs = jobs_of(batch.study).of_kind(RECRUIT)
    bonuses = jobs.filter(arguments__batch=batch.pk, arguments__action=BONUS)
    return bonuses.filter(arguments__is_refused__isnull=True)


def refused_calls(batch: Batch) -> set[int]:
    """Numbers of calls for bonuses that the recruiter refused, as for want of money."""
    calls = RecruiterCall.objects.filter(recruitment__batch=batch, kind=BONUS, is_uncertain=False)
    return set(calls.values_list("number", flat=True))


def is_unheard(bonus: Job) -> bool:
    """Whether nobody knows if the marketplace wrote it down: to request it again is the same."""
    is_over = bonus.state in (Job.State.FAILED, Job.State.STOPPED)
    return is_over and not bonus.arguments.get("is_sent")


def bonus_token(recruitment: Recruitment, values: Mapping[str, Any]) -> str:
    """By which a bonus is requested of the marketplace: the same however often it is pressed, and
    another once the recruiter has refused it."""
    refused = refused_calls(recruitment.batch)
    again = sum(one.arguments.get("call") in refused for one in _same(recruitment, values))
    facts = "\n".join((values["worker_id"], _amount(values), values["reason"], str(again)))
    return f"{recruitment.key}:{hashlib.sha256(facts.encode()).hexdigest()[:32]}"


def require_first_bonus(recruitment: Recruitment, values: Mapping[str, Any]) -> None:
    """A participant gets one bonus for a reason, however often it is pressed."""
    refused = refused_calls(recruitment.batch)
    for earlier in _same(recruitment, values):
        is_same = _amount(earlier.arguments) == _amount(values)
        if earlier.arguments.get("call") in refused or (is_unheard(earlier) and is_same):
            continue
        facts = {"worker": values["worker_id"], "amount": earlier.arguments["amount"]}
        text = _(
            "{worker} had a bonus of {amount} for the same reason on {day}. If another is meant, "
            "say what it is for."
        )
        if is_unheard(earlier):
            text = _(
                "A bonus of {amount} for {worker} was requested for the same reason on {day}, and "
                "nobody knows whether it is paid. Request the same amount again: it is paid once."
            )
        raise RecruitingRefused(text.format(day=f"{earlier.created_at:%Y-%m-%d}", **facts))


def _same(recruitment: Recruitment, values: Mapping[str, Any]) -> JobQuerySet:
    """Those of the same participant for the same reason."""
    same = {f"arguments__{name}": values[name] for name in ("worker_id", "reason")}
    return bonuses_of(recruitment.batch).filter(**same)


def _amount(values: Mapping[str, Any]) -> str:
    return f"{Decimal(values['amount']):.2f}"
