"""A batch's HITs as a study at a recruiter: drafted, priced, published for an amount typed back,
paused, extended, stopped. Requested here, done by the marketplace, and followed.

Requests are numbered: whoever presses twice, or on a page that is out of date, requests nothing a
second time. `key:number` is the token under which the marketplace does it once.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.audit import record
from annotation.study_jobs import RECRUIT, jobs_of, request_study_job
from hits import recruiter_api
from hits.exceptions import HitsError, RecruitingRefused
from hits.models import (
    SIZE,
    Assignment,
    Batch,
    Connection,
    Hit,
    Recruiter,
    RecruiterCall,
    Recruitment,
)
from hits.participations import store_participations
from hits.payments import note_refused_payments
from hits.recruited_bonuses import BONUS, checked_bonus, token_of
from hits.recruiter_accounts import PAUSE_SECONDS, store_recruiters
from hits.recruiter_api import Standing, StudyRecord, annotation_prefix
from hits.submissions import delete_withdrawn
from work.exceptions import JobWaiting
from work.models import Job

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from accounts.models import User
    from work.execution import RunningJob
    from work.models import JobQuerySet

State = Recruitment.State
CENT = Decimal("0.01")
DRAFT, PRICE, PUBLISH, PLACES = "draft", "price", "publish", "places"
PAUSE, RESUME, STOP, DISCARD, SETTLE = "pause", "resume", "stop", "discard", "settle"
DEMOGRAPHICS, ERASE = "demographics", "erase"
# What nobody needs of a batch whose judgments are all in.
WANTS_JUDGMENTS = (PUBLISH, PRICE, PLACES)
# Of what is requested, what no log has.
HIDDEN = ("worker_id", "token")
# Calls without which the recruiter approves a submission by time.
PAID_BY_TIME = ("doubt", "reject", "approve")
# What can be requested of a study however it stands.
ANYTIME = (SETTLE, DEMOGRAPHICS, BONUS, ERASE)
POSSIBLE = {
    State.DRAFT: (PUBLISH, DISCARD),
    State.ACTIVE: (PAUSE, STOP, PRICE, PLACES),
    State.PAUSED: (RESUME, STOP, PRICE, PLACES),
    State.STOPPED: (PRICE, PLACES),
}


@dataclass(frozen=True)
class Offer:
    """What participants are offered, and who they are; `places` 0 are as many as judgments need."""

    recruiter: Recruiter
    reward: Decimal
    minutes: int
    items: int
    places: int = 0
    devices: Sequence[str] = ()
    filters: Sequence[str] = ()
    labels: Sequence[str] = ()
    screen_out_reward: Decimal | None = None
    screen_out_places: int = 0
    excluded: Sequence[Recruitment] = ()


def batches_without_study(batches: Iterable[Batch]) -> list[Batch]:
    """Those kept for participants that nobody comes to as they are: judgments are wanted, and no
    study is open, or it is drafted alone."""
    waiting = [one for one in batches if one.is_recruited and one.hit_type_id and not one.closed_at]
    if not waiting:
        return []
    studies = Recruitment.objects.filter(batch__in=waiting)
    drafted = set(
        studies.exclude(state__in=[State.DRAFT, State.STOPPED, *Recruitment.OVER]).values_list(
            "batch", flat=True
        )
    )
    return [one for one in waiting if one.pk not in drafted and judgments_wanted(one)]


def judgments_wanted(batch: Batch) -> int:
    """Judgments that a batch's HITs want beyond those that are in; a rejected one is not asked for
    again by itself."""
    n_offered: int = Hit.objects.of(batch).published().aggregate(n=Sum(SIZE, default=0))["n"]
    return max(0, n_offered - Assignment.objects.of(batch).count())


def places_wanted(batch: Batch, items: int) -> int:
    """Participants of so many items each whom those judgments need: as many as a single item does,
    since nobody does one twice."""
    hits = Hit.objects.of(batch).published().annotate(n_in=Count("assignments"), size=SIZE)
    rows = hits.values_list("size", "n_in")
    wanted: list[int] = [size - n_in for size, n_in in rows if size > n_in]
    return max(math.ceil(sum(wanted) / items), max(wanted, default=0))


def displayed(cost: Decimal) -> Decimal:
    """A recruiter's amount as pages show it, and as it is typed back: it may have fractions of a
    cent."""
    return cost.quantize(CENT, rounding=ROUND_HALF_UP)


@transaction.atomic
def request_draft(*, batch: Batch, offer: Offer, actor: User) -> Recruitment:
    """Request that a study of the batch's HITs be drafted; one at a time is open of a batch."""
    locked = Batch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    _require_recruitable(locked, offer)
    recruitment = Recruitment.objects.create(
        batch=batch,
        recruiter=offer.recruiter,
        reward=offer.reward,
        minutes=offer.minutes,
        items=offer.items,
        places=offer.places,
        devices=list(offer.devices),
        filters=list(offer.filters),
        labels=list(offer.labels),
        screen_out_reward=offer.screen_out_reward,
        screen_out_places=offer.screen_out_places,
        created_by=actor,
    )
    recruitment.excluded.set(offer.excluded)
    _request(recruitment, DRAFT, {}, actor)
    return recruitment


@transaction.atomic
def request_change(
    *,
    recruitment: Recruitment,
    action: str,
    number: int,
    values: Mapping[str, Any] | None = None,
    actor: User,
) -> Job:
    """Request something about a study, as it was when `number` requests had been made."""
    locked = Recruitment.objects.select_for_update(of=("self",)).get(pk=recruitment.pk)
    if locked.n_requests != number:
        raise RecruitingRefused(_("Something was requested of it since. Look at it again."))
    if locked.is_under_way or jobs_of_batch(locked.batch).unfinished().exists():
        raise RecruitingRefused(_("Something is under way. Wait until it is done."))
    if action not in ANYTIME and action not in POSSIBLE.get(State(locked.state), ()):
        text = _("The study is not in a state for this: {state}.")
        raise RecruitingRefused(text.format(state=locked.get_state_display()))
    if action in WANTS_JUDGMENTS:
        _require_wanted(locked.batch)
    values = values or {}
    if action == BONUS:
        values = checked_bonus(locked, values)
    return _request(recruitment, action, values, actor)


def jobs_of_batch(batch: Batch) -> JobQuerySet:
    """Recruiting of a batch, the latest first."""
    jobs = jobs_of(batch.study).of_kind(RECRUIT)
    return jobs.filter(arguments__batch=batch.pk)


def recruit_in_background(running: RunningJob) -> str:
    """Have done what was requested, once, and wait until it is."""
    job, arguments = running.job, running.arguments
    rows = Recruitment.objects.select_related("batch__connection", "recruiter")
    recruitment = rows.get(pk=arguments["recruitment"])
    try:
        if not arguments.get("is_sent"):
            _send(recruitment, job)
        if arguments["action"] in ANYTIME:
            return _done_by_itself(recruitment, arguments["action"])
        follow_batch(recruitment.batch)
    except RecruitingRefused as refusal:
        _note_refusal(recruitment, arguments["action"], str(refusal))
        raise
    recruitment.refresh_from_db()
    if recruitment.is_under_way:
        time.sleep(PAUSE_SECONDS)
        raise JobWaiting
    if recruitment.problem:
        _note_sent(job, is_sent=False)  # whoever tries again has it sent again
        raise RecruitingRefused(recruitment.problem)
    return _report(recruitment, arguments["action"])


def _done_by_itself(recruitment: Recruitment, action: str) -> str:
    """What is no action of the study's: whatever became of the last of those, this is done, though
    nobody hears at the moment how the study stands."""
    Recruitment.objects.filter(pk=recruitment.pk).update(is_under_way=False)
    with suppress(HitsError):
        follow_batch(recruitment.batch)
    return _report(recruitment, action)


def participants_to_look_after(
    study_ids: Iterable[int],
) -> list[tuple[Batch, int, int]]:
    """Batches of these studies, with of how many participants somebody must look after a call, and
    of how many the recruiter pays by time what nobody decides on."""
    if not (keys := set(study_ids)):
        return []
    rows = RecruiterCall.objects.to_look_after().filter(recruitment__batch__study__in=keys)
    workers = Count("worker_id", distinct=True)
    is_paid_by_time = Q(kind__in=PAID_BY_TIME) & (Q(is_uncertain=True) | ~Q(kind="doubt"))
    paid = Count("worker_id", distinct=True, filter=is_paid_by_time)
    counted = rows.order_by().values_list("recruitment__batch").annotate(n=workers, n_paid=paid)
    counts = {key: (n, n_paid) for key, n, n_paid in counted}
    batches = Batch.objects.filter(pk__in=counts).select_related("study").order_by("pk")
    return [(batch, *counts[batch.pk]) for batch in batches]


def follow_batch(batch: Batch) -> None:
    """Store how the studies of a batch stand."""
    prefix = annotation_prefix(batch)
    store_standing(batch.connection, recruiter_api.fetch_standing(batch.connection, prefix=prefix))


def connections_to_follow() -> list[Connection]:
    """Those over which participants may come, or a token is being tried."""
    of_batches = Q(batches__recruitments__in=Recruitment.objects.unfinished())
    rows = Connection.objects.filter(
        of_batches | Q(batches__in=_undecided_batches()) | Q(recruiters__is_being_tried=True)
    )
    return list(rows.distinct())


def _undecided_batches() -> QuerySet[Batch]:
    """Participants' batches with answers that may be taken back still, though they come by links
    that the marketplace's own pages gave, of which nothing is known here."""
    undecided = Assignment.objects.filter(
        hit__batch=OuterRef("pk"), status=Assignment.Status.SUBMITTED
    )
    return Batch.objects.filter(Exists(undecided), is_recruited=True)


@transaction.atomic
def store_standing(connection: Connection, standing: Standing) -> None:
    """Store what a marketplace says of a team's recruiting."""
    store_recruiters(connection, standing.recruiters)
    mine = Recruitment.objects.select_for_update(of=("self",))
    mine = mine.filter(batch__connection=connection)
    by_key = {recruitment.key: recruitment for recruitment in mine}
    for one in standing.studies:
        if (recruitment := by_key.get(one.key)) is not None:
            _store_study(recruitment, one)
            _store_calls(recruitment, standing)
            note_refused_payments(recruitment.batch, standing.calls)
            store_participations(recruitment, standing.participations)
    if standing.withdrawn:
        undecided = Assignment.objects.filter(hit__batch__connection=connection)
        delete_withdrawn(undecided.filter(assignment_id__in=standing.withdrawn))


def _require_recruitable(batch: Batch, offer: Offer) -> None:
    if not batch.is_recruited:
        raise RecruitingRefused(
            _("This batch was launched for the marketplace's own workers, who are paid there.")
        )
    if not batch.hit_type_id:
        raise RecruitingRefused(_("None of the batch's HITs is published yet."))
    if offer.recruiter.connection_id != batch.connection_id:
        raise RecruitingRefused(_("The recruiter is one of another marketplace."))
    over = [State.STOPPED, *Recruitment.OVER]
    if Recruitment.objects.filter(batch=batch).exclude(state__in=over).exists():
        raise RecruitingRefused(_("A study of this batch is drafted or open already."))
    _require_wanted(batch)


def _require_wanted(batch: Batch) -> None:
    if not judgments_wanted(batch):
        raise RecruitingRefused(
            _("All judgments of the batch are in: whoever came would find nothing to do.")
        )


def _request(recruitment: Recruitment, action: str, values: Mapping[str, Any], actor: User) -> Job:
    number = recruitment.n_requests + 1
    Recruitment.objects.filter(pk=recruitment.pk).update(
        n_requests=F("n_requests") + 1, is_under_way=True, problem=""
    )
    study = recruitment.batch.study
    arguments = {
        "batch": recruitment.batch_id,
        "recruitment": recruitment.pk,
        "action": action,
        "number": number,
    }
    job = request_study_job(
        study=study, kind=RECRUIT, arguments=arguments | dict(values), requested_by=actor
    )
    details = {
        "batch": recruitment.batch_id,
        "recruiter": recruitment.recruiter.name,
        "reward": f"{recruitment.reward:.2f} {recruitment.recruiter.currency}",
    }
    record(
        team=study.team,
        actor=actor,
        action=f"recruitment.{action}",
        subject=study.slug,
        # Who reads the log may not see who workers are.
        details=details | {name: value for name, value in values.items() if name not in HIDDEN},
    )
    return job


def _send(recruitment: Recruitment, job: Job) -> None:
    """Send it, unless something else was requested since: one that failed can be tried again from
    a page that is out of date."""
    latest = Recruitment.objects.filter(pk=recruitment.pk, n_requests=job.arguments["number"])
    if not latest.update(is_under_way=True, problem=""):
        raise RecruitingRefused(_("Something was requested of it since. Look at it again."))
    try:
        answered = _perform(recruitment, job.arguments)
    except RecruitingRefused:
        _note_sent(job, is_refused=True)
        raise
    _note_sent(job, is_sent=True, **answered)


def _perform(recruitment: Recruitment, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Have it done; return what is to be remembered of it."""
    action = arguments["action"]
    if action == DRAFT:
        recruiter_api.draft(recruitment)
    elif action == DEMOGRAPHICS:
        recruiter_api.ask_demographics(recruitment)
    elif action == ERASE:
        recruiter_api.erase_participant(recruitment, worker_id=arguments["worker_id"])
    elif action == BONUS:
        bonus = {name: arguments[name] for name in ("worker_id", "amount", "reason")}
        token = token_of(recruitment, arguments)
        return {"call": recruiter_api.pay_bonus(recruitment, token, **bonus)}
    elif action == SETTLE:
        number, was_done = arguments["call"], arguments["was_done"]
        recruiter_api.settle(recruitment, number=number, was_done=was_done)
    else:
        values = {name: arguments[name] for name in ("places", "confirmed") if name in arguments}
        recruiter_api.act(recruitment, action, token_of(recruitment, arguments), values)
    return {}


def _note_sent(job: Job, **facts: bool | int) -> None:
    """So that an attempt that only waits sends nothing again."""
    said = {name: job.arguments[name] for name in job.arguments if name != "is_refused"}
    Job.objects.filter(pk=job.pk).update(arguments=said | facts)


def _note_refusal(recruitment: Recruitment, action: str, problem: str) -> None:
    """The marketplace would not even write it down."""
    rows = Recruitment.objects.filter(pk=recruitment.pk)
    rows.update(is_under_way=False, problem=problem)
    if action == DRAFT:
        rows.filter(state=State.REQUESTED).update(state=State.REFUSED)


def _store_study(recruitment: Recruitment, one: StudyRecord) -> None:
    recruitment.public_id = one.public_id
    recruitment.state = _state_of(one)
    recruitment.is_under_way = bool(one.action)
    recruitment.problem = one.problem
    recruitment.places = one.places
    recruitment.quoted_places, recruitment.quoted_cost = one.quoted_places, one.quoted_cost
    recruitment.sessions, recruitment.outcomes = dict(one.sessions), dict(one.outcomes)
    recruitment.unsent, recruitment.n_entered = dict(one.unsent), one.n_entered
    recruitment.charges = {kind: f"{amount:f}" for kind, amount in one.charges.items()}
    recruitment.free, recruitment.needed = one.free, one.needed
    recruitment.n_waiting, recruitment.fetched_at = one.n_waiting, timezone.now()
    recruitment.save()


def _state_of(one: StudyRecord) -> str:
    if one.state == State.DRAFT and not one.is_posted:
        return State.REQUESTED if one.action else State.REFUSED
    if one.state == State.STOPPED and not one.is_posted:
        return State.DISCARDED
    return one.state if one.state in State.values else State.STOPPED


def _store_calls(recruitment: Recruitment, standing: Standing) -> None:
    """What somebody must look after; of a call that is listed already the row stays, which a page
    names that is open somewhere."""
    mine = [one for one in standing.calls if one.study == recruitment.public_id]
    listed = {one.number: one for one in mine}.values()
    calls = RecruiterCall.objects.filter(recruitment=recruitment)
    calls.exclude(number__in=[one.number for one in listed]).delete()
    RecruiterCall.objects.bulk_create(
        [
            RecruiterCall(
                recruitment=recruitment,
                number=one.number,
                kind=one.kind,
                is_uncertain=one.is_uncertain,
                amount=one.amount,
                currency=one.currency,
                worker_id=one.worker_id,
                submission_id=one.submission_id,
                problem=one.problem,
                shows_by=one.shows_by,
            )
            for one in listed
        ],
        update_conflicts=True,
        unique_fields=["recruitment", "number"],
        update_fields=[
            "kind",
            "is_uncertain",
            "amount",
            "currency",
            "problem",
            "submission_id",
            "shows_by",
        ],
    )


def _report(recruitment: Recruitment, action: str) -> str:
    cost = f"{displayed(recruitment.quoted_cost or Decimal(0))} {recruitment.recruiter.currency}"
    facts = {"places": f"{recruitment.quoted_places or 0:,}", "cost": cost}
    n = recruitment.quoted_places or 0
    if action == DRAFT:
        text = ngettext(
            "The draft has {places} place and costs {cost}.",
            "The draft has {places} places and costs {cost}.",
            n,
        )
        return text.format(**facts)
    if action == PRICE:
        text = ngettext(
            "{places} place in all costs {cost} more.",
            "{places} places in all cost {cost} more.",
            n,
        )
        return text.format(**facts)
    if action == SETTLE:
        return _("It is settled.")
    if action == BONUS:
        return _("The bonus is written down; the recruiter pays it within a minute.")
    if action == ERASE:
        return _("Who the participant is was erased at the marketplace; the answers stay.")
    if action == DEMOGRAPHICS:
        return _("The recruiter is asked for demographics; the file has them in a minute.")
    return _("The study is: {state}.").format(state=recruitment.get_state_display().lower())
