"""Bonuses of participants, in the currency of their recruiter's account: one for a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.study_jobs import RECRUIT, jobs_of
from hits.exceptions import PaymentRefused, RecruitingRefused
from hits.models import PART, Assignment, Batch, Payment, RecruiterCall, Recruitment
from work.models import Job, JobQuerySet

BONUS = "bonus"
# Of jobs of recruiting the bonuses that the marketplace wrote down, or may have: nothing else here
# says that a participant had one.
BONUSES = Q(arguments__action=BONUS, arguments__is_refused__isnull=True)


@dataclass(frozen=True)
class Bonus:
    """One that was requested, by the job that tells most of it: pressed twice it is one."""

    job: Job
    token: str
    currency: str
    # Why the recruiter refused it, as for want of money; None where it did not.
    refusal: str | None
    is_unheard: bool  # nobody knows if the marketplace wrote it down: to ask again is the same

    @property
    def amount(self) -> str:
        return _amount(self.job.arguments)

    @property
    def is_refused(self) -> bool:
        return self.refusal is not None


def bonuses_of(batch: Batch, **facts: str) -> list[Bonus]:
    """Those that were requested for a batch's participants, the latest first, or of them those with
    these facts; none that the marketplace would not write down, or that never left here."""
    named = {f"arguments__{name}": value for name, value in facts.items()}
    jobs = list(_jobs_of(batch).filter(**named).select_related("requested_by"))
    rows = Recruitment.objects.select_related("recruiter")
    studies = rows.in_bulk({job.arguments["recruitment"] for job in jobs})
    tokens = {
        job.pk: token_of(studies[job.arguments["recruitment"]], job.arguments) for job in jobs
    }
    refused = _refused_among(batch, jobs, tokens)
    by_token: dict[str, Bonus] = {}
    for job in jobs:
        study, refusal = studies[job.arguments["recruitment"]], refused.get(job.pk)
        one = Bonus(
            job=job,
            token=tokens[job.pk],
            currency=study.recruiter.currency,
            refusal=refusal,
            # What its recruiter refused was written down, and is heard of.
            is_unheard=refusal is None and _is_unheard(job),
        )
        known = by_token.setdefault(one.token, one)
        if known.is_unheard and not one.is_unheard:  # what is heard of one is so of both
            by_token[one.token] = one
    return sorted(by_token.values(), key=lambda one: -one.job.pk)


def token_of(recruitment: Recruitment, arguments: Mapping[str, Any]) -> str:
    """By which a request is made of the marketplace, once."""
    return str(arguments.get("token") or f"{recruitment.key}:{arguments['number']}")


def checked_bonus(recruitment: Recruitment, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is requested for a bonus: a participant gets one for a reason, however often it is
    pressed. One that nobody heard of is requested again as the same."""
    checked = dict(values)
    same = {"worker_id": values["worker_id"], "reason": values["reason"]}
    for earlier in bonuses_of(recruitment.batch, **same):
        if earlier.is_refused:
            continue
        if earlier.is_unheard and earlier.amount == _amount(values):
            checked["token"] = earlier.token
            continue
        facts = {"worker": values["worker_id"], "amount": earlier.amount}
        code = "unconfirmed_bonus" if earlier.is_unheard else "same_reason"
        text = _(
            "{worker} had a bonus of {amount} for the same reason on {day}. If another is meant, "
            "say what it is for."
        )
        if earlier.is_unheard:
            text = _(
                "A bonus of {amount} for {worker} was requested for the same reason on {day}, and "
                "nobody knows whether it is paid. Request the same amount again: it is paid once."
            )
        day = f"{earlier.job.created_at:%Y-%m-%d}"
        raise RecruitingRefused(text.format(day=day, **facts), code=code)
    if "token" not in checked:
        _require_unpaid_at_desk(recruitment.batch, values)
    return checked


def require_unrequested(assignment: Assignment, reason: str) -> None:
    """Refuse a bonus of the desk that was requested on the batch's page for the same reason."""
    batch, worker_id = assignment.hit.batch, assignment.worker.worker_id
    if not batch.is_recruited:
        return
    # Whoever requests one on the batch's page holds its study, and looks for the desk's meanwhile.
    studies = Recruitment.objects.filter(batch=batch).order_by("pk")
    list(studies.select_for_update(no_key=True).values_list("pk", flat=True))
    for one in bonuses_of(batch, worker_id=worker_id):
        if not one.is_refused and plain_reason(one.job.arguments["reason"]) == plain_reason(reason):
            text = _(
                "Its author had a bonus of {amount} for the same reason on {day}, requested on the "
                "batch’s page. If another is meant, say what it is for."
            )
            facts = {"amount": one.amount, "day": f"{one.job.created_at:%Y-%m-%d}"}
            raise PaymentRefused(text.format(**facts), assignment=assignment, code="same_reason")


def _require_unpaid_at_desk(batch: Batch, values: Mapping[str, Any]) -> None:
    """The desk pays participants of an account in dollars, too, by item."""
    rows = Payment.objects.standing().exclude(purpose=PART).order_by("-pk")
    mine = rows.filter(
        assignment__hit__batch=batch, assignment__worker__worker_id=values["worker_id"]
    )
    for one in mine:
        if plain_reason(one.reason) == plain_reason(values["reason"]):
            text = _(
                "{worker} had a bonus of {amount} for the same reason on {day}, paid at the review "
                "desk. If another is meant, say what it is for."
            )
            facts = {"worker": values["worker_id"], "amount": f"{one.amount_usd:.2f}"}
            day = f"{one.created_at:%Y-%m-%d}"
            raise RecruitingRefused(text.format(day=day, **facts), code="same_reason")


def plain_reason(reason: str) -> str:
    """As a marketplace may store it."""
    return " ".join(reason.split())


def _jobs_of(batch: Batch) -> JobQuerySet:
    jobs = jobs_of(batch.study).of_kind(RECRUIT)
    written = jobs.filter(BONUSES, arguments__batch=batch.pk)
    return written.exclude(state=Job.State.STOPPED, started_at=None)


def _refused_among(batch: Batch, jobs: list[Job], tokens: Mapping[int, str]) -> dict[int, str]:
    """Which of these the recruiter refused, by their keys, and why: by the token under which each
    was requested, which says so of one that nobody heard of, too. Calls whose token a marketplace
    of before does not tell are known by number, and those of before that was kept by participant
    and amount; of these one that nobody heard of is none."""
    calls = RecruiterCall.objects.filter(recruitment__batch=batch, kind=BONUS, is_uncertain=False)
    by_token: dict[str, str] = {}
    named = _jobs_of(batch).filter(arguments__call__isnull=False)
    known = set(named.values_list("arguments__call", flat=True))
    by_number, by_facts = {}, {}
    for call in calls:
        by_token[call.request_token] = by_number[call.number] = call.problem
        if not call.request_token and call.number not in known:
            by_facts[call.worker_id, f"{call.amount or 0:.2f}"] = call.problem
    for recruitment in batch.recruitments.all():  # more of them than calls are listed
        by_token.update(recruitment.refused_bonuses)
    by_token.pop("", None)

    def refusal(bonus: Job) -> str | None:
        told = bonus.arguments
        if (problem := by_token.get(tokens[bonus.pk])) is not None:
            return problem
        if "call" in told:
            return by_number.get(told["call"])
        return None if _is_unheard(bonus) else by_facts.get((told["worker_id"], _amount(told)))

    found = {one.pk: refusal(one) for one in jobs}
    return {key: problem for key, problem in found.items() if problem is not None}


def _is_unheard(bonus: Job) -> bool:
    is_over = bonus.state in (Job.State.FAILED, Job.State.STOPPED)
    return is_over and not bonus.arguments.get("is_sent")


def _amount(values: Mapping[str, Any]) -> str:
    return f"{Decimal(values['amount']):.2f}"
