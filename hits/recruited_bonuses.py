"""Bonuses of participants, in the currency of their recruiter's account: one for a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def refused_by_recruiter(batch: Batch, bonuses: Iterable[Job]) -> set[int]:
    """Which of these bonuses the recruiter refused, as for want of money, by their keys. Those of
    before a call's number was kept are known by participant and amount, of calls that are no
    other's; one that nobody heard of may have been written down, and is none of them."""
    calls = RecruiterCall.objects.filter(recruitment__batch=batch, kind=BONUS, is_uncertain=False)
    named = bonuses_of(batch).filter(arguments__call__isnull=False)
    known = set(named.values_list("arguments__call", flat=True))
    numbers, facts = set(), set()
    for call in calls:
        numbers.add(call.number)
        if call.number not in known:
            facts.add((call.worker_id, f"{call.amount or 0:.2f}"))

    def is_refused(bonus: Job) -> bool:
        told = bonus.arguments
        if "call" in told:
            return told["call"] in numbers
        return not is_unheard(bonus) and (told["worker_id"], _amount(told)) in facts

    return {one.pk for one in bonuses if is_refused(one)}


def is_unheard(bonus: Job) -> bool:
    """Whether nobody knows if the marketplace wrote it down: to request it again is the same."""
    is_over = bonus.state in (Job.State.FAILED, Job.State.STOPPED)
    return is_over and not bonus.arguments.get("is_sent")


def token_of(recruitment: Recruitment, arguments: Mapping[str, Any]) -> str:
    """By which a request is made of the marketplace, once."""
    return str(arguments.get("token") or f"{recruitment.key}:{arguments['number']}")


def checked_bonus(recruitment: Recruitment, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is requested for a bonus: a participant gets one for a reason, however often it is
    pressed. One that nobody heard of is requested again as the same."""
    same = {f"arguments__{name}": values[name] for name in ("worker_id", "reason")}
    bonuses = list(bonuses_of(recruitment.batch).filter(**same))
    studies = Recruitment.objects.in_bulk([one.arguments["recruitment"] for one in bonuses])
    tokens = {
        one.pk: token_of(studies[one.arguments["recruitment"]], one.arguments) for one in bonuses
    }
    refused = refused_by_recruiter(recruitment.batch, bonuses)
    refused_tokens = {tokens[key] for key in refused}
    checked = dict(values)
    for earlier in bonuses:
        if tokens[earlier.pk] in refused_tokens:  # pressed twice, it was one request
            continue
        if is_unheard(earlier) and _amount(earlier.arguments) == _amount(values):
            checked["token"] = tokens[earlier.pk]
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
    return checked


def _amount(values: Mapping[str, Any]) -> str:
    return f"{Decimal(values['amount']):.2f}"
