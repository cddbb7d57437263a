"""A batch's HITs as a study at a recruiter: drafted, priced, published for an amount typed back,
paused, extended, stopped. Requested here, and done by the marketplace.

Requests are numbered: whoever presses twice, or on a page that is out of date, requests nothing a
second time. `key:number` is the token under which the marketplace does it once.
"""

import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.audit import record
from accounts.models import User
from annotation.study_facts import RECRUIT, jobs_of, request_study_job, subject_of
from hits import account_requests, recruiter_api
from hits.exceptions import HitsError, RecruitingRefused, require
from hits.models import (
    SIZE,
    Assignment,
    Batch,
    Connection,
    Hit,
    LinkStudy,
    Recruiter,
    RecruiterCall,
    Recruitment,
    RecruitmentQuerySet,
)
from hits.participants import BONUS, checked_bonus, follow_batch, token_of
from work.exceptions import JobWaiting
from work.execution import RunningJob
from work.models import Job, JobQuerySet

State = Recruitment.State
CENT = Decimal("0.01")
DRAFT, PRICE, PUBLISH, PLACES = "draft", "price", "publish", "places"
PAUSE, RESUME, STOP, DISCARD, SETTLE = "pause", "resume", "stop", "discard", "settle"
DEMOGRAPHICS, ERASE = "demographics", "erase"
PRICE_BONUS = "price_bonus"
# What nobody needs of a batch whose judgments are all in.
WANTS_JUDGMENTS = (PUBLISH, PRICE, PLACES)
# Of what is requested, what no log has.
HIDDEN = ("worker_id", "token")
# What can be requested of a study however it stands.
ANYTIME = (SETTLE, DEMOGRAPHICS, BONUS, ERASE)
# Of that, what the marketplace sends to the recruiter, who may refuse it.
SENT_ON = (SETTLE, BONUS)
POSSIBLE = {
    State.DRAFT: (PUBLISH, DISCARD),
    State.ACTIVE: (PAUSE, STOP, PRICE, PLACES, PRICE_BONUS),
    State.PAUSED: (RESUME, STOP, PRICE, PLACES, PRICE_BONUS),
    State.STOPPED: (PRICE, PLACES, PRICE_BONUS),
}


def batches_without_study(batches: Iterable[Batch]) -> list[Batch]:
    waiting = [one for one in batches if one.is_recruited and one.hit_type_id and not one.closed_at]
    if not waiting:
        return []
    drafted = set(
        Recruitment.objects.filter(batch__in=waiting)
        .exclude(state__in=[State.DRAFT, State.STOPPED, *Recruitment.OVER])
        .values_list("batch", flat=True)
    )
    has_link = ~Q(shared_link="") | Q(people__revoked_at=None, people__isnull=False)
    linked = LinkStudy.objects.filter(has_link, batch__in=waiting, is_open=True)
    drafted |= set(linked.values_list("batch", flat=True))
    return [one for one in waiting if one.pk not in drafted and judgments_wanted(one)]


def judgments_wanted(batch: Batch) -> int:
    # A rejected one is not asked for again by itself.
    n_offered: int = Hit.objects.of(batch).published().aggregate(n=Sum(SIZE, default=0))["n"]
    return max(0, n_offered - Assignment.objects.of(batch).count())


def places_wanted(batch: Batch, items: int) -> int:
    hits = Hit.objects.of(batch).published().annotate(n_in=Count("assignments"), size=SIZE)
    wanted: list[int] = [
        size - n_in for size, n_in in hits.values_list("size", "n_in") if size > n_in
    ]
    return max(math.ceil(sum(wanted) / items), max(wanted, default=0))


def displayed(cost: Decimal) -> Decimal:
    return cost.quantize(CENT, rounding=ROUND_HALF_UP)


@transaction.atomic
def request_draft(
    *,
    batch: Batch,
    recruiter: Recruiter,
    excluded: Iterable[Recruitment] = (),
    actor: User,
    **terms: Any,
) -> Recruitment:
    _require_recruitable(Batch.objects.select_for_update(of=("self",)).get(pk=batch.pk), recruiter)
    recruitment = Recruitment.objects.create(
        batch=batch, recruiter=recruiter, created_by=actor, **terms
    )
    recruitment.excluded.set(excluded)
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
    # `number` is how many requests had been made when the page was displayed.
    locked = Recruitment.objects.select_for_update(of=("self",)).get(pk=recruitment.pk)
    require(
        locked.n_requests == number,
        RecruitingRefused(
            _("Something was requested of it since. Look at it again."), code="changed_since"
        ),
    )
    _require_nothing_under_way(locked.batch, is_under_way=locked.is_under_way)
    if action not in ANYTIME and action not in POSSIBLE.get(State(locked.state), ()):
        raise RecruitingRefused(
            _("The study is not in a state for this: {state}.").format(
                state=locked.get_state_display()
            ),
            code="wrong_state",
        )
    if action in WANTS_JUDGMENTS:
        _require_wanted(locked.batch)
    values = values or {}
    if action == BONUS:
        values = checked_bonus(locked, values)
    return _request(recruitment, action, values, actor)


def jobs_of_batch(batch: Batch) -> JobQuerySet:
    return jobs_of(batch.study).of_kind(RECRUIT).filter(arguments__batch=batch.pk)


def recruit_in_background(running: RunningJob) -> str:
    job, arguments = running.job, running.arguments
    recruitment = Recruitment.objects.select_related("batch__connection", "recruiter").get(
        pk=arguments["recruitment"]
    )
    is_sent = arguments.get("is_sent")
    if not is_sent:
        _begin_sending(recruitment, job)
    try:
        if not is_sent:
            _send(recruitment, job)
        if arguments["action"] in ANYTIME:
            return _done_by_itself(recruitment, arguments["action"])
        follow_batch(recruitment.batch)
    except RecruitingRefused as refusal:
        _note_refusal(recruitment, arguments["action"], str(refusal))
        raise
    recruitment.refresh_from_db()
    if recruitment.is_under_way:
        time.sleep(account_requests.PAUSE_SECONDS)
        raise JobWaiting
    if recruitment.problem:
        _note_sent(job, is_sent=False)  # whoever tries again has it sent again
        raise RecruitingRefused(recruitment.problem)
    return _report(recruitment, arguments["action"])


def _done_by_itself(recruitment: Recruitment, action: str) -> str:
    # These do not depend on the study's last action.
    rows = Recruitment.objects.filter(pk=recruitment.pk)
    # A number: PostgreSQL adds no truth to one.
    rows.update(is_under_way=False, n_waiting=F("n_waiting") + int(action in SENT_ON))
    with suppress(HitsError):
        follow_batch(recruitment.batch)
    return _report(recruitment, action)


def _require_recruitable(batch: Batch, recruiter: Recruiter) -> None:
    require(
        batch.is_recruited and not batch.is_invited,
        RecruitingRefused(_("This batch was launched for other annotators."), code="own_workers"),
    )
    require(
        batch.hit_type_id,
        RecruitingRefused(_("None of the batch's HITs is published yet."), code="unpublished"),
    )
    require(
        recruiter.connection_id == batch.connection_id,
        RecruitingRefused(
            _("The recruiter is one of another marketplace."), code="other_marketplace"
        ),
    )
    _require_no_open(Recruitment.objects.filter(batch=batch))
    _require_nothing_under_way(batch)
    _require_wanted(batch)


def _require_nothing_under_way(batch: Batch, *, is_under_way: bool = False) -> None:
    # A failed job may be tried again at any moment, also that of a draft.
    require(
        not is_under_way and not jobs_of_batch(batch).unfinished().exists(),
        RecruitingRefused(_("Something is under way. Wait until it is done."), code="under_way"),
    )


def _require_no_open(studies: RecruitmentQuerySet) -> None:
    require(
        not studies.exclude(state__in=[State.STOPPED, *Recruitment.OVER]).exists(),
        RecruitingRefused(
            _("A study of this batch is drafted or open already."), code="open_already"
        ),
    )


@transaction.atomic
def _require_alone(recruitment: Recruitment) -> None:
    # A failed draft can be tried again after another was requested in its place. Whoever requests
    # that holds the batch, and requests nothing while this is under way.
    Batch.objects.select_for_update(of=("self",)).get(pk=recruitment.batch_id)
    _require_no_open(
        Recruitment.objects.filter(batch=recruitment.batch_id).exclude(pk=recruitment.pk)
    )


def _require_wanted(batch: Batch) -> None:
    require(
        judgments_wanted(batch),
        RecruitingRefused(
            _("All judgments of the batch are in: whoever came would find nothing to do."),
            code="nothing_wanted",
        ),
    )


def _request(recruitment: Recruitment, action: str, values: Mapping[str, Any], actor: User) -> Job:
    number = recruitment.n_requests + 1
    Recruitment.objects.filter(pk=recruitment.pk).update(
        n_requests=F("n_requests") + 1, is_under_way=True, problem=""
    )
    study = recruitment.batch.study
    job = request_study_job(
        study=study,
        kind=RECRUIT,
        arguments={
            "batch": recruitment.batch_id,
            "recruitment": recruitment.pk,
            "action": action,
            "number": number,
        }
        | dict(values),
        requested_by=actor,
    )
    record(
        team=study.team,
        actor=actor,
        action=f"recruitment.{action}",
        subject=study.slug,
        # Who reads the log may not see who workers are.
        details={
            "batch": recruitment.batch_id,
            "recruiter": recruitment.recruiter.name,
            "reward": f"{recruitment.reward:.2f} {recruitment.recruiter.currency}",
        }
        | {name: value for name, value in values.items() if name not in HIDDEN},
    )
    return job


def _begin_sending(recruitment: Recruitment, job: Job) -> None:
    # A failed request can be tried again from a page that is out of date.
    require(
        Recruitment.objects.filter(pk=recruitment.pk, n_requests=job.arguments["number"]).update(
            is_under_way=True, problem=""
        ),
        RecruitingRefused(
            _("Something was requested of it since. Look at it again."), code="changed_since"
        ),
    )


def _send(recruitment: Recruitment, job: Job) -> None:
    # What a try may have brought about that nobody heard of, a later refusal does not take back.
    was_tried = job.arguments.get("was_tried") or job.arguments.get("token")
    _note_sent(job, was_tried=True)
    try:
        answered = _perform(recruitment, job.arguments)
    except RecruitingRefused:
        if not was_tried:
            _note_sent(job, is_refused=True, was_tried=False)
        raise
    _note_sent(job, is_sent=True, **answered)


def _perform(recruitment: Recruitment, arguments: Mapping[str, Any]) -> dict[str, int]:
    action = arguments["action"]
    if action == DRAFT:
        _require_alone(recruitment)
        recruiter_api.draft(recruitment)
    elif action == DEMOGRAPHICS:
        recruiter_api.ask_demographics(recruitment)
    elif action == ERASE:
        recruiter_api.erase_participant(recruitment, worker_id=arguments["worker_id"])
    elif action == BONUS:
        bonus = {name: arguments[name] for name in ("worker_id", "amount", "reason")}
        return {
            "call": recruiter_api.pay_bonus(recruitment, token_of(recruitment, arguments), **bonus)
        }
    elif action == SETTLE:
        number, was_done = arguments["call"], arguments["was_done"]
        recruiter_api.settle(recruitment, number=number, was_done=was_done)
    elif action == PRICE_BONUS:
        recruiter_api.act(
            recruitment,
            BONUS,
            token_of(recruitment, arguments),
            {name: arguments[name] for name in ("worker_id", "amount")},
        )
    else:
        recruiter_api.act(
            recruitment,
            action,
            token_of(recruitment, arguments),
            {name: arguments[name] for name in ("places", "confirmed") if name in arguments},
        )
    return {}


def _note_sent(job: Job, **facts: bool | int) -> None:
    # An attempt that only waits sends nothing again.
    said = {name: job.arguments[name] for name in job.arguments if name != "is_refused"}
    Job.objects.filter(pk=job.pk).update(arguments=said | facts)


def _note_refusal(recruitment: Recruitment, action: str, problem: str) -> None:
    rows = Recruitment.objects.filter(pk=recruitment.pk)
    rows.update(is_under_way=False, problem=problem)
    if action == DRAFT:
        rows.filter(state=State.REQUESTED).update(state=State.REFUSED)


# What is said of actions that leave the study as it is.
REPORTS = {
    SETTLE: gettext_lazy("It is settled."),
    BONUS: gettext_lazy("The bonus is written down; the recruiter pays it within a minute."),
    ERASE: gettext_lazy("Who the participant is was erased at the marketplace; the answers stay."),
    DEMOGRAPHICS: gettext_lazy(
        "The recruiter is asked for demographics; the file has them in a minute."
    ),
}


def _report(recruitment: Recruitment, action: str) -> str:
    cost = f"{displayed(recruitment.quoted_cost or Decimal(0))} {recruitment.recruiter.currency}"
    facts = {"places": f"{recruitment.quoted_places or 0:,}", "cost": cost}
    n = recruitment.quoted_places or 0
    if action == DRAFT:
        return ngettext(
            "The draft has {places} place and costs {cost}.",
            "The draft has {places} places and costs {cost}.",
            n,
        ).format(**facts)
    if action == PRICE:
        return ngettext(
            "{places} place in all costs {cost} more.",
            "{places} places in all cost {cost} more.",
            n,
        ).format(**facts)
    if action == PRICE_BONUS:
        text = _("A bonus of {bonus} costs {cost}, the recruiter's fees included.")
        currency = recruitment.recruiter.currency
        bonus = displayed(recruitment.quoted_bonus or Decimal(0))
        total = displayed(recruitment.quoted_bonus_cost or Decimal(0))
        return text.format(bonus=f"{bonus} {currency}", cost=f"{total} {currency}")
    if action in REPORTS:
        return str(REPORTS[action])
    return _("The study is: {state}.").format(state=recruitment.get_state_display().lower())


# In which states of a study what was requested of it is done.
DONE_IN = {
    DRAFT: (State.DRAFT, State.ACTIVE, State.PAUSED, State.STOPPED),
    PUBLISH: (State.ACTIVE, State.PAUSED, State.STOPPED),
    PAUSE: (State.PAUSED,),
    RESUME: (State.ACTIVE,),
    STOP: (State.STOPPED,),
    DISCARD: (State.DISCARDED,),
}


def note_done_since(connection: Connection) -> None:
    studies = {
        one.pk: one
        for one in Recruitment.objects.filter(
            batch__connection=connection, is_under_way=False
        ).select_related("batch__study")
    }
    subjects = {subject_of(one.batch.study) for one in studies.values()}
    for job in Job.objects.of_kind(RECRUIT).filter(subject__in=subjects, state=Job.State.FAILED):
        study = studies.get(job.arguments["recruitment"])
        if study is None or job.arguments["number"] != study.n_requests:
            continue
        if message := _done_since(study, job.arguments):
            Job.objects.filter(pk=job.pk, state=Job.State.FAILED).update(
                state=Job.State.DONE, message=message
            )


def _done_since(study: Recruitment, arguments: Mapping[str, Any]) -> str:
    action = arguments["action"]
    if action == SETTLE:
        is_listed = RecruiterCall.objects.filter(
            recruitment=study, number=arguments["call"], is_uncertain=True
        ).exists()
        return "" if is_listed else _("Nothing of it is left to be settled.")
    is_done = study.state in DONE_IN.get(action, ())
    if action == PLACES:
        is_done = study.places >= arguments["places"]
    return _("It was done all the same, as was seen later.") if is_done else ""
