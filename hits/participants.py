"""Participants: how they stand at their recruiters, as the marketplace says, and their bonuses,
one per reason, in the currency of the recruiter's account."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.study_facts import RECRUIT, jobs_of
from hits import recruiter_api
from hits.account_requests import store_recruiters
from hits.collect import delete_withdrawn, set_status
from hits.exceptions import MarketplaceFault, PaymentRefused, RecruitingRefused
from hits.models import (
    PART,
    Assignment,
    Batch,
    Connection,
    DeliveryState,
    LinkStudy,
    Participation,
    Payment,
    RecruiterCall,
    Recruitment,
)
from hits.recruiter_api import RefusedBonus, Rows, Standing, annotation_prefix
from work.models import Job, JobQuerySet

FACTS = ("worker_id", "state", "outcome", "reported", "arrived_at")
CALL_FACTS = (
    *("number", "kind", "is_uncertain", "amount", "currency", "worker_id", "request_token"),
    *("submission_id", "problem", "shows_by"),
)
# The items of a participation are reserved together, when its participant arrives; nobody is done
# with one, and comes again, so soon.
RESERVED_WITHIN = timedelta(minutes=1)


def items_of_participation(assignment: Assignment) -> QuerySet[Assignment]:
    # Each time that somebody comes to a batch is decided by itself.
    return (
        Assignment.objects.of(assignment.hit.batch)
        .filter(worker=assignment.worker_id)
        .filter(accepted_at__range=_about(assignment))
    )


def standing_of(assignment: Assignment) -> QuerySet[Participation]:
    # Older items do not name their participation: any of the participant's may be it.
    return (
        Participation.objects.filter(
            recruitment__batch=assignment.hit.batch, worker_id=assignment.worker.worker_id
        )
        .filter(Q(arrived_at__range=_about(assignment)) | Q(arrived_at=None))
        .select_related("recruitment__recruiter")
    )


def _about(assignment: Assignment) -> tuple[Any, Any]:
    at = assignment.accepted_at
    return at - RESERVED_WITHIN, at + RESERVED_WITHIN


def store_participations(recruitment: Recruitment, rows: Rows) -> None:
    told = {
        tuple(one[name] for name in FACTS) for one in rows if one["study"] == recruitment.public_id
    }
    known = Participation.objects.filter(recruitment=recruitment)
    stored = {row[1:]: row[0] for row in known.values_list("pk", *FACTS)}
    if gone := [key for facts, key in stored.items() if facts not in told]:
        known.filter(pk__in=gone).delete()
    Participation.objects.bulk_create(
        Participation(recruitment=recruitment, **dict(zip(FACTS, facts, strict=True)))
        for facts in sorted(told - stored.keys(), key=repr)
    )


State = Recruitment.State
# Calls without which the recruiter approves a submission by time.
PAID_BY_TIME = ("doubt", "reject", "approve")
# A participation at a recruiter takes less than a day, with ten minutes of grace, and who stops it
# at its end may have submitted a first page at its beginning: a day more is for what is not heard.
TAKEN_BACK_WITHIN = timedelta(days=2)
# By then it is known whether a decision or a bonus waits for the recruiter.
HEARD_WITHIN = timedelta(days=1)


def follow_batch(batch: Batch) -> None:
    store_standing(
        batch.connection,
        recruiter_api.fetch_standing(batch.connection, prefix=annotation_prefix(batch)),
    )


@transaction.atomic
def store_standing(connection: Connection, standing: Standing) -> None:
    store_recruiters(connection, standing.recruiters)
    by_key = {
        recruitment.key: recruitment
        for recruitment in Recruitment.objects.select_for_update(of=("self",)).filter(
            batch__connection=connection
        )
    }
    for key, values in standing.studies.items():
        if (recruitment := by_key.get(key)) is not None:
            _store_study(recruitment, values, standing)
            _store_calls(recruitment, standing)
            note_refused_payments(
                recruitment.batch, standing.refused_bonuses, asked_at=standing.asked_at
            )
            store_participations(recruitment, standing.participations)
    if standing.withdrawn:
        delete_withdrawn(
            Assignment.objects.filter(
                hit__batch__connection=connection, assignment_id__in=standing.withdrawn
            )
        )


def connections_to_follow() -> list[Connection]:
    return list(
        Connection.objects.filter(
            Q(batches__recruitments__in=Recruitment.objects.unfinished())
            | Q(batches__in=_undecided_batches())
            | Q(batches__in=_batches_sent_on())
            | Q(batches__link_study__in=LinkStudy.objects.to_follow())
            | Q(recruiters__is_being_tried=True)
        ).distinct()
    )


def forget_submissions(followed: Iterable[Connection]) -> None:
    # A marketplace that is not followed any more does not report erased participants, so their ids
    # must not be kept.
    RecruiterCall.objects.exclude(recruitment__batch__connection__in=followed).exclude(
        submission_id=""
    ).update(submission_id="")


def _undecided_batches() -> QuerySet[Batch]:
    is_undecided = Q(status=Assignment.Status.SUBMITTED)
    # Whose author may be at work on the other pages still, and stop.
    is_recent = Q(submitted_at__gt=timezone.now() - TAKEN_BACK_WITHIN)
    return Batch.objects.filter(
        Exists(Assignment.objects.filter(is_undecided | is_recent, hit__batch=OuterRef("pk"))),
        is_recruited=True,
    )


def _batches_sent_on() -> QuerySet[Batch]:
    recently = timezone.now() - HEARD_WITHIN
    return Batch.objects.filter(
        Exists(Assignment.objects.filter(hit__batch=OuterRef("pk"), decided_at__gt=recently))
        | Exists(
            Payment.objects.filter(assignment__hit__batch=OuterRef("pk"), confirmed_at__gt=recently)
        ),
        is_recruited=True,
    )


def participants_to_look_after(study_ids: Iterable[int]) -> list[tuple[Batch, int, int]]:
    """Batches with two counts: participants with a call that somebody must look after, and those
    whom the recruiter pays by time if nobody decides."""
    if not (keys := set(study_ids)):
        return []
    rows = RecruiterCall.objects.to_look_after().filter(recruitment__batch__study__in=keys)
    counts = {
        key: (n, n_paid)
        for key, n, n_paid in rows.order_by()
        .values_list("recruitment__batch")
        .annotate(
            n=Count("worker_id", distinct=True),
            n_paid=Count(
                "worker_id",
                distinct=True,
                filter=Q(kind__in=PAID_BY_TIME) & (Q(is_uncertain=True) | ~Q(kind="doubt")),
            ),
        )
    }
    return [
        (batch, *counts[batch.pk])
        for batch in Batch.objects.filter(pk__in=counts).select_related("study").order_by("pk")
    ]


def _store_study(recruitment: Recruitment, values: dict[str, Any], standing: Standing) -> None:
    for name, value in values.items():
        setattr(recruitment, name, value)
    # Of whomever they are for: a participant's other study of the batch may be the one that pays.
    bonuses = standing.refused_bonuses
    mine = (bonus for bonus in bonuses if bonus.request_token.startswith(f"{recruitment.key}:"))
    # Of whom was erased since nothing is told any more; what was refused stays so.
    recruitment.refused_bonuses |= {bonus.request_token: bonus.problem for bonus in mine}
    recruitment.fetched_at = timezone.now()
    recruitment.save()


def _store_calls(recruitment: Recruitment, standing: Standing) -> None:
    # A row that is listed already stays, since an open page may name it.
    listed = {one["number"]: one for one in standing.calls if one["study"] == recruitment.public_id}
    RecruiterCall.objects.filter(recruitment=recruitment).exclude(number__in=listed).delete()
    RecruiterCall.objects.bulk_create(
        (
            RecruiterCall(recruitment=recruitment, **{name: one[name] for name in CALL_FACTS})
            for one in listed.values()
        ),
        update_conflicts=True,
        unique_fields=["recruitment", "number"],
        update_fields=[name for name in CALL_FACTS if name not in ("number", "worker_id")],
    )


# What is left of more is asked for a minute later.
MOST_ANSWERS = 20
# Two that are written down at once may be seen in another order than their times.
OVERLAP = timedelta(minutes=2)
DECIDED = (Assignment.Status.APPROVED, Assignment.Status.REJECTED)


def follow_decisions(connection: Connection) -> int:
    n_new, after = 0, connection.decisions_after
    for _answer in range(MOST_ANSWERS):
        decided, after_these = recruiter_api.fetch_decisions(connection, after=after)
        n_new += _store_decisions(connection, decided)
        if after_these == after:
            after = _a_little_before(after)
            break
        after = after_these
        Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    Connection.objects.filter(pk=connection.pk).update(decisions_after=after)
    return n_new


def _store_decisions(connection: Connection, decided: Mapping[str, str]) -> int:
    rows = Assignment.objects.filter(
        hit__batch__connection=connection, assignment_id__in=list(decided)
    )
    n_new = 0
    for one in rows:
        status = decided[one.assignment_id]
        if status in DECIDED and status != one.status:
            n_new += set_status(assignment=one, status=Assignment.Status(status))
    return n_new


def _a_little_before(after: str) -> str:
    at, _separator, _key = after.partition(" ")
    try:
        return (datetime.fromisoformat(at) - OVERLAP).isoformat() if at else ""
    except ValueError as error:  # as 2026-02-31
        raise MarketplaceFault(_("{name} is no time").format(name="after")) from error


BONUS = "bonus"
# Of jobs of recruiting the bonuses that the marketplace wrote down, or may have: nothing else here
# says that a participant had one.
BONUSES = Q(arguments__action=BONUS, arguments__is_refused__isnull=True)


@dataclass(frozen=True)
class Bonus:
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
    """The newest first, or only those with these facts; without those that never left this site."""
    jobs = list(
        _jobs_of(batch)
        .filter(**{f"arguments__{name}": value for name, value in facts.items()})
        .select_related("requested_by")
    )
    studies = Recruitment.objects.select_related("recruiter").in_bulk(
        {job.arguments["recruitment"] for job in jobs}
    )
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
    return str(arguments.get("token") or f"{recruitment.key}:{arguments['number']}")


def checked_bonus(recruitment: Recruitment, values: Mapping[str, Any]) -> dict[str, Any]:
    # One whose outcome is unknown is requested again with the same token.
    checked = dict(values)
    for earlier in bonuses_of(
        recruitment.batch, worker_id=values["worker_id"], reason=values["reason"]
    ):
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
        raise RecruitingRefused(
            text.format(day=f"{earlier.job.created_at:%Y-%m-%d}", **facts), code=code
        )
    if "token" not in checked:
        _require_unpaid_at_desk(recruitment.batch, values)
    return checked


def require_unrequested(assignment: Assignment, reason: str) -> None:
    batch, worker_id = assignment.hit.batch, assignment.worker.worker_id
    if not batch.is_recruited:
        return
    # Whoever requests one on the batch's page holds its study, and looks for the desk's meanwhile.
    studies = Recruitment.objects.filter(batch=batch).order_by("pk")
    list(studies.select_for_update(no_key=True).values_list("pk", flat=True))
    for one in bonuses_of(batch, worker_id=worker_id):
        if not one.is_refused and plain_reason(one.job.arguments["reason"]) == plain_reason(reason):
            raise PaymentRefused(
                _(
                    "Its author had a bonus of {amount} for the same reason on {day}, requested on "
                    "the batch’s page. If another is meant, say what it is for."
                ).format(amount=one.amount, day=f"{one.job.created_at:%Y-%m-%d}"),
                assignment=assignment,
                code="same_reason",
            )


def _require_unpaid_at_desk(batch: Batch, values: Mapping[str, Any]) -> None:
    for one in (
        Payment.objects.standing()
        .filter(assignment__hit__batch=batch, assignment__worker__worker_id=values["worker_id"])
        .exclude(purpose=PART)
        .order_by("-pk")
    ):
        if plain_reason(one.reason) == plain_reason(values["reason"]):
            text = _(
                "{worker} had a bonus of {amount} for the same reason on {day}, paid at the review "
                "desk. If another is meant, say what it is for."
            )
            facts = {"worker": values["worker_id"], "amount": f"{one.amount_usd:.2f}"}
            raise RecruitingRefused(
                text.format(day=f"{one.created_at:%Y-%m-%d}", **facts), code="same_reason"
            )


def plain_reason(reason: str) -> str:
    return " ".join(reason.split())


def _jobs_of(batch: Batch) -> JobQuerySet:
    return (
        jobs_of(batch.study)
        .of_kind(RECRUIT)
        .filter(BONUSES, arguments__batch=batch.pk)
        .exclude(state=Job.State.STOPPED, started_at=None)
    )


def _refused_among(batch: Batch, jobs: list[Job], tokens: Mapping[int, str]) -> dict[int, str]:
    """Which of these the recruiter refused, with the reasons, by job. Calls of marketplaces that
    do not return tokens are matched by number, those of older ones by participant and amount."""
    calls = RecruiterCall.objects.filter(recruitment__batch=batch, kind=BONUS, is_uncertain=False)
    by_token: dict[str, str] = {}
    known = set(
        _jobs_of(batch)
        .filter(arguments__call__isnull=False)
        .values_list("arguments__call", flat=True)
    )
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


def note_refused_payments(
    batch: Batch, bonuses: Collection[RefusedBonus], *, asked_at: datetime
) -> None:
    """Note bonuses that the marketplace took but the participants' recruiter had refused when
    that was asked, such as for want of money: they can be requested again."""
    refused = {one.request_token: one.problem for one in bonuses}
    if not refused:
        return
    workers = {one.worker_id for one in bonuses}
    # One that was asked for again meanwhile is another matter.
    rows = Payment.objects.filter(assignment__hit__batch=batch, state=DeliveryState.CONFIRMED)
    rows = rows.filter(confirmed_at__lt=asked_at)
    for payment in rows.filter(assignment__worker__worker_id__in=workers):
        if (problem := refused.get(payment.unique_request_token)) is not None:
            rows.filter(pk=payment.pk).update(
                state=DeliveryState.REFUSED, problem=problem, confirmed_at=None
            )
